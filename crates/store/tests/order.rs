//! SORT and THREAD on whole accounts: random mail beside a comparator that knows what was meant, in tails and in sealed segments.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

use model::{AccountName, DateTime, MailboxId, MailboxName, NumSet, SystemFlag};
use platform::Prng;
use platform::sim::SimEnv;
use store::order::{Algorithm, Sort, SortCriterion, SortKey, Thread};
use store::{Account, FlagNames, NewMessage, Options, Store, StoreFlags, StoreMode, View};

fn account() -> (Arc<Store>, Arc<Account>, MailboxId) {
    let mut options = Options::default();
    options.log.tail_bytes_max = 5_000;
    let store = Store::open(SimEnv::new(11).env(), PathBuf::from("/data"), options).unwrap();
    let name = AccountName::new("a").unwrap();
    store.create_account(&name).unwrap();
    let account = store.account(&name).unwrap();
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    (store, account, inbox)
}

fn add(account: &Account, inbox: MailboxId, bytes: &[u8], internal: i64) {
    let mut writer = account.message_writer().unwrap();
    writer.write(bytes).unwrap();
    let message = writer.finish().unwrap();
    let internal_date = Some(DateTime::utc(internal));
    account.append(inbox, vec![NewMessage { message, flags: FlagNames::default(), internal_date }]).unwrap();
}

/// What is written in a field, and the place that it has to take among the others.
type Known = (&'static str, u32);

/// First addresses: the field, and the ranks of the local part and of what is displayed.
const ADDRESSES: [(&str, u32, u32); 8] = [
    ("", 0, 0),
    ("ann@x.org, zoe@x.org", 1, 2),
    ("ANN@x.org", 1, 2),
    ("\"Abe\" <carl@x.org>", 2, 1),
    ("=?iso-8859-1?q?=C4nne?= <dora@x.org>", 3, 3),
    ("Team: ann@x.org, bob@x.org;", 6, 6),
    ("eve@x.org (Eve)", 4, 4),
    ("fred@y.org", 5, 5),
];

/// Subjects of five bases.
const SUBJECTS: [Known; 12] = [
    ("", 0),
    ("Re: ", 0),
    ("apples", 1),
    ("Re: [fruit] APPLES (fwd)", 1),
    ("[Fwd: apples]", 1),
    ("Apples  and\tpears", 2),
    ("fw: apples and\r\n pears", 2),
    ("=?utf-8?B?w4lDTEFJUg==?=", 3),
    ("re[2]: e\u{301}clair", 3),
    ("[only a blob]", 5),
    ("zebra", 4),
    ("Re: =?utf-8?q?=5Ffirst?=", 6),
];

struct Mail {
    subject: u32,
    addresses: [(u32, u32); 3],
    date: i64,
    arrival: i64,
    size: usize,
}

fn random_mail(random: &mut Prng, account: &Account, inbox: MailboxId) -> Mail {
    let mut text = String::new();
    let (subject, subject_rank) = SUBJECTS[random.index(SUBJECTS.len())];
    if !subject.is_empty() {
        text += &format!("Subject: {subject}\r\n");
    }
    let addresses = ["From", "To", "Cc"].map(|name| {
        let (field, mailbox, display) = ADDRESSES[random.index(ADDRESSES.len())];
        if !field.is_empty() {
            text += &format!("{name}: {field}\r\n");
        }
        (mailbox, display)
    });
    let arrival = 1_000_000_000 + random.below(20) as i64 * 3600;
    let mut date = arrival;
    match random.below(4) {
        0 => text += "Date: soon\r\n",
        1 => {}
        _ => {
            let zone = random.below(25) as i64 - 12;
            date = 1_000_000_000 + random.below(20) as i64 * 3600;
            let local = DateTime { unix_seconds: date, offset_minutes: (zone * 60) as i16 };
            let (day, (hour, minute, second)) = (local.civil_date(), local.time_of_day());
            let sign = if zone < 0 { '-' } else { '+' };
            let month = day.month_name();
            text += &format!(
                "Date: {} {month} {} {hour:02}:{minute:02}:{second:02} {sign}{:02}00\r\n",
                day.day,
                day.year,
                zone.abs()
            );
        }
    }
    text += &format!("\r\n{}", "x".repeat(random.index(30)));
    add(account, inbox, text.as_bytes(), arrival);
    Mail { subject: subject_rank, addresses, date, arrival, size: text.len() }
}

fn compare(key: SortKey, a: &Mail, b: &Mail) -> Ordering {
    let [from, to, cc] = [0, 1, 2].map(|n| (a.addresses[n], b.addresses[n]));
    match key {
        SortKey::Arrival => a.arrival.cmp(&b.arrival),
        SortKey::Cc => cc.0.0.cmp(&cc.1.0),
        SortKey::Date => a.date.cmp(&b.date),
        SortKey::From => from.0.0.cmp(&from.1.0),
        SortKey::Size => a.size.cmp(&b.size),
        SortKey::Subject => a.subject.cmp(&b.subject),
        SortKey::To => to.0.0.cmp(&to.1.0),
        SortKey::DisplayFrom => from.0.1.cmp(&from.1.1),
        SortKey::DisplayTo => to.0.1.cmp(&to.1.1),
    }
}

const KEYS: [SortKey; 9] = [
    SortKey::Arrival,
    SortKey::Cc,
    SortKey::Date,
    SortKey::From,
    SortKey::Size,
    SortKey::Subject,
    SortKey::To,
    SortKey::DisplayFrom,
    SortKey::DisplayTo,
];

#[test]
fn sorted_as_it_was_meant() {
    let (store, account, inbox) = account();
    let mut random = Prng::new(3);
    let mut mails = Vec::new();
    for n in 0..400 {
        mails.push(random_mail(&mut random, &account, inbox));
        if n == 250 {
            // What came so far is sealed, and what is derived from it is read from its cache.
            while store.maintain().unwrap() {}
        }
    }
    let view = account.view(inbox, false).unwrap();
    // Each key alone, then several at random.
    let alone = KEYS.map(|key| vec![SortCriterion { key, reverse: false }]);
    let mut seeds = Prng::new(4);
    let criterion =
        |random: &mut Prng| SortCriterion { key: KEYS[random.index(KEYS.len())], reverse: random.one_in(2) };
    let several = (0..300).map(|_| (0..1 + seeds.index(3)).map(|_| criterion(&mut seeds)).collect::<Vec<_>>());
    for criteria in alone.into_iter().chain(several) {
        let seqs: NumSet = (1..=400).filter(|_| random.below(3) > 0).collect();
        let sorted = Sort::new(view.clone(), account.reader(), &criteria, &seqs).finish().unwrap();
        let mut expected: Vec<u32> = seqs.iter().collect();
        expected.sort_by(|x, y| {
            let (a, b) = (&mails[*x as usize - 1], &mails[*y as usize - 1]);
            criteria.iter().fold(Ordering::Equal, |order, criterion| {
                let this = compare(criterion.key, a, b);
                order.then(if criterion.reverse { this.reverse() } else { this })
            })
        });
        assert_eq!(sorted, expected, "{criteria:?}");
    }
    assert_eq!(account.check().unwrap().findings, []);
}

fn thread(account: &Account, view: &View, algorithm: Algorithm) -> String {
    let all = NumSet::range(1, view.exists());
    Thread::new(view.clone(), account.reader(), algorithm, &all).finish().unwrap().to_string()
}

#[test]
fn threads_of_real_headers() {
    let (store, account, inbox) = account();
    let day = |n: i64| 1_000_000_000 + n * 86_400;
    for (n, header) in [
        "Message-ID: <\"a\"@x>\r\nSubject: one",
        "Message-ID: <b@x>\r\nReferences: <a@x>\r\nSubject: two",
        "Message-ID: <c@x>\r\nReferences: none\r\nIn-Reply-To: your mail (see <z@x>) <a@x> <b@x>\r\nSubject: three",
        "Message-ID: <d@x>\r\nReferences: <missing@x>\r\n <c(comment)@x>\r\nSubject: four",
        "Message-ID: <d@x>\r\nSubject: Re: one",
        "Subject: two",
        "Message-ID: broken\r\nSubject: [list] two",
        "",
    ]
    .iter()
    .enumerate()
    {
        add(&account, inbox, format!("{header}\r\n\r\n").as_bytes(), day(n as i64));
    }
    for _ in 0..2 {
        let mut view = account.view(inbox, false).unwrap();
        assert_eq!(thread(&account, &view, Algorithm::References), "(1 (2)(3 4)(5))((6)(7))(8)");
        assert_eq!(thread(&account, &view, Algorithm::Refs), "(1 (2)(3 4))(5)(6)(7)(8)");
        assert_eq!(thread(&account, &view, Algorithm::OrderedSubject), "(1 5)(2 (6)(7))(3)(4)(8)");
        view.advance(true);
        // Again from the caches of segments.
        while store.maintain().unwrap() {}
    }
    // An expunged message that the client still knows has its place.
    let mut view = account.view(inbox, false).unwrap();
    let flags = FlagNames { system: vec![SystemFlag::Deleted], keywords: Vec::new() };
    let request = StoreFlags { mode: StoreMode::Add, flags, unchanged_since: None };
    account.store_flags(inbox, &NumSet::range(1, 1), &request).unwrap();
    account.expunge(inbox, None).unwrap();
    view.advance(false);
    assert_eq!(thread(&account, &view, Algorithm::References), "(1 (2)(3 4)(5))((6)(7))(8)");
    view.advance(true);
    // Message 1 of before is a dummy now, with its children below it; "one" is nobody's but number 4's.
    assert_eq!(thread(&account, &view, Algorithm::References), "((1)(2 3)(5)(6))(4)(7)");
}
