//! Several clients at one mailbox: each keeps, by the rules of RFC 9051 §7.5 and RFC 7162 §3.2.10 alone, what it has been told; at
//! every moment that must be what the server believes that it knows. Random commands; a failure prints its seed.

#![allow(clippy::unwrap_used, reason = "tests")]

mod formats;
#[path = "../../store-sql/tests/support/mariadb.rs"]
mod mariadb;
#[path = "formats/sql.rs"]
mod sql;
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use formats::Format;
use mailyard_sessions::imap::{Context, ImapSession, Settings};
use mailyard_sessions::{Output, Step};
use platform::Prng;
use support::NOW;

/// What a client knows of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    uid: Option<u32>,
    flags: Option<BTreeSet<String>>,
}

struct Client {
    session: ImapSession,
    out: Output,
    mailbox: Mailbox,
    idle: bool,
    /// What was said, for the report of a failure.
    heard: Vec<String>,
}

/// What a client knows of the mailbox.
#[derive(Default)]
struct Mailbox {
    messages: Vec<Known>,
}

impl Mailbox {
    /// Takes in a response.
    fn learn(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["*", count, "EXISTS"] => {
                let count: usize = count.parse().unwrap();
                assert!(count >= self.messages.len(), "EXISTS goes down");
                self.messages.resize(count, Known::default());
            }
            ["*", seq, "EXPUNGE"] => {
                self.messages.remove(seq.parse::<usize>().unwrap() - 1);
            }
            ["*", "VANISHED", set] => {
                for uid in numbers(set) {
                    // One whose UID the client has not asked for yet is among the newest.
                    let is = |wanted| self.messages.iter().rposition(|known| known.uid == wanted);
                    let at = is(Some(uid)).or_else(|| is(None));
                    self.messages.remove(at.unwrap_or_else(|| panic!("VANISHED {uid}: {:?}", self.messages)));
                }
            }
            ["*", seq, "FETCH", ..] => {
                let known = &mut self.messages[seq.parse::<usize>().unwrap() - 1];
                if let Some((_, rest)) = line.split_once("UID ") {
                    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                    let uid = digits.parse().unwrap();
                    assert!(known.uid.is_none_or(|before| before == uid), "{line}: it was UID {:?}", known.uid);
                    known.uid = Some(uid);
                }
                if let Some((_, rest)) = line.split_once("FLAGS (") {
                    let flags = rest.split(')').next().unwrap();
                    known.flags = Some(flags.split(' ').filter(|flag| !flag.is_empty()).map(str::to_owned).collect());
                }
            }
            _ => {}
        }
    }
}

impl Client {
    fn new(context: &Arc<Context>, enable: &str) -> Self {
        let session = support::session(context);
        let out = Output::new(200);
        let mut client = Client { session, out, mailbox: Mailbox::default(), idle: false, heard: Vec::new() };
        client.ask("a LOGIN ann x", false);
        if !enable.is_empty() {
            client.ask(&format!("a ENABLE {enable}"), false);
        }
        client.ask("a SELECT INBOX", false);
        client
    }

    /// Says a line (and its end) and takes in what is answered. `numbered`: the command may not bring expunges (RFC 9051 §7.5.1).
    fn ask(&mut self, line: &str, numbered: bool) -> Vec<String> {
        self.heard.push(format!("C: {line}"));
        let octets = format!("{line}\r\n").into_bytes();
        assert_eq!(self.session.receive(&octets), octets.len());
        self.hear(numbered)
    }

    /// Lets the session go on and takes in what it says.
    fn hear(&mut self, numbered: bool) -> Vec<String> {
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
        let lines: Vec<String> = String::from_utf8(said).unwrap().lines().map(str::to_owned).collect();
        for line in &lines {
            self.heard.push(format!("S: {line}"));
            assert!(!line.contains(" BAD "), "{line}");
            let gone = line.ends_with(" EXPUNGE") || line.starts_with("* VANISHED");
            assert!(!(numbered && gone), "{line} after a command that may not bring it");
            self.mailbox.learn(line);
        }
        lines
    }

    /// A change of its own that the client asked not to be told of.
    fn assume(&mut self, seqs: &[usize], add: bool, flag: &str) {
        for seq in seqs {
            if let Some(flags) = &mut self.mailbox.messages[seq - 1].flags {
                if add {
                    flags.insert(flag.to_owned());
                } else {
                    flags.remove(flag);
                }
            }
        }
    }

    /// Everything that the client believes must be what the server says.
    fn check(&mut self) {
        let before = self.mailbox.messages.clone();
        if before.is_empty() {
            return;
        }
        // The first responses are of what the view was; what comes behind them may be news.
        let lines = self.ask("z FETCH 1:* (UID FLAGS)", true);
        let mut told = Mailbox { messages: vec![Known::default(); before.len()] };
        lines.iter().filter(|line| line.contains(" FETCH (")).take(before.len()).for_each(|line| told.learn(line));
        for (n, (before, told)) in before.iter().zip(&told.messages).enumerate() {
            let same = before.uid.is_none_or(|uid| told.uid == Some(uid))
                && before.flags.as_ref().is_none_or(|flags| told.flags.as_ref() == Some(flags));
            assert!(same, "message {}: {before:?}, told {told:?}\n{}", n + 1, self.heard.join("\n"));
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

const FLAGS: [&str; 4] = ["\\Seen", "\\Deleted", "\\Flagged", "work"];

/// One random command of a random client.
fn act(clients: &mut [Client], prng: &mut Prng) {
    let at = prng.index(clients.len());
    let client = &mut clients[at];
    if client.idle {
        client.idle = false;
        client.ask("DONE", false);
        return;
    }
    let count = client.mailbox.messages.len();
    let some = |prng: &mut Prng| -> Vec<usize> {
        let mut seqs: Vec<usize> = (0..prng.between(1, 3)).map(|_| prng.index(count) + 1).collect();
        seqs.sort_unstable();
        seqs.dedup();
        seqs
    };
    let join = |seqs: &[usize]| seqs.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let flag = *prng.pick(&FLAGS).unwrap();
    match prng.below(if count == 0 { 3 } else { 11 }) {
        0 => drop(client.ask("a NOOP", false)),
        1 => drop(client.ask("a APPEND INBOX {1+}\r\nx", false)),
        2 => {
            client.idle = true;
            client.ask("a IDLE", false);
        }
        3 => drop(client.ask("a EXPUNGE", false)),
        4 => {
            let set = join(&some(prng));
            client.ask(&format!("a COPY {set} INBOX"), false);
        }
        5 => {
            let set = join(&some(prng));
            client.ask(&format!("a MOVE {set} INBOX"), false);
        }
        6 => drop(client.ask(&format!("a UID STORE 1:* +FLAGS ({flag})"), false)),
        7 => drop(client.ask("a FETCH 1:* (FLAGS)", true)),
        8 => {
            let (seqs, add) = (some(prng), prng.one_in(2));
            // What the client asked for and what it is told come in this order: an answer is newer than the assumption.
            client.assume(&seqs, add, flag);
            let sign = if add { '+' } else { '-' };
            let lines = client.ask(&format!("a STORE {} {sign}FLAGS.SILENT ({flag})", join(&seqs)), true);
            if lines.iter().any(|line| line.starts_with("a NO")) {
                // Some were expunged: what became of their flags is nobody's concern.
                seqs.iter().for_each(|seq| client.mailbox.messages[seq - 1].flags = None);
            }
        }
        _ => {
            let seqs = some(prng);
            let sign = if prng.one_in(2) { "+" } else { "-" };
            client.ask(&format!("a STORE {} {sign}FLAGS ({flag})", join(&seqs)), true);
        }
    }
}

fn play(seed: u64, format: Format) {
    let mut prng = Prng::new(seed);
    let cluster = (format == Format::Sql).then(sql::cluster);
    let create = |store: &store::Store, name: &model::AccountName| format.create(store, name);
    let context = support::context_with(seed, Settings::default(), cluster, "ann", create);
    let mut clients: Vec<Client> =
        ["", "IMAP4rev2", "QRESYNC", "CONDSTORE"].iter().map(|enable| Client::new(&context, enable)).collect();
    for _ in 0..60 {
        act(&mut clients, &mut prng);
        for client in &mut clients {
            if client.idle {
                client.hear(false);
            }
            // A client of VANISHED has to know the UIDs of all that is told to it, so it asks at once.
            if client.mailbox.messages.iter().any(|known| known.uid.is_none()) {
                if std::mem::take(&mut client.idle) {
                    client.ask("DONE", false);
                }
                client.ask("u FETCH 1:* (UID)", true);
            }
        }
        let at = prng.index(clients.len());
        let client = &mut clients[at];
        if !client.idle {
            client.check();
        }
    }
    for client in &mut clients {
        if client.idle {
            client.ask("DONE", false);
        }
        client.ask("y NOOP", false);
        client.check();
    }
    let last: Vec<_> = clients
        .iter()
        .map(|client| client.mailbox.messages.iter().map(|known| known.uid).collect::<Vec<_>>())
        .collect();
    assert!(last.windows(2).all(|pair| pair[0] == pair[1]), "the clients end with different messages: {last:?}");
}

fn play_seeds(all: std::ops::Range<u64>, format: Format) {
    let seeds = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).map_or(all, |seed| seed..seed + 1);
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| play(seed, format)) {
            eprintln!("SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn each_knows_what_the_server_believes_that_it_knows() {
    play_seeds(0..300, Format::Native);
}

#[test]
fn on_mbox_files() {
    play_seeds(0..100, Format::Mbox);
}

#[test]
fn on_maildirs() {
    play_seeds(0..100, Format::Maildir);
}

#[test]
fn on_a_database() {
    play_seeds(0..25, Format::Sql);
}
