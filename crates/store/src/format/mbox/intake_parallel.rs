//! Reading one file on several threads: [`intake`], faster, with the same result in the same order.
//!
//! The file is cut into parts that the threads take in turn. A thread does not know what stands before its part: it looks for the first separator
//! in it, which may be one that a Content-Length encloses. So the parts are joined from the top: where the messages of one part end, the next part
//! must begin one at the same place, and from there on it is right, since where a message begins nothing of what came before matters. What
//! does not fit is read again.
//!
//! Memory: for each thread a window, and the messages of two parts.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use model::{Error, ErrorKind, Result};
use platform::File;

use super::intake::intake;
use super::place::Found;
use super::scan::{Ended, Scanner, Settled, Step};

/// Octets of a part: many messages, as a rule, and few enough that they can wait.
const PART_BYTES: u64 = 4 << 20;

/// What a thread has found in a part.
struct Part {
    found: Vec<Found>,
    ended: Ended,
}

/// Reads a whole file on `jobs` threads beside the caller's, on which `take` is called. See [`intake`].
///
/// `InUse`: the file changed while it was read.
pub fn intake_parallel(file: &dyn File, jobs: usize, take: &mut dyn FnMut(Found) -> Result<()>) -> Result<Ended> {
    intake_in_parts(file, jobs, PART_BYTES, take)
}

/// [`intake_parallel`] in parts of so many octets.
pub fn intake_in_parts(
    file: &dyn File,
    jobs: usize,
    part_bytes: u64,
    take: &mut dyn FnMut(Found) -> Result<()>,
) -> Result<Ended> {
    let len = file.len()?;
    let part_bytes = part_bytes.max(1);
    let parts = len.div_ceil(part_bytes);
    if jobs <= 1 || parts <= 1 {
        return intake(file, Scanner::new(0), take);
    }
    let scanner = move |part: u64| {
        let begin = part * part_bytes;
        let scanner = if part == 0 { Scanner::new(0) } else { Scanner::seeking(begin) };
        scanner.until(if part + 1 == parts { u64::MAX } else { begin + part_bytes })
    };
    std::thread::scope(|scope| {
        let jobs = (jobs as u64).min(parts);
        let threads: Vec<Receiver<Result<Part>>> = (0..jobs)
            .map(|job| {
                // One part waits, another is being read.
                let (to, from) = sync_channel(1);
                scope.spawn(move || read_parts(file, (job..parts).step_by(jobs as usize).map(scanner), &to));
                from
            })
            .collect();
        join(file, len, threads.iter().cycle().take(parts as usize), take)
    })
}

fn read_parts(file: &dyn File, parts: impl Iterator<Item = Scanner>, to: &SyncSender<Result<Part>>) {
    for scanner in parts {
        let mut found = Vec::new();
        let ended = intake(file, scanner, &mut |message| {
            found.push(message);
            Ok(())
        });
        // Nobody receives any more when the reading has failed elsewhere.
        if to.send(ended.map(|ended| Part { found, ended })).is_err() {
            return;
        }
    }
}

fn join<'r>(
    file: &dyn File,
    len: u64,
    parts: impl Iterator<Item = &'r Receiver<Result<Part>>>,
    take: &mut dyn FnMut(Found) -> Result<()>,
) -> Result<Ended> {
    let begin = Ended { step: Step::Reached, scanner: Scanner::new(0), settled: None, file_bytes: len };
    let mut joined = Joined { file, len, given: 0, settled: None, ended: begin };
    for (n, part) in parts.enumerate() {
        // A thread that is gone has panicked, and so does the scope when it ends.
        let Ok(part) = part.recv() else { break };
        let part = part?;
        if n == 0 {
            joined.add_from(part, 0, take)?;
        } else {
            joined.add(part, take)?;
        }
        if joined.ended.step != Step::Reached {
            break;
        }
    }
    // The last parts may have been of no use.
    if joined.ended.step == Step::Reached {
        joined.read_on(u64::MAX, take)?;
    }
    let settled = joined.settled.map(|settled| Settled { scanner: settled.scanner.until(u64::MAX), ..settled });
    Ok(Ended { settled, ..joined.ended })
}

/// What is known to be right, from the top of the file on.
struct Joined<'a> {
    file: &'a dyn File,
    len: u64,
    /// How many messages were given.
    given: usize,
    /// The first time that a scanner was told that the file ends.
    settled: Option<Settled>,
    ended: Ended,
}

impl Joined<'_> {
    /// Gives the messages of the next part, as far as they are right.
    fn add(&mut self, part: Part, take: &mut dyn FnMut(Found) -> Result<()>) -> Result<()> {
        while self.ended.step == Step::Reached {
            let next = self.ended.scanner.message_start().unwrap_or(u64::MAX);
            match part.found.binary_search_by_key(&next, |found| found.message.start) {
                // The thread did not know that it is the first of the file.
                Ok(_) if self.ended.scanner.is_before_first() => self.read_on(next + 1, take)?,
                Ok(at) => return self.add_from(part, at, take),
                Err(at) => match part.found.get(at) {
                    Some(found) => self.read_on(found.message.start, take)?,
                    // Nothing of the part begins here or farther on.
                    None => return Ok(()),
                },
            }
        }
        Ok(())
    }

    /// Gives the messages of a part but the first `dropped`.
    fn add_from(&mut self, part: Part, dropped: usize, take: &mut dyn FnMut(Found) -> Result<()>) -> Result<()> {
        self.check(&part.ended)?;
        self.note_settled(part.ended.settled.as_ref(), dropped);
        for found in part.found.into_iter().skip(dropped) {
            self.given += 1;
            take(found)?;
        }
        self.ended = part.ended;
        Ok(())
    }

    /// Reads on to the first message that begins at or behind `until`.
    fn read_on(&mut self, until: u64, take: &mut dyn FnMut(Found) -> Result<()>) -> Result<()> {
        let scanner = self.ended.scanner.clone().until(until);
        let mut given = 0;
        let ended = intake(self.file, scanner, &mut |found| {
            given += 1;
            take(found)
        })?;
        self.check(&ended)?;
        self.note_settled(ended.settled.as_ref(), 0);
        self.given += given;
        self.ended = ended;
        Ok(())
    }

    fn check(&self, ended: &Ended) -> Result<()> {
        match ended.file_bytes == self.len {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::InUse, "the file changed while it was read")),
        }
    }

    /// Notes where a scanner was told that the file ends, whose first `dropped` messages are not taken.
    fn note_settled(&mut self, settled: Option<&Settled>, dropped: usize) {
        let Some(settled) = settled.filter(|_| self.settled.is_none()) else { return };
        self.settled = Some(match settled.messages.checked_sub(dropped) {
            Some(taken) => Settled { scanner: settled.scanner.clone(), messages: self.given + taken },
            // That was inside a message, as it turned out: nothing is known of where to go on but the top.
            None => Settled::default(),
        });
    }
}
