//! What stands before the body of a message when the rest of the file has moved, or is about to: its `From ` line and its header. No I/O.

use model::DateTime;

use super::block::Room;
use super::fields::{Content, Header, Style};
use super::render::asctime;
use crate::format::mbox::from_line::{LINE_BYTES_MAX, PREFIX, parse_from_line};

/// Octets of a date that is put into a `From ` line, with room to spare.
const DATE_BYTES: usize = 64;

/// Where a message is in the course of a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// How far it would move to the front; negative: to the back.
    pub(super) shift: i64,
    /// What makes it move to the front becomes filler instead, so much of it at most.
    pub(super) fill: Option<u64>,
    /// Filler is taken out.
    pub(super) is_sweep: bool,
    /// Another message stands before it than did.
    pub(super) has_new_neighbour: bool,
    /// Nothing but an empty line is in it, and none follows that belongs to the mbox.
    pub(super) is_bare: bool,
}

/// What is to stand before a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NewHead {
    /// `From ` line and header.
    pub(super) bytes: Vec<u8>,
    /// Octets of the `From ` line.
    pub(super) from_line: usize,
    /// Octets at the end of `bytes` that are the empty line of the mbox and not of the message.
    pub(super) behind: usize,
}

impl NewHead {
    pub(super) fn new(from_line: &[u8], header: &[u8]) -> Self {
        NewHead { bytes: [from_line, header].concat(), from_line: from_line.len(), behind: 0 }
    }
}

/// What is to stand there; `None`: what does.
pub(super) fn new_head(
    from_line: &[u8],
    header: &Header<'_>,
    content: Content<'_>,
    style: &Style<'_>,
    situation: &Situation,
) -> Option<NewHead> {
    let new_from_line = complete_from_line(from_line, style.eol());
    // The message's own empty line becomes that of the mbox as soon as a field stands before it.
    let behind = if situation.is_bare { style.eol() } else { b"" };
    let old_header = header.bytes();
    let old_len = from_line.len() + old_header.len();
    let is_written = matches!(content, Content::Wanted(_)) || style.base.is_some();
    let has_filler = header.filler() > 0;
    let change = match situation.shift {
        0 if is_written && !(situation.is_sweep && has_filler) => Some(0),
        0 => None,
        // Room of this message takes up what those before it grew.
        shift if shift < 0 => Some(shift),
        shift => situation.fill.map(|fill| shift.min(i64::try_from(fill).unwrap_or(i64::MAX))),
    };
    let exact = change.and_then(|change| {
        let len = i64::try_from(old_len).ok()?.checked_add(change)?;
        let room = usize::try_from(len).ok()?.checked_sub(new_from_line.len() + behind.len())?;
        header.rebuilt(content, style, Room::Exactly(room))
    });
    let is_moved = situation.shift != 0 || situation.is_sweep;
    let rebuilt = match exact {
        // With nothing left in it the empty line behind it would become its own.
        None if is_written || ((has_filler || style.drop_length) && is_moved) => {
            header.rebuilt(content, style, Room::Natural).filter(|new| new.len() > 2)
        }
        exact => exact,
    };
    let (new_header, behind) = match rebuilt {
        Some(rebuilt) => (rebuilt, behind),
        None if new_from_line == from_line || !situation.has_new_neighbour => return None,
        None => (old_header.to_vec(), b"".as_slice()),
    };
    let from_line = new_from_line.len();
    Some(NewHead { bytes: [&new_from_line, new_header.as_slice(), behind].concat(), from_line, behind: behind.len() })
}

/// Whether a `From ` line separates messages wherever it stands. Without a date that depends on what is before it and below it.
pub(super) fn is_dated(from_line: &[u8]) -> bool {
    parse_from_line(line_of(from_line)).is_some()
}

/// Without the line end.
fn line_of(from_line: &[u8]) -> &[u8] {
    match from_line {
        [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
        _ => from_line,
    }
}

/// A `From ` line with a line end and a date.
fn complete_from_line(from_line: &[u8], eol: &[u8]) -> Vec<u8> {
    let line = line_of(from_line);
    let is_dated = is_dated(line);
    if is_dated && line.len() < from_line.len() {
        return from_line.to_vec();
    }
    let mut new = match line.trim_ascii_end() {
        _ if is_dated => line.to_vec(),
        line if line.len() <= LINE_BYTES_MAX - DATE_BYTES => line.to_vec(),
        _ => [PREFIX, b"MAILER-DAEMON"].concat(),
    };
    if !is_dated {
        new.push(b' ');
        new.extend_from_slice(asctime(DateTime::utc(0)).as_bytes());
    }
    new.extend_from_slice(eol);
    new
}
