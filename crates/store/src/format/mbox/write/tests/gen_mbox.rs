//! Files as others leave them, and messages as clients send them.

use model::DateTime;
use platform::Prng;

use super::{Fate, ImapBase, New, Seen, Work, wanted};
use model::Keyword;

const FROM: [&str; 7] = [
    "From a@b Thu Aug 22 12:36:23 2002",
    "From - Fri Jan  2 10:13:52 1970",
    "From MAILER-DAEMON Thu Aug  1 12:36:23 2002 +0200",
    "From someone",
    "From a@b Thu Aug 22 12:36:23 2002",
    "From a@b Thu Aug 22 12:36:23 2002",
    "From a@b Thu Aug 22 12:36:23 2002",
];
const FIELDS: [&str; 18] = [
    "Subject: hello",
    "To: x@y\n folded",
    "Status: RO",
    "status:O   ",
    "Status: R\nX-Status: A\nX-Keywords: a b                    ",
    "X-Status: AFDT",
    "X-Keywords: Junk\n\t$Forwarded",
    "X-UID: 12",
    "X-UID: 13   \nStatus:   \nX-Status: F\nX-Keywords:                                                                         ",
    "X-IMAPbase: 1000000000 0000000020 a b",
    "X-Mailyard-Filler:                                                                                                  ",
    "X-Mailyard-Filler: ",
    "junk",
    " continued",
    "Content-Length: 100000",
    "Content-Length: x",
    "Message-ID: <1@b>",
    ">From a@b Thu Aug 22 12:36:23 2002",
];
const BODY: [&str; 10] = [
    "text",
    "",
    ">From me",
    "From the beginning",
    "a longer line of text, so that bodies are larger",
    "\0\u{e9}",
    "x\ry",
    "From: x",
    "Status: RO",
    ">>From x",
];

fn some<'a>(random: &mut Prng, of: &[&'a str]) -> &'a str {
    of[random.index(of.len())]
}

/// The octets of a file. Most have a few messages, some are odd from the start.
pub(super) fn file(random: &mut Prng) -> Vec<u8> {
    let mut text = String::new();
    if random.one_in(30) {
        text.push_str(["\n\n", "text before\n", "\r\n"][random.index(3)]);
    }
    let is_plain = random.one_in(2);
    let count = random.below(12);
    for n in 0..count {
        text.push_str(FROM[if is_plain { 0 } else { random.index(FROM.len()) }]);
        text.push('\n');
        if n == 0 && random.one_in(4) {
            text.push_str("X-IMAPbase: 1000000000 0000000020 a                 \n");
        }
        let fields = random.below(6);
        for _ in 0..fields {
            text.push_str(some(random, &FIELDS));
            text.push('\n');
        }
        if random.one_in(3) {
            let uid = n + 1;
            text.push_str(&format!("X-UID: {uid}\nStatus:   \nX-Status:     \nX-Keywords: {}\n", " ".repeat(50)));
        }
        let mut body = String::new();
        let lines_max = if random.one_in(9) { 60 } else { 8 };
        for _ in 0..random.below(lines_max) {
            body.push_str(some(random, &BODY));
            body.push('\n');
        }
        if random.one_in(5) {
            text.push_str(&format!("Content-Length: {}\n", body.len()));
        }
        if !random.one_in(12) {
            text.push('\n');
        }
        text.push_str(&body);
        if !random.one_in(12) {
            text.push('\n');
        }
    }
    if random.one_in(6) {
        text = text.replace('\n', "\r\n");
    }
    let mut bytes = text.into_bytes();
    if random.one_in(5) {
        let cut = bytes.len() - random.index(bytes.len().min(40) + 1);
        bytes.truncate(cut);
    }
    bytes
}

/// A message as a client may send it.
pub(super) fn message(random: &mut Prng, id: u64) -> New {
    let mut text = String::new();
    for _ in 0..random.below(5) {
        text.push_str(some(random, &FIELDS));
        text.push_str("\r\n");
    }
    if random.one_in(6) {
        text.push_str("From a@b Thu Aug 22 12:36:23 2002\r\n");
    }
    if !random.one_in(8) {
        text.push_str("\r\n");
        for _ in 0..random.below(9) {
            text.push_str(some(random, &BODY));
            text.push_str(["\r\n", "\n", "\r\r\n"][if random.one_in(8) { random.index(3) } else { 0 }]);
            if random.one_in(9) {
                text.push_str("From a@b Thu Aug 22 12:36:23 2002\r\n");
            }
        }
    }
    let mut served = text.into_bytes();
    if random.one_in(6) {
        let cut = served.len() - random.index(served.len().min(30) + 1);
        served.truncate(cut);
    }
    let date = DateTime::utc(random.below(4_000_000_000) as i64);
    New { id, served, wanted: wanted(random, id as u32), date, piece: 1 + random.index(100) }
}

/// What becomes of the messages of a file.
pub(super) fn work(random: &mut Prng, seen: &[Seen]) -> Work {
    let all = random.below(6);
    let (removes, updates) = (1 + random.below(8), 1 + random.below(3));
    let tail_from = random.index(seen.len() + 1);
    let mut fates = Vec::new();
    for (n, seen) in seen.iter().enumerate() {
        let is_pseudo = seen.measured.meta.is_pseudo;
        fates.push(match all {
            _ if is_pseudo => Fate::Keep,
            0 => Fate::Update(wanted(random, n as u32 + 1)),
            1 => Fate::Remove,
            2 if n >= tail_from => Fate::Remove,
            3 if n > 0 => Fate::Keep,
            _ if random.one_in(removes) => Fate::Remove,
            _ if random.one_in(updates) => Fate::Update(wanted(random, n as u32 + 1)),
            _ => Fate::Keep,
        });
    }
    let append = match random.below(3) {
        0 => (0..random.below(4)).map(|n| message(random, 1000 + n)).collect(),
        _ => Vec::new(),
    };
    let keywords = ["a", "b"].into_iter().take(random.index(3)).map(|name| Keyword::new(name).unwrap()).collect();
    let base = ImapBase { uid_validity: 1_000_000_000, last_uid: 2000, keywords };
    Work { fates, append, base }
}
