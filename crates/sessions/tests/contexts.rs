//! Clients that follow search results by ADDTO and REMOVEFROM alone (RFC 5267 §4.3): at every moment their lists must be what the same
//! search finds. Random commands of several clients; a failure prints its seed.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use mailyard_sessions::imap::{Context, ImapSession, Settings};
use mailyard_sessions::{Output, Step};
use platform::Prng;
use support::NOW;

/// A search that is followed.
struct Followed {
    tag: &'static str,
    /// The command without its return options.
    search: &'static str,
    uid: bool,
    sorted: bool,
    /// What the client has.
    list: Vec<u32>,
}

/// Command, whether it gives UIDs, whether it sorts.
const SEARCHES: [(&str, &str, bool, bool); 6] = [
    ("c0", "SEARCH % FLAGGED", false, false),
    ("c1", "UID SEARCH % NOT DELETED SUBJECT a", true, false),
    ("c2", "UID SORT % (SUBJECT REVERSE SIZE) UTF-8 FLAGGED", true, true),
    ("c3", "SORT % (REVERSE FROM DATE) UTF-8 NOT DELETED", false, true),
    ("c4", "UID SEARCH % OR KEYWORD work UNSEEN", true, false),
    ("c5", "SORT % (REVERSE SIZE) UTF-8 OR SEEN KEYWORD work", false, true),
];

struct Client {
    session: ImapSession,
    out: Output,
    exists: u32,
    followed: Vec<Followed>,
    idle: bool,
    heard: Vec<String>,
}

impl Client {
    fn new(context: &Arc<Context>, which: &[usize]) -> Self {
        let (session, out) = (support::session(context), Output::new(200));
        let mut client = Client { session, out, exists: 0, followed: Vec::new(), idle: false, heard: Vec::new() };
        client.ask("a LOGIN ann x");
        client.ask("a SELECT INBOX");
        for (tag, search, uid, sorted) in which.iter().map(|n| SEARCHES[*n]) {
            client.followed.push(Followed { tag, search, uid, sorted, list: Vec::new() });
            client.ask(&format!("{tag} {}", search.replace('%', "RETURN (UPDATE ALL)")));
        }
        client
    }

    fn ask(&mut self, line: &str) {
        self.heard.push(format!("C: {line}"));
        let octets = format!("{line}\r\n").into_bytes();
        assert_eq!(self.session.receive(&octets), octets.len());
        self.hear();
    }

    fn hear(&mut self) {
        let mut said = Vec::new();
        loop {
            let step = self.session.step(NOW, &mut self.out);
            said.extend_from_slice(self.out.pending());
            self.out.consume(usize::MAX);
            match step {
                Step::Output => {}
                Step::NeedInput { .. } => break,
                other => panic!("{other:?}"),
            }
        }
        for line in String::from_utf8(said).unwrap().lines() {
            self.heard.push(format!("S: {line}"));
            assert!(!line.contains(" BAD "), "{}", self.heard.join("\n"));
            self.learn(line);
        }
    }

    fn learn(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["*", count, "EXISTS"] => self.exists = count.parse().unwrap(),
            ["*", seq, "EXPUNGE"] => {
                let seq: u32 = seq.parse().unwrap();
                self.exists -= 1;
                for followed in self.followed.iter_mut().filter(|followed| !followed.uid) {
                    assert!(!followed.list.contains(&seq), "{line} of what was not removed\n{}", self.heard.join("\n"));
                    followed.list.iter_mut().filter(|number| **number > seq).for_each(|number| *number -= 1);
                }
            }
            ["*", "ESEARCH", "(TAG", tag, rest @ ..] => {
                let tag = tag.trim_end_matches(')').trim_matches('"');
                let Some(followed) = self.followed.iter_mut().find(|followed| followed.tag == tag) else { return };
                let rest = rest.strip_prefix(&["UID"]).unwrap_or(rest);
                assert_eq!(rest.len() + 4 < words.len(), followed.uid, "{line}");
                match rest {
                    ["ALL", set] => followed.list = numbers(set),
                    items => followed.update(items, self.exists, line),
                }
            }
            _ => {}
        }
    }

    /// The same searches now.
    fn check(&mut self) {
        for n in 0..self.followed.len() {
            let command = format!("z {}", self.followed[n].search.replace("% ", ""));
            let octets = format!("{command}\r\n").into_bytes();
            assert_eq!(self.session.receive(&octets), octets.len());
            let expected = self.followed[n].list.clone();
            let before = self.heard.len();
            self.hear();
            // The answer comes first, and is about what the client knew until then.
            let answer: Vec<&str> = self.heard[before].split(' ').collect();
            let answer: Vec<u32> = answer[3..].iter().map(|number| number.parse().unwrap()).collect();
            assert_eq!(answer, expected, "{command}\n{}", self.heard.join("\n"));
        }
    }
}

impl Followed {
    /// RFC 5267 §4.3.3 and §4.3.4: pairs of a position and a set, one after the other.
    fn update(&mut self, items: &[&str], exists: u32, line: &str) {
        let mut items = items.iter();
        while let Some(name) = items.next() {
            loop {
                let position: usize = items.next().unwrap().trim_start_matches('(').parse().unwrap();
                let set = items.next().unwrap();
                assert_eq!(position == 0, !self.sorted, "{line}");
                let numbers = numbers(set.trim_end_matches(')'));
                assert!(self.uid || numbers.iter().all(|number| *number <= exists), "{line}: there are {exists}");
                match (*name, position) {
                    ("REMOVEFROM", 0) => {
                        let before = self.list.len();
                        self.list.retain(|number| !numbers.contains(number));
                        assert_eq!(self.list.len() + numbers.len(), before, "{line}");
                    }
                    ("REMOVEFROM", position) => {
                        let gone: Vec<u32> = self.list.drain(position - 1..position - 1 + numbers.len()).collect();
                        assert_eq!(gone, numbers, "{line}");
                    }
                    ("ADDTO", 0) => {
                        assert!(numbers.iter().all(|number| !self.list.contains(number)), "{line}");
                        self.list.extend(numbers);
                        self.list.sort_unstable();
                    }
                    ("ADDTO", position) => drop(self.list.splice(position - 1..position - 1, numbers)),
                    other => panic!("{line}: {other:?}"),
                }
                if set.ends_with(')') {
                    break;
                }
            }
        }
    }
}

fn numbers(set: &str) -> Vec<u32> {
    set.split(',')
        .flat_map(|range| {
            let (first, last) = range.split_once(':').unwrap_or((range, range));
            first.parse::<u32>().unwrap()..=last.parse().unwrap()
        })
        .collect()
}

fn act(clients: &mut [Client], prng: &mut Prng) {
    let at = prng.index(clients.len());
    let client = &mut clients[at];
    if std::mem::take(&mut client.idle) {
        client.ask("DONE");
        return;
    }
    let flag = *prng.pick(&["\\Seen", "\\Deleted", "\\Flagged", "work"]).unwrap();
    let sign = if prng.one_in(2) { "+" } else { "-" };
    let silent = if prng.one_in(2) { ".SILENT" } else { "" };
    match prng.below(if client.exists == 0 { 2 } else { 9 }) {
        0 => client.ask("a NOOP"),
        1 => {
            let name = *prng.pick(&["ann", "bob", "carl"]).unwrap();
            let text = format!("Subject: {name}\r\nFrom: {name}@x\r\n\r\n{}", "x".repeat(prng.index(4)));
            client.ask(&format!("a APPEND INBOX ({flag}) {{{}+}}\r\n{text}", text.len()));
        }
        2 => {
            client.idle = true;
            client.ask("a IDLE");
        }
        3 => client.ask("a EXPUNGE"),
        4 => client.ask(&format!("a COPY {} INBOX", prng.index(client.exists as usize) + 1)),
        5 => client.ask("a SEARCH ALL"),
        6 => client.ask(&format!("a UID STORE 1:* {sign}FLAGS{silent} ({flag})")),
        _ => {
            let (a, b) = (prng.index(client.exists as usize) + 1, prng.index(client.exists as usize) + 1);
            client.ask(&format!("a STORE {a}:{b} {sign}FLAGS{silent} ({flag})"));
        }
    }
}

fn play(seed: u64) {
    let mut prng = Prng::new(seed);
    let context = support::context(seed, Settings::default());
    let mut clients = vec![Client::new(&context, &[])];
    for _ in 0..prng.index(12) {
        act(&mut clients, &mut prng);
    }
    if std::mem::take(&mut clients[0].idle) {
        clients[0].ask("DONE");
    }
    clients.push(Client::new(&context, &[0, 2, 4]));
    clients.push(Client::new(&context, &[1, 3, 5]));
    clients.push(Client::new(&context, &[0, 1, 2, 3, 4, 5]));
    for _ in 0..50 {
        act(&mut clients, &mut prng);
        clients.iter_mut().filter(|client| client.idle).for_each(Client::hear);
        let at = prng.index(clients.len());
        if !clients[at].idle {
            clients[at].check();
        }
    }
    for client in &mut clients {
        client.ask(if client.idle { "DONE" } else { "y NOOP" });
        client.check();
    }
}

#[test]
fn lists_are_what_the_search_finds() {
    let seeds = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).map_or(0..200, |seed| seed..seed + 1);
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| play(seed)) {
            eprintln!("SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
