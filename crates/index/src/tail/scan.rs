//! Reading a tail: which frames are whole, where it ends, what is damaged.
//!
//! A frame that fails its checksum is a torn write when it belongs to the last batch: the tail is cut there, since nobody was
//! told that it is durable. It is damage when a later frame says (`durable_before`) that it was durable: then it is
//! reported and the rest is read.

use std::path::Path;
use std::sync::Arc;

use model::{EmailId, Error, ErrorKind, Result};
use platform::File;

use super::frame::{FRAME_ALIGN, FRAME_HEADER_BYTES, FRAME_MAGIC, FrameHeader, TAIL_HEADER_BYTES, read_tail_header};
use super::{Tail, TailMessage};
use crate::check::Finding;
use crate::record::{BadEvent, Event};
use crate::transaction::FRAME_EVENTS_BYTES_MAX;

/// Bytes read at once.
const WINDOW_BYTES: usize = 256 << 10;

/// One frame of a tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedFrame {
    pub(crate) at: u64,
    pub(crate) header: FrameHeader,
    /// Whether the records match their checksum.
    is_whole: bool,
}

/// What a tail holds.
#[derive(Debug)]
pub(crate) struct TailScan {
    pub(crate) frames: Vec<ScannedFrame>,
    /// End of the last frame that counts.
    pub(crate) end: u64,
    pub(crate) epoch: u32,
    /// Something other than zeros stands behind the end.
    pub(crate) is_dirty_behind: bool,
    /// All frames up to this one were durable when the last one was written.
    pub(crate) durable: u64,
    pub(crate) findings: Vec<Finding>,
}

/// Reads a file through a window that moves forward.
struct Window<'a> {
    file: &'a dyn File,
    len: u64,
    at: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// `len` bytes from `at` on; `None` when the file ends before.
    fn slice(&mut self, at: u64, len: usize) -> Result<Option<&[u8]>> {
        if at.checked_add(len as u64).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        let is_inside = at >= self.at && at + len as u64 <= self.at + self.bytes.len() as u64;
        if !is_inside {
            let want = len.max(WINDOW_BYTES).min((self.len - at) as usize);
            self.bytes.resize(want, 0);
            self.file.read_exact_at(&mut self.bytes, at)?;
            self.at = at;
        }
        let from = (at - self.at) as usize;
        Ok(self.bytes.get(from..from + len))
    }
}

fn finding(path: &Path, offset: u64, what: impl Into<String>) -> Finding {
    Finding { file: path.to_owned(), offset, email_id: None, what: what.into() }
}

impl TailScan {
    /// Reads the tail in `file`. `torn_after`: in the last tail, frames after this one may be torn; `None`: all were durable
    /// before the next tail was begun.
    pub(crate) fn run(
        path: &Path,
        file: &Arc<dyn File>,
        first_frame: u64,
        torn_after: Option<u64>,
    ) -> Result<TailScan> {
        Self::run_within(path, file, first_frame, torn_after, file.len()?)
    }

    /// Reads the durable part of a tail in use, which ends at `end`.
    pub(crate) fn run_up_to(path: &Path, file: &Arc<dyn File>, first_frame: u64, end: u64) -> Result<TailScan> {
        Self::run_within(path, file, first_frame, None, end)
    }

    fn run_within(
        path: &Path,
        file: &Arc<dyn File>,
        first_frame: u64,
        torn_after: Option<u64>,
        len: u64,
    ) -> Result<TailScan> {
        let mut window = Window { file: &**file, len, at: 0, bytes: Vec::new() };
        let header = window.slice(0, TAIL_HEADER_BYTES)?.and_then(read_tail_header);
        let epoch = header.filter(|(_, first)| *first == first_frame).map(|(epoch, _)| epoch);
        let mut scan = TailScan {
            frames: Vec::new(),
            end: TAIL_HEADER_BYTES as u64,
            epoch: 0,
            is_dirty_behind: false,
            durable: first_frame - 1,
            findings: Vec::new(),
        };
        scan.epoch = match epoch {
            Some(epoch) => epoch,
            None => {
                let Some((_, frame)) = search(&mut window, TAIL_HEADER_BYTES as u64, None, first_frame, 0)? else {
                    scan.is_dirty_behind = true;
                    return Ok(scan);
                };
                scan.findings.push(finding(path, 0, "the tail's header is damaged"));
                frame.epoch
            }
        };
        scan.walk(path, &mut window, first_frame, torn_after.is_some())?;
        if let Some(proven) = torn_after {
            scan.durable = scan.durable.max(proven);
            scan.cut(&**file)?;
            scan.is_dirty_behind = is_dirty(&mut window, scan.end)?;
        }
        for frame in scan.frames.iter().filter(|frame| !frame.is_whole) {
            let what = format!("the records of frame {} are damaged", frame.header.frame.number);
            scan.findings.push(finding(path, frame.at, what));
        }
        Ok(scan)
    }

    /// Follows the frames from one to the next.
    fn walk(&mut self, path: &Path, window: &mut Window<'_>, first_frame: u64, is_last: bool) -> Result<()> {
        let mut expected = first_frame;
        let mut at = TAIL_HEADER_BYTES as u64;
        loop {
            let header = window.slice(at, FRAME_HEADER_BYTES)?.and_then(FrameHeader::read);
            let header = header.filter(|header| header.epoch == self.epoch && header.frame.number == expected);
            let end = header.and_then(|header| at.checked_add(header.frame_len()?)).filter(|end| *end <= window.len);
            if let (Some(header), Some(end)) = (header, end) {
                let len = header.events_len as usize;
                let events = match len <= FRAME_EVENTS_BYTES_MAX {
                    true => window.slice(at + FRAME_HEADER_BYTES as u64, len)?,
                    false => None,
                };
                let is_whole = events.is_some_and(|events| crc32c::crc32c(events) == header.events_crc);
                self.frames.push(ScannedFrame { at, header, is_whole });
                self.durable = self.durable.max(header.durable_before);
                self.end = end;
                (at, expected) = (end, expected + 1);
                continue;
            }
            // In the last tail only a frame of a later batch proves that this one was durable.
            let proof = if is_last { expected } else { 0 };
            match search(window, at, Some(self.epoch), expected, proof)? {
                Some((found, frame)) => {
                    let what = format!("frames {expected} to {} are damaged", frame.frame.number.saturating_sub(1));
                    self.findings.push(finding(path, at, what));
                    (at, expected) = (found, frame.frame.number);
                }
                None => return Ok(()),
            }
        }
    }

    /// Drops the frames of the last batch from the first one on that is not whole, message bytes included.
    fn cut(&mut self, file: &dyn File) -> Result<()> {
        let from = self.frames.partition_point(|frame| frame.header.frame.number <= self.durable);
        let mut keep = from;
        while let Some(frame) = self.frames.get(keep) {
            if !frame.is_whole || !is_data_whole(frame, file)? {
                self.end = frame.at;
                break;
            }
            keep += 1;
        }
        self.frames.truncate(keep);
        Ok(())
    }
}

/// The next place from `at` on where a header of a frame numbered `expected` or later stands, which says that frame
/// `proof` was durable.
fn search(
    window: &mut Window<'_>,
    at: u64,
    epoch: Option<u32>,
    expected: u64,
    proof: u64,
) -> Result<Option<(u64, FrameHeader)>> {
    let mut at = at.next_multiple_of(FRAME_ALIGN);
    let magic = FRAME_MAGIC.to_le_bytes();
    while let Some(bytes) = window.slice(at, FRAME_HEADER_BYTES)? {
        if bytes.starts_with(&magic) {
            let header = FrameHeader::read(bytes).filter(|header| {
                let frame_end = header.frame_len().and_then(|len| at.checked_add(len));
                epoch.is_none_or(|epoch| epoch == header.epoch)
                    && header.frame.number >= expected
                    && header.durable_before >= proof
                    && frame_end.is_some_and(|end| end <= window.len)
            });
            if let Some(header) = header {
                return Ok(Some((at, header)));
            }
        }
        at += FRAME_ALIGN;
    }
    Ok(None)
}

/// Whether anything but zeros stands from `at` on.
fn is_dirty(window: &mut Window<'_>, mut at: u64) -> Result<bool> {
    while at < window.len {
        let len = WINDOW_BYTES.min((window.len - at) as usize);
        if window.slice(at, len)?.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)) {
            return Ok(true);
        }
        at += len as u64;
    }
    Ok(false)
}

/// The records of a frame; `None` when they are damaged.
pub(crate) fn read_events(frame: &ScannedFrame, file: &dyn File) -> Result<Option<Vec<Event>>> {
    if !frame.is_whole {
        return Ok(None);
    }
    let mut bytes = vec![0; frame.header.events_len as usize];
    file.read_exact_at(&mut bytes, frame.at + FRAME_HEADER_BYTES as u64)?;
    match Event::read_all(&bytes, frame.header.frame.time) {
        Ok(events) => Ok(Some(events)),
        Err(BadEvent::Malformed) => Ok(None),
        Err(BadEvent::UnknownKind(kind)) => Err(newer_version(kind)),
    }
}

/// The records of the messages of a frame; none when they are damaged.
pub(crate) fn read_message_events(frame: &ScannedFrame, file: &dyn File) -> Result<Vec<Event>> {
    if !frame.is_whole {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; frame.header.events_len as usize];
    file.read_exact_at(&mut bytes, frame.at + FRAME_HEADER_BYTES as u64)?;
    match Event::read_messages(&bytes, frame.header.frame.time) {
        Ok(events) => Ok(events),
        Err(BadEvent::Malformed) => Ok(Vec::new()),
        Err(BadEvent::UnknownKind(kind)) => Err(newer_version(kind)),
    }
}

/// The refusal to read records that this version does not know.
pub(crate) fn newer_version(kind: u8) -> Error {
    Error::new(
        ErrorKind::Invalid,
        format!("the log has a record of the unknown kind {kind}: it was written by a newer version"),
    )
}

/// Where the messages of a frame lie, given its records.
pub(crate) fn messages(frame: &ScannedFrame, events: &[Event]) -> Vec<(EmailId, TailMessage)> {
    let mut at = frame.at + FRAME_HEADER_BYTES as u64 + u64::from(frame.header.events_len);
    let mut messages = Vec::new();
    for event in events {
        if let Event::Message { email_id, len, header_len, crc } = event {
            messages.push((*email_id, TailMessage { at, len: *len, header_len: *header_len, crc: *crc }));
            at += u64::from(*len);
        }
    }
    messages
}

fn is_data_whole(frame: &ScannedFrame, file: &dyn File) -> Result<bool> {
    let Some(events) = read_events(frame, file)? else { return Ok(false) };
    let messages = messages(frame, &events);
    let total: u64 = messages.iter().map(|(_, message)| u64::from(message.len)).sum();
    if total != frame.header.data_len {
        return Ok(false);
    }
    for (_, message) in messages {
        if !is_message_whole(file, &message)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the bytes of a message match its checksum.
pub(crate) fn is_message_whole(file: &dyn File, message: &TailMessage) -> Result<bool> {
    let mut crc = 0;
    let mut piece = vec![0; WINDOW_BYTES.min(message.len as usize)];
    let mut left = message.len as usize;
    let mut at = message.at;
    while left > 0 {
        let len = left.min(piece.len());
        let bytes = piece.get_mut(..len).unwrap_or_default();
        file.read_exact_at(bytes, at)?;
        crc = crc32c::crc32c_append(crc, bytes);
        (left, at) = (left - len, at + len as u64);
    }
    Ok(crc == message.crc)
}

impl Tail {
    /// A tail as it was found.
    pub(crate) fn scanned(path: &Path, file: Arc<dyn File>, first_frame: u64, scan: &TailScan) -> Tail {
        let tail = Tail::new(path.to_owned(), file, scan.epoch, first_frame);
        let last = scan.frames.last().map_or(first_frame - 1, |frame| frame.header.frame.number);
        tail.extend(&[], scan.end, last);
        tail
    }
}
