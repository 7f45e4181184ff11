//! A part of the file in memory: as long as messages are asked for one after another, in either direction, more than was asked for is read.

use super::{Source, Stop};
use crate::format::mbox::place::Place;

/// Octets that are read at a time at most, beyond what was asked for.
const WINDOW_BYTES_MAX: u64 = 256 << 10;
/// Octets that are read when a second message is asked for near the first.
const WINDOW_BYTES_MIN: u64 = 16 << 10;
/// A message no farther from the last one than this is near it, octets.
const NEAR_BYTES: u64 = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// Where they begin.
    start: u64,
    len: usize,
    /// The message asked for last: its start and the next one's.
    last: (u64, u64),
    /// How much was read the last time.
    ahead: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forwards,
    Backwards,
}

impl Window {
    /// How well it suits a message: 2 if it has its beginning, 1 if the last one was near, 0 otherwise.
    pub(super) fn suits(&self, place: &Place) -> u8 {
        let is_in = place.start.checked_sub(self.start).is_some_and(|at| at < self.len as u64);
        if is_in { 2 } else { u8::from(self.direction(place).is_some()) }
    }

    fn direction(&self, place: &Place) -> Option<Direction> {
        let is_near = |gap: Option<u64>| gap.is_some_and(|gap| gap <= NEAR_BYTES);
        if is_near(place.start.checked_sub(self.last.1)) {
            Some(Direction::Forwards)
        } else if is_near(self.last.0.checked_sub(place.next)) {
            Some(Direction::Backwards)
        } else {
            None
        }
    }

    /// The octets of a message from its start to `end`.
    pub(super) fn read(&mut self, source: &Source, place: &Place, end: u64) -> Result<&[u8], Stop> {
        let from = place.start;
        let is_in = from >= self.start && end <= self.start + self.len as u64;
        if !is_in {
            let direction = self.direction(place);
            self.ahead = match direction {
                Some(_) => (self.ahead * 2).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX),
                None => 0,
            };
            let (window_from, window_end) = match direction {
                // Where the body alone is about as long there is no other header in reach.
                Some(Direction::Forwards) if place.next - from <= self.ahead / 2 => {
                    (from, end.max(source.identity.len.min(from + self.ahead)))
                }
                Some(Direction::Backwards) => (from.min(end.saturating_sub(self.ahead)), end),
                _ => (from, end),
            };
            let len = (window_end - window_from) as usize;
            if self.bytes.len() < len {
                self.bytes.resize(len, 0);
            }
            self.len = 0;
            source.read(self.bytes.get_mut(..len).unwrap_or_default(), window_from)?;
            (self.start, self.len) = (window_from, len);
        }
        self.last = (from, place.next);
        let at = (from - self.start) as usize;
        Ok(self.bytes.get(at..at + (end - from) as usize).unwrap_or_default())
    }
}
