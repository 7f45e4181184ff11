//! Reading the heads of many messages, and writing values over others in them, with few calls.
//!
//! Heads that follow each other closely are read together, a window of the file at a time; what changes in the window is written when the window
//! moves on, from the first changed octet to the last of those that are close to each other. A call for each value costs a system call, and on
//! file systems that keep large pages a look at every block of such a page besides: several microseconds, when the block has to be
//! written anyway.
//!
//! Invariants:
//! - What is written is what was read, but for the values: whatever part of it a power cut leaves, octets that do not change are as they were.
//!   The caller holds the file's lock for writing from the reading to the writing, so that nobody changes them in between.
//! - Nothing is written before the first octet that changes or behind the last one: what others add to the file's end without a lock is safe.
//! - Memory: a window, or the largest head.

use std::ops::Range;
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::File;

/// Octets that are read together at most.
const WINDOW_BYTES: usize = 512 << 10;
/// Octets that are read together at first: each window is twice as large as the one before, while heads are close to each other.
const AHEAD_BYTES_MIN: usize = 8 << 10;
/// A head that begins no farther behind the one before is close to it: what is between them is read rather than skipped.
const NEAR_BYTES: u64 = 64 << 10;
/// Values that are no farther apart are written together, octets. Blocks that have a value are written by the disk in any case; the few between
/// them cost it less than another call costs the processor.
const JOINED_BYTES: usize = 16 << 10;

/// A window that slides over a file, from its front to its back.
pub(super) struct Window {
    file: Arc<dyn File>,
    file_bytes: u64,
    /// Where `bytes` stand in the file.
    start: u64,
    bytes: Vec<u8>,
    /// What of `bytes` is to be written: by rising place, apart from each other.
    changed: Vec<Range<usize>>,
    /// Where the last head that was asked for ended.
    last_end: Option<u64>,
    /// What the next window is to have; 0 when no head is expected behind this one.
    ahead: usize,
    window_bytes: usize,
}

impl Window {
    /// Over a file of so many octets.
    pub(super) fn new(file: Arc<dyn File>, file_bytes: u64) -> Self {
        let (bytes, changed) = Default::default();
        Window { file, file_bytes, start: 0, bytes, changed, last_end: None, ahead: 0, window_bytes: WINDOW_BYTES }
    }

    /// With another size: what is in the file in the end is the same.
    #[cfg(test)]
    pub(super) fn with_bytes(self, window_bytes: usize) -> Self {
        Window { window_bytes, ..self }
    }

    /// The octets of the file, with all changes.
    pub(super) fn read(&mut self, range: Range<u64>, into: &mut Vec<u8>) -> Result<()> {
        let is_near =
            self.last_end.is_some_and(|end| range.start.checked_sub(end).is_some_and(|far| far <= NEAR_BYTES));
        self.last_end = Some(range.end);
        into.clear();
        if let Some(held) = self.held(&range) {
            into.extend_from_slice(self.bytes.get(held).unwrap_or_default());
            return Ok(());
        }
        self.flush()?;
        // One head alone does not say that there will be more nearby, nor do two say how many.
        self.ahead =
            if is_near { (self.ahead * 2).clamp(AHEAD_BYTES_MIN, WINDOW_BYTES).min(self.window_bytes) } else { 0 };
        let end = range.start.saturating_add(self.ahead as u64);
        let len = usize::try_from(end.min(self.file_bytes).max(range.end).saturating_sub(range.start));
        self.start = range.start;
        // Nothing is held until it is read.
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(len.map_err(|_| Error::new(ErrorKind::Invalid, "a header is too large"))?, 0);
        self.file.read_exact_at(&mut bytes, range.start)?;
        self.bytes = bytes;
        let held = self.held(&range).unwrap_or_default();
        into.extend_from_slice(self.bytes.get(held).unwrap_or_default());
        Ok(())
    }

    /// Writes a value over what stands there: in the last head that was read, behind the value before.
    pub(super) fn write(&mut self, at: u64, value: &[u8]) -> Result<()> {
        let range = at..at.saturating_add(value.len() as u64);
        let held = self.held(&range).filter(|held| self.changed.last().is_none_or(|last| last.start <= held.start));
        let Some(held) = held else {
            // Not where it should be: then alone, and nothing that was read is believed any more.
            self.flush()?;
            self.bytes.clear();
            return Ok(self.file.write_at(value, at)?);
        };
        if let Some(cells) = self.bytes.get_mut(held.clone()) {
            cells.copy_from_slice(value);
        }
        match self.changed.last_mut().filter(|last| held.start <= last.end.saturating_add(JOINED_BYTES)) {
            Some(last) => last.end = last.end.max(held.end),
            None => self.changed.push(held),
        }
        Ok(())
    }

    /// Writes what was changed.
    pub(super) fn flush(&mut self) -> Result<()> {
        for range in self.changed.drain(..) {
            let at = self.start + range.start as u64;
            self.file.write_at(self.bytes.get(range).unwrap_or_default(), at)?;
        }
        Ok(())
    }

    /// Where these octets of the file are in the window.
    fn held(&self, range: &Range<u64>) -> Option<Range<usize>> {
        let from = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        (from <= to && to <= self.bytes.len()).then_some(from..to)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use platform::OpenMode;
    use platform::sim::SimEnv;

    use super::*;

    /// Writes values (place, octet) into a file of so many octets, each in a head of 40 octets.
    fn written(len: usize, window_bytes: usize, values: &[(usize, u8)]) -> Vec<u8> {
        let disk = SimEnv::new(1).env().disk;
        let file = disk.open(Path::new("/x"), OpenMode::Create).unwrap();
        let text: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
        file.write_at(&text, 0).unwrap();
        let mut window = Window::new(Arc::clone(&file), len as u64).with_bytes(window_bytes);
        let mut head = Vec::new();
        for (at, octet) in values {
            let range = *at as u64..(*at + 40).min(len) as u64;
            window.read(range.clone(), &mut head).unwrap();
            assert_eq!(head, text[range.start as usize..range.end as usize], "as it was, before its own change");
            window.write(range.start + 3, &[*octet; 5]).unwrap();
            window.read(range.clone(), &mut head).unwrap();
            assert_eq!(head[3..8], [*octet; 5]);
        }
        window.flush().unwrap();
        disk.read(Path::new("/x")).unwrap()
    }

    #[test]
    fn the_window_does_not_matter() {
        let mut at = 0;
        let mut values = Vec::new();
        for n in 0..400_usize {
            // Close together, then far apart.
            at += 40 + n * n % 977 + if n % 50 == 0 { 100_000 } else { 0 };
            values.push((at, n as u8));
        }
        let len = at + 20_000;
        let mut expected: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
        for (at, octet) in &values {
            expected[at + 3..at + 8].fill(*octet);
        }
        for window_bytes in [1, 41, 1000, 50_000, WINDOW_BYTES] {
            assert!(written(len, window_bytes, &values) == expected, "{window_bytes}");
        }
    }

    #[test]
    fn out_of_turn() {
        let disk = SimEnv::new(1).env().disk;
        let file = disk.open(Path::new("/x"), OpenMode::Create).unwrap();
        file.write_at(&[b'.'; 300], 0).unwrap();
        let mut window = Window::new(file, 300);
        let mut head = Vec::new();
        window.read(0..10, &mut head).unwrap();
        window.read(20..30, &mut head).unwrap();
        window.write(25, b"b").unwrap();
        // Before the one before, and outside of what is held.
        window.write(22, b"a").unwrap();
        window.write(5, b"c").unwrap();
        window.read(20..30, &mut head).unwrap();
        assert_eq!(head, b"..a..b....");
        window.flush().unwrap();
        let text = disk.read(Path::new("/x")).unwrap();
        assert_eq!((text[5], text[22], text[25], text.len()), (b'c', b'a', b'b', 300));
        assert!(window.read(290..310, &mut head).is_err(), "the file ends before");
    }
}
