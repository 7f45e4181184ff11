//! The search's figures on this machine.
//!
//! * `search fill DIRECTORY FILE.mbox` imports into a store in DIRECTORY, indexes it, and shows how fast, in how much memory, and how large;
//! * `search index DIRECTORY` removes the index and has it made again;
//! * `search ask DIRECTORY [WORD]` times needles of every kind, taken from the mail that is there, and shows each kind as a distribution
//!   with what was slowest; with a WORD, only kinds whose name has it.
#![allow(clippy::unwrap_used, reason = "a tool for developers")]

extern crate mailyard_store as store;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mime::TextSink;
use model::{AccountName, CivilDate, MailboxName, NumSet};
use platform::{Env, Prng};
use store::import::{ImportOptions, import};
use store::order::{Algorithm, Sort, SortCriterion, SortKey, Thread};
use store::search::{DateTest, Query, Search};
use store::{Account, Options, Store, View};

/// Needles of a kind.
const SAMPLE: usize = 120;
/// Each is timed so often; the shortest time counts.
const ROUNDS: usize = 3;
/// Of each kind so many of the slowest are shown.
const SHOWN: usize = 6;

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The most memory that this process has had, MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
}

fn open(dir: &Path) -> std::sync::Arc<Store> {
    Store::open(Env::real(), dir.join("store"), Options::default()).unwrap()
}

fn user() -> AccountName {
    AccountName::new("ann").unwrap()
}

fn fill(dir: &Path, mbox: &Path) {
    let env = Env::real();
    let clock = &env.clock;
    env.disk.create_dir_all(dir).unwrap();
    let bytes = env.disk.metadata(mbox).unwrap().len as f64 / 1e6;
    let store = open(dir);
    store.create_account(&user()).unwrap();
    let account = store.account(&user()).unwrap();
    let options = ImportOptions { mailbox: Some(MailboxName::inbox()), ..ImportOptions::default() };
    let start = clock.monotonic();
    let report = import(&account, mbox, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let time = (clock.monotonic() - start).as_secs_f64();
    println!("import of {} messages: {time:.1} s, {:.1} MB/s, peak {} MiB", report.imported, bytes / time, peak_mib());
    let (start, mut steps, mut longest) = (clock.monotonic(), 0, Duration::ZERO);
    loop {
        let step = clock.monotonic();
        let is_more = store.maintain().unwrap();
        longest = longest.max(clock.monotonic() - step);
        steps += 1;
        if !is_more {
            break;
        }
    }
    let time = (clock.monotonic() - start).as_secs_f64();
    println!(
        "sealing and indexing: {time:.1} s, {:.1} MB/s, {steps} steps, the longest {:.0} ms, peak {} MiB",
        bytes / time,
        milliseconds(longest),
        peak_mib()
    );
    sizes(dir, &account);
}

/// Removes the index's files and has them made again.
fn index(dir: &Path) {
    let store = open(dir);
    let account = store.account(&user()).unwrap();
    let bytes = account.stats().unwrap().message_bytes as f64 / 1e6;
    let env = store.env();
    for path in parts(dir) {
        env.disk.remove(&path).unwrap();
    }
    let list = parts_dir(dir).join("search");
    env.disk.remove(&list).unwrap();
    let start = env.clock.monotonic();
    while store.maintain().unwrap() {}
    let time = (env.clock.monotonic() - start).as_secs_f64();
    println!("indexing alone: {time:.1} s, {:.1} MB/s, peak {} MiB", bytes / time, peak_mib());
}

fn parts_dir(dir: &Path) -> PathBuf {
    // Wherever the account's directory is.
    fn find(dir: &Path) -> Option<PathBuf> {
        std::fs::read_dir(dir).ok()?.flatten().find_map(|entry| {
            let path = entry.path();
            if path.is_dir() { find(&path) } else { (entry.file_name() == "search").then(|| dir.to_owned()) }
        })
    }
    find(dir).expect("there is an index")
}

fn parts(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(parts_dir(dir)).unwrap().flatten();
    files.filter(|file| file.file_name().to_string_lossy().starts_with("search-")).map(|file| file.path()).collect()
}

/// Octets of decoded text.
#[derive(Default)]
struct Count(u64);

impl TextSink for Count {
    fn text(&mut self, chunk: &str) -> ControlFlow<()> {
        self.0 += chunk.len() as u64;
        ControlFlow::Continue(())
    }

    fn boundary(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn whole(reader: &mut store::Reader, id: model::EmailId) -> Vec<u8> {
    let mut message = Vec::new();
    reader.read(id, 0..u64::MAX, &mut message).unwrap();
    message
}

fn sizes(dir: &Path, account: &Account) {
    let view = view(account);
    let mut reader = account.reader();
    let mut count = Count::default();
    for entry in view.all_rows() {
        let message = whole(&mut reader, entry.email_id);
        let _ = mime::header_text(reader.header(entry.email_id).unwrap(), &mut count);
        let _ = mime::body_text(&message, &mime::scan(&message).0, &mut count);
    }
    let lens: Vec<u64> = parts(dir).iter().map(|path| std::fs::metadata(path).unwrap().len()).collect();
    let sum: u64 = lens.iter().sum();
    println!(
        "{} parts, {:.1} MB; text {:.1} MB; {:.3}",
        lens.len(),
        sum as f64 / 1e6,
        count.0 as f64 / 1e6,
        sum as f64 / count.0 as f64
    );
    for path in parts(dir) {
        let image = platform::Mapped::from_vec(std::fs::read(path).unwrap());
        for (section, [tokens, token_bytes, lists]) in search::Index::open(image).unwrap().section_bytes() {
            println!("    {section:<12} {tokens:>9} tokens {token_bytes:>10} {lists:>10} bytes of lists");
        }
    }
}

fn view(account: &Account) -> View {
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    account.view(inbox, true).unwrap()
}

/// The text of a message.
#[derive(Default)]
struct Collect(String);

impl TextSink for Collect {
    fn text(&mut self, chunk: &str) -> ControlFlow<()> {
        self.0.push_str(chunk);
        ControlFlow::Continue(())
    }

    fn boundary(&mut self) -> ControlFlow<()> {
        self.0.push('\u{0}');
        ControlFlow::Continue(())
    }
}

/// Texts of messages at random.
fn texts(account: &Account, view: &View, random: &mut Prng, count: usize) -> Vec<String> {
    let ids: Vec<model::EmailId> = view.all_rows().map(|entry| entry.email_id).collect();
    let mut reader = account.reader();
    let mut all = Vec::new();
    while all.len() < count {
        let message = whole(&mut reader, ids[random.index(ids.len())]);
        let mut text = Collect::default();
        let _ = mime::body_text(&message, &mime::scan(&message).0, &mut text);
        if text.0.len() > 100 {
            all.push(text.0);
        }
    }
    all
}

/// Pieces of texts, each `len` characters.
fn pieces(texts: &[String], random: &mut Prng, lens: std::ops::Range<usize>) -> Vec<String> {
    let mut all = BTreeSet::new();
    for _ in 0..SAMPLE * 4 {
        let text = &texts[random.index(texts.len())];
        let start = text.floor_char_boundary(random.index(text.len()));
        let len = lens.start + random.index(lens.len());
        let piece: String = text[start..].chars().take(len).collect();
        if piece.chars().count() == len && !piece.contains('\u{0}') && all.len() < SAMPLE {
            all.insert(mime::fold(&piece));
        }
    }
    all.into_iter().collect()
}

/// So many words in a row.
fn phrases(texts: &[String], random: &mut Prng, words: usize) -> Vec<String> {
    let mut all = BTreeSet::new();
    for _ in 0..SAMPLE * 20 {
        let text = &texts[random.index(texts.len())];
        let split: Vec<&str> = text.split([' ', '\r', '\n', '\u{0}']).collect();
        if split.len() > words && all.len() < SAMPLE {
            let start = random.index(split.len() - words);
            let phrase = &split[start..start + words];
            let is_plain = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '\'');
            if phrase.iter().all(is_plain) {
                all.insert(mime::fold(&phrase.join(" ")));
            }
        }
    }
    all.into_iter().collect()
}

fn body(needles: impl IntoIterator<Item = String>) -> Vec<(String, Query)> {
    needles.into_iter().map(|needle| (needle.clone(), Query::Body(needle))).collect()
}

fn text(needles: impl IntoIterator<Item = String>) -> Vec<(String, Query)> {
    needles.into_iter().map(|needle| (needle.clone(), Query::Text(needle))).collect()
}

const KNOWN: [&str; 34] = [
    "happy",
    "free",
    "ha",
    "e",
    "the",
    "of the",
    "one of the",
    "in the world",
    "you, ",
    ", and",
    " the",
    " the ",
    ". I",
    ".com",
    "http://www",
    "free money",
    " have a ",
    " bo",
    ". i",
    "i'm",
    "'s",
    "n't",
    "1.",
    "20",
    "2002",
    "0",
    "--",
    "> ",
    "\r\n\r\n",
    "\r\n> ",
    "a lot of",
    "as well as the",
    "\u{e9}",
    "\u{65e5}\u{672c}",
];

/// Names of fields and texts in them.
const FIELDS: [(&str, &str); 20] = [
    ("Message-ID", "@"),
    ("Message-ID", ".com"),
    ("Message-ID", "<2002"),
    ("Received", "from"),
    ("Received", "localhost"),
    ("Received", "for <"),
    ("Content-Type", "text"),
    ("Content-Type", "text/plain"),
    ("Content-Type", "charset=us-ascii"),
    ("X-Mailer", "mozilla"),
    ("X-Mailer", "outlook express"),
    ("List-Id", "."),
    ("List-Id", ""),
    ("Date", "2002"),
    ("Date", "aug 2002"),
    ("References", "<"),
    ("In-Reply-To", "com>"),
    ("Precedence", "bulk"),
    ("X-Nowhere", "x"),
    ("Return-Path", "admin@"),
];

fn kinds(account: &Account, view: &View, wanted: &str) -> Vec<(String, Vec<(String, Query)>)> {
    let mut random = Prng::new(11);
    let texts = texts(account, view, &mut random, 600);
    let letters = || ('a'..='z').map(String::from);
    let mut kinds: Vec<(String, Vec<(String, Query)>)> = vec![
        ("known".into(), body(KNOWN.map(str::to_owned))),
        ("known text".into(), text(KNOWN.map(str::to_owned))),
        (
            "a character".into(),
            body(letters().chain(('0'..='9').map(String::from)).chain(".,-:/<>'\"()_ ".chars().map(String::from))),
        ),
        ("two letters".into(), body(letters().flat_map(|a| letters().map(move |b| a.clone() + &b)))),
        (
            "three letters".into(),
            body(
                pieces(&texts, &mut random, 3..4).into_iter().filter(|piece| piece.chars().all(char::is_alphanumeric)),
            ),
        ),
        ("two characters".into(), body(pieces(&texts, &mut random, 2..3))),
        ("three characters".into(), body(pieces(&texts, &mut random, 3..4))),
        ("4 to 8 characters".into(), body(pieces(&texts, &mut random, 4..9))),
        ("9 to 20 characters".into(), body(pieces(&texts, &mut random, 9..21))),
        ("21 to 60 characters".into(), body(pieces(&texts, &mut random, 21..61))),
    ];
    for gap in [" ", ". ", ", ", "\r\n", ".", "-", "(", "\"", "'", "/"] {
        kinds.push((format!("gap {gap:?} and a letter"), body(letters().map(|letter| gap.to_owned() + &letter))));
        kinds.push((format!("a letter and gap {gap:?}"), body(letters().map(|letter| letter + gap))));
    }
    let words = phrases(&texts, &mut random, 1);
    kinds.push(("a word".into(), body(words.clone())));
    for (before, behind) in [(" ", ""), ("", " "), (" ", " "), ("", ","), ("", ". "), ("\r\n", "")] {
        let kind = format!("a word between {before:?} and {behind:?}");
        kinds.push((kind, body(words.iter().take(60).map(|word| format!("{before}{word}{behind}")))));
    }
    for count in 2..6 {
        let phrases = phrases(&texts, &mut random, count);
        kinds.push((format!("{count} words"), body(phrases.clone())));
        kinds.push((
            format!("{count} words in spaces"),
            body(phrases.iter().take(60).map(|words| format!(" {words} "))),
        ));
        let cut = |words: &String| words.chars().skip(1).take(words.chars().count().saturating_sub(2)).collect();
        kinds.push((format!("{count} words, cut"), body(phrases.iter().take(60).map(cut))));
    }
    let named =
        |(name, text): (&str, &str)| (format!("{name}: {text}"), Query::Header(name.to_owned(), text.to_owned()));
    kinds.push(("header".into(), FIELDS.into_iter().map(named).collect()));
    let common = [("From", "john"), ("From", "@"), ("To", "list"), ("Subject", "re:"), ("Subject", "a"), ("Cc", "b")];
    kinds.push(("header, named".into(), common.into_iter().map(named).collect()));
    let day = |year| CivilDate::new(year, 9, 1).unwrap();
    let dates = [DateTest::Since(day(2002)), DateTest::Before(day(2003)), DateTest::On(day(2002))];
    kinds.push(("dates".into(), dates.into_iter().map(|date| (format!("{date:?}"), Query::Sent(date))).collect()));
    kinds.retain(|(kind, _)| kind.contains(wanted));
    kinds
}

fn ask(dir: &Path, wanted: &str) {
    let store = open(dir);
    let account = store.account(&user()).unwrap();
    let clock = &store.env().clock;
    let view = view(&account);
    println!("{} messages; milliseconds, the best of {ROUNDS}", view.exists());
    println!("{:<40} {:>5} {:>8} {:>8} {:>8}", "", "", "median", "p90", "max");
    for (kind, queries) in kinds(&account, &view, wanted) {
        let mut times = Vec::new();
        for (needle, query) in queries {
            let run = |_| {
                let start = clock.monotonic();
                let (found, _) = Search::new(view.clone(), account.reader(), query.clone(), 0).finish().unwrap();
                (clock.monotonic() - start, found.len())
            };
            let (time, found) = (0..ROUNDS).map(run).min().unwrap();
            times.push((milliseconds(time), found, needle));
        }
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = |part: usize| {
            times.get((times.len() * part / 100).min(times.len().saturating_sub(1))).map_or(0.0, |time| time.0)
        };
        println!("{kind:<40} {:>5} {:>8.2} {:>8.2} {:>8.2}", times.len(), at(50), at(90), at(100));
        for (time, found, needle) in times.iter().rev().take(SHOWN) {
            println!("        {time:>8.2} {found:>7} {needle:?}");
        }
    }
    if wanted.is_empty() {
        order(&account, &view, clock);
    }
    println!("peak {} MiB", peak_mib());
}

fn order(account: &Account, view: &View, clock: &std::sync::Arc<dyn platform::Clock>) {
    let everything = NumSet::range(1, view.exists());
    let criteria = [SortCriterion { key: SortKey::Date, reverse: true }];
    let time = |run: &dyn Fn()| {
        let once = |_| {
            let start = clock.monotonic();
            run();
            clock.monotonic() - start
        };
        milliseconds((0..ROUNDS).map(once).min().unwrap())
    };
    let sort = || drop(Sort::new(view.clone(), account.reader(), &criteria, &everything).finish().unwrap());
    println!("SORT (REVERSE DATE) {:.1}", time(&sort));
    for algorithm in [Algorithm::References, Algorithm::Refs, Algorithm::OrderedSubject] {
        let thread = || {
            let mut thread = Thread::new(view.clone(), account.reader(), algorithm, &everything);
            while thread.step().unwrap().is_none() {}
        };
        println!("THREAD {algorithm:?} {:.1}", time(&thread));
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let arg = |at: usize| args.get(at).map(String::as_str);
    match (arg(1), arg(2), arg(3)) {
        (Some("fill"), Some(dir), Some(mbox)) => fill(Path::new(dir), Path::new(mbox)),
        (Some("index"), Some(dir), _) => index(Path::new(dir)),
        (Some("ask"), Some(dir), wanted) => ask(Path::new(dir), wanted.unwrap_or_default()),
        _ => eprintln!("search fill DIRECTORY FILE.mbox; search index DIRECTORY; search ask DIRECTORY [WORD]"),
    }
}
