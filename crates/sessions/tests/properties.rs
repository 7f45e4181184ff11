//! Properties of FETCH and SEARCH over generated messages and mailboxes, with a fixed budget of cases.
//!
//! * Windows of a section, put together, are the section; header and text are the message; parts stand in the text in order.
//! * BINARY.SIZE is the size of BINARY.
//! * SEARCH answers what a naive reading of the keys answers.
//! * A client that does not read makes the session hold no more than a bounded piece, however large the message.
//!
//! Every mailbox is one of three: as it was appended; after the log was sealed into segments; an mbox file that others wrote.

#![allow(clippy::unwrap_used, reason = "tests")]

mod formats;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use formats::{Format, as_served};
use mailyard_sessions::imap::{Context, ImapSession, PlainTextLogin, Settings};
use mailyard_sessions::{Authenticator, Connection, Now, Output, Refusal, ScramCredentials, Step};
use model::{AccountName, MailboxName, SystemFlag};
use platform::sim::SimEnv;
use proptest::prelude::*;
use store::{FlagNames, Options, Store};

const NOW: Now = Now { monotonic: Duration::ZERO, unix_seconds: 1_000_000_000 };

struct Anyone;

impl Authenticator for Anyone {
    fn verify_password(&self, _: &Connection, user: &str, _: &str) -> Result<AccountName, Refusal> {
        AccountName::new(user).map_err(|_| Refusal::wrong_credentials(Duration::ZERO))
    }

    fn scram_credentials(&self, _: &Connection, _: &str) -> ScramCredentials {
        ScramCredentials::derive("", Vec::new(), 4096)
    }

    fn scram_finished(&self, connection: &Connection, user: &str, _: bool) -> Result<AccountName, Refusal> {
        self.verify_password(connection, user, "")
    }
}

/// A message on its way into the mailbox.
#[derive(Clone, Debug)]
struct Mail {
    octets: Vec<u8>,
    seen: bool,
    flagged: bool,
    unix_seconds: i64,
}

impl Mail {
    fn new(octets: Vec<u8>) -> Self {
        Mail { octets, seen: true, flagged: false, unix_seconds: 0 }
    }
}

/// A store with one mailbox.
fn filled(mails: &[Mail], kept: Kept) -> Arc<Store> {
    let sim = SimEnv::new(1);
    let mut options = Options::default();
    if kept == Kept::Sealed {
        options.log.tail_bytes_max = 1;
    }
    let format = if kept == Kept::File { Format::Delivered } else { Format::Native };
    let store = Store::open(sim.env(), PathBuf::from("/store"), options).unwrap();
    let name = AccountName::new("ann").unwrap();
    format.create(&store, &name);
    let account = store.account(&name).unwrap();
    for mail in mails {
        let mut flags = FlagNames::default();
        flags.system.extend(mail.seen.then_some(SystemFlag::Seen));
        flags.system.extend(mail.flagged.then_some(SystemFlag::Flagged));
        format.put(&store, &account, &MailboxName::inbox(), &mail.octets, flags, Some(mail.unix_seconds)).unwrap();
    }
    while kept == Kept::Sealed && store.maintain().unwrap() {}
    store
}

/// Where the messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// In the tail of the log.
    Tail,
    /// In its segments.
    Sealed,
    /// In an mbox file.
    File,
}

const ALL_KEPT: [Kept; 3] = [Kept::Tail, Kept::Sealed, Kept::File];

fn kept() -> impl Strategy<Value = Kept> {
    prop::sample::select(ALL_KEPT.to_vec())
}

/// A session that has the mailbox selected.
struct Client {
    session: ImapSession,
    out: Output,
}

impl Client {
    fn new(mails: &[Mail], kept: Kept) -> Self {
        Client::of(filled(mails, kept))
    }

    fn of(store: Arc<Store>) -> Self {
        let context = Context {
            store,
            authenticator: Arc::new(Anyone),
            observer: Arc::new(()),
            settings: Settings { plain_text_login: PlainTextLogin::Always, ..Settings::default() },
        };
        let session = ImapSession::new(Arc::new(context), Connection::default(), Arc::new(|| {}), NOW);
        let mut client = Client { session, out: Output::new(4096) };
        client.say("l LOGIN ann x");
        client.say("s SELECT INBOX");
        client
    }

    /// Sends a command and takes all that is said.
    fn say(&mut self, command: &str) -> Vec<u8> {
        let line = format!("{command}\r\n");
        let mut rest = line.as_bytes();
        let mut said = Vec::new();
        loop {
            rest = &rest[self.session.receive(rest)..];
            let step = self.session.step(NOW, &mut self.out);
            said.extend_from_slice(self.out.pending());
            let sent = self.out.pending().len();
            self.out.consume(sent);
            match step {
                Step::NeedInput { .. } if rest.is_empty() => return said,
                Step::Close | Step::StartTls => panic!("{command}: {}", String::from_utf8_lossy(&said)),
                _ => {}
            }
        }
    }

    /// The literal that a FETCH of one item of message 1 answers; `None` for NIL and for NO.
    fn literal(&mut self, item: &str) -> Option<Vec<u8>> {
        let said = self.say(&format!("a FETCH 1 {item}"));
        assert!(!said.windows(6).any(|window| window == b"a BAD "), "{item}: {}", String::from_utf8_lossy(&said));
        let head = said.split(|octet| *octet == b'\n').next()?;
        let text = std::str::from_utf8(head).unwrap().trim_end();
        let size: usize = text.strip_suffix('}')?.rsplit_once('{')?.1.parse().unwrap();
        let start = head.len() + 1;
        assert_eq!(said.get(start + size), Some(&b')'), "{item}: {}", String::from_utf8_lossy(&said));
        Some(said[start..start + size].to_vec())
    }

    /// The section and its windows; checks that these put together are the section.
    fn section(&mut self, section: &str, window: u64) -> Option<Vec<u8>> {
        let whole = self.literal(section);
        let mut together = Vec::new();
        let mut at = 0;
        while let Some(piece) = self.literal(&format!("{section}<{at}.{window}>")) {
            together.extend_from_slice(&piece);
            at += window;
            if (piece.len() as u64) < window {
                break;
            }
        }
        assert_eq!(together, whole.clone().unwrap_or_default(), "{section} in windows of {window}");
        whole
    }
}

/// Lines that make MIME structure, damaged and whole, and text between them.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "--a",
        "--a--",
        "--b",
        "--b--",
        "",
        "",
        "text of some kind",
        "Content-Type: text/plain",
        "Content-Type: multipart/mixed; boundary=b",
        "Content-Type: message/rfc822",
        "Subject: inside",
        "Content-Transfer-Encoding: base64",
        "Content-Transfer-Encoding: quoted-printable",
        "AAECAwQF",
        "a=3Db=",
        "Content-Transfer-Encoding: x-unknown",
    ]);
    prop_oneof![8 => known.prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let types = prop::sample::select(vec![
        "Content-Type: multipart/mixed; boundary=a\r\n",
        "Content-Type: multipart/digest; boundary=a\r\n",
        "Content-Type: message/rfc822\r\n",
        "Content-Transfer-Encoding: base64\r\n",
        "",
    ]);
    (types, prop::collection::vec(line(), 0..40), any::<bool>()).prop_map(|(kind, lines, crlf)| {
        let mut octets = format!("Subject: generated\r\n{kind}\r\n").into_bytes();
        for line in lines {
            octets.extend_from_slice(&line);
            octets.extend_from_slice(if crlf { b"\r\n" } else { b"\n" });
        }
        octets
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_put_together_are_the_section(octets in message(), window in 1u64..90, kept in kept()) {
        let mut client = Client::new(&[Mail::new(octets.clone())], kept);
        let octets = if kept == Kept::File { as_served(&octets) } else { octets };
        prop_assert_eq!(client.section("BODY[]", window).unwrap(), &octets[..]);
        let header = client.section("BODY[HEADER]", window).unwrap();
        let text = client.section("BODY[TEXT]", window).unwrap();
        prop_assert_eq!([&header[..], &text[..]].concat(), octets);
        client.section("BODY[HEADER.FIELDS (Subject)]", window).unwrap();
        client.section("BODY[HEADER.FIELDS.NOT (Subject)]", window).unwrap();
        for number in ["1", "2", "1.1", "2.1", "3"] {
            for word in ["", ".MIME", ".HEADER", ".TEXT", ".HEADER.FIELDS (Subject)"] {
                client.section(&format!("BODY[{number}{word}]"), window);
            }
            if let Some(decoded) = client.section(&format!("BINARY[{number}]"), window) {
                let size = client.say(&format!("a FETCH 1 BINARY.SIZE[{number}]"));
                let expected = format!("* 1 FETCH (BINARY.SIZE[{number}] {})\r\n", decoded.len());
                prop_assert!(size.starts_with(expected.as_bytes()), "{}", String::from_utf8_lossy(&size));
            }
        }
    }

    #[test]
    fn the_parts_stand_in_the_text_in_order(octets in message(), kept in kept()) {
        let mut client = Client::new(&[Mail::new(octets.clone())], kept);
        if !octets.windows(10).any(|window| window == b"multipart/") || client.literal("BODY[2]").is_none() {
            return Ok(());
        }
        let text = client.literal("BODY[TEXT]").unwrap();
        let mut rest = &text[..];
        for number in 1.. {
            let Some(body) = client.literal(&format!("BODY[{number}]")) else { break };
            let part = [client.literal(&format!("BODY[{number}.MIME]")).unwrap(), body].concat();
            let at = (0..=rest.len()).find(|at| rest[*at..].starts_with(&part));
            prop_assert!(at.is_some(), "part {} is not in the text behind the one before", number);
            rest = &rest[at.unwrap() + part.len()..];
        }
    }

    #[test]
    fn search_answers_what_a_naive_reading_answers(
        mails in prop::collection::vec(searched_mail(), 0..12),
        keys in prop::collection::vec(key(), 1..4),
        kept in kept(),
    ) {
        let messages: Vec<Mail> = mails.iter().map(Searched::mail).collect();
        let mut client = Client::new(&messages, kept);
        for key in keys {
            let found: String = (1..=mails.len())
                .filter(|seq| key.matches(*seq, &mails[*seq - 1]))
                .map(|seq| format!(" {seq}"))
                .collect();
            let said = client.say(&format!("a SEARCH {}", key.text()));
            prop_assert_eq!(String::from_utf8_lossy(&said), format!("* SEARCH{found}\r\na OK Searched\r\n"), "{}", key.text());
        }
    }
}

const WORDS: [&str; 5] = ["apple", "Banana", "cherry", "Grüße", "pine"];

/// A message by what is searched in it.
#[derive(Clone, Debug)]
struct Searched {
    subject: Vec<usize>,
    body: Vec<usize>,
    quoted_printable: bool,
    seen: bool,
    flagged: bool,
    day: i64,
}

fn searched_mail() -> impl Strategy<Value = Searched> {
    let words = || prop::collection::vec(0..WORDS.len(), 0..4);
    (words(), words(), any::<bool>(), any::<bool>(), any::<bool>(), 0i64..5).prop_map(
        |(subject, body, quoted_printable, seen, flagged, day)| Searched {
            subject,
            body,
            quoted_printable,
            seen,
            flagged,
            day,
        },
    )
}

fn joined(words: &[usize]) -> String {
    words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ")
}

impl Searched {
    fn mail(&self) -> Mail {
        let mut body = joined(&self.body);
        let mut encoding = "8bit";
        if self.quoted_printable {
            encoding = "quoted-printable";
            // A soft line break between any two octets.
            body = body.bytes().map(|octet| format!("={octet:02X}=\r\n")).collect();
        }
        let subject: String = joined(&self.subject).bytes().map(|octet| format!("={octet:02X}")).collect();
        let text = format!(
            "Subject: =?UTF-8?Q?{subject}?=\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Transfer-Encoding: {encoding}\r\n\r\n{body}\r\n"
        );
        Mail {
            octets: text.into_bytes(),
            seen: self.seen,
            flagged: self.flagged,
            unix_seconds: 1_000_000_000 + self.day * 86_400,
        }
    }
}

#[derive(Clone, Debug)]
enum Key {
    Seen,
    Flagged,
    Subject(String),
    Body(String),
    Since(i64),
    Larger(usize),
    Range(usize, usize),
    Not(Box<Key>),
    Or(Box<Key>, Box<Key>),
    And(Vec<Key>),
}

fn key() -> impl Strategy<Value = Key> {
    // Substrings in another case, also across the border of two words.
    let needle = prop::sample::select(vec!["APPLE", "nana", "e B", "grüsse", "GRÜSSE", "in", "y p", "zebra"])
        .prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Key::Seen),
        Just(Key::Flagged),
        needle.clone().prop_map(Key::Subject),
        needle.prop_map(Key::Body),
        (0i64..5).prop_map(Key::Since),
        (100usize..300).prop_map(Key::Larger),
        (1usize..14, 1usize..14).prop_map(|(a, b)| Key::Range(a.min(b), a.max(b))),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|key| Key::Not(Box::new(key))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Key::Or(Box::new(a), Box::new(b))),
            prop::collection::vec(inner, 1..4).prop_map(Key::And),
        ]
    })
}

impl Key {
    fn text(&self) -> String {
        let string = |text: &str| format!("{{{}+}}\r\n{text}", text.len());
        match self {
            Key::Seen => "SEEN".to_owned(),
            Key::Flagged => "FLAGGED".to_owned(),
            Key::Subject(text) => format!("SUBJECT {}", string(text)),
            Key::Body(text) => format!("BODY {}", string(text)),
            Key::Since(day) => format!("SINCE {}-Sep-2001", 9 + day),
            Key::Larger(octets) => format!("LARGER {octets}"),
            Key::Range(a, b) => format!("{a}:{b}"),
            Key::Not(key) => format!("NOT {}", key.text()),
            Key::Or(a, b) => format!("OR {} {}", a.text(), b.text()),
            Key::And(keys) => format!("({})", keys.iter().map(Key::text).collect::<Vec<_>>().join(" ")),
        }
    }

    fn matches(&self, seq: usize, mail: &Searched) -> bool {
        let has = |words: &[usize], needle: &str| {
            let fold = |text: &str| text.to_lowercase().replace('ß', "ss");
            fold(&joined(words)).contains(&fold(needle))
        };
        match self {
            Key::Seen => mail.seen,
            Key::Flagged => mail.flagged,
            Key::Subject(text) => has(&mail.subject, text),
            Key::Body(text) => has(&mail.body, text),
            Key::Since(day) => mail.day >= *day,
            Key::Larger(octets) => mail.mail().octets.len() > *octets,
            Key::Range(a, b) => (*a..=*b).contains(&seq),
            Key::Not(key) => !key.matches(seq, mail),
            Key::Or(a, b) => a.matches(seq, mail) || b.matches(seq, mail),
            Key::And(keys) => keys.iter().all(|key| key.matches(seq, mail)),
        }
    }
}

#[test]
fn a_client_that_does_not_read_costs_a_bounded_piece() {
    let line = "A line of a very large message that nobody takes.\r\n";
    let large = format!("Subject: large\r\n\r\n{}", line.repeat(60_000)).into_bytes();
    let items = ["BODY.PEEK[]", "BINARY.PEEK[1]", "BODY.PEEK[1]"];
    for (item, kept) in items.iter().flat_map(|item| ALL_KEPT.map(|kept| (item, kept))) {
        let mut client = Client::new(&[Mail::new(large.clone()), Mail::new(large.clone())], kept);
        let command = format!("a FETCH 1:2 (UID {item} FLAGS)\r\n");
        assert_eq!(client.session.receive(command.as_bytes()), command.len());
        for _ in 0..100 {
            client.session.step(NOW, &mut client.out);
        }
        let held = client.out.pending().len();
        assert!(held <= 256 * 1024, "{item} {kept:?}: {held}");
    }
}

#[test]
fn what_is_expunged_while_it_is_fetched_is_sent_to_its_end() {
    let large = format!("Subject: large\r\n\r\n{}", "A line of a message.\r\n".repeat(40_000)).into_bytes();
    for kept in ALL_KEPT {
        let store = filled(&[Mail::new(large.clone()), Mail::new(large.clone())], kept);
        let (mut reading, mut other) = (Client::of(Arc::clone(&store)), Client::of(Arc::clone(&store)));
        let command = b"a FETCH 1:2 (UID BODY[])\r\n";
        assert_eq!(reading.session.receive(command), command.len());
        reading.session.step(NOW, &mut reading.out);
        other.say("d STORE 1:* +FLAGS.SILENT (\\Deleted)");
        let said = other.say("x EXPUNGE");
        assert!(said.starts_with(b"* 2 EXPUNGE\r\n* 1 EXPUNGE\r\n"), "{}", String::from_utf8_lossy(&said));
        while store.maintain().unwrap() {}
        let said = reading.say("b NOOP");
        let mut expected = Vec::new();
        for seq in 1..=2 {
            expected.extend_from_slice(format!("* {seq} FETCH (UID {seq} BODY[] {{{}}}\r\n", large.len()).as_bytes());
            expected.extend_from_slice(&large);
            expected.extend_from_slice(b")\r\n");
        }
        // RFC 9051 §7.5.1: no EXPUNGE while FETCH is answered.
        expected.extend_from_slice(b"a OK Fetched\r\n* 2 EXPUNGE\r\n* 1 EXPUNGE\r\nb OK Nothing done\r\n");
        assert!(said == expected, "{kept:?}: {}", String::from_utf8_lossy(&said[said.len().saturating_sub(300)..]));
    }
}
