//! Search: known answers, and random queries beside an evaluation that does nothing clever.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use model::{
    AccountName, CivilDate, DateTime, EmailId, Flags, Keyword, MailboxId, MailboxName, ModSeq, NumSet, SystemFlag,
    ThreadId, days_from_civil,
};
use platform::Prng;
use platform::sim::SimEnv;
use store::search::{DateTest, Query, Search};
use store::{Account, Entry, FlagNames, NewMessage, Options, Store, View};

const NOW: i64 = 1_100_000_000;

fn account() -> (Arc<Store>, Arc<Account>, MailboxId) {
    let store = Store::open(SimEnv::new(9).env(), PathBuf::from("/data"), Options::default()).unwrap();
    let name = AccountName::new("a").unwrap();
    store.create_account(&name).unwrap();
    let account = store.account(&name).unwrap();
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    (store, account, inbox)
}

fn add(account: &Account, inbox: MailboxId, bytes: &[u8], flags: FlagNames, date: DateTime) {
    let mut writer = account.message_writer().unwrap();
    writer.write(bytes).unwrap();
    let message = writer.finish().unwrap();
    account.append(inbox, vec![NewMessage { message, flags, internal_date: Some(date) }]).unwrap();
}

fn search(account: &Account, view: &View, query: Query) -> String {
    let (found, highest) = Search::new(view.clone(), account.reader(), query, NOW).finish().unwrap();
    let expected = view.all_rows().filter(|entry| found.contains(entry.seq.get())).map(|entry| entry.modseq).max();
    assert_eq!(highest, expected);
    found.to_string()
}

fn day(year: u16, month: u8, day: u8) -> CivilDate {
    CivilDate::new(year, month, day).unwrap()
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn known_answers() {
    let (_store, account, inbox) = account();
    let nested = "Subject: outer\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\npreamble words\r\n--b\r\n\
        Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
        Gr=FC=DFe aus K=F6ln, split wo=\r\nrd\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n\
        Subject: =?utf-8?B?aW5uZXIgw6lj?=\r\n\r\ninner body\r\n--b\r\n\
        Content-Type: text/html\r\n\r\n<p>mark<b>up</b> &eacute;t&eacute;</p>\r\n--b\r\n\
        Content-Type: application/pdf\r\n\r\nsecret attachment\r\n--b--\r\n";
    let late = DateTime::from_civil(day(2004, 1, 1), 23, 30, 0, -480).unwrap();
    let flags = FlagNames { system: vec![SystemFlag::Seen], keywords: vec![Keyword::new("work").unwrap()] };
    add(&account, inbox, nested.as_bytes(), flags, late);
    let plain = "Date: Thu, 1 Jan 2004 23:30:00 -0800\r\nFrom: =?utf-8?q?J=C3=BCrgen?= <j@x.org>\r\nX-Empty:\r\n\
        Subject: a\r\n folded subject\r\n\r\nbody of two\r\n";
    add(&account, inbox, plain.as_bytes(), FlagNames::default(), DateTime::utc(NOW - 60));
    add(&account, inbox, b"Date: nonsense\r\n\r\n", FlagNames::default(), DateTime::utc(0));
    let mut view = account.view(inbox, true).unwrap();
    let find = |view: &View, query: Query| search(&account, view, query);
    for (query, answer) in [
        (Query::All, "1:3"),
        (Query::And(vec![]), "1:3"),
        (Query::Not(Box::new(Query::All)), ""),
        (Query::HasFlag(Flags::system(SystemFlag::Seen)), "1"),
        (Query::HasFlag(Flags::system(SystemFlag::Draft).with(Flags::keyword(0))), "1"),
        (Query::Recent, "1:3"),
        (Query::Seqs(NumSet::range(2, 9)), "2:3"),
        (Query::Uids(NumSet::range(1, 2)), "1:2"),
        (Query::Internal(DateTest::On(day(2004, 1, 1))), "1"),
        (Query::Internal(DateTest::Before(day(2004, 1, 1))), "3"),
        (Query::Internal(DateTest::Since(day(2004, 1, 1))), "1:2"),
        (Query::Sent(DateTest::On(day(2004, 1, 1))), "2"),
        (Query::Not(Box::new(Query::Sent(DateTest::On(day(2004, 1, 1))))), "1,3"),
        (Query::Sent(DateTest::Before(day(9999, 12, 31))), "2"),
        (Query::Younger(60), "2"),
        (Query::Younger(59), ""),
        (Query::Older(60), "1:3"),
        (Query::Older(61), "1,3"),
        (Query::Smaller(19), "3"),
        (Query::Larger(18), "1:2"),
        (Query::Header(text("subject"), text("FOLDED sub")), "2"),
        (Query::Header(text("SUBJECT"), text("inner")), ""),
        (Query::Header(text("From"), text("jürgen")), "2"),
        (Query::Header(text("x-empty"), text("")), "2"),
        (Query::Header(text("date"), text("")), "2:3"),
        (Query::Body(text("GRÜSSE")), "1"),
        (Query::Body(text("split word")), "1"),
        (Query::Body(text("inner éc")), "1"),
        (Query::Body(text("inner body")), "1"),
        (Query::Body(text("été")), "1"),
        (Query::Body(text("secret")), ""),
        (Query::Body(text("outer")), ""),
        (Query::Text(text("outer")), "1"),
        (Query::Text(text("o")), "1:3"),
        (Query::Body(text("")), "1:3"),
        (Query::Or(Box::new(Query::Body(text("two"))), Box::new(Query::Seqs(NumSet::range(3, 3)))), "2:3"),
        (Query::ThreadId(ThreadId(1)), ""),
        (Query::EmailId(view.all_rows().next().unwrap().email_id), "1"),
        (Query::ModSeq(view.highest_modseq()), "3"),
        (Query::ModSeq(ModSeq(0)), "1:3"),
    ] {
        assert_eq!(find(&view, query.clone()), answer, "{query:?}");
    }
    // An expunged entry that the client still knows is found by its number.
    let deleted = FlagNames { system: vec![SystemFlag::Deleted], keywords: Vec::new() };
    let request = store::StoreFlags { mode: store::StoreMode::Add, flags: deleted, unchanged_since: None };
    account.store_flags(inbox, &NumSet::range(2, 2), &request).unwrap();
    account.expunge(inbox, None).unwrap();
    view.advance(false);
    assert_eq!(find(&view, Query::Body(text("two"))), "2");
    view.advance(true);
    assert_eq!(find(&view, Query::Body(text("two"))), "");
    assert_eq!(find(&view, Query::Uids(NumSet::range(3, 3))), "2");
}

const WORDS: [&str; 9] = ["alpha", "Beta", "gamma", "straße", "Éclair", "x", "two words", "42", "a"];

fn random_text(random: &mut Prng, words: u64) -> String {
    (0..random.below(words)).map(|_| WORDS[random.index(WORDS.len())]).collect::<Vec<_>>().join(" ")
}

fn random_message(random: &mut Prng) -> Vec<u8> {
    let mut message = String::new();
    for name in ["Subject", "From", "X-Note"] {
        if random.below(3) > 0 {
            message += &format!("{name}: {}\r\n", random_text(random, 4));
        }
    }
    if random.below(2) == 0 {
        message += &format!("Date: {} Mar 2004 {:02}:00:00 +0100\r\n", 1 + random.below(28), random.below(24));
    }
    match random.below(3) {
        0 => message += "Content-Type: application/octet-stream\r\n",
        1 => message += "Content-Type: text/plain; charset=utf-8\r\n",
        _ => {}
    }
    let lines: Vec<String> = (0..random.below(4)).map(|_| random_text(random, 6)).collect();
    (message + "\r\n" + &lines.join("\r\n")).into_bytes()
}

fn random_query(random: &mut Prng, depth: u32) -> Query {
    let date = day(2004, 3, 1 + random.below(28) as u8);
    let test = [DateTest::Before(date), DateTest::On(date), DateTest::Since(date)][random.index(3)];
    let piece = ["alp", "STRASSE", "écl", "a b", "o w", "nowhere", "x", "4"][random.index(8)];
    match random.below(if depth == 0 { 13 } else { 17 }) {
        0 => Query::HasFlag(Flags(u128::from(random.below(32)))),
        1 => Query::Seqs(NumSet::range(random.below(60) as u32, random.below(60) as u32)),
        2 => Query::Uids(NumSet::range(random.below(60) as u32, random.below(60) as u32)),
        3 => Query::Internal(test),
        4 => Query::Sent(test),
        5 => Query::Saved(test),
        6 => Query::Younger(random.below(1000) as u32),
        7 => Query::Older(random.below(1000) as u32),
        8 => Query::Larger(random.below(200)),
        9 => Query::Smaller(random.below(200)),
        10 => Query::Header(text(["subject", "FROM", "x-note", "date"][random.index(4)]), random_text(random, 2)),
        11 => Query::Body(random_text(random, 2)),
        12 => Query::Text(text(piece)),
        13 => Query::And((0..random.below(4)).map(|_| random_query(random, depth - 1)).collect()),
        14 => Query::Or(Box::new(random_query(random, depth - 1)), Box::new(random_query(random, depth - 1))),
        15 => Query::Not(Box::new(random_query(random, depth - 1))),
        _ => Query::ModSeq(ModSeq(random.below(80))),
    }
}

struct Gather(String);

impl mime::TextSink for Gather {
    fn text(&mut self, chunk: &str) -> ControlFlow<()> {
        self.0.push_str(chunk);
        ControlFlow::Continue(())
    }
    fn boundary(&mut self) -> ControlFlow<()> {
        self.0.push('\u{0}');
        ControlFlow::Continue(())
    }
}

/// As RFC 9051 §6.4.4 says it, on the whole message.
fn matches(query: &Query, entry: &Entry, message: &[u8], view: &View) -> bool {
    let has = |text: &str, needle: &str| mime::Needle::new(needle).is_in(text);
    let block = mime::HeaderBlock::new(message);
    let passes = |test: &DateTest, days: i64| match test {
        DateTest::Before(date) => days < days_from_civil(*date),
        DateTest::On(date) => days == days_from_civil(*date),
        DateTest::Since(date) => days >= days_from_civil(*date),
    };
    let body = || {
        let (structure, _) = mime::scan(message);
        let mut gather = Gather(String::new());
        let _ = mime::body_text(message, &structure, &mut gather);
        gather.0
    };
    let local = entry.internal_date.unix_seconds + i64::from(entry.internal_date.offset_minutes) * 60;
    match query {
        Query::All => true,
        Query::And(all) => all.iter().all(|one| matches(one, entry, message, view)),
        Query::Or(a, b) => matches(a, entry, message, view) || matches(b, entry, message, view),
        Query::Not(one) => !matches(one, entry, message, view),
        Query::HasFlag(flags) => entry.flags.0 & flags.0 != 0,
        Query::Recent => view.recent_from().is_some_and(|from| entry.uid >= from),
        Query::Seqs(seqs) => seqs.contains(entry.seq.get()),
        Query::Uids(uids) => uids.contains(entry.uid.get()),
        Query::Internal(test) => passes(test, local.div_euclid(86_400)),
        Query::Saved(test) => passes(test, entry.save_date.div_euclid(86_400)),
        Query::Sent(test) => {
            let date = block.first("date").and_then(mime::parse_date);
            date.is_some_and(|date| passes(test, date.civil_days()))
        }
        Query::Younger(seconds) => entry.internal_date.unix_seconds >= NOW - i64::from(*seconds),
        Query::Older(seconds) => entry.internal_date.unix_seconds <= NOW - i64::from(*seconds),
        Query::Larger(octets) => message.len() as u64 > *octets,
        Query::Smaller(octets) => (message.len() as u64) < *octets,
        Query::Header(name, needle) => block
            .fields()
            .filter(|field| field.name.eq_ignore_ascii_case(name.as_bytes()))
            .any(|field| needle.is_empty() || has(&mime::field_text(field.value), needle)),
        Query::Body(needle) => needle.is_empty() || has(&body(), needle),
        Query::Text(needle) => {
            let mut gather = Gather(String::new());
            let _ = mime::header_text(&message[..mime::header_len(message)], &mut gather);
            needle.is_empty() || has(&gather.0, needle) || has(&body(), needle)
        }
        Query::ModSeq(modseq) => entry.modseq >= *modseq,
        Query::EmailId(id) => entry.email_id == *id,
        Query::ThreadId(_) => false,
    }
}

#[test]
fn random_queries() {
    let (store, account, inbox) = account();
    let mut random = Prng::new(11);
    let mut originals: Vec<(EmailId, Vec<u8>)> = Vec::new();
    for n in 0..50 {
        let message = random_message(&mut random);
        let system = model::SYSTEM_FLAGS.into_iter().filter(|_| random.below(3) == 0).collect();
        let date = DateTime { unix_seconds: NOW - random.below(40_000_000) as i64, offset_minutes: 90 };
        let date = if n % 3 == 0 { DateTime { unix_seconds: NOW - random.below(1000) as i64, ..date } } else { date };
        add(&account, inbox, &message, FlagNames { system, keywords: Vec::new() }, date);
        let id = account.view(inbox, false).unwrap().all_rows().last().unwrap().email_id;
        originals.push((id, message));
    }
    while store.maintain().unwrap() {}
    let view = account.view(inbox, true).unwrap();
    for _ in 0..3000 {
        let query = random_query(&mut random, 3);
        let expected: NumSet = view
            .all_rows()
            .filter(|entry| {
                let (_, message) = originals.iter().find(|(id, _)| *id == entry.email_id).unwrap();
                matches(&query, entry, message, &view)
            })
            .map(|entry| entry.seq.get())
            .collect();
        assert_eq!(search(&account, &view, query.clone()), expected.to_string(), "{query:?}");
    }
}

#[test]
fn steps_are_bounded() {
    let (_store, account, inbox) = account();
    let body = format!("Subject: x\r\n\r\n{}", "words and more words\r\n".repeat(50_000));
    for _ in 0..30 {
        add(&account, inbox, body.as_bytes(), FlagNames::default(), DateTime::utc(0));
    }
    let view = account.view(inbox, false).unwrap();
    let mut search = Search::new(view, account.reader(), Query::Body(text("nowhere")), NOW);
    let mut steps = 1;
    while search.step().unwrap().is_none() {
        steps += 1;
    }
    assert!((5..=30).contains(&steps), "{steps} steps for 30 MB");
}
