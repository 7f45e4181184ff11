//! The octets of messages in an mbox as they are served, for any number of sessions at once.
//!
//! A [`FileReader`] reads one file in one state ([`Identity`]). It keeps a few slots, each with what one session is likely to ask for next: a
//! window of the file, the last small message whole, the place where it stands in a large one. So the headers of all messages, forwards or
//! backwards, are read in large pieces where they lie close together, and a large message that is asked for piece by piece is read
//! once.
//!
//! Invariants:
//! - Nothing is given to a caller before the file was seen to be in that state after it was read: then nobody wrote to it before either.
//! - At most [`SLOTS_MAX`] slots are kept, each of at most 900 KiB; no lock is held while something is read or given.

mod large;
#[cfg(test)]
mod tests;
mod window;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use index::ForeignMessage;
use model::{Error, ErrorKind, Result};
use platform::File;

use self::large::Cursor;
use self::window::Window;
use super::digest::WholeMeasure;
use super::fields::served_header;
use super::from_line::PREFIX;
use super::identity::Identity;
use super::place::Place;
use crate::format::served::Normaliser;

/// Slots of an open file that are kept; `docs/limits.md`.
pub const SLOTS_MAX: usize = 8;
/// A message up to so many octets in the file is kept whole, as it is served.
const SMALL_BYTES_MAX: u64 = 128 << 10;
/// Octets that are given at a time.
const PIECE_BYTES: usize = 128 << 10;

/// How a reading went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// All was given.
    Done,
    /// Somebody has changed the file since its identity was taken. What was given before is right; after a sync the rest may be asked for at the
    /// message's new place, with a new reader.
    Changed {
        /// So many octets had been given.
        given: u64,
    },
}

/// Why a reading stops.
enum Stop {
    Changed,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

/// The file in the state that it must be in.
#[derive(Debug)]
struct Source {
    file: Arc<dyn File>,
    identity: Identity,
    /// Whoever reads has the file locked for writing, and changes nothing but its end: it need not be in that state any more.
    is_locked: bool,
}

impl Source {
    /// Fills `buf` from `at` on.
    fn read(&self, buf: &mut [u8], at: u64) -> Result<(), Stop> {
        let read = self.file.read_exact_at(buf, at);
        if !self.is_locked && Identity::of_file(&*self.file)? != self.identity {
            return Err(Stop::Changed);
        }
        read.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                let what = format!("the map of the mbox leads beyond its end, to {at}");
                Stop::Failed(Error::new(ErrorKind::Corrupt, what))
            }
            _ => Stop::Failed(error.into()),
        })
    }
}

/// What a session is likely to want next.
#[derive(Debug, Default)]
struct Slot {
    window: Window,
    /// A small message as it is served, its header first, and where it begins in the file.
    small: Vec<u8>,
    small_at: Option<u64>,
    measure: WholeMeasure,
    large: Option<Cursor>,
}

/// Gives the served octets of the messages of a file; see the module.
#[derive(Debug)]
pub struct FileReader {
    source: Source,
    /// Those that nobody uses just now; the one used last at the end.
    slots: Mutex<Vec<Slot>>,
}

impl FileReader {
    /// Of `file` as long as it is in the state `identity`. All places given to it must be those of that state.
    pub fn new(file: Arc<dyn File>, identity: Identity) -> Self {
        FileReader { source: Source { file, identity, is_locked: false }, slots: Mutex::default() }
    }

    /// Of a file that the caller has locked for writing, and to which nothing is done but that something is added: what was in it in the
    /// state `identity` is read, whatever state it is in by then.
    pub fn of_locked(file: Arc<dyn File>, identity: Identity) -> Self {
        FileReader { source: Source { file, identity, is_locked: true }, slots: Mutex::default() }
    }

    /// The state that it reads.
    pub fn identity(&self) -> &Identity {
        &self.source.identity
    }

    /// Gives back the memory of what was kept; for a mailbox that nobody reads for now.
    pub fn release(&self) {
        self.slots().clear();
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the slot that suits best, for octets of the message at `place` from `from` on.
    fn take(&self, place: &Place, from: u64) -> Slot {
        let mut slots = self.slots();
        let best = slots.iter().enumerate().map(|(n, slot)| (slot.suits(place, from), n)).max();
        match best {
            Some((suits, n)) if suits > 0 => slots.remove(n),
            _ if slots.len() >= SLOTS_MAX => slots.remove(0),
            _ => Slot::default(),
        }
    }

    /// Takes it back.
    fn keep(&self, slot: Slot) {
        let mut slots = self.slots();
        if slots.len() < SLOTS_MAX {
            slots.push(slot);
        }
    }

    /// Appends the header of a message as it is served to `out`, the empty line included. `Corrupt`: it is not what the log knows of it.
    /// After `Changed` `out` is as it was.
    pub fn header(&self, place: &Place, message: &ForeignMessage, out: &mut Vec<u8>) -> Result<Outcome> {
        let before = out.len();
        let mut slot = self.take(place, 0);
        let read = slot.header(&self.source, place, message, out);
        self.keep(slot);
        match read {
            Ok(()) => Ok(Outcome::Done),
            Err(stop) => {
                out.truncate(before);
                stop.outcome(0)
            }
        }
    }

    /// Gives the octets of `range` of a message as it is served to `sink`, in pieces of at most 128 KiB. `Corrupt`: it is not what the log
    /// knows of it, which shows before the last piece when the whole message is asked for, at once or piece after piece.
    pub fn range(
        &self,
        place: &Place,
        message: &ForeignMessage,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Outcome> {
        let mut given = 0;
        let mut give = |octets: &[u8]| {
            for piece in octets.chunks(PIECE_BYTES) {
                sink(piece)?;
                given += piece.len() as u64;
            }
            Ok(())
        };
        let mut slot = self.take(place, range.start);
        let read = slot.range(&self.source, place, message, range, &mut give);
        self.keep(slot);
        match read {
            Ok(()) => Ok(Outcome::Done),
            Err(stop) => stop.outcome(given),
        }
    }
}

impl Stop {
    fn outcome(self, given: u64) -> Result<Outcome> {
        match self {
            Stop::Changed => Ok(Outcome::Changed { given }),
            Stop::Failed(error) => Err(error),
        }
    }
}

impl Slot {
    /// How well it suits a message, 0: not at all.
    fn suits(&self, place: &Place, from: u64) -> u8 {
        if self.small_at == Some(place.start) || self.large.as_ref().is_some_and(|large| large.suits(place, from)) {
            3
        } else {
            self.window.suits(place)
        }
    }

    fn header(
        &mut self,
        source: &Source,
        place: &Place,
        message: &ForeignMessage,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let before = out.len();
        if self.small_at == Some(place.start) {
            out.extend_from_slice(self.small.get(..message.header_octets as usize).unwrap_or_default());
        } else if place.body - place.start > SMALL_BYTES_MAX {
            let header = 0..u64::from(message.header_octets);
            return self.large_range(source, place, message, header, &mut |piece| {
                out.extend_from_slice(piece);
                Ok(())
            });
        } else {
            let raw = self.window.read(source, place, place.body)?;
            served_header(header_of(raw, place)?, place.form, out);
        }
        if out.len() - before == message.header_octets as usize { Ok(()) } else { Err(damaged(place).into()) }
    }

    fn range(
        &mut self,
        source: &Source,
        place: &Place,
        message: &ForeignMessage,
        range: Range<u64>,
        give: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<(), Stop> {
        if place.end - place.start > SMALL_BYTES_MAX {
            return self.large_range(source, place, message, range, give);
        }
        if self.small_at != Some(place.start) {
            self.load_small(source, place, message)?;
        }
        let octets = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let octets = octets.and_then(|(start, end)| self.small.get(start..end));
        Ok(give(octets.ok_or_else(|| damaged(place))?)?)
    }

    /// Makes a small message what is kept.
    fn load_small(&mut self, source: &Source, place: &Place, message: &ForeignMessage) -> Result<(), Stop> {
        self.small_at = None;
        self.small.clear();
        let raw = self.window.read(source, place, place.end)?;
        let (header, body) = raw.split_at_checked((place.body - place.start) as usize).unwrap_or((raw, &[]));
        served_header(header_of(header, place)?, place.form, &mut self.small);
        let header_octets = self.small.len();
        let mut normaliser = Normaliser::new(place.form);
        normaliser.push(body, &mut self.small);
        normaliser.finish(&mut self.small);
        // The digest is the same with a line end behind the last line and without, and programs give one to the last message of a file.
        let known = message.octets as usize;
        if self.small.len() == known + 2 && self.small.ends_with(b"\r\n") {
            self.small.truncate(known);
        } else if self.small.len() + 2 == known && !self.small.ends_with(b"\n") {
            self.small.extend_from_slice(b"\r\n");
        }
        if (header_octets, self.small.len()) != (message.header_octets as usize, message.octets as usize) {
            return Err(damaged(place).into());
        }
        // That of the served octets, from those of the file: mostly without copying any.
        let header_len = (place.body - place.header) as usize;
        let content = raw.get((place.header - place.start) as usize..).unwrap_or_default();
        if self.measure.measure(content, header_len, place.form, true, false).digest != message.digest {
            return Err(damaged(place).into());
        }
        self.small_at = Some(place.start);
        Ok(())
    }

    fn large_range(
        &mut self,
        source: &Source,
        place: &Place,
        message: &ForeignMessage,
        range: Range<u64>,
        give: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<(), Stop> {
        let going_on = self.large.take().filter(|cursor| cursor.suits(place, range.start));
        let mut cursor = going_on.unwrap_or_else(|| Cursor::new(place, message, range.start));
        cursor.give(source, message, range, give)?;
        // One that stopped is not gone on with.
        self.large = Some(cursor);
        Ok(())
    }
}

/// The header of a message in its octets from its `From ` line on, which must be there.
fn header_of<'a>(raw: &'a [u8], place: &Place) -> Result<&'a [u8]> {
    let header = raw.get((place.header - place.start) as usize..).filter(|_| raw.starts_with(PREFIX));
    header.ok_or_else(|| damaged(place))
}

fn damaged(place: &Place) -> Error {
    let what = format!("the message at {} of the mbox is not what the log knows of it", place.start);
    Error::new(ErrorKind::Corrupt, what)
}
