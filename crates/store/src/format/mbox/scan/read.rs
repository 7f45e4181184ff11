//! The scanner on a file: read in pieces, messages one after another.
//!
//! Pieces are read, not mapped: a file that another program cuts meanwhile gives an error here, where a map would end the process
//! (SIGBUS). Reading costs a copy of each octet, which a piece that stays in the processor's cache makes cheap.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;

use model::{Error, ErrorKind, Result};
use platform::File;

use super::{BLANKS_MAX, LOOK_AHEAD_BYTES, LOOK_BACK_BYTES, Message, Scanner, Step};

/// Octets that are read at a time, as a rule: they fit into a processor's second cache.
const PIECE_BYTES: usize = 256 << 10;
/// With fewer the scanner may not get on.
pub(in super::super) const PIECE_BYTES_MIN: usize = LOOK_BACK_BYTES + LOOK_AHEAD_BYTES + BLANKS_MAX + 1;

/// A scanner on a file.
struct Drive<'a> {
    file: &'a dyn File,
    /// Octets of the file when the scan began.
    len: u64,
    scanner: Scanner,
    /// The scanner as it was before it was told that the file ends.
    settled: Option<Scanner>,
    piece: Vec<u8>,
    piece_bytes: usize,
}

impl Drive<'_> {
    /// Reads one piece.
    fn step(&mut self, found: &mut impl FnMut(Message)) -> Result<Step> {
        let start = self.scanner.wants().min(self.len);
        let count = usize::try_from(self.len - start).unwrap_or(usize::MAX).min(self.piece_bytes);
        self.piece.resize(count, 0);
        self.file.read_exact_at(&mut self.piece, start).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::Invalid, "the file became shorter meanwhile"),
            _ => error.into(),
        })?;
        let is_last = start + count as u64 == self.len;
        let is_final = self.settled.is_some();
        let step = self.scanner.advance(&self.piece, start, is_last && is_final, found);
        // It may still want something before this piece; otherwise there is no more to be had.
        if step == Step::More && is_last && !is_final && self.scanner.wants() >= start {
            self.settled = Some(self.scanner.clone());
        }
        Ok(step)
    }
}

/// Reads the messages of a file as it is now: what is added later is not looked at.
pub struct Reader<'a> {
    drive: Drive<'a>,
    ready: VecDeque<Message>,
    step: Step,
}

impl<'a> Reader<'a> {
    /// Reads `file` from `at` on, where a message is expected.
    pub fn new(file: &'a dyn File, at: u64) -> Result<Self> {
        Reader::resume(file, Scanner::new(at))
    }

    /// Goes on with a scanner. `Invalid` when the file has become shorter than what the scanner has seen.
    pub fn resume(file: &'a dyn File, scanner: Scanner) -> Result<Self> {
        let len = file.len()?;
        if len < scanner.passed() {
            return Err(Error::new(ErrorKind::Invalid, "the file is shorter than it was"));
        }
        let drive = Drive { file, len, scanner, settled: None, piece: Vec::new(), piece_bytes: PIECE_BYTES };
        Ok(Reader { drive, ready: VecDeque::new(), step: Step::More })
    }

    /// Reads so much at a time.
    pub fn with_piece_bytes(mut self, bytes: usize) -> Self {
        self.drive.piece_bytes = bytes.max(PIECE_BYTES_MIN);
        self
    }

    /// The next message; `None` at the end of the file, and when the file is no mbox.
    pub fn next_message(&mut self) -> Result<Option<Message>> {
        while self.ready.is_empty() && self.step == Step::More {
            let ready = &mut self.ready;
            self.step = self.drive.step(&mut |message| ready.push_back(message))?;
        }
        Ok(self.ready.pop_front())
    }

    /// Looks for the first message and says what stands before it, line ends at the beginning left out: empty, as a rule. `None`: there is
    /// no separator near the beginning, the file is no mbox. For a reader that no message was asked of yet.
    pub fn preamble(&mut self) -> Result<Option<Range<u64>>> {
        let first = self.next_message()?;
        if let Some(first) = first {
            self.ready.push_front(first);
        }
        let begin = self.drive.scanner.text_start;
        Ok(match first {
            Some(first) => Some(begin.min(first.start)..first.start),
            None if self.step == Step::NotMbox => None,
            None => Some(begin..begin),
        })
    }

    /// Gives every message that is left to `found`.
    pub fn for_each(mut self, found: &mut impl FnMut(Message)) -> Result<Ended> {
        let mut settled = None;
        let messages = Cell::new(0);
        let mut count = |message| {
            messages.set(messages.get() + 1);
            found(message);
        };
        self.ready.drain(..).for_each(&mut count);
        while self.step == Step::More {
            self.step = self.drive.step(&mut count)?;
            if settled.is_none()
                && let Some(scanner) = &self.drive.settled
            {
                settled = Some(Settled { scanner: scanner.clone(), messages: messages.get() });
            }
        }
        Ok(Ended { step: self.step, scanner: self.drive.scanner, settled, file_bytes: self.drive.len })
    }
}

/// How a reading ended.
#[derive(Debug)]
pub struct Ended {
    /// Why.
    pub step: Step,
    /// Where the scanner stands.
    pub scanner: Scanner,
    /// The scanner before it was told that the file ends, if it was.
    pub settled: Option<Settled>,
    /// Octets of the file when the reading began.
    pub file_bytes: u64,
}

/// A scanner that has decided nothing by where the file ends: from here it goes on when the file has grown.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The scanner.
    pub scanner: Scanner,
    /// How many messages had been given by then. Those after it may change when the file grows.
    pub messages: usize,
}

impl Default for Settled {
    /// At the top of a file.
    fn default() -> Self {
        Settled { scanner: Scanner::new(0), messages: 0 }
    }
}

/// Why a file cannot be read as an mbox.
pub fn not_an_mbox() -> Error {
    Error::new(ErrorKind::Invalid, "no mbox: there is no From line near its beginning")
}
