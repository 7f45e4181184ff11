//! Finding the messages of an mbox file (RFC 4155 and the mboxo, mboxrd, mboxcl and mboxcl2 variants).
//!
//! Decisions:
//! - A separator is a line that [`parse_from_line`] takes for one, at the start of the file or after any line end.
//! - `Content-Length` is believed only when it leads to the end of the file or to a separator: too many writers lied. A body taken by
//!   it that holds separator lines was never quoted (mboxcl2) and is not unquoted; everything else is unquoted as mboxrd, which
//!   is also right for mboxo but for lines that were `>From ` before quoting, where mboxo has lost the difference.
//! - What stands before the first separator is left out and reported: the messages behind it are not lost for it.
//! - One empty line before a separator, or at the end of the file, belongs to the mbox and not to the message.
//!
//! The file is read through a window that slides; nothing is kept of it but places.

use std::ops::Range;

use memchr::memmem;
use model::{DateTime, Result};
use platform::File;

use super::from_line::{self, parse_from_line};

/// Octets that are looked at together.
const WINDOW_BYTES: usize = 1 << 20;
/// A header that is longer is not searched for Content-Length any further, octets.
const HEADER_BYTES_MAX: usize = 256 << 10;
/// A file whose first separator is farther from its beginning is no mbox, octets.
const JUNK_BYTES_MAX: u64 = 1 << 20;

/// A message's place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The start of the `From ` line.
    pub(super) start: u64,
    /// The message, without the empty line after it.
    pub(super) bytes: Range<u64>,
    /// Where the next separator is, or the end of the file.
    pub(super) next: u64,
    /// Of the `From ` line.
    pub(super) date: Option<DateTime>,
    /// Whether lines may be quoted.
    pub(super) quoted: bool,
    /// Whether the separator after it, if there is one, has no empty line before it.
    pub(super) blank_missing: bool,
}

/// Reads extents, one after another.
pub(super) struct MboxScanner<'a> {
    window: Window<'a>,
    next: u64,
}

impl<'a> MboxScanner<'a> {
    /// Begins at `start`, where a separator is expected.
    pub(super) fn new(file: &'a dyn File, start: u64) -> Result<Self> {
        Ok(MboxScanner { window: Window { file, len: file.len()?, start: 0, bytes: Vec::new() }, next: start })
    }

    /// Goes to the first separator of the file and answers what stands before it (empty, as a rule), but for empty lines; `None`
    /// when the file is no mbox.
    pub(super) fn skip_to_first(&mut self) -> Result<Option<Range<u64>>> {
        let fine = self.begins_as_mbox()?;
        let begin = self.next;
        if !fine {
            match self.find_separator(begin)?.filter(|first| first - begin <= JUNK_BYTES_MAX) {
                Some(first) => self.next = first,
                None => return Ok(None),
            }
        }
        Ok(Some(begin..self.next))
    }

    /// Whether a message begins where the scanner stands. Empty lines before the first separator are passed over.
    pub(super) fn begins_as_mbox(&mut self) -> Result<bool> {
        let mut at = self.next;
        while let Some(b'\r' | b'\n') = self.window.at(at, 1)?.first() {
            at += 1;
        }
        self.next = at;
        if at >= self.window.len {
            return Ok(true);
        }
        // The very first line may have any date, or none: nothing else begins so.
        Ok(self.candidate(at)?.is_some())
    }

    /// The next message; `None` at the end of the file.
    pub(super) fn next_extent(&mut self) -> Result<Option<Extent>> {
        let start = self.next;
        if start >= self.window.len {
            return Ok(None);
        }
        let line = self.window.line(start)?;
        let date = parse_from_line(trim_line_end(line));
        let begin = start + line.len() as u64;
        let header_end = self.header_end(begin)?;
        let (end, next, quoted) = match self.end_by_content_length(begin, header_end)? {
            Some((end, next)) => {
                let separator = self.find_separator(header_end)?;
                (end, next, separator.is_none_or(|at| at >= next))
            }
            None => {
                let next = self.find_separator(begin)?.unwrap_or(self.window.len);
                (self.without_blank_line(begin, next)?, next, true)
            }
        };
        let blank_missing = end == next && next < self.window.len;
        self.next = next;
        Ok(Some(Extent { start, bytes: begin..end, next, date, quoted, blank_missing }))
    }

    /// The first separator line at or after `from`, which is the start of a line.
    fn find_separator(&mut self, from: u64) -> Result<Option<u64>> {
        if self.separator_at(from)? {
            return Ok(Some(from));
        }
        let finder = memmem::Finder::new(b"\nFrom ");
        let mut at = from.saturating_sub(1);
        loop {
            let window = self.window.at(at, from_line::PREFIX.len() + 1)?;
            let len = window.len();
            match finder.find(window) {
                Some(found) => {
                    let line = at + found as u64 + 1;
                    if self.separator_at(line)? {
                        return Ok(Some(line));
                    }
                    at = line;
                }
                None if at + len as u64 >= self.window.len => return Ok(None),
                // The last octets may be the beginning of the next one.
                None => at += (len - from_line::PREFIX.len()) as u64,
            }
        }
    }

    fn separator_at(&mut self, at: u64) -> Result<bool> {
        Ok(self.candidate(at)?.is_some_and(|line| parse_from_line(trim_line_end(line)).is_some()))
    }

    /// The line at `at`, when it begins as a separator does and is not too long for one.
    fn candidate(&mut self, at: u64) -> Result<Option<&[u8]>> {
        let file_len = self.window.len;
        let line = self.window.line(at)?;
        let is_whole = line.ends_with(b"\n") || at + line.len() as u64 == file_len;
        Ok((is_whole && line.starts_with(from_line::PREFIX)).then_some(line))
    }

    /// The end of a message that ends at the separator at `next`: one empty line before it is left out.
    fn without_blank_line(&mut self, begin: u64, next: u64) -> Result<u64> {
        let from = next.saturating_sub(4).max(begin);
        let tail = self.window.at(from, (next - from) as usize)?;
        let tail = tail.get(..(next - from) as usize).unwrap_or(tail);
        let blank = match tail {
            [.., b'\n', b'\r', b'\n'] => 2,
            [.., b'\n', b'\n'] => 1,
            _ => 0,
        };
        Ok(next - blank)
    }

    /// Where the header ends, its empty line included; at most [`HEADER_BYTES_MAX`] octets on.
    fn header_end(&mut self, begin: u64) -> Result<u64> {
        let mut len = 0;
        // Most headers are short: only the others make the window move.
        for want in [4096, HEADER_BYTES_MAX] {
            let bytes = self.window.at(begin, want)?;
            let bytes = bytes.get(..HEADER_BYTES_MAX).unwrap_or(bytes);
            len = mime::header_len(bytes);
            if len < bytes.len() {
                break;
            }
        }
        Ok(begin + len as u64)
    }

    /// End of the message and place of the next separator, when the message has a Content-Length that leads there.
    fn end_by_content_length(&mut self, begin: u64, header_end: u64) -> Result<Option<(u64, u64)>> {
        let header_bytes = (header_end - begin) as usize;
        let header = self.window.at(begin, header_bytes)?;
        let header = header.get(..header_bytes).unwrap_or(header);
        let Some(value) = mime::HeaderBlock::new(header).first("Content-Length") else { return Ok(None) };
        let octets = std::str::from_utf8(value.trim_ascii()).ok().and_then(|text| text.parse::<u64>().ok());
        let Some(end) = octets.and_then(|octets| header_end.checked_add(octets)).filter(|end| *end <= self.window.len)
        else {
            return Ok(None);
        };
        // A message without an empty line: the header that was looked at runs into the next message.
        if self.find_separator(begin)?.is_some_and(|at| at < header_end) {
            return Ok(None);
        }
        // What may stand between a body and the next separator: its missing line end, and the empty line.
        let after = self.window.at(end, 4)?;
        let blanks = after.iter().take(4).take_while(|byte| matches!(byte, b'\r' | b'\n')).count() as u64;
        let next = end + blanks;
        let lands = next == self.window.len || (self.starts_line(next)? && self.separator_at(next)?);
        Ok(lands.then_some((end, next)))
    }

    fn starts_line(&mut self, at: u64) -> Result<bool> {
        match at.checked_sub(1) {
            None => Ok(true),
            Some(before) => Ok(self.window.at(before, 1)?.first() == Some(&b'\n')),
        }
    }
}

fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A part of the file in memory.
struct Window<'a> {
    file: &'a dyn File,
    /// Octets of the file when the scan began: what is added later is not looked at.
    len: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// The octets from `at` on: at least `want` of them (all that there are, near the end of the file), often more.
    fn at(&mut self, at: u64, want: usize) -> Result<&[u8]> {
        let here = self.start..self.start + self.bytes.len() as u64;
        let wanted_end = at.saturating_add(want as u64).min(self.len);
        if at < here.start || wanted_end > here.end {
            self.start = at;
            let len = self.len.saturating_sub(at).min(want.max(WINDOW_BYTES) as u64) as usize;
            self.bytes.resize(len, 0);
            self.file.read_exact_at(&mut self.bytes, at)?;
        }
        let skip = usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX);
        Ok(self.bytes.get(skip..).unwrap_or_default())
    }

    /// The line at `at`, its line end included; cut at [`from_line::LINE_BYTES_MAX`].
    fn line(&mut self, at: u64) -> Result<&[u8]> {
        let bytes = self.at(at, from_line::LINE_BYTES_MAX)?;
        let bytes = bytes.get(..from_line::LINE_BYTES_MAX).unwrap_or(bytes);
        let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
        Ok(bytes.get(..end).unwrap_or(bytes))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use platform::OpenMode;
    use platform::sim::SimEnv;

    use super::*;

    const LINE: &str = "From a@b Thu Aug 22 12:36:23 2002\n";

    fn extents(bytes: &[u8]) -> Vec<Extent> {
        let disk = SimEnv::new(1).env().disk;
        let file = disk.open(Path::new("/mbox"), OpenMode::Create).unwrap();
        file.write_at(bytes, 0).unwrap();
        let mut scanner = MboxScanner::new(&*file, 0).unwrap();
        let mut found = Vec::new();
        if scanner.begins_as_mbox().unwrap() {
            while let Some(extent) = scanner.next_extent().unwrap() {
                found.push(extent);
            }
        }
        found
    }

    #[test]
    fn messages_longer_than_the_window() {
        let body = "words and words\n".repeat(WINDOW_BYTES / 8);
        let mbox =
            format!("{LINE}A: 1\n\n{body}\n{LINE}B: 2\n\nx\n\n{LINE}C: 3\nContent-Length: {}\n\n{body}", body.len());
        let found: Vec<&str> = extents(mbox.as_bytes())
            .into_iter()
            .map(|extent| &mbox[extent.bytes.start as usize..extent.bytes.end as usize])
            .collect();
        let expected = [
            format!("A: 1\n\n{body}"),
            "B: 2\n\nx\n".to_owned(),
            format!("C: 3\nContent-Length: {}\n\n{body}", body.len()),
        ];
        assert!(found == expected, "the three messages as they are");
    }

    #[test]
    fn a_from_line_is_so_long_and_no_longer() {
        let line = |octets: usize| LINE.replace('\n', &format!("{}\n", " x".repeat((octets - LINE.len()) / 2)));
        let max = from_line::LINE_BYTES_MAX;
        assert_eq!(line(max).len(), max);
        let mbox = format!("{LINE}A: 1\n\nx\n\n{}B: 2\n\ny\n", line(max));
        assert_eq!(extents(mbox.as_bytes()).len(), 2);
        // Longer, it is a line like others, wherever it stands.
        let long = format!("{}{}", LINE.trim_end(), " ".repeat(max - LINE.len()) + " \n");
        assert_eq!(long.len(), max + 1);
        let mbox = format!("{LINE}A: 1\n\nx\n\n{long}B: 2\n\ny\n");
        let found = extents(mbox.as_bytes());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].bytes.end, mbox.len() as u64);
        assert_eq!(extents(format!("{long}A: 1\n\nx\n").as_bytes()), []);
    }

    #[test]
    fn a_header_is_searched_so_far_for_content_length_and_no_farther() {
        let body = format!("{LINE}quoted by its length only\n");
        let mbox = |header_octets: usize| {
            let length = format!("Content-Length: {}\n\n", body.len());
            let padding = "p".repeat(header_octets - "X: \n".len() - length.len());
            format!("{LINE}X: {padding}\n{length}{body}\n")
        };
        assert_eq!(extents(mbox(HEADER_BYTES_MAX).as_bytes()).len(), 1);
        // The first octet of the field is the first one that is not looked at.
        let over = HEADER_BYTES_MAX + format!("Content-Length: {}\n\n", body.len()).len();
        assert_eq!(extents(mbox(over).as_bytes()).len(), 2, "found by its From line instead");
    }

    proptest::proptest! {
        #[test]
        fn extents_are_in_order_and_inside(pieces in proptest::collection::vec(0usize..9, 0..30)) {
            let all = [LINE, "\n", "\r\n", "A: b\n", "Content-Length: 3\n", "Content-Length: 60\n", "x", ">From y\n", "From z\n"];
            let mbox: String = pieces.into_iter().map(|n| all[n]).collect();
            let mut at = 0;
            for extent in extents(mbox.as_bytes()) {
                let inside = at <= extent.start && extent.start < extent.bytes.start.max(extent.next);
                proptest::prop_assert!(inside && extent.bytes.start <= extent.bytes.end && extent.bytes.end <= extent.next);
                at = extent.next;
            }
            proptest::prop_assert!(at == mbox.len() as u64 || at == 0);
        }
    }
}
