//! One mailbox as an mboxrd file (RFC 4155 appendix A, with `>From ` quoting that can be taken back).

use std::path::Path;
use std::sync::Arc;

use model::{DateTime, Flags, KeywordTable, Result, SystemFlag};
use platform::{File, OpenMode, parent_of};

use super::{Job, Shape, Source, to_lf};
use crate::View;
use crate::import::{CUT, EXPORT_FIELD, RAW};

/// Octets that are written at a time.
const WRITE_BYTES: usize = 1 << 20;
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Writes all messages of `view` to a new file, which is durable then.
pub(super) fn write(job: &mut Job<'_>, view: &View, path: &Path) -> Result<()> {
    let disk = Arc::clone(&job.account.inner.env().disk);
    disk.create_dir_all_durable(parent_of(path))?;
    let file = disk.open(path, OpenMode::CreateNew)?;
    let mut out = Output { file: &*file, at: 0, buffer: Vec::new() };
    let status_fields = job.options.status_fields;
    job.messages(view, &mut |mut source| {
        let before = out.position();
        let result = write_message(&mut source, view, status_fields, &mut out);
        if result.is_err() {
            // A damaged message leaves nothing of itself.
            out.rewind(before)?;
        }
        result
    })?;
    out.flush()?;
    file.set_len(out.at)?;
    file.sync_all()?;
    Ok(disk.sync_dir(parent_of(path))?)
}

fn write_message(source: &mut Source<'_>, view: &View, status_fields: bool, out: &mut Output<'_>) -> Result<()> {
    let shape = source.shape()?;
    let entry = source.entry;
    let date = entry.internal_date;
    out.buffer.extend_from_slice(format!("From MAILER-DAEMON {}\n", asctime(date)).as_bytes());
    if status_fields {
        out.buffer.extend_from_slice(block(view.keywords(), entry.flags, date, &shape).as_bytes());
    }
    let (mut held, mut quoting) = (false, Quoting::default());
    let mut lines = Vec::new();
    source.for_pieces(&mut |piece| {
        lines.clear();
        if shape.is_raw {
            lines.extend_from_slice(piece);
        } else {
            to_lf(piece, &mut held, &mut lines);
        }
        quoting.push(&lines, &mut out.buffer);
        out.flush_when_full()
    })?;
    if held {
        quoting.push(b"\r", &mut out.buffer);
    }
    quoting.finish(&mut out.buffer);
    if !shape.ends_line() {
        out.buffer.push(b'\n');
    }
    // The empty line that belongs to the mbox.
    out.buffer.push(b'\n');
    Ok(())
}

/// `Thu Jan  1 00:00:00 1970`, in UTC (RFC 4155 appendix A).
fn asctime(date: DateTime) -> String {
    let utc = DateTime::utc(date.unix_seconds);
    let (day, (hour, minute, second)) = (utc.civil_date(), utc.time_of_day());
    let week_day = DAYS.get(date.unix_seconds.div_euclid(86_400).rem_euclid(7) as usize).unwrap_or(&"Thu");
    format!("{week_day} {} {:2} {hour:02}:{minute:02}:{second:02} {:04}", day.month_name(), day.day, day.year)
}

/// The fields on top of a message; see [`crate::import`].
fn block(keywords: &KeywordTable, flags: Flags, date: DateTime, shape: &Shape) -> String {
    let letters = |of: &[(SystemFlag, char)]| -> String {
        of.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, letter)| *letter).collect()
    };
    let mut out = format!("Status: {}O\n", letters(&[(SystemFlag::Seen, 'R')]));
    let x_status = letters(&[
        (SystemFlag::Answered, 'A'),
        (SystemFlag::Flagged, 'F'),
        (SystemFlag::Draft, 'T'),
        (SystemFlag::Deleted, 'D'),
    ]);
    if !x_status.is_empty() {
        out.push_str(&format!("X-Status: {x_status}\n"));
    }
    let names: Vec<&str> = keywords.names(flags).filter(|name| !name.starts_with('\\')).collect();
    if !names.is_empty() {
        out.push_str(&format!("X-Keywords: {}\n", names.join(" ")));
    }
    let words = [(shape.is_raw, RAW), (!shape.ends_line(), CUT)];
    let words: Vec<&str> = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
    out.push_str(&format!("{EXPORT_FIELD}: {date}; {}\n", words.join(" ")));
    out
}

/// mboxrd: a line of `From `, or of `>` and `From `, gets one more `>`. Lines end with LF.
#[derive(Debug)]
struct Quoting {
    /// How much of a line that may need it is held: the `>` are written at once, as they stay whatever comes.
    matched: Option<usize>,
    /// Where in the output the line begins, while it may need quoting: what was flushed cannot be, so it is held whole.
    held: Vec<u8>,
}

impl Default for Quoting {
    fn default() -> Self {
        Quoting { matched: Some(0), held: Vec::new() }
    }
}

impl Quoting {
    fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        const FROM: &[u8] = b"From ";
        while let Some(byte) = bytes.first() {
            if let Some(matched) = self.matched {
                bytes = bytes.get(1..).unwrap_or_default();
                if *byte == b'>' && matched == 0 {
                    // One `>` more or less at the start of the line is the same: these need not be held.
                    out.push(b'>');
                } else if FROM.get(matched) == Some(byte) {
                    self.held.push(*byte);
                    self.matched = Some(matched + 1);
                    if matched + 1 == FROM.len() {
                        out.push(b'>');
                        self.release(out);
                    }
                } else {
                    self.release(out);
                    out.push(*byte);
                    self.matched = (*byte == b'\n').then_some(0);
                }
                continue;
            }
            let line = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
            let (line, rest) = bytes.split_at(line);
            out.extend_from_slice(line);
            if line.ends_with(b"\n") {
                self.matched = Some(0);
            }
            bytes = rest;
        }
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.held);
        self.matched = None;
    }

    fn finish(mut self, out: &mut Vec<u8>) {
        self.release(out);
    }
}

/// The file, with what is not written yet.
struct Output<'a> {
    file: &'a dyn File,
    at: u64,
    buffer: Vec<u8>,
}

impl Output<'_> {
    fn position(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn flush_when_full(&mut self) -> Result<()> {
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    /// Takes back what was written behind `position`.
    fn rewind(&mut self, position: u64) -> Result<()> {
        match position.checked_sub(self.at).and_then(|kept| usize::try_from(kept).ok()) {
            Some(kept) => self.buffer.truncate(kept),
            None => {
                self.buffer.clear();
                self.at = position;
                self.file.set_len(position)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn dates_of_from_lines() {
        assert_eq!(asctime(DateTime::utc(0)), "Thu Jan  1 00:00:00 1970");
        assert_eq!(asctime(DateTime { unix_seconds: 1_030_019_783, offset_minutes: 120 }), "Thu Aug 22 12:36:23 2002");
    }

    fn quoted(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut quoting, mut out) = (Quoting::default(), Vec::new());
        pieces.iter().for_each(|piece| quoting.push(piece, &mut out));
        quoting.finish(&mut out);
        out
    }

    #[test]
    fn quoting() {
        assert_eq!(quoted(&[b"From a\n>From b\nFro\nxFrom \n>>From "]), b">From a\n>>From b\nFro\nxFrom \n>>>From ");
        assert_eq!(quoted(&[b"F\nFrom\nFromm \n>\n>From"]), b"F\nFrom\nFromm \n>\n>From");
    }

    proptest::proptest! {
        #[test]
        fn cuts_do_not_matter(text in "[>From \n]{0,40}", cut in 0usize..41) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(cut.min(bytes.len()));
            proptest::prop_assert_eq!(quoted(&[a, b]), quoted(&[bytes]));
        }
    }
}
