//! Filling a mailbox with the mail of the run: the same messages in the same order on every server, each with the same internal date.
//!
//! Over the wire, by whatever features the server announces ([`fill`]); or, where only the mailbox is wanted, as fast as the server lets
//! one ([`prepare`]): some take a minute for a thousand messages otherwise.

use crate::corpus::Corpus;
use crate::error::{Doing, Error, Result};
use crate::interrupt;
use crate::mbox;
use crate::server::{Local, Server};
use crate::wire::{Address, Connection, Outgoing};
use mail_parser::{DateTime, HeaderValue, MessageParser};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

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

/// Makes a mailbox anew with every message of the mail: by the server's own files where those are simply files of messages
/// ([`Local::place`]), else as [`fill`] does, without syncs where the server has a setting for that. It then runs as it did before, and
/// everything is on the disk. Says how.
pub fn prepare(server: &mut dyn Server, address: &Address, mailbox: &str, corpus: &Corpus) -> Result<String> {
    Connection::login(address)?.renew(mailbox)?;
    let Some(local) = server.local() else {
        return Ok(fill(&mut Connection::login(address)?, mailbox, corpus)?.how.to_string());
    };
    if let Some(how) = place(local, address, mailbox, corpus)? {
        return Ok(how);
    }
    let unsynced = local.set_synced(false)?;
    if unsynced {
        restart(local)?;
    }
    let filled = fill(&mut Connection::login(address)?, mailbox, corpus);
    rustix::fs::sync();
    if unsynced {
        local.set_synced(true)?;
        restart(local)?;
    }
    let synced = if unsynced { "; syncs were turned off for that" } else { "" };
    Ok(format!("{}{synced}", filled?.how))
}

/// [`Local::place`] with the server stopped for that.
fn place(local: &mut dyn Local, address: &Address, mailbox: &str, corpus: &Corpus) -> Result<Option<String>> {
    if !local.can_place() {
        return Ok(None);
    }
    local.stop()?;
    let how = local.place(address, mailbox, &corpus.path).doing("filling the mailbox");
    rustix::fs::sync();
    local.start()?;
    how.map(Some)
}

/// Nothing written for so long: a server is done with what it does in the background after it was filled. Between two pieces of an index
/// nothing is written while the next one is made.
pub const STILL: Duration = Duration::from_secs(10);
/// It is not waited for longer.
const SETTLE_MAX: Duration = Duration::from_secs(300);
const SETTLE_POLL: Duration = Duration::from_millis(200);

/// Waits until a server has written nothing for `still`: indexes that are made in the background are part of filling. Says after how long it
/// wrote for the last time.
pub fn settle(local: &dyn Local, still: Duration) -> Result<Duration> {
    let began = Instant::now();
    let mut last = (newest(&local.files()), began);
    while last.1.elapsed() < still && began.elapsed() < SETTLE_MAX {
        interrupt::check()?;
        std::thread::sleep(SETTLE_POLL);
        let now = newest(&local.files());
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    Ok(last.1.duration_since(began))
}

/// What changes whenever something is written below the paths: bytes, and the time of the last change.
fn newest(paths: &[PathBuf]) -> (u64, Option<SystemTime>) {
    let (mut bytes, mut changed) = (0, None);
    for path in paths {
        // A server's temporary file may go while one looks.
        let Ok(metadata) = path.symlink_metadata() else { continue };
        (bytes, changed) = (bytes + metadata.len(), changed.max(metadata.modified().ok()));
        if metadata.is_dir() {
            let Ok(entries) = std::fs::read_dir(path) else { continue };
            let below: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
            let (more, newer) = newest(&below);
            (bytes, changed) = (bytes + more, changed.max(newer));
        }
    }
    (bytes, changed)
}

fn restart(local: &mut dyn Local) -> Result<()> {
    local.stop()?;
    local.start()
}

/// So many messages of a mailbox are looked at by [`check`].
const CHECKED: u64 = 5;

/// Looks whether some messages of a mailbox that was filled, from the first to the last, have their sizes and internal dates; what is
/// wrong, in words. Messages with fields that servers keep state in are passed over: those may hide them.
pub fn check(connection: &mut Connection, mailbox: &str, corpus: &Corpus) -> Result<Option<String>> {
    let (_, exists) = connection.select(mailbox)?;
    if u64::from(exists) != corpus.messages {
        return Ok(Some(format!("{exists} messages are there after {} were put in", corpus.messages)));
    }
    let step = (corpus.messages / CHECKED).max(1);
    let (mut number, mut next, mut expected) = (0_u64, 1, Vec::new());
    mbox::each_message(&corpus.path, |message| {
        number += 1;
        if number >= next && !has_state(&message) {
            next += step;
            expected.push((number, message.len(), internal_day(&message)));
        }
        Ok(true)
    })?;
    let numbers: Vec<String> = expected.iter().map(|(number, ..)| number.to_string()).collect();
    connection.record(Some(tempfile::tempfile().doing("a temporary file")?));
    let fetched = connection.command(&format!("FETCH {} (RFC822.SIZE INTERNALDATE)", numbers.join(",")));
    let mut file = connection.record(None).ok_or_else(|| Error::new("nothing was recorded"))?;
    fetched?;
    let mut answer = String::new();
    file.seek(SeekFrom::Start(0)).doing("a temporary file")?;
    file.read_to_string(&mut answer).doing("a temporary file")?;
    let wrong =
        expected.iter().find(|(number, size, day)| !answer.lines().any(|line| says(line, *number, *size, *day)));
    Ok(wrong.map(|(number, size, day)| {
        format!("message {number} has not {size} bytes and the internal date {}", search_date(*day))
    }))
}

/// Whether a line is the FETCH response of a message with this size and day.
fn says(line: &str, number: u64, size: usize, day: i64) -> bool {
    let Some(items) = line.strip_prefix(&format!("* {number} FETCH (")) else { return false };
    let sized =
        items.split([' ', '(', ')']).skip_while(|item| *item != "RFC822.SIZE").nth(1) == Some(&size.to_string());
    // RFC 9051 §9 date-day-fixed: a space before a single digit, which some write as a zero.
    let date = items.split('"').nth(1).unwrap_or_default().trim_start_matches([' ', '0']);
    sized && date.split(' ').next() == Some(&search_date(day))
}

/// Whether a message has `Status`, `X-UID` and the like.
fn has_state(message: &[u8]) -> bool {
    const FIELDS: [&[u8]; 5] = [b"\nstatus:", b"\nx-status:", b"\nx-uid:", b"\nx-keywords:", b"\ncontent-length:"];
    let header = message.get(..memchr::memmem::find(message, b"\r\n\r\n").unwrap_or(message.len()));
    let header = [b"\n", header.unwrap_or_default()].concat().to_ascii_lowercase();
    FIELDS.iter().any(|field| memchr::memmem::find(&header, field).is_some())
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

/// The internal date that a message is given, in seconds since 1970-01-01 UTC.
pub fn internal_seconds(message: &[u8]) -> i64 {
    internal_day(message) * DAY_SECONDS + DAY_SECONDS / 2
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
pub(crate) fn month(number: u8) -> &'static str {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    MONTHS.get(usize::from(number).saturating_sub(1)).copied().unwrap_or("Jan")
}

#[cfg(test)]
mod tests {
    use super::{DAY_ELSE, append_date, has_state, internal_day, internal_seconds, says, search_date};

    #[test]
    fn what_a_server_says_of_a_message() {
        for line in [
            "* 7 FETCH (RFC822.SIZE 12 INTERNALDATE \"26-Oct-2003 12:00:00 +0000\")",
            "* 7 FETCH (INTERNALDATE \"26-Oct-2003 13:00:00 +0100\" RFC822.SIZE 12)",
        ] {
            assert!(says(line, 7, 12, DAY_ELSE), "{line}");
            for (number, size, day) in [(6, 12, DAY_ELSE), (7, 1, DAY_ELSE), (7, 12, DAY_ELSE + 1)] {
                assert!(!says(line, number, size, day));
            }
        }
        assert!(says("* 1 FETCH (INTERNALDATE \" 1-Jan-1970 12:00:00 +0000\" RFC822.SIZE 3)", 1, 3, 0));
        assert!(says("* 1 FETCH (INTERNALDATE \"01-Jan-1970 12:00:00 +0000\" RFC822.SIZE 3)", 1, 3, 0));
    }

    #[test]
    fn fields_of_servers() {
        assert!(has_state(b"A: 1\r\nSTATUS: RO\r\n\r\nb"));
        assert!(has_state(b"X-UID: 1\r\n\r\nb"));
        assert!(!has_state(b"A: 1\r\n\r\n\nStatus: RO\r\n"));
    }

    #[test]
    fn dates() {
        assert_eq!(internal_seconds(b""), 1_067_169_600);
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
