//! The right answers, worked out from the mail itself by brute force.
//!
//! The messages are decoded by mail-parser, which shares no code with any server that is measured. What a search must find is what
//! RFC 9051 §6.4.4 leaves no doubt about: a substring, whatever its case, of the decoded text. Servers differ legitimately in the rest
//! (whether raw bytes, markup, attachments, enclosed messages or the header fields of body parts count as the text of the body), and so
//! the oracle has three answers:
//! - a word must be found in the decoded Subject, and in the text of text/plain parts that are the message's own and no attachment,
//!   decoded by their transfer encoding and charset when both are known;
//! - it may be found wherever else in the raw or decoded body it occurs, in the raw Subject, and in what could not be decoded;
//! - else it must not be found.

use super::judge::Expect;
use crate::error::Result;
use crate::fill::{DAY_SECONDS, internal_day, plausible, search_date};
use crate::mbox;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::html::html_to_text;
use mail_parser::{ContentType, HeaderName, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use memchr::memmem::Finder;
use std::collections::HashMap;
use std::path::Path;

/// A search, and what it should find.
#[derive(Clone, Debug)]
pub struct Query {
    /// Name of the test.
    pub test: String,
    /// The command.
    pub command: String,
    /// By sequence number.
    pub expected: Vec<Expect>,
    /// What a scan of the mail looks for at least.
    pub needle: Vec<u8>,
    /// Whether only headers have to be scanned.
    pub in_headers: bool,
}

/// The right answers for one mailbox.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// Messages in the mailbox.
    pub messages: u32,
    /// Bytes of all headers, each with the empty line after it (RFC 9051 §6.4.5, `BODY[HEADER]`).
    pub header_bytes: u64,
    /// Bytes of the fields that mbox and Maildir servers write into messages for themselves, as far as this mail has such.
    pub state_bytes: u64,
    /// The headers, one after the other.
    pub headers: Vec<u8>,
    /// The searches.
    pub queries: Vec<Query>,
    /// By sequence number: the Date field in seconds since 1970, where there is no doubt about it.
    pub dates: Vec<Option<i64>>,
}

/// Fields in which servers on mbox files keep flags, UIDs and lengths; they hide those that are in a message already.
const STATE_FIELDS: [&[u8]; 6] = [b"status", b"x-status", b"x-uid", b"x-keywords", b"x-imapbase", b"content-length"];

/// What is looked for in subject and body.
struct Needle {
    /// Name of the test.
    test: String,
    text: String,
}

/// The words of the paper; two letters, which no index of longer pieces helps with; a phrase.
const NEEDLES: [(&str, &str); 4] =
    [("search happy", "happy"), ("search free", "free"), ("search two letters", "hp"), ("search phrase", "one of the")];
/// In the subject of answers.
const ANSWER: &str = "re:";

/// Where a needle is in a message.
#[derive(Clone, Copy)]
struct Places {
    subject: Expect,
    body: Expect,
}

/// What is kept of a message until the questions are known.
struct Facts {
    /// By needle.
    needles: Vec<Places>,
    /// Of [`ANSWER`].
    answer: Expect,
    /// The Date field as seconds, where there is no doubt about it.
    instant: Option<i64>,
    /// Decoded names and addresses of From, in lower case; empty with several From fields or none.
    from: String,
    /// All From fields as they stand, in lower case.
    from_raw: Vec<u8>,
    /// The day of the Date field as written (RFC 9051 §6.4.4: "disregarding time and timezone"); whether there is no doubt about it.
    sent: Option<(i64, bool)>,
    /// The day of the internal date.
    received: i64,
}

impl Oracle {
    /// Reads the mail.
    pub fn read(mail: &Path) -> Result<Oracle> {
        let mut needles: Vec<Needle> =
            NEEDLES.iter().map(|(test, text)| Needle { test: (*test).into(), text: (*text).into() }).collect();
        needles.extend(rare_word(mail)?.map(|text| Needle { test: "search rare".into(), text }));
        let finders: Vec<Finder> = needles.iter().map(|needle| Finder::new(&needle.text)).collect();
        let parser = MessageParser::new().with_mime_headers().with_address_headers().with_date_headers();
        let parser = parser.header_text(HeaderName::Subject).default_header_ignore();
        let mut facts = Vec::new();
        let mut headers = Vec::new();
        let mut state_bytes = 0;
        let mut senders = Senders::default();
        mbox::each_message(mail, |message| {
            let header = message.get(..header_end(&message)).unwrap_or_default();
            headers.extend_from_slice(header);
            state_bytes += STATE_FIELDS.iter().map(|name| field_bytes(header, name)).sum::<usize>() as u64;
            facts.push(examine(&message, &parser, &finders, &mut senders));
            Ok(true)
        })?;
        let mut queries: Vec<Query> =
            needles.iter().enumerate().map(|(number, needle)| by_needle(&facts, number, needle)).collect();
        queries.extend(most_frequent(senders.all).map(|sender| by_sender(&facts, &sender)));
        queries.extend(most_frequent(senders.answering).map(|sender| by_several(&facts, &sender)));
        queries.extend(by_date(&facts));
        let dates = facts.iter().map(|facts| facts.instant).collect();
        let (messages, header_bytes) = (facts.len() as u32, headers.len() as u64);
        Ok(Oracle { messages, header_bytes, state_bytes, headers, queries, dates })
    }
}

/// How many messages an address has sent.
#[derive(Default)]
struct Senders {
    all: HashMap<String, u64>,
    /// Only answers.
    answering: HashMap<String, u64>,
}

/// Of several, the first by name.
fn most_frequent(senders: HashMap<String, u64>) -> Option<String> {
    let sender = senders.into_iter().max_by(|(a, often), (b, less)| often.cmp(less).then(b.cmp(a)));
    sender.map(|(sender, _)| sender)
}

/// Where the header ends, its empty line included; all of a message that has none.
fn header_end(message: &[u8]) -> usize {
    if message.starts_with(b"\r\n") {
        return 2;
    }
    memchr::memmem::find(message, b"\r\n\r\n").map_or(message.len(), |at| at + 4)
}

/// A word that few messages have: the longest in the own text of the message in the middle of the mail, or of the next that has one.
fn rare_word(mail: &Path) -> Result<Option<String>> {
    let mut messages = 0u32;
    mbox::each_message(mail, |_| {
        messages += 1;
        Ok(true)
    })?;
    let (mut number, mut found) = (0, None);
    let parser = MessageParser::new().with_mime_headers().default_header_ignore();
    mbox::each_message(mail, |message| {
        number += 1;
        if number <= messages / 2 {
            return Ok(true);
        }
        let parsed = parser.parse(&message);
        let parts = parsed.iter().flat_map(|parsed| parsed.parts.iter()).filter(|part| is_own_text(part));
        found = parts.filter_map(|part| longest_word(part.contents())).max_by_key(String::len);
        Ok(found.is_none())
    })?;
    Ok(found)
}

/// Letters of a word that [`rare_word`] takes: what is longer is no word.
const RARE_LETTERS: std::ops::RangeInclusive<usize> = 8..=20;

/// The first of the longest words in lower case letters of ASCII.
fn longest_word(text: &[u8]) -> Option<String> {
    let words = text.split(|byte| !byte.is_ascii_graphic()).filter(|word| word.iter().all(u8::is_ascii_lowercase));
    let longest =
        words.filter(|word| RARE_LETTERS.contains(&word.len())).reduce(|a, b| if b.len() > a.len() { b } else { a });
    longest.map(|word| String::from_utf8_lossy(word).into_owned())
}

fn by_needle(facts: &[Facts], number: usize, needle: &Needle) -> Query {
    let Needle { test, text } = needle;
    let expect =
        |facts: &Facts| facts.needles.get(number).map_or(Expect::Not, |places| places.subject.max(places.body));
    Query {
        test: test.clone(),
        command: format!("SEARCH OR SUBJECT \"{text}\" BODY \"{text}\""),
        expected: facts.iter().map(expect).collect(),
        needle: text.clone().into_bytes(),
        in_headers: false,
    }
}

fn is_from(facts: &Facts, sender: &str, raw: &Finder) -> Expect {
    match () {
        () if facts.from.contains(sender) => Expect::Must,
        () if raw.find(&facts.from_raw).is_some() => Expect::May,
        () => Expect::Not,
    }
}

fn by_sender(facts: &[Facts], sender: &str) -> Query {
    let raw = Finder::new(sender);
    Query {
        test: "search from".into(),
        command: format!("SEARCH FROM \"{sender}\""),
        expected: facts.iter().map(|facts| is_from(facts, sender, &raw)).collect(),
        needle: sender.into(),
        in_headers: true,
    }
}

/// Answers without a "free", of whoever answers most.
fn by_several(facts: &[Facts], sender: &str) -> Query {
    let raw = Finder::new(sender);
    let free = NEEDLES.iter().position(|(_, text)| *text == "free").unwrap_or_default();
    let expect = |facts: &Facts| {
        let body = facts.needles.get(free).map_or(Expect::May, |places| places.body);
        is_from(facts, sender, &raw).min(facts.answer).min(body.not())
    };
    Query {
        test: "search from, subject and not body".into(),
        command: format!("SEARCH FROM \"{sender}\" SUBJECT \"{ANSWER}\" NOT BODY \"free\""),
        expected: facts.iter().map(expect).collect(),
        needle: b"free".to_vec(),
        in_headers: false,
    }
}

/// The tenth of the messages in the middle, by the Date field and by the internal date.
fn by_date(facts: &[Facts]) -> Vec<Query> {
    let mut days: Vec<i64> =
        facts.iter().filter_map(|facts| facts.sent).filter(|(_, sure)| *sure).map(|(day, _)| day).collect();
    days.sort_unstable();
    let (Some(since), Some(end)) = (days.get(days.len() * 9 / 20), days.get(days.len() * 11 / 20)) else {
        return Vec::new();
    };
    let (since, before) = (*since, (*end).max(since + 1));
    let sent = |facts: &Facts| match facts.sent {
        Some((day, true)) if (since..before).contains(&day) => Expect::Must,
        Some((_, true)) => Expect::Not,
        _ => Expect::May,
    };
    let received = |facts: &Facts| if (since..before).contains(&facts.received) { Expect::Must } else { Expect::Not };
    let query = |test: &str, keys: (&str, &str), expect: &dyn Fn(&Facts) -> Expect| Query {
        test: test.into(),
        command: format!("SEARCH {} {} {} {}", keys.0, search_date(since), keys.1, search_date(before)),
        expected: facts.iter().map(expect).collect(),
        needle: b"\nDate:".to_vec(),
        in_headers: true,
    };
    vec![
        query("search sent date", ("SENTSINCE", "SENTBEFORE"), &sent),
        query("search internal date", ("SINCE", "BEFORE"), &received),
    ]
}

fn examine(message: &[u8], parser: &MessageParser, finders: &[Finder], senders: &mut Senders) -> Facts {
    let parsed = parser.parse(message);
    let header = message.get(..header_end(message)).unwrap_or_default();
    let body = message.get(header.len()..).unwrap_or_default().to_ascii_lowercase();
    let subjects = fields(header, b"subject");
    let from_raw = fields(header, b"from").concat();
    let from = parsed.as_ref().and_then(|parsed| parsed.from()).filter(|_| fields(header, b"from").len() == 1);
    let finder = Finder::new(ANSWER);
    let is_answer = subjects.iter().any(|subject| finder.find(subject).is_some());
    let mut names = String::new();
    for (number, address) in from.into_iter().flat_map(|from| from.iter()).enumerate() {
        let mailbox = address.address().unwrap_or_default().to_ascii_lowercase();
        // An address that any command line can hold.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_@+".contains(&byte);
        if number == 0 && mailbox.contains('@') && mailbox.bytes().all(plain) {
            *senders.all.entry(mailbox.clone()).or_default() += 1;
            if is_answer {
                *senders.answering.entry(mailbox.clone()).or_default() += 1;
            }
        }
        names.push_str(&format!("{} <{mailbox}>\n", address.name().unwrap_or_default().to_lowercase()));
    }
    let subject = parsed.as_ref().and_then(Message::subject).filter(|_| subjects.len() == 1).unwrap_or_default();
    let in_subject = |finder: &Finder| match () {
        () if has(finder, subject.as_bytes()) => Expect::Must,
        () if subjects.iter().any(|raw| finder.find(raw).is_some()) => Expect::May,
        () => Expect::Not,
    };
    let in_body = |finder: &Finder| {
        let own_text = |part: &MessagePart| is_own_text(part) && has(finder, part.contents());
        match &parsed {
            Some(parsed) if parsed.parts.iter().any(own_text) => Expect::Must,
            Some(parsed) if anywhere(finder, parsed) => Expect::May,
            _ if finder.find(&body).is_some() => Expect::May,
            _ => Expect::Not,
        }
    };
    let needles = finders.iter().map(|finder| Places { subject: in_subject(finder), body: in_body(finder) }).collect();
    let date = parsed.as_ref().and_then(|parsed| parsed.date());
    let raw_dates = fields(header, b"date");
    let raw_date = raw_dates.first().filter(|raw| raw_dates.len() == 1 && is_strict_date(raw));
    let sure_date = date.filter(|date| raw_date.is_some() && plausible(date));
    let sent = date.map(|date| (date.to_timestamp_local().div_euclid(DAY_SECONDS), sure_date.is_some()));
    // Not every reader knows the zones that have names.
    let has_numeric_zone = raw_date.is_some_and(|raw| raw.iter().any(|byte| b"+-".contains(byte)));
    let instant = sure_date.filter(|_| has_numeric_zone).map(mail_parser::DateTime::to_timestamp);
    let answer = in_subject(&finder);
    Facts { needles, answer, instant, from: names, from_raw, sent, received: internal_day(message) }
}

fn has(finder: &Finder, text: &[u8]) -> bool {
    finder.find(&text.to_ascii_lowercase()).is_some()
}

/// A text/plain part, no attachment, that could be decoded without guessing.
fn is_own_text(part: &MessagePart) -> bool {
    let kind = part.content_type();
    let plain = kind.is_none_or(|kind| kind.ctype().eq_ignore_ascii_case("text") && subtype_is(kind, "plain"));
    let charset = kind.and_then(|kind| kind.attribute("charset"));
    let known = charset.is_none_or(|charset| {
        let common = ["us-ascii", "utf-8"].iter().any(|common| charset.eq_ignore_ascii_case(common));
        common || charset_decoder(charset.as_bytes()).is_some()
    });
    let encoding = part.content_transfer_encoding().unwrap_or("7bit");
    let decoded = ["7bit", "8bit", "binary", "quoted-printable", "base64"];
    let decodable = decoded.iter().any(|known| encoding.eq_ignore_ascii_case(known)) && !part.is_encoding_problem;
    let attached = part.content_disposition().is_some_and(ContentType::is_attachment);
    matches!(part.body, PartType::Text(_)) && plain && known && decodable && !attached
}

fn subtype_is(kind: &ContentType, wanted: &str) -> bool {
    kind.subtype().is_some_and(|subtype| subtype.eq_ignore_ascii_case(wanted))
}

/// In any decoded part, of enclosed messages too, with or without markup.
fn anywhere(finder: &Finder, message: &Message) -> bool {
    message.subject().is_some_and(|subject| has(finder, subject.as_bytes()))
        || message.parts.iter().any(|part| match &part.body {
            PartType::Message(inner) => has(finder, inner.raw_message()) || anywhere(finder, inner),
            PartType::Html(html) => has(finder, html.as_bytes()) || has(finder, html_to_text(html).as_bytes()),
            _ => {
                has(finder, part.contents())
                    || (part.is_encoding_problem && has(finder, &loosely_decoded(part.contents())))
            }
        })
}

/// Base64 with whatever else is in it passed over (RFC 2045 §6.8), for parts that mail-parser gives up on.
fn loosely_decoded(raw: &[u8]) -> Vec<u8> {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    let mut letters: Vec<u8> = raw.iter().copied().filter(letter).collect();
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&STANDARD, config).decode(letters).unwrap_or_default()
}

/// The values of all fields of that name (in lower case), in lower case, with their continuation lines (RFC 5322 §2.2).
fn fields(header: &[u8], name: &[u8]) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut inside = false;
    for line in header.split_inclusive(|byte| *byte == b'\n') {
        if line.first().is_some_and(|first| *first == b' ' || *first == b'\t') {
            if let Some(value) = found.last_mut().filter(|_| inside) {
                value.extend_from_slice(&line.to_ascii_lowercase());
            }
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or_default();
        let (key, value) = line.split_at(colon);
        inside = colon > 0 && key.trim_ascii_end().eq_ignore_ascii_case(name);
        if inside {
            found.push(value.get(1..).unwrap_or_default().to_ascii_lowercase());
        }
    }
    found
}

/// Bytes of all fields of that name.
fn field_bytes(header: &[u8], name: &[u8]) -> usize {
    fields(header, name).iter().map(|value| name.len() + 1 + value.len()).sum()
}

/// RFC 5322 §3.3 date-time with a four-digit year and a numeric or well-known zone: one that all servers read alike.
fn is_strict_date(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let text = text.split('(').next().unwrap_or_default().trim();
    let rest = text.split_once(',').map_or(text, |(day, rest)| if day.trim().len() == 3 { rest } else { text });
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let [day, month, year, time, zone] = words.as_slice() else { return false };
    let number =
        |text: &str, most: usize| text.len() <= most && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let numeric = zone.len() == 5 && zone.starts_with(['+', '-']) && number(zone.get(1..).unwrap_or_default(), 4);
    number(day, 2)
        && months.contains(month)
        && year.len() == 4
        && number(year, 4)
        && time.split(':').all(|part| part.len() == 2 && number(part, 2))
        && (2..=3).contains(&time.split(':').count())
        && (numeric || ["gmt", "ut", "est", "edt", "cst", "cdt", "mst", "mdt", "pst", "pdt"].contains(zone))
}

#[cfg(test)]
mod tests {
    use super::{Expect, Oracle, is_strict_date};

    fn answers(messages: &[&str]) -> Oracle {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mbox");
        let text: String = messages.iter().map(|message| format!("From x\n{message}\n")).collect();
        std::fs::write(&path, text).expect("written");
        Oracle::read(&path).expect("read")
    }

    fn word(message: &str) -> Expect {
        answers(&[message]).queries[0].expected[0]
    }

    #[test]
    fn text_that_must_be_found() {
        for message in [
            "Subject: So HAPPY\n\nx\n",
            "Subject: =?iso-8859-1?Q?=48app?= =?utf-8?B?eQ==?=\n\nx\n",
            "Subject: x\n\nunhappy\n",
            "Subject: x\nContent-Transfer-Encoding: quoted-printable\n\nhap=\npy\n",
            "Subject: x\nContent-Transfer-Encoding: base64\nContent-Type: text/plain; charset=utf-8\n\nSGFQUHk=\n",
            "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhappy\n--b--\n",
        ] {
            assert_eq!(word(message), Expect::Must, "{message}");
        }
    }

    #[test]
    fn text_that_may_be_found() {
        for message in [
            "Subject: x\nContent-Type: text/html\n\n<b class=happy>x</b>\n",
            "Subject: x\nContent-Type: text/html\n\nhap<b>py</b>\n",
            "Subject: x\nContent-Transfer-Encoding: base64\n\nhappyhappy==\n",
            "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\nhappy\n--b\n\nx\n--b--\n",
            "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment\n\nhappy\n--b--\n",
            "Subject: x\nContent-Transfer-Encoding: base64\n\nSGFQ!UHk\n",
            "Subject: x\nContent-Type: message/rfc822\n\nSubject: happy\n\nx\n",
            "Subject: x\nContent-Type: text/plain; charset=nobody-knows\n\nhappy\n",
        ] {
            assert_eq!(word(message), Expect::May, "{message}");
        }
    }

    #[test]
    fn text_that_must_not_be_found() {
        for message in ["Subject: x\nTo: happy@example.org\n\nx\n", "Subject: hap\n py\n\nhap\npy\n"] {
            assert_eq!(word(message), Expect::Not, "{message}");
        }
    }

    #[test]
    fn senders_and_dates() {
        let message = |from: &str, date: &str| format!("From: {from}\nDate: {date}\nSubject: x\n\nx\n");
        let messages = [
            message("A <a@example.org>", "Fri, 3 Jan 2003 23:59:00 -0800"),
            message("\"b\" <B@Example.org>", "Sat, 4 Jan 2003 12:00:00 +0000"),
            message("b@example.org", "Sun, 5 Jan 2003 12:00:00 +0000 (UTC)"),
            message("c@example.org", "5 Jan 103 12:00:00 +0000"),
        ];
        let oracle = answers(&messages.each_ref().map(String::as_str));
        let by = |test: &str| oracle.queries.iter().find(|query| query.test == test).expect("asked");
        use Expect::{Must, Not};
        let from = by("search from");
        assert_eq!(
            (from.command.as_str(), &from.expected[..]),
            ("SEARCH FROM \"b@example.org\"", &[Not, Must, Must, Not][..])
        );
        let sent = by("search sent date");
        assert_eq!(sent.command, "SEARCH SENTSINCE 4-Jan-2003 SENTBEFORE 5-Jan-2003");
        assert_eq!(sent.expected[..3], [Not, Must, Not]);
        assert_eq!(oracle.messages, 4);
        assert_eq!(oracle.dates.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false]);
        assert_eq!(oracle.dates[0], Some(1_041_667_140), "in UTC");
        assert!(!oracle.queries.iter().any(|query| query.test.contains(" not ")), "nobody answered");
        assert_eq!(oracle.header_bytes, oracle.headers.len() as u64);
        let bytes: usize = messages.iter().map(|message| message.len() - "x\n".len() + 4).sum();
        assert_eq!(oracle.header_bytes as usize, bytes, "CRLF instead of LF, the empty line included");
    }

    #[test]
    fn several_keys() {
        let message = |subject: &str, text: &str| format!("From: a@example.org\nSubject: {subject}\n\n{text}\n");
        let messages = [
            message("RE: x", "none"),
            message("Re: x", "for FREE"),
            message("x", "none"),
            message("re: y", "unimaginable"),
        ];
        let oracle = answers(&messages.each_ref().map(String::as_str));
        let by = |test: &str| oracle.queries.iter().find(|query| query.test == test).expect("asked");
        use Expect::{Must, Not};
        let several = by("search from, subject and not body");
        assert_eq!(several.command, "SEARCH FROM \"a@example.org\" SUBJECT \"re:\" NOT BODY \"free\"");
        assert_eq!(several.expected, [Must, Not, Not, Must]);
        let rare = by("search rare");
        assert_eq!(rare.command, "SEARCH OR SUBJECT \"unimaginable\" BODY \"unimaginable\"");
        assert_eq!(rare.expected, [Not, Not, Not, Must]);
    }

    #[test]
    fn dates_without_doubt() {
        for good in
            ["fri, 3 jan 2003 23:59:00 -0800", " 03 jan 2003 23:59 gmt\r\n", "fri, 3 jan 2003\r\n 23:59:00 -0800 (pst)"]
        {
            assert!(is_strict_date(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "friday",
            "3 jan 03 23:59:00 +0000",
            "3 january 2003 23:59:00 +0000",
            "3 jan 2003 9:59 am",
            "2003-01-03",
        ] {
            assert!(!is_strict_date(bad.as_bytes()), "{bad}");
        }
    }
}
