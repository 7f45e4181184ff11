//! Filling a mailbox over the wire with the mail of the run: the same messages in the same order on every server, each with the same
//! internal date, by whatever features the server announces.

use crate::corpus::Corpus;
use crate::error::{Doing, Result};
use crate::mbox;
use crate::wire::{Connection, Outgoing};
use mail_parser::{DateTime, HeaderValue, MessageParser};
use std::time::{Duration, Instant};

/// Messages that are sent together: enough that neither the round trip nor the sync counts, few enough for anyone's memory.
const BATCH_MESSAGES: usize = 200;
/// A batch ends after so many bytes, whatever the number of messages.
const BATCH_BYTES: usize = 8 << 20;

/// The day of messages without a `Date` that can be read: 2003-10-26, in days since 1970-01-01.
const DAY_ELSE: i64 = 12_351;

/// What was filled in.
#[derive(Clone, Debug)]
pub struct Filled {
    /// Messages.
    pub messages: u64,
    /// Bytes of them, as sent.
    pub bytes: u64,
    /// From the first APPEND to the last OK.
    pub took: Duration,
    /// With which features, for the report.
    pub how: &'static str,
}

/// Appends every message of the mail to a mailbox that is there; its internal date is noon of [`internal_day`], in UTC.
pub fn fill(connection: &mut Connection, mailbox: &str, corpus: &Corpus) -> Result<Filled> {
    let offered = connection.capabilities()?;
    let mut send = |batch: &mut Vec<(Vec<u8>, String)>| {
        let messages: Vec<Outgoing> =
            batch.iter().map(|(bytes, internal_date)| Outgoing { bytes, internal_date }).collect();
        connection.append_all(mailbox, &messages, &offered).doing("filling the mailbox")?;
        batch.clear();
        Ok(())
    };
    let how = match (offered.multiappend(), offered.literals().pushed(BATCH_BYTES)) {
        (true, true) => "appended over the wire, several messages a command (MULTIAPPEND), none waited for (LITERAL+)",
        (true, false) => "appended over the wire, several messages a command (MULTIAPPEND), each waited for",
        (false, true) => "appended over the wire, a command a message, many sent at once (LITERAL+)",
        (false, false) => "appended over the wire, a command a message, each waited for",
    };
    let began = Instant::now();
    let (mut messages, mut bytes, mut in_batch) = (0, 0, 0);
    let mut batch = Vec::new();
    mbox::each_message(&corpus.path, |message| {
        messages += 1;
        bytes += message.len() as u64;
        in_batch += message.len();
        let date = append_date(internal_day(&message));
        batch.push((message, date));
        if batch.len() == BATCH_MESSAGES || in_batch >= BATCH_BYTES {
            in_batch = 0;
            send(&mut batch)?;
        }
        Ok(true)
    })?;
    if !batch.is_empty() {
        send(&mut batch)?;
    }
    Ok(Filled { messages, bytes, took: began.elapsed(), how })
}

/// The day of the internal date that a message is given, in days since 1970-01-01: that of its `Date`. All servers get the same, and
/// noon in UTC is the same day nearly everywhere, whatever zone a server keeps its dates in: searching by it has one right answer.
pub fn internal_day(message: &[u8]) -> i64 {
    let parser = MessageParser::new().header_date("Date").default_header_ignore();
    let parsed = parser.parse_headers(message);
    let date = parsed.as_ref().and_then(|parsed| match parsed.header("Date") {
        Some(HeaderValue::DateTime(date)) => Some(date),
        _ => None,
    });
    match date {
        Some(date) if plausible(date) => date.to_timestamp().div_euclid(DAY_SECONDS),
        _ => DAY_ELSE,
    }
}

/// A date that every server can keep: valid, and within what a signed 32-bit time holds.
pub fn plausible(date: &DateTime) -> bool {
    date.is_valid() && (1971..=2036).contains(&date.year)
}

/// RFC 9051 §9 date-time, at noon.
fn append_date(day: i64) -> String {
    let date = DateTime::from_timestamp(day * DAY_SECONDS);
    format!("{:2}-{}-{:04} 12:00:00 +0000", date.day, month(date.month), date.year)
}

/// RFC 9051 §9 date, of a day since 1970-01-01.
pub fn search_date(day: i64) -> String {
    let date = DateTime::from_timestamp(day * DAY_SECONDS);
    format!("{}-{}-{:04}", date.day, month(date.month), date.year)
}

/// Seconds in a day.
pub const DAY_SECONDS: i64 = 86_400;

/// RFC 9051 §9 date-month.
fn month(number: u8) -> &'static str {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    MONTHS.get(usize::from(number).saturating_sub(1)).copied().unwrap_or("Jan")
}

#[cfg(test)]
mod tests {
    use super::{DAY_ELSE, append_date, internal_day, search_date};

    #[test]
    fn dates() {
        assert_eq!(append_date(0), " 1-Jan-1970 12:00:00 +0000");
        assert_eq!(append_date(DAY_ELSE), "26-Oct-2003 12:00:00 +0000");
        assert_eq!(search_date(0), "1-Jan-1970");
        let message = b"Subject: x\r\nDate: Sun, 26 Oct 2003 23:30:00 -0100\r\n\r\nbody\r\n";
        assert_eq!(search_date(internal_day(message)), "27-Oct-2003");
        for none in [&b"Subject: x\r\n\r\n"[..], b"Date: then\r\n\r\n", b"Date: 1 Jan 1900 00:00:00 +0000\r\n\r\n", b""]
        {
            assert_eq!(internal_day(none), DAY_ELSE, "{}", String::from_utf8_lossy(none));
        }
    }
}
