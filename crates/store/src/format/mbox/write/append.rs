//! Messages that are added at the end of the file, under an intent: how long the file was and how long it will be is durable before the first
//! octet, so that what a power cut leaves of them can be told from what others add.

use std::sync::Arc;

use model::{EmailId, Error, ErrorKind, Result};
use platform::{Disk, File};

use super::fields::{Header, Style};
use super::files::Files;
use super::record::{AT_ONCE_BYTES_MAX, BEFORE_BYTES, Intent, Stage};
use super::recover::take_out;
use super::render::{HEADER_BYTES_MAX, Quoter, head, head_octets};
use super::{Outgoing, Settings, Target};
use crate::format::mbox::place::{ImapBase, Place};
use crate::format::mbox::rewrite;
use crate::format::mbox::scan::Reader;
use crate::format::served::Form;

/// Octets of a large message that are written at once.
const PIECE_BYTES: usize = 1 << 20;
/// More line ends behind the last message need not be looked at.
const BLANKS_MAX: u64 = 64;

/// Adds messages to a file.
pub(super) struct Appender<'p> {
    target: &'p Target<'p>,
    disk: Arc<dyn Disk>,
    file: Arc<dyn File>,
    files: &'p Files,
    settings: &'p Settings,
    base: &'p ImapBase,
    is_crlf: bool,
    has_messages: bool,
    /// The end of the file.
    at: u64,
    /// What comes next.
    batch: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) count: u64,
}

impl<'p> Appender<'p> {
    /// To a file of `at` octets whose last message is `last`. That may have to be ended first, which changes its place.
    pub(super) fn begin(
        target: &'p Target<'p>,
        files: &'p Files,
        settings: &'p Settings,
        base: &'p ImapBase,
        at: u64,
        last: Option<&mut Place>,
    ) -> Result<Self> {
        let file = Arc::clone(target.lock.file());
        let is_crlf = last.as_ref().is_some_and(|last| last.is_crlf);
        let has_messages = last.is_some();
        let batch = match last {
            Some(last) => {
                disown(&*file, last)?;
                end_of(&*file, at, last)?
            }
            None => Vec::new(),
        };
        if target.is_doubtful {
            write_end_again(&*file, at)?;
        }
        let disk = Arc::clone(&target.env.disk);
        Ok(Appender { target, disk, file, files, settings, base, is_crlf, has_messages, at, batch, bytes: 0, count: 0 })
    }

    /// Adds one, now or with those that follow.
    pub(super) fn push(&mut self, message: Outgoing<'_>, placed: &mut dyn FnMut(Place) -> Result<()>) -> Result<()> {
        let place =
            if message.size <= HEADER_BYTES_MAX as u64 { self.push_small(message)? } else { self.push_large(message)? };
        self.has_messages = true;
        self.count += 1;
        if self.batch.len() >= self.settings.batch_bytes {
            self.flush()?;
        }
        placed(place)
    }

    fn style(&self) -> Style<'p> {
        let base = (!self.has_messages).then_some(self.base);
        Style { is_crlf: self.is_crlf, padding: self.settings.padding_bytes, base, drop_length: false }
    }

    fn push_small(&mut self, mut message: Outgoing<'_>) -> Result<Place> {
        let mut octets = Vec::with_capacity(message.size as usize);
        (message.read)(&mut |piece| {
            octets.extend_from_slice(piece);
            if octets.len() as u64 > message.size { Err(wrong_length(message.email_id)) } else { Ok(()) }
        })?;
        if octets.len() as u64 != message.size {
            return Err(wrong_length(message.email_id));
        }
        let style = self.style();
        let served = head_octets(&octets, true);
        let (mut quoter, mut body) = (Quoter::new(self.is_crlf), Vec::with_capacity(octets.len()));
        quoter.push(octets.get(served..).unwrap_or_default(), &mut body);
        let is_ended = quoter.finish(&mut body);
        let head = head(&octets, served, body.len() as u64, message.internal_date, &message.wanted, &style);
        let tail = tail(&style, is_ended);
        let start = self.at + self.batch.len() as u64;
        let header = start + head.from_line as u64;
        let place = self.place_of(&message, start, header, head.bytes.len(), body.len() as u64, tail.len());
        for part in [&head.bytes, &body, &tail] {
            self.batch.extend_from_slice(part);
        }
        Ok(place)
    }

    fn place_of(&self, message: &Outgoing<'_>, start: u64, header: u64, head: usize, rest: u64, tail: usize) -> Place {
        let body = start + head as u64;
        let (flags, keywords) = message.wanted.placed();
        Place {
            email_id: Some(message.email_id),
            start,
            header,
            body,
            end: body + rest,
            next: body + rest + tail as u64,
            form: Form { convert: true, unquote: true },
            is_crlf: self.is_crlf,
            flags,
            keywords,
        }
    }

    /// One that is not held in memory: it is read twice, and has an intent of its own.
    fn push_large(&mut self, mut message: Outgoing<'_>) -> Result<Place> {
        let style = self.style();
        let (mut start, mut served, mut rest) = (Vec::new(), 0, 0);
        let mut quoter = Quoter::new(self.is_crlf);
        let (mut octets, mut scratch) = (0, Vec::new());
        let mut measure = |piece: &[u8], scratch: &mut Vec<u8>| {
            scratch.clear();
            quoter.push(piece, scratch);
            scratch.len() as u64
        };
        (message.read)(&mut |piece| {
            octets += piece.len() as u64;
            if start.len() >= HEADER_BYTES_MAX {
                rest += measure(piece, &mut scratch);
                return Ok(());
            }
            start.extend_from_slice(piece);
            if start.len() >= HEADER_BYTES_MAX {
                served = head_octets(&start, false);
                rest += measure(start.get(served..).unwrap_or_default(), &mut scratch);
            }
            Ok(())
        })?;
        if octets != message.size {
            return Err(wrong_length(message.email_id));
        }
        scratch.clear();
        let is_ended = quoter.finish(&mut scratch);
        rest += scratch.len() as u64;
        let head = head(&start, served, rest, message.internal_date, &message.wanted, &style);
        drop(start);
        let tail = tail(&style, is_ended);
        let at = self.at + self.batch.len() as u64;
        let place = self.place_of(&message, at, at + head.from_line as u64, head.bytes.len(), rest, tail.len());
        self.batch.extend_from_slice(&head.bytes);
        let to = place.next;
        let (file, is_crlf, from) = (Arc::clone(&self.file), self.is_crlf, self.at);
        let mut buffer = std::mem::take(&mut self.batch);
        self.guarded(to, Stage::Grow, &mut || {
            let (mut position, mut skipped) = (from, 0);
            let mut quoter = Quoter::new(is_crlf);
            let mut flush = |buffer: &mut Vec<u8>, least: usize| -> Result<()> {
                if buffer.len() >= least.max(1) {
                    // Nothing is written behind the end that the intent knows.
                    if position + buffer.len() as u64 > to {
                        return Err(wrong_length(message.email_id));
                    }
                    file.write_at(buffer, position)?;
                    position += buffer.len() as u64;
                    buffer.clear();
                }
                Ok(())
            };
            (message.read)(&mut |piece| {
                let skip = piece.len().min(served - skipped);
                skipped += skip;
                quoter.push(piece.get(skip..).unwrap_or_default(), &mut buffer);
                flush(&mut buffer, PIECE_BYTES)
            })?;
            quoter.finish(&mut buffer);
            buffer.extend_from_slice(&tail);
            flush(&mut buffer, 1)?;
            if position == to { Ok(()) } else { Err(wrong_length(message.email_id)) }
        })?;
        if head.is_whole {
            return Ok(place);
        }
        // Where its header ends was not looked for.
        let found = Reader::new(&*self.file, place.start)?.next_message()?;
        let found =
            found.ok_or_else(|| Error::new(ErrorKind::Corrupt, "a message that was just written is not there"))?;
        Ok(Place { body: found.body, end: found.end, next: found.next, form: found.form(), ..place })
    }

    /// Writes what is there.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let (file, at) = (Arc::clone(&self.file), self.at);
        let stage = if batch.len() <= AT_ONCE_BYTES_MAX { Stage::AtOnce(batch.clone()) } else { Stage::Grow };
        self.guarded(at + batch.len() as u64, stage, &mut || Ok(file.write_at(&batch, at)?))
    }

    /// Lets `write` fill the file up to `to`, durably. `stage`: the first of the intent.
    fn guarded(&mut self, to: u64, stage: Stage, write: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let (disk, path) = (&*self.disk, &self.files.append);
        let intent = Intent::new(&*self.file, self.at, to)?;
        intent.save(disk, path, &stage, self.target.has_intents)?;
        let mut has_grown = false;
        let mut fill = || {
            rewrite::grow(&*self.file, self.at, to)?;
            if stage == Stage::Grow {
                self.file.sync_data()?;
                has_grown = true;
                intent.save(disk, path, &Stage::Write, true)?;
            }
            has_grown = true;
            write()?;
            Ok(self.file.sync_data()?)
        };
        let result: Result<()> = fill();
        if let Err(error) = result {
            // As if it had never been begun, at once if that works: other programs take what is there for mail. Otherwise `recover` does it.
            let undone = match has_grown {
                false => self.file.set_len(self.at).and_then(|()| self.file.sync_data()).map_err(Error::from),
                true => take_out(self.target, self.files, self.settings, self.at..to),
            };
            if undone.is_ok() {
                Intent::clear(disk, path)?;
            }
            return Err(error.context("a message cannot be added to the mailbox file"));
        }
        Intent::clear(disk, path)?;
        self.bytes += to - self.at;
        self.at = to;
        Ok(())
    }

    /// Writes the rest; gives the length of the file.
    pub(super) fn finish(&mut self) -> Result<u64> {
        if self.count > 0 {
            self.flush()?;
        }
        Ok(self.at)
    }
}

/// What the intent will know the file by, written as it is: after a failed sync memory may have what the disk does not, and no later sync
/// writes it. It becomes durable with what the file grows by.
fn write_end_again(file: &dyn File, at: u64) -> Result<()> {
    let start = at.saturating_sub(BEFORE_BYTES);
    let mut bytes = vec![0; (at - start) as usize];
    file.read_exact_at(&mut bytes, start)?;
    Ok(file.write_at(&bytes, start)?)
}

/// A Content-Length that leads beyond the end of the file would take what is added for a part of the message, if it happened to lead to the
/// right place. It becomes one that leads nowhere; torn it does, too.
fn disown(file: &dyn File, last: &Place) -> Result<()> {
    if last.body == last.header {
        return Ok(());
    }
    let mut bytes = vec![0; (last.body - last.header) as usize];
    file.read_exact_at(&mut bytes, last.header)?;
    let header = Header::new(&bytes);
    let is_beyond = |length: Option<u64>| length.is_some_and(|length| length > last.end - last.body);
    if header.content_length().is_some_and(is_beyond)
        && let Some(value) = header.content_length_value()
    {
        file.write_at(&vec![b'-'; value.len()], last.header + value.start as u64)?;
        file.sync_data()?;
    }
    Ok(())
}

/// The line ends behind a message: its last line's, if that has none, and the empty line that belongs to the mbox.
fn tail(style: &Style<'_>, is_ended: bool) -> Vec<u8> {
    style.eol().repeat(if is_ended { 1 } else { 2 })
}

/// What has to stand between the last message and the next one. The message keeps its octets, but for the end of its last line, if it
/// has none and no Content-Length.
fn end_of(file: &dyn File, file_bytes: u64, last: &mut Place) -> Result<Vec<u8>> {
    let from = last.end.saturating_sub(1).max(last.header);
    let mut behind = vec![0; (file_bytes.saturating_sub(from)).min(BLANKS_MAX) as usize];
    file.read_exact_at(&mut behind, from)?;
    let has_content = last.end > last.header;
    let (content, blanks) = behind.split_at_checked(usize::from(has_content)).unwrap_or((&behind, &[]));
    let line_ends = blanks.iter().filter(|byte| **byte == b'\n').count();
    let needed = match (has_content, content == b"\n") {
        // An empty line would end the header, and make the Content-Length of 0 that it has right.
        (true, true) if last.body == last.end && claims_nothing(file, last)? => 0,
        (true, true) => 1,
        (true, false) => 2,
        // A separator follows the other directly: an empty line would become its content.
        (false, _) => usize::from(!ends_line(file, last.header)?),
    };
    let eol: &[u8] = if last.is_crlf { b"\r\n" } else { b"\n" };
    let mut added = eol.repeat(needed.saturating_sub(line_ends));
    let is_cr = behind.last() == Some(&b'\r');
    if is_cr && added.starts_with(b"\r") {
        // It becomes part of the line end: another one before it would be the message's.
        added.remove(0);
    }
    if !added.is_empty() {
        if !has_content && needed > 0 {
            let header = last.header + added.len() as u64;
            (last.header, last.body, last.end) = (header, header, header);
            last.is_crlf |= is_cr;
        } else if content != b"\n" && last.end == file_bytes && !has_content_length(file, last)? {
            let is_header = last.body == last.end;
            last.end += 1 + u64::from(last.is_crlf && !is_cr);
            last.body = if is_header { last.end } else { last.body };
        }
        last.next = file_bytes + added.len() as u64;
    }
    Ok(added)
}

fn ends_line(file: &dyn File, at: u64) -> Result<bool> {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at.saturating_sub(1))?;
    Ok(byte == [b'\n'])
}

/// Whether a header without an end has a Content-Length of 0.
fn claims_nothing(file: &dyn File, place: &Place) -> Result<bool> {
    let mut header = vec![0; (place.body - place.header) as usize];
    file.read_exact_at(&mut header, place.header)?;
    let header = Header::new(&header);
    Ok(!header.is_ended() && header.content_length() == Some(Some(0)))
}

/// Whether the end of a message is where its Content-Length leads.
fn has_content_length(file: &dyn File, place: &Place) -> Result<bool> {
    let mut header = vec![0; (place.body - place.header) as usize];
    file.read_exact_at(&mut header, place.header)?;
    let header = Header::new(&header);
    Ok(header.is_ended() && header.content_length() == Some(Some(place.end - place.body)))
}

fn wrong_length(id: EmailId) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the message {id} is not as long as the log says"))
}
