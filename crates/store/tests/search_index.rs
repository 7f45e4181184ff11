//! The search index beside a scan: through sealing, appends, expunges, compaction, reopening, damage, a lost index and the index of another
//! history, random queries get the same answers as from a scan of every message.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AccountName, CivilDate, Flags, MailboxId, MailboxName, NumSet, SystemFlag};
use platform::sim::SimEnv;
use platform::{Disk, OpenMode, Prng};
use store::search::{DateTest, Query, Search};
use store::{Account, FlagNames, NewMessage, Options, Store, StoreFlags, StoreMode};

const INDEX: &str = "/data/accounts/ann/index";
const LOG: &str = "/data/accounts/ann/log";

/// Small files, so that there are many of them.
fn options() -> Options {
    let mut options = Options::default();
    options.log.tail_bytes_max = 40_000;
    options.log.idle_tail_bytes_max = 4_000;
    options.log.merge_bytes_max = 60_000;
    options.log.preallocate_bytes_min = 0;
    options.log.retention_seconds = 0;
    options.maintain_step_bytes = 16_000;
    options
}

struct Place {
    store: Arc<Store>,
    account: Arc<Account>,
    inbox: MailboxId,
    other: MailboxId,
}

impl Place {
    fn open(sim: &SimEnv, options: Options) -> Place {
        let store = Store::open(sim.env(), PathBuf::from("/data"), options).unwrap();
        let name = AccountName::new("ann").unwrap();
        let _ = store.create_account(&name);
        let account = store.account(&name).unwrap();
        let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
        let other = MailboxName::new("other").unwrap();
        let other = account.mailbox(&other).or_else(|_| account.create_mailbox(&other, &[])).unwrap();
        Place { store, account, inbox, other }
    }

    fn append(&self, random: &mut Prng, count: usize) {
        let mailbox = if random.below(4) == 0 { self.other } else { self.inbox };
        let messages = (0..count).map(|_| {
            let mut writer = self.account.message_writer().unwrap();
            writer.write(&message(random)).unwrap();
            let system = if random.below(2) == 0 { vec![SystemFlag::Seen] } else { Vec::new() };
            let flags = FlagNames { system, keywords: Vec::new() };
            NewMessage { message: writer.finish().unwrap(), flags, internal_date: None }
        });
        self.account.append(mailbox, messages.collect()).unwrap();
    }

    fn expunge(&self, random: &mut Prng, one_in: u64) {
        let view = self.account.view(self.inbox, false).unwrap();
        let uids: NumSet = view.all_rows().map(|entry| entry.uid.get()).filter(|_| random.below(one_in) == 0).collect();
        let deleted = FlagNames { system: vec![SystemFlag::Deleted], keywords: Vec::new() };
        let request = StoreFlags { mode: StoreMode::Add, flags: deleted, unchanged_since: None };
        self.account.store_flags(self.inbox, &uids, &request).unwrap();
        self.account.expunge(self.inbox, None).unwrap();
    }

    fn settle(&self) {
        for _ in 0..3 {
            while self.store.maintain().unwrap() {}
        }
    }

    /// Random queries, answered both ways. Returns how many had an answer that is neither nothing nor everything.
    fn compare(&self, random: &mut Prng, count: usize, what: &str) -> usize {
        let mut telling = 0;
        for _ in 0..count {
            let mailbox = if random.below(4) == 0 { self.other } else { self.inbox };
            let view = self.account.view(mailbox, false).unwrap();
            let query = query(random, 3);
            let indexed = Search::new(view.clone(), self.account.reader(), query.clone(), 0).finish().unwrap();
            let scanned = Search::scanning(view.clone(), self.account.reader(), query.clone(), 0).finish().unwrap();
            assert_eq!(indexed, scanned, "{what}: {query:?}");
            let found = u32::try_from(indexed.0.len()).unwrap();
            telling += usize::from(found > 0 && found < view.exists());
        }
        telling
    }
}

const WORDS: [&str; 34] = [
    "of",
    "the",
    "in",
    "a",
    "budget",
    "Budget",
    "2026",
    "happy",
    "birthday",
    "free",
    "money",
    "proof",
    "theory",
    "Stra\u{df}e",
    "STRASSE",
    "caf\u{e9}",
    "cafe\u{301}",
    "\u{41c}\u{43e}\u{441}\u{43a}\u{432}\u{430}",
    "\u{43c}\u{43e}\u{441}\u{43a}\u{432}\u{435}",
    "\u{3b1}\u{3b2}\u{3b3}\u{3c2}",
    "\u{65e5}\u{672c}\u{8a9e}",
    "\u{6771}\u{4eac}\u{90fd}",
    "\u{d55c}\u{ad6d}\u{c5b4}",
    "ann@example.org",
    "x",
    "42",
    "$$$",
    "=?x",
    "don't",
    "\u{627}\u{644}\u{633}\u{644}\u{627}\u{645}",
    "\u{130}stanbul",
    "\u{fb01}ne",
    "\u{1f600}",
    "...",
];
const GAPS: [&str; 8] = [" ", " ", " ", " ", ", ", "\r\n", ": ", "--"];

fn words(random: &mut Prng, count: u64) -> String {
    let mut text = String::new();
    for n in 0..random.below(count + 1) {
        if n > 0 {
            text += GAPS[random.index(GAPS.len())];
        }
        text += WORDS[random.index(WORDS.len())];
        if random.below(30) == 0 {
            text += &"Long0123".repeat(random.index(40));
        }
    }
    text
}

fn line(random: &mut Prng, count: u64) -> String {
    words(random, count).replace("\r\n", " ")
}

fn quoted_printable(text: &str) -> String {
    let mut out = String::new();
    for (n, byte) in text.bytes().enumerate() {
        match byte {
            b'=' | 0x80.. => out += &format!("={byte:02X}"),
            _ => out.push(char::from(byte)),
        }
        if n % 31 == 30 {
            out += "=\r\n";
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for (n, three) in bytes.chunks(3).enumerate() {
        let bits = (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at > three.len() { '=' } else { char::from(digit) });
        }
        if n % 13 == 12 {
            out += "\r\n";
        }
    }
    out
}

/// A message of some shape, script and encoding.
fn message(random: &mut Prng) -> Vec<u8> {
    let mut head = String::new();
    for name in ["Subject", "From", "To", "Cc", "X-Note", "subject", "List-Id"] {
        if random.below(3) > 0 {
            let value = line(random, 5);
            head += &match random.below(3) {
                0 => format!("{name}: =?utf-8?B?{}?=\r\n", base64(value.as_bytes()).replace("\r\n", "")),
                _ => format!("{name}: {value}\r\n"),
            };
        }
    }
    if random.below(2) == 0 {
        head += &format!("Date: {} Mar 2004 {:02}:00:00 +0100\r\n", 1 + random.below(28), random.below(24));
    }
    let body = words(random, 60);
    let mut out = head.into_bytes();
    match random.below(8) {
        0 => {
            let text = quoted_printable(&body);
            out.extend_from_slice(
                b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n",
            );
            out.extend_from_slice(text.as_bytes());
        }
        1 => {
            out.extend_from_slice(
                b"Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n",
            );
            let html = format!("<p>{}</p><b>caf&eacute;</b> &amp;c", body.replace(' ', " <i>of</i> "));
            out.extend_from_slice(base64(html.as_bytes()).as_bytes());
        }
        2 => {
            // 日本語 and 東京 in ISO-2022-JP, Москва in KOI8-R, Straße in windows-1252.
            let part = |charset: &str, bytes: &[u8]| {
                let head = format!("--b\r\nContent-Type: text/plain; charset={charset}\r\nX-Part: budget part\r\n\r\n");
                [head.as_bytes(), bytes, b"\r\n"].concat()
            };
            out.extend_from_slice(b"Content-Type: multipart/mixed; boundary=b\r\n\r\npreamble money\r\n");
            out.extend(part("iso-2022-jp", b"x \x1b$BF|K\\8l\x1b(B of \x1b$BEl5~\x1b(B"));
            out.extend(part("koi8-r", b"\xed\xcf\xd3\xcb\xd7\xc1 the \xed\xcf\xd3\xcb\xd7\xc1"));
            out.extend(part("windows-1252", b"in der Stra\xdfe"));
            out.extend(part("utf-8", body.as_bytes()));
            out.extend_from_slice(b"--b\r\nContent-Type: application/pdf\r\n\r\nhappy secret\r\n--b--\r\n");
        }
        3 => {
            out.extend_from_slice(b"Content-Type: message/rfc822\r\n\r\n");
            out.extend_from_slice(format!("Subject: inner {}\r\n\r\n{body}\r\n", line(random, 3)).as_bytes());
        }
        4 => out.extend_from_slice(b"Content-Type: image/png; name*=utf-8''happy%20proof\r\n\r\nhappy free"),
        _ => out.extend_from_slice(format!("Content-Type: text/plain; charset=utf-8\r\n\r\n{body}").as_bytes()),
    }
    out
}

/// A piece of some text as it could be in a message.
fn needle(random: &mut Prng) -> String {
    let text = match random.below(4) {
        0 => WORDS[random.index(WORDS.len())].to_owned(),
        1 => line(random, 2),
        _ => words(random, 4),
    };
    let text = if random.below(3) == 0 { text.to_uppercase() } else { text };
    let start = text.floor_char_boundary(random.index(text.len() + 1));
    let len_max = if random.below(4) == 0 { 100 } else { 12 };
    let len = 1 + random.index(len_max);
    text[start..text.ceil_char_boundary((start + len).min(text.len()))].to_owned()
}

fn query(random: &mut Prng, depth: u32) -> Query {
    const NAMES: [&str; 9] = ["Subject", "FROM", "to", "cc", "Bcc", "x-note", "List-Id", "date", "content-type"];
    let boxed = |random: &mut Prng| Box::new(query(random, depth - 1));
    let date = CivilDate::new(2004, 3, 1 + random.below(28) as u8).unwrap();
    match random.below(if depth == 0 { 10 } else { 16 }) {
        0..=2 => Query::Body(needle(random)),
        3 | 4 => Query::Text(needle(random)),
        5 | 6 => {
            let text = if random.below(8) == 0 { String::new() } else { needle(random) };
            Query::Header(NAMES[random.index(NAMES.len())].to_owned(), text)
        }
        7 => Query::Sent([DateTest::Before(date), DateTest::On(date), DateTest::Since(date)][random.index(3)]),
        8 => Query::HasFlag(Flags::system(SystemFlag::Seen)),
        9 => Query::Larger(random.below(600)),
        10 | 11 => Query::And((0..random.below(4)).map(|_| query(random, depth - 1)).collect()),
        12 | 13 => Query::Or(boxed(random), boxed(random)),
        _ => Query::Not(boxed(random)),
    }
}

fn names(disk: &dyn Disk, dir: &str) -> Vec<PathBuf> {
    disk.list(Path::new(dir)).unwrap().into_iter().map(|entry| Path::new(dir).join(entry.name)).collect()
}

fn parts(sim: &SimEnv) -> Vec<PathBuf> {
    let is_part = |path: &PathBuf| path.to_string_lossy().contains("/search-");
    names(&*sim.env().disk, INDEX).into_iter().filter(is_part).collect()
}

#[test]
fn through_the_life_of_an_account() {
    let (mut telling, mut merged) = (0, false);
    for seed in 0..4 {
        let sim = SimEnv::new(seed);
        let mut random = Prng::new(seed + 100);
        let mut place = Place::open(&sim, options());
        let mut parts_before = 0;
        for round in 0..12 {
            let count = 1 + random.index(40);
            place.append(&mut random, count);
            // What was acknowledged a moment ago.
            telling += place.compare(&mut random, 15, "fresh");
            match random.below(5) {
                0 => place.settle(),
                1 => place.expunge(&mut random, 3),
                2 => {
                    place.settle();
                    drop(place);
                    place = Place::open(&sim, options());
                }
                _ => {
                    let _ = place.store.maintain().unwrap();
                }
            }
            telling += place.compare(&mut random, 40, &format!("seed {seed}, round {round}"));
        }
        place.settle();
        sim.clock.advance(std::time::Duration::from_secs(100));
        place.settle();
        merged |= parts(&sim).len() < parts_before;
        parts_before = parts(&sim).len();
        merged |= parts_before < 8;
        assert!(parts_before > 0, "nothing was indexed");
        telling += place.compare(&mut random, 200, "at last");
        let report = place.account.check().unwrap();
        assert_eq!(report.findings, []);
        assert!(report.indexed > 50, "{report:?}");
    }
    assert!(merged && telling > 800, "{telling}");
}

#[test]
fn what_is_in_the_tail_is_indexed_in_memory() {
    let sim = SimEnv::new(7);
    let mut random = Prng::new(8);
    let place = Place::open(&sim, Options::default());
    for _ in 0..40 {
        place.append(&mut random, 20);
        while place.store.maintain().unwrap() {}
        place.compare(&mut random, 5, "growing");
    }
    assert!(place.compare(&mut random, 500, "in the tail") > 150);
    assert!(parts(&sim).is_empty(), "a tail is no sealed segment");
}

#[test]
fn a_lost_or_damaged_index_is_made_again() {
    let sim = SimEnv::new(21);
    let mut random = Prng::new(22);
    let place = Place::open(&sim, options());
    for _ in 0..8 {
        place.append(&mut random, 30);
        place.settle();
    }
    let before = parts(&sim);
    assert!(!before.is_empty());
    let disk = sim.env().disk;

    // While it is in use.
    for path in names(&*disk, INDEX) {
        disk.remove(&path).unwrap();
    }
    place.compare(&mut random, 40, "removed");
    place.settle();
    assert!(!parts(&sim).is_empty(), "made again");
    place.compare(&mut random, 40, "made again");
    drop(place);

    // While nobody looks, all of it and single files.
    for path in names(&*disk, INDEX) {
        disk.remove(&path).unwrap();
    }
    let place = Place::open(&sim, options());
    place.compare(&mut random, 40, "without an index");
    place.settle();
    drop(place);
    disk.remove(&parts(&sim)[0]).unwrap();
    let place = Place::open(&sim, options());
    place.compare(&mut random, 40, "without a part");
    assert_eq!(place.account.check().unwrap().findings.len(), 1, "a part that is missing");
    place.settle();
    assert_eq!(place.account.check().unwrap().findings, []);
    drop(place);

    // A bit anywhere in the files of the index.
    let mut found = 0;
    for round in 0..60 {
        let machine = sim.with_disk(sim.disk.crash_image(round));
        let mut files = parts(&machine);
        files.push(PathBuf::from(INDEX).join("search"));
        let path = &files[random.index(files.len())];
        let len = machine.env().disk.metadata(path).unwrap().len;
        if len == 0 {
            continue;
        }
        machine.disk.corrupt(path, random.below(len), 1 << random.below(8)).unwrap();
        let place = Place::open(&machine, options());
        place.compare(&mut random, 10, &format!("round {round}: {}", path.display()));
        found += usize::from(!place.account.check().unwrap().findings.is_empty());
        place.settle();
        assert_eq!(place.account.check().unwrap().findings, [], "round {round}: made again");
        place.compare(&mut random, 10, &format!("round {round}, made again"));
    }
    assert!(found > 20, "{found}");
}

#[test]
fn the_index_of_another_history_is_not_believed() {
    let sim = SimEnv::new(31);
    let mut random = Prng::new(32);
    let place = Place::open(&sim, options());
    place.append(&mut random, 60);
    place.settle();
    drop(place);
    let disk = sim.env().disk;
    let old: Vec<(PathBuf, Vec<u8>)> =
        names(&*disk, LOG).into_iter().map(|path| (path.clone(), disk.read(&path).unwrap())).collect();
    let place = Place::open(&sim, options());
    place.append(&mut random, 100);
    place.settle();
    drop(place);

    // The log as it was before, from a backup; the index stays.
    for path in names(&*disk, LOG) {
        disk.remove(&path).unwrap();
    }
    for (path, bytes) in old {
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&bytes, 0).unwrap();
        file.sync_data().unwrap();
    }
    // Ids that had other messages are given again.
    let place = Place::open(&sim, options());
    place.append(&mut random, 80);
    place.compare(&mut random, 100, "another history");
    place.settle();
    place.compare(&mut random, 100, "another history, sealed");
    assert_eq!(place.account.check().unwrap().findings, []);
}
