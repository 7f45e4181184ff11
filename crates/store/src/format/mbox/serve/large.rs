//! A place inside a message that is too large to be kept whole: from there on it is read without beginning anew.

use std::ops::Range;

use index::ForeignMessage;
use model::Result;

use super::{LINE_END, Source, Stop, damaged, known_line_end, line_end_of};
use crate::format::mbox::digest::DigestOfServed;
use crate::format::mbox::fields::{Filter, Part};
use crate::format::mbox::from_line::PREFIX;
use crate::format::mbox::place::Place;
use crate::format::served::Normaliser;

/// Octets of the file that are read at a time; what they become as they are served is at most twice as long.
const RAW_BYTES: u64 = 64 << 10;

/// Where a reading of a large message stands.
#[derive(Debug)]
pub(super) struct Cursor {
    place: Place,
    /// Everything of the file before this was read.
    raw_at: u64,
    raw: Vec<u8>,
    stage: Stage,
    /// What the last piece became, and where in the message as it is served that begins.
    served: Vec<u8>,
    served_at: u64,
    /// The last two octets that were served: all that is of the last line's end when there is no more.
    last: [u8; 2],
    /// Of all that was served, if that began with the header.
    digest: Option<DigestOfServed>,
}

#[derive(Debug)]
enum Stage {
    /// At the `From ` line.
    Start,
    Header(Filter, Normaliser),
    Body(Normaliser),
    Done,
}

impl Cursor {
    /// At the start of a message, or at that of its body if the header is not wanted.
    pub(super) fn new(place: &Place, message: &ForeignMessage, from: u64) -> Self {
        let header_octets = u64::from(message.header_octets);
        let is_body = from >= header_octets;
        let (raw_at, served_at) = if is_body { (place.body, header_octets) } else { (place.start, 0) };
        let stage = if is_body { Stage::Body(Normaliser::new(place.form)) } else { Stage::Start };
        let digest = (!is_body).then(DigestOfServed::new);
        // What is before the body is the empty line.
        let last = if is_body { *LINE_END } else { [0; 2] };
        Cursor { place: *place, raw_at, raw: Vec::new(), stage, served: Vec::new(), served_at, last, digest }
    }

    /// Whether octets of the message from `from` on are still ahead of it.
    pub(super) fn suits(&self, place: &Place, from: u64) -> bool {
        self.place.start == place.start && self.served_at <= from
    }

    /// Where the octets end that are ready.
    fn served_end(&self) -> u64 {
        self.served_at + self.served.len() as u64
    }

    /// Gives the octets of `range`, which does not begin before the place where this stands.
    pub(super) fn give(
        &mut self,
        source: &Source,
        message: &ForeignMessage,
        range: Range<u64>,
        give: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<(), Stop> {
        // The file may have more: see `end_as_known`.
        if range.end > u64::from(message.octets) {
            return Err(damaged(&self.place).into());
        }
        let mut at = range.start;
        while at < range.end {
            if at < self.served_end() {
                let from = (at - self.served_at) as usize;
                let to = (range.end.min(self.served_end()) - self.served_at) as usize;
                give(self.served.get(from..to).unwrap_or_default())?;
                at += (to - from) as u64;
            } else {
                self.step(source, message)?;
            }
        }
        while at == u64::from(message.octets) && !matches!(self.stage, Stage::Done) {
            self.step(source, message)?;
        }
        Ok(())
    }

    /// Makes the next octets ready, if there are some: not when all are hidden, nor at the end of the header and of the body.
    fn step(&mut self, source: &Source, message: &ForeignMessage) -> Result<(), Stop> {
        self.served_at = self.served_end();
        self.served.clear();
        self.advance(source, message)?;
        self.last = match *self.served {
            [.., before, last] => [before, last],
            [last] => [self.last[1], last],
            [] => self.last,
        };
        if matches!(self.stage, Stage::Done) {
            self.end_as_known(message)?;
        }
        if let Some(digest) = &mut self.digest {
            digest.push(&self.served);
        }
        if matches!(self.stage, Stage::Done)
            && let Some(digest) = self.digest.take()
            && digest.finish() != message.digest
        {
            return Err(damaged(&self.place).into());
        }
        Ok(())
    }

    /// All of the file was served: what the log knows of the last line's end and the file does not have is served as well.
    fn end_as_known(&mut self, message: &ForeignMessage) -> Result<()> {
        let stem = self.served_end() - line_end_of(&self.last).len() as u64;
        let line_end = known_line_end(stem, message).ok_or_else(|| damaged(&self.place))?;
        let is_there = (self.served_end() - stem) as usize;
        self.served.extend_from_slice(line_end.get(is_there..).unwrap_or_default());
        Ok(())
    }

    fn advance(&mut self, source: &Source, message: &ForeignMessage) -> Result<(), Stop> {
        let place = self.place;
        match &mut self.stage {
            Stage::Start => {
                let mut line = [0; PREFIX.len()];
                source.read(&mut line, place.start)?;
                if line != PREFIX {
                    return Err(damaged(&place).into());
                }
                self.raw_at = place.header;
                self.stage = Stage::Header(Filter::new(), Normaliser::new(place.form));
            }
            Stage::Header(filter, normaliser) => {
                let served = &mut self.served;
                if self.raw_at < place.body {
                    let raw = next_piece(source, &mut self.raw, &mut self.raw_at, place.body)?;
                    filter.push(raw, &mut |part| keep(part, normaliser, served));
                } else {
                    filter.end_header(&mut |part| keep(part, normaliser, served));
                    normaliser.end(served);
                    self.stage = Stage::Body(Normaliser::new(place.form));
                    if self.served_end() != u64::from(message.header_octets) {
                        return Err(damaged(&place).into());
                    }
                }
            }
            Stage::Body(normaliser) => {
                if self.raw_at < place.end {
                    let raw = next_piece(source, &mut self.raw, &mut self.raw_at, place.end)?;
                    normaliser.push(raw, &mut self.served);
                } else {
                    normaliser.end(&mut self.served);
                    self.stage = Stage::Done;
                }
            }
            // Somebody wants more than there is.
            Stage::Done => return Err(damaged(&place).into()),
        }
        Ok(())
    }
}

fn keep(part: Part<'_>, normaliser: &mut Normaliser, served: &mut Vec<u8>) {
    if let Part::Kept(octets) = part {
        normaliser.push(octets, served);
    }
}

/// Reads the next piece of the file, before `end`.
fn next_piece<'a>(source: &Source, raw: &'a mut Vec<u8>, at: &mut u64, end: u64) -> Result<&'a [u8], Stop> {
    let len = (end - *at).min(RAW_BYTES);
    raw.resize(len as usize, 0);
    source.read(raw, *at)?;
    *at += len;
    Ok(raw)
}
