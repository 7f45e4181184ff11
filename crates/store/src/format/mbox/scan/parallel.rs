//! Scanning one file on several threads.
//!
//! Each thread takes an equal part of the file, looks for the first separator in it and reads the messages that begin in its part. It may
//! have begun inside a message, at a separator that a Content-Length encloses. So the parts are joined from the top: where the messages
//! of one part end, the next part must begin one at the same place, and from there on it is right, since where a message begins
//! nothing of what came before matters. Until then its messages are dropped and read again.

use model::{Error, ErrorKind, Result};
use platform::File;

use super::read::{Ended, Reader, Settled, not_an_mbox};
use super::{Message, Scanner, Step, Table};

/// A part that is smaller is not worth a thread, octets.
const PART_BYTES_MIN: u64 = 1 << 20;

/// What a thread has found.
struct Part {
    messages: Vec<Message>,
    ended: Ended,
}

/// Reads a whole file on `jobs` threads: [`Table::read`], faster. The result is the same.
pub fn scan_parallel(file: &dyn File, jobs: usize) -> Result<Table> {
    scan_in_parts(file, (jobs as u64).min(file.len()? / PART_BYTES_MIN))
}

/// Reads a whole file in so many parts, each on a thread of its own, however small they are.
pub fn scan_in_parts(file: &dyn File, parts: u64) -> Result<Table> {
    if parts <= 1 {
        return Table::read(file);
    }
    let len = file.len()?;
    let begin = |n: u64| (u128::from(len) * u128::from(n) / u128::from(parts)) as u64;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parts)
            .map(|n| {
                let scanner = if n == 0 { Scanner::new(0) } else { Scanner::seeking(begin(n)) };
                let until = if n + 1 == parts { u64::MAX } else { begin(n + 1) };
                scope.spawn(move || read_part(file, scanner.until(until)))
            })
            .collect();
        let parts = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<_>>>()?;
        join(file, len, parts)
    })
}

fn read_part(file: &dyn File, scanner: Scanner) -> Result<Part> {
    let mut messages = Vec::new();
    let ended = Reader::resume(file, scanner)?.for_each(&mut |message| messages.push(message))?;
    Ok(Part { messages, ended })
}

fn join(file: &dyn File, len: u64, parts: Vec<Part>) -> Result<Table> {
    let mut parts = parts.into_iter();
    let Some(Part { messages, ended }) = parts.next() else { return Table::read(file) };
    let mut joined = Joined { file, len, settled: ended.settled.clone(), messages, ended };
    for part in parts {
        joined.add(part)?;
    }
    // The last parts may have been of no use.
    if joined.ended.step == Step::Reached {
        joined.read_on(u64::MAX)?;
    }
    match joined.ended.step {
        Step::NotMbox => Err(not_an_mbox()),
        _ => Ok(Table::from_parts(joined.messages, joined.settled, joined.ended)),
    }
}

/// What is known to be right, from the top of the file on.
struct Joined<'a> {
    file: &'a dyn File,
    len: u64,
    messages: Vec<Message>,
    ended: Ended,
    /// The first time that a scanner was told that the file ends.
    settled: Option<Settled>,
}

impl Joined<'_> {
    fn add(&mut self, part: Part) -> Result<()> {
        if part.ended.file_bytes != self.len {
            return Err(Error::new(ErrorKind::InUse, "the file changed while it was read"));
        }
        while self.ended.step == Step::Reached {
            let next = self.ended.scanner.message_start().unwrap_or(u64::MAX);
            match part.messages.binary_search_by_key(&next, |message| message.start) {
                Ok(at) => {
                    self.note_settled(part.ended.settled.as_ref(), at);
                    let begun = self.messages.len();
                    self.messages.extend_from_slice(part.messages.get(at..).unwrap_or_default());
                    // What only who came from the top knows: that text stands before it.
                    if let Some(first) = self.messages.get_mut(begun) {
                        first.flags.add(self.ended.scanner.message.flags);
                    }
                    self.ended = part.ended;
                    return Ok(());
                }
                Err(at) => match part.messages.get(at) {
                    Some(message) => self.read_on(message.start)?,
                    // Nothing of the part begins here or farther on.
                    None => return Ok(()),
                },
            }
        }
        Ok(())
    }

    /// Reads on to the first message that begins at or behind `until`.
    fn read_on(&mut self, until: u64) -> Result<()> {
        let scanner = self.ended.scanner.clone().until(until);
        let mut messages = Vec::new();
        let ended = Reader::resume(self.file, scanner)?.for_each(&mut |message| messages.push(message))?;
        if ended.file_bytes != self.len {
            return Err(Error::new(ErrorKind::InUse, "the file changed while it was read"));
        }
        self.note_settled(ended.settled.as_ref(), 0);
        self.messages.append(&mut messages);
        self.ended = ended;
        Ok(())
    }

    /// Notes where a scanner was told that the file ends, whose first `dropped` messages are not taken.
    fn note_settled(&mut self, settled: Option<&Settled>, dropped: usize) {
        let Some(settled) = settled.filter(|_| self.settled.is_none()) else { return };
        let begun = &self.ended.scanner.message;
        self.settled = Some(match settled.messages.checked_sub(dropped) {
            Some(taken) => {
                let mut scanner = settled.scanner.clone();
                if scanner.message_start() == Some(begun.start) {
                    scanner.message.flags.add(begun.flags);
                }
                Settled { scanner, messages: self.messages.len() + taken }
            }
            // That was inside a message, as it turned out: nothing is known of where to go on but the top.
            None => Settled { scanner: Scanner::new(0), messages: 0 },
        });
    }
}
