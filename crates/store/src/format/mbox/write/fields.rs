//! The header fields in which the file says what the log knows of a message, as they are written.
//!
//! Where there is room the values change in place ([`Header::in_place`]); otherwise the header is put together anew
//! ([`Header::rebuilt`]): the fields of others octet by octet as they were, ours in one block, with room for later.
//!
//! Invariants:
//! - Nothing but the fields of [`MetaName`] differs between a header and what becomes of it, so that the message stays the same
//!   (its digest is over the rest).
//! - No line is longer than RFC 5322 §2.1.1 allows, however many keywords a message has.
//! - A change with [`Change::Values`] leaves every line where it is: whatever part of it a power cut leaves, the other fields stay whole.

use model::Keyword;

use super::block::{self, Line, Room};
use crate::format::mbox::meta::{MetaField, MetaName, all_fields};
use crate::format::mbox::place::{FileFlags, ImapBase};
use crate::format::mbox::values::{STATUS, X_STATUS};

/// What the file is to say of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Its UID, `X-UID`.
    pub uid: u32,
    /// `Status` and `X-Status`; [`FileFlags::COMPLETE`] does not matter.
    pub flags: FileFlags,
    /// `X-Keywords`.
    pub keywords: Vec<Keyword>,
}

impl Wanted {
    /// What a place says of a message with these fields: flags, and the hash of the keywords.
    pub fn placed(&self) -> (FileFlags, u8) {
        (self.flags.with(FileFlags::COMPLETE), keywords_hash(&self.keywords))
    }
}

/// The short hash of [`crate::format::mbox::place::Place::keywords`]: of the names in order, in any case; 0 for none.
pub fn keywords_hash(keywords: &[Keyword]) -> u8 {
    if keywords.is_empty() {
        return 0;
    }
    let mut names: Vec<String> = keywords.iter().map(|keyword| keyword.as_str().to_ascii_lowercase()).collect();
    names.sort_unstable();
    let crc =
        names.iter().fold(0, |crc, name| crc32c::crc32c_append(crc32c::crc32c_append(crc, name.as_bytes()), b" "));
    // 0 is taken.
    u8::try_from(crc % 255 + 1).unwrap_or(u8::MAX)
}

/// What the fields of a message are to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'w> {
    /// What is there, without filler.
    Kept,
    /// This, and only this.
    Wanted(&'w Wanted),
}

/// How a header is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style<'b> {
    /// Lines end with CRLF.
    pub(super) is_crlf: bool,
    /// Octets of room behind the keywords.
    pub(super) padding: usize,
    /// It is the first message of its file, which says this of the file.
    pub(super) base: Option<&'b ImapBase>,
    /// A Content-Length leads nowhere: it goes, when the header is put together anew.
    pub(super) drop_length: bool,
}

impl Style<'_> {
    pub(super) fn eol(&self) -> &'static [u8] {
        if self.is_crlf { b"\r\n" } else { b"\n" }
    }
}

/// What becomes of a header whose length stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It says everything already.
    None,
    /// Values are written over those that are there, at these offsets; lines stay where they are.
    Values(Vec<(usize, Vec<u8>)>),
    /// Lines change: the header then.
    Lines(Vec<u8>),
}

/// A header: from behind the `From ` line to the body.
#[derive(Debug)]
pub(super) struct Header<'h> {
    bytes: &'h [u8],
    /// Those of all names, in order.
    fields: Vec<MetaField>,
    /// Where the empty line begins, or the end.
    end: usize,
}

impl<'h> Header<'h> {
    pub(super) fn new(bytes: &'h [u8]) -> Self {
        let blank = match bytes {
            b"\n" | [.., b'\n', b'\n'] => 1,
            b"\r\n" | [.., b'\n', b'\r', b'\n'] => 2,
            // The file ends in it: with a line end it will be one.
            b"\r" | [.., b'\n', b'\r'] => 1,
            _ => 0,
        };
        Header { bytes, fields: all_fields(bytes), end: bytes.len() - blank }
    }

    /// All of it.
    pub(super) fn bytes(&self) -> &'h [u8] {
        self.bytes
    }

    /// Whether an empty line ends it.
    pub(super) fn is_ended(&self) -> bool {
        self.end < self.bytes.len() && self.bytes.ends_with(b"\n")
    }

    /// Octets of that line, which may lack its end.
    pub(super) fn blank(&self) -> usize {
        self.bytes.len() - self.end
    }

    /// What its Content-Length says, if it has one: `None` inside for what is no number.
    pub(super) fn content_length(&self) -> Option<Option<u64>> {
        let field = self.fields.iter().find(|field| field.name == MetaName::ContentLength)?;
        Some(std::str::from_utf8(field.value(self.bytes)).ok().and_then(|text| text.parse().ok()))
    }

    /// Where that stands.
    pub(super) fn content_length_value(&self) -> Option<std::ops::Range<usize>> {
        let field = self.fields.iter().find(|field| field.name == MetaName::ContentLength)?;
        Some(field.value.clone())
    }

    /// Octets of filler.
    pub(super) fn filler(&self) -> usize {
        self.fields.iter().filter(|field| field.name == MetaName::Filler).map(|field| field.line.len()).sum()
    }

    /// Whether it has any field that says something of the message, or of the file.
    pub(super) fn has_any(&self) -> bool {
        self.ours().any(|field| field.name != MetaName::Filler)
    }

    /// Whether it says something of the file.
    pub(super) fn has_base(&self) -> bool {
        self.fields.iter().any(|field| matches!(field.name, MetaName::ImapBase | MetaName::Imap))
    }

    fn ours(&self) -> impl Iterator<Item = &MetaField> {
        self.fields.iter().filter(|field| field.name.is_ours())
    }

    /// The fields that there are to be, in the order of a new block.
    fn lines(&self, content: Content<'_>, style: &Style<'_>) -> Vec<Line> {
        let mut lines = Vec::with_capacity(5);
        if let Some(base) = style.base {
            // c-client's pseudo message has it under another name.
            let is_imap = self.ours().find(|field| matches!(field.name, MetaName::ImapBase | MetaName::Imap));
            let name = is_imap.map_or(MetaName::ImapBase, |field| field.name);
            lines.push(Line { name, value: base_value(base, style.eol()) });
        }
        match content {
            Content::Wanted(wanted) => lines.extend([
                Line { name: MetaName::Uid, value: wanted.uid.to_string().into_bytes() },
                Line { name: MetaName::Status, value: letters(wanted.flags, &STATUS[..2]) },
                Line { name: MetaName::XStatus, value: letters(wanted.flags, &X_STATUS) },
                Line { name: MetaName::XKeywords, value: keywords_value(&wanted.keywords, style.eol()) },
            ]),
            Content::Kept => {
                let kept = self.ours().filter(|field| match field.name {
                    MetaName::ImapBase | MetaName::Imap => false,
                    name => name != MetaName::Filler,
                });
                lines.extend(kept.map(|field| Line { name: field.name, value: field.value(self.bytes).to_vec() }));
            }
        }
        lines
    }

    /// Changes the fields without changing the length. `None`: there is no room, or a field is missing that finds no place.
    pub(super) fn in_place(&self, wanted: &Wanted, style: &Style<'_>) -> Option<Change> {
        let lines = self.lines(Content::Wanted(wanted), style);
        if let Some(values) = self.values_in_place(&lines) {
            return Some(if values.is_empty() { Change::None } else { Change::Values(values) });
        }
        self.lines_in_place(lines, style).map(Change::Lines)
    }

    /// Changes what the first message says of the file, as far as there is room; the last UID always has.
    pub(super) fn base_in_place(&self, base: &ImapBase) -> Option<(usize, Vec<u8>)> {
        let field = self.fields.iter().find(|field| matches!(field.name, MetaName::ImapBase | MetaName::Imap))?;
        let without_keywords = ImapBase { keywords: Vec::new(), ..base.clone() };
        [base, &without_keywords].into_iter().find_map(|base| {
            let line = Line { name: field.name, value: base_value(base, b"\n") };
            self.value_in_place(field, &line)
        })
    }

    /// Each field on its own line; empty where nothing changes.
    fn values_in_place(&self, lines: &[Line]) -> Option<Vec<(usize, Vec<u8>)>> {
        let has_others =
            self.ours().any(|field| field.name != MetaName::Filler && lines.iter().all(|line| line.name != field.name));
        if has_others {
            return None;
        }
        let mut values = Vec::new();
        for line in lines {
            let mut fields = self.ours().filter(|field| field.name == line.name);
            let (field, more) = (fields.next()?, fields.next());
            if more.is_some() {
                return None;
            }
            let (at, value) = self.value_in_place(field, line)?;
            if !value.is_empty() {
                values.push((at, value));
            }
        }
        Some(values)
    }

    /// A value over another; empty when it is the same.
    fn value_in_place(&self, field: &MetaField, line: &Line) -> Option<(usize, Vec<u8>)> {
        let old = field.value(self.bytes);
        let at = field.value.start;
        if old == line.value {
            return Some((at, Vec::new()));
        }
        let is_folded = old.contains(&b'\n') || line.value.contains(&b'\n');
        if is_folded || line.value.len() > field.padding_end.checked_sub(at)? {
            return None;
        }
        let mut value = line.value.clone();
        value.resize(value.len().max(old.len()), b' ');
        Some((at, value))
    }

    /// Block by block: the fields that stand there in the room that they have together; those that are missing where the keywords are, or
    /// in the largest.
    fn lines_in_place(&self, mut missing: Vec<Line>, style: &Style<'_>) -> Option<Vec<u8>> {
        let mut runs: Vec<Run> = Vec::new();
        for field in self.ours() {
            match runs.last_mut().filter(|run| run.to == field.line.start) {
                Some(run) => run.to = field.line.end,
                None => {
                    runs.push(Run { from: field.line.start, to: field.line.end, lines: Vec::new(), is_home: false })
                }
            }
            let run = runs.last_mut()?;
            if let Some(at) = missing.iter().position(|line| line.name == field.name) {
                run.lines.push(missing.remove(at));
                run.is_home |= field.name == MetaName::XKeywords;
            }
        }
        let home = match runs.iter().position(|run| run.is_home) {
            Some(home) => home,
            None => (0..runs.len()).max_by_key(|at| runs.get(*at).map(|run| run.to - run.from))?,
        };
        let home = runs.get_mut(home)?;
        missing.append(&mut home.lines);
        home.lines = missing;
        let mut header = self.bytes.to_vec();
        for run in runs {
            let old = header.get_mut(run.from..run.to)?;
            let new = block::render(&run.lines, style.eol(), Room::Exactly(old.len()), style.padding)?;
            old.copy_from_slice(&new);
        }
        Some(header)
    }

    /// The header anew: the fields of others as they are, ours in one block where the last of them stood, or at the end. `None`: it cannot
    /// have exactly this length.
    pub(super) fn rebuilt(&self, content: Content<'_>, style: &Style<'_>, room: Room) -> Option<Vec<u8>> {
        let lines = self.lines(content, style);
        let place = self.ours().last().map_or(self.end, |field| field.line.start);
        let mut out = Vec::with_capacity(self.bytes.len() + 256);
        let (mut at, mut block_at) = (0, None);
        for field in &self.fields {
            let is_dropped_length = field.name == MetaName::ContentLength && style.drop_length;
            let is_kept = !field.name.is_ours() && !is_dropped_length;
            out.extend_from_slice(self.bytes.get(at..field.line.start)?);
            at = field.line.start;
            if field.line.start == place {
                block_at = Some(out.len());
            }
            if !is_kept {
                at = field.line.end;
            }
        }
        out.extend_from_slice(self.bytes.get(at..self.end)?);
        let block_at = block_at.unwrap_or_else(|| {
            if !out.is_empty() {
                end_line(&mut out, style.eol());
            }
            out.len()
        });
        let blank = self.bytes.get(self.end..)?;
        let room = match room {
            Room::Exactly(len) => Room::Exactly(len.checked_sub(out.len() + blank.len())?),
            other => other,
        };
        let block = block::render(&lines, style.eol(), room, style.padding)?;
        let behind = out.split_off(block_at);
        out.extend_from_slice(&block);
        out.extend_from_slice(&behind);
        out.extend_from_slice(blank);
        Some(out)
    }
}

/// Fields of ours that follow each other.
struct Run {
    from: usize,
    to: usize,
    lines: Vec<Line>,
    is_home: bool,
}

/// The whole block for a message that comes to the file.
pub(super) fn new_block(wanted: &Wanted, style: &Style<'_>) -> Vec<u8> {
    let lines = Header::new(b"").lines(Content::Wanted(wanted), style);
    block::render(&lines, style.eol(), Room::Natural, style.padding).unwrap_or_default()
}

/// Ends the last line, if it has no end. A CR becomes part of it: another CR before it would be the message's.
pub(super) fn end_line(text: &mut Vec<u8>, eol: &[u8]) {
    match text.last() {
        Some(b'\n') => {}
        Some(b'\r') => text.push(b'\n'),
        _ => text.extend_from_slice(eol),
    }
}

fn letters(flags: FileFlags, letters: &[(u8, FileFlags)]) -> Vec<u8> {
    letters.iter().filter(|(_, flag)| flags.has(*flag)).map(|(letter, _)| *letter).collect()
}

fn keywords_value(keywords: &[Keyword], eol: &[u8]) -> Vec<u8> {
    block::folded(Vec::new(), keywords.iter().map(|keyword| keyword.as_str().as_bytes()), eol)
}

/// `UIDVALIDITY LASTUID keywords`, the second with ten digits, so that programs can write it in place (Dovecot wants it so).
fn base_value(base: &ImapBase, eol: &[u8]) -> Vec<u8> {
    let start = format!("{} {:010}", base.uid_validity, base.last_uid);
    block::folded(start.into_bytes(), base.keywords.iter().map(|keyword| keyword.as_str().as_bytes()), eol)
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
