//! Reading what a chunk moves, with few calls.
//!
//! A plan that puts a field into every header has a piece for each message and one for each field: a call for each of them would cost
//! more than the octets do. So parts that are close to each other where they come from are read together.
//!
//! Invariants:
//! - Sources of a chunk rise, and stay whole until all of it is written: what is read ahead is what would be read later. What lies
//!   between them may change meanwhile, and is not looked at.
//! - Nothing is read in vain but what lies between parts that are read together.
//! - Memory: [`AHEAD_BYTES`] for each of the two files.

use model::Result;
use platform::File;

use super::journal::Journal;
use super::plan::{Piece, Source};

/// What is read together at most: it stays in the processor's cache until it is written.
const AHEAD_BYTES: u64 = 256 << 10;
/// Parts that are farther apart are not read together: what is between them would cost more than another call.
const GAP_BYTES_MAX: u64 = 16 << 10;

/// Where parts come from.
pub(super) struct Sources<'s> {
    journal: &'s Journal,
    file: &'s dyn File,
    old: Ahead,
    new: Ahead,
}

/// What was read of one of the files, and stands at `start` in it.
#[derive(Default)]
struct Ahead {
    bytes: Vec<u8>,
    start: u64,
}

impl<'s> Sources<'s> {
    /// For one chunk.
    pub(super) fn new(journal: &'s Journal, file: &'s dyn File) -> Self {
        Sources { journal, file, old: Ahead::default(), new: Ahead::default() }
    }

    /// Fills `into` with the first bytes of `part`; `behind` are the parts that will be read next.
    pub(super) fn read(&mut self, part: &Piece, behind: &[Piece], into: &mut [u8]) -> Result<()> {
        match part.source {
            Source::Old(at) => {
                let file = self.file;
                let behind = behind.iter().filter_map(|part| match part.source {
                    Source::Old(at) => Some((at, part.len)),
                    Source::New(_) => None,
                });
                self.old.read((at, part.len), behind, into, &mut |bytes, at| Ok(file.read_exact_at(bytes, at)?))
            }
            Source::New(at) => {
                let journal = self.journal;
                let behind = behind.iter().filter_map(|part| match part.source {
                    Source::Old(_) => None,
                    Source::New(at) => Some((at, part.len)),
                });
                self.new.read((at, part.len), behind, into, &mut |bytes, at| journal.read_new(bytes, at))
            }
        }
    }
}

impl Ahead {
    /// `part` and `behind`: places and lengths, rising.
    fn read(
        &mut self,
        part: (u64, u64),
        behind: impl Iterator<Item = (u64, u64)>,
        into: &mut [u8],
        read: &mut dyn FnMut(&mut [u8], u64) -> Result<()>,
    ) -> Result<()> {
        let (at, len) = part;
        if self.copy(at, into) {
            return Ok(());
        }
        let mut end = at.saturating_add(len);
        for (next, len) in behind {
            let next_end = next.saturating_add(len);
            if next.saturating_sub(end) > GAP_BYTES_MAX || next_end.saturating_sub(at) > AHEAD_BYTES {
                break;
            }
            end = next_end;
        }
        if end - at > AHEAD_BYTES || end - at == into.len() as u64 {
            // It goes straight to where it is wanted.
            return read(into, at);
        }
        // Nothing is held until it is read.
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize((end - at) as usize, 0);
        read(&mut bytes, at)?;
        (self.bytes, self.start) = (bytes, at);
        self.copy(at, into);
        Ok(())
    }

    /// Copies what is held; says whether it is.
    fn copy(&self, at: u64, into: &mut [u8]) -> bool {
        let from = at.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let held = from.and_then(|from| self.bytes.get(from..from.checked_add(into.len())?));
        held.map(|held| into.copy_from_slice(held)).is_some()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Reads parts of a file whose octets tell their places; gives what was read of the file, and how often.
    fn read(parts: &[(u64, u64)]) -> (u64, u32) {
        let mut ahead = Ahead::default();
        let (mut octets, mut calls) = (0, 0);
        for (n, part) in parts.iter().enumerate() {
            let mut into = vec![0; part.1 as usize];
            let behind = parts[n + 1..].iter().copied();
            ahead
                .read(*part, behind, &mut into, &mut |bytes, at| {
                    (octets, calls) = (octets + bytes.len() as u64, calls + 1);
                    bytes.iter_mut().zip(at..).for_each(|(byte, at)| *byte = (at % 251) as u8);
                    Ok(())
                })
                .unwrap();
            assert!(into.iter().zip(part.0..).all(|(byte, at)| *byte == (at % 251) as u8), "{part:?}");
        }
        (octets, calls)
    }

    #[test]
    fn what_is_close_is_read_together() {
        let close: Vec<(u64, u64)> = (0..1000).map(|n| (n * 4000, 3990)).collect();
        let (octets, calls) = read(&close);
        assert_eq!((octets, calls), (1000 * 4000 - 10 * u64::from(calls), 16));
    }

    #[test]
    fn what_is_far_away_is_not() {
        let far: Vec<(u64, u64)> = (0..100).map(|n| (n * 100_000, 3000)).collect();
        assert_eq!(read(&far), (300_000, 100));
        assert_eq!(read(&[(0, 1 << 20), (1 << 20, 10), (2 << 20, 10)]), ((1 << 20) + 20, 3));
    }
}
