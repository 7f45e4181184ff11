//! A message as it is written at the end of an mbox: mboxrd quoting, and Content-Length, so that no line of it is taken for a
//! separator by any program that knows either.
//!
//! Invariant: read again, it is the same message: [`Form`] with both of its rules gives back what was rendered, but for line ends that were
//! LF alone, and a line end at the end of a message that has none and no body.
//!
//! [`Form`]: crate::format::served::Form

use model::DateTime;

use super::fields::{Header, Style, Wanted, end_line, new_block};
use crate::format::mbox::fields::{Filter, Part};
use crate::format::mbox::from_line::PREFIX;

/// A header that is longer is not held whole: it gets its fields at the top, octets.
pub(super) const HEADER_BYTES_MAX: usize = 2 << 20;
/// Octets of the sender in a `From ` line at most.
const SENDER_BYTES_MAX: usize = 256;
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
/// 9999-12-31T23:59:59Z, the last that four digits can say.
const DATE_MAX: i64 = 253_402_300_799;

/// Turns served octets into those of the file: line ends, and one more `>` before each `>…>From ` at the start of a line. Takes pieces of any
/// size.
#[derive(Debug)]
pub(super) struct Quoter {
    is_crlf: bool,
    /// How much of `From ` is held back at the start of a line; `None`: in the middle of one.
    matched: Option<usize>,
    /// A CR is held back, and whether another stands before it.
    held_cr: Option<bool>,
    last_is_cr: bool,
}

impl Quoter {
    /// At the start of a line.
    pub(super) fn new(is_crlf: bool) -> Self {
        Quoter { is_crlf, matched: Some(0), held_cr: None, last_is_cr: false }
    }

    /// Takes octets and appends what they become to `out`.
    pub(super) fn push(&mut self, mut input: &[u8], out: &mut Vec<u8>) {
        while let Some((first, rest)) = input.split_first() {
            if let Some(after_cr) = self.held_cr.take() {
                if *first == b'\n' {
                    // CR CR LF stays in an LF file too: without its last CR it would be CR LF, which is another line end.
                    out.extend_from_slice(if self.is_crlf || after_cr { b"\r\n" } else { b"\n" });
                    self.begin_line();
                    input = rest;
                    continue;
                }
                out.push(b'\r');
                self.last_is_cr = true;
            }
            if let Some(matched) = self.matched {
                input = self.push_start(matched, *first, input, rest, out);
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', input).unwrap_or(input.len());
            let (text, rest) = input.split_at(end);
            out.extend_from_slice(text);
            self.last_is_cr &= text.is_empty();
            match rest.first() {
                Some(b'\r') => self.held_cr = Some(self.last_is_cr),
                Some(_) => {
                    out.extend_from_slice(if self.is_crlf { b"\r\n" } else { b"\n" });
                    self.begin_line();
                }
                None => break,
            }
            input = rest.get(1..).unwrap_or_default();
        }
    }

    /// The message ends; whether its last line has an end.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> bool {
        self.release(out);
        if self.held_cr.is_some() {
            out.push(b'\r');
        }
        self.matched == Some(0) && self.held_cr.is_none()
    }

    fn begin_line(&mut self) {
        (self.matched, self.last_is_cr) = (Some(0), false);
    }

    /// Octets at the start of a line, one by one.
    fn push_start<'i>(
        &mut self,
        matched: usize,
        first: u8,
        input: &'i [u8],
        rest: &'i [u8],
        out: &mut Vec<u8>,
    ) -> &'i [u8] {
        match first {
            // One `>` more or less at the start is the same: these need not be held back.
            b'>' if matched == 0 => out.push(b'>'),
            _ if PREFIX.get(matched) == Some(&first) => {
                self.matched = Some(matched + 1);
                if matched + 1 == PREFIX.len() {
                    out.push(b'>');
                    self.release(out);
                    self.matched = None;
                }
            }
            _ => {
                self.release(out);
                self.matched = None;
                return input;
            }
        }
        rest
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFIX.get(..self.matched.unwrap_or(0)).unwrap_or_default());
        if self.matched != Some(0) {
            self.matched = None;
        }
    }
}

/// `Thu Jan  1 00:00:00 1970`, in UTC (RFC 4155 appendix A). Dates before 1970 become its first day: mbox readers know none.
pub(super) fn asctime(date: DateTime) -> String {
    let utc = DateTime::utc(date.unix_seconds.clamp(0, DATE_MAX));
    let (day, (hour, minute, second)) = (utc.civil_date(), utc.time_of_day());
    let week_day = DAYS.get(utc.unix_seconds.div_euclid(86_400).rem_euclid(7) as usize).unwrap_or(&"Thu");
    format!("{week_day} {} {:2} {hour:02}:{minute:02}:{second:02} {:04}", day.month_name(), day.day, day.year)
}

/// The address that a `From ` line names: of Return-Path, or of From. One word without anything that could be a date.
fn sender(header: &[u8]) -> Vec<u8> {
    let block = mime::HeaderBlock::new(header);
    let found = ["Return-Path", "From"].into_iter().find_map(|name| {
        let value = block.first(name)?;
        let address = match (memchr::memrchr(b'<', value), memchr::memrchr(b'>', value)) {
            (Some(from), Some(to)) => value.get(from + 1..to)?,
            _ => value,
        };
        let address = address.trim_ascii();
        let is_word = address.contains(&b'@') && address.iter().all(u8::is_ascii_graphic);
        (is_word && address.len() <= SENDER_BYTES_MAX).then(|| address.to_vec())
    });
    found.unwrap_or_else(|| b"MAILER-DAEMON".to_vec())
}

/// What stands before the body of a message in the file, and where it ends.
#[derive(Debug)]
pub(super) struct Head {
    /// The `From ` line, and the header with its fields and the empty line that ends it.
    pub(super) bytes: Vec<u8>,
    /// Octets of the `From ` line.
    pub(super) from_line: usize,
    /// Whether it ends where the message's own header ends. Otherwise what follows begins with the header.
    pub(super) is_whole: bool,
}

/// How many of the first octets of a message, as served, its head stands for. `start` are these: all of them, or [`HEADER_BYTES_MAX`]
/// at least. 0: the header has no end in sight.
pub(super) fn head_octets(start: &[u8], is_all: bool) -> usize {
    let header_len = mime::header_len(start);
    let is_ended = start.get(..header_len).is_some_and(|header| Header::new(header).is_ended());
    if is_ended || is_all { header_len } else { 0 }
}

/// The head of a message that begins with `start`, of which it stands for `served` octets ([`head_octets`]); behind it come `rest` octets, in
/// the form of the file.
pub(super) fn head(start: &[u8], served: usize, rest: u64, date: DateTime, wanted: &Wanted, style: &Style<'_>) -> Head {
    let header = start.get(..served).unwrap_or(start);
    let eol = style.eol();
    let mut out = PREFIX.to_vec();
    out.extend_from_slice(&sender(start));
    out.push(b' ');
    out.extend_from_slice(asctime(date).as_bytes());
    out.extend_from_slice(eol);
    let from_line = out.len();
    let block = new_block(wanted, style);
    if served == 0 {
        // A line that continued ours would count as theirs.
        if !matches!(start.first(), Some(b' ' | b'\t')) {
            out.extend_from_slice(&block);
        }
        return Head { bytes: out, from_line, is_whole: start.is_empty() };
    }
    let blank = Header::new(header).blank();
    let (mut quoter, mut filter) = (Quoter::new(style.is_crlf), Filter::new());
    let mut keep = |part: Part<'_>| {
        if let Part::Kept(octets) = part {
            quoter.push(octets, &mut out);
        }
    };
    filter.push(header.get(..served - blank).unwrap_or_default(), &mut keep);
    filter.finish(&mut keep);
    quoter.finish(&mut out);
    end_line(&mut out, eol);
    out.extend_from_slice(&block);
    if blank > 0 {
        out.extend_from_slice(format!("Content-Length: {rest}").as_bytes());
        out.extend_from_slice(eol);
        out.extend_from_slice(eol);
    }
    Head { bytes: out, from_line, is_whole: true }
}
