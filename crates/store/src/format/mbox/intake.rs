//! Reading an mbox once, for everything that the log and the map want to know of its messages: where each is, its digest, its sizes as
//! served, what its fields say.
//!
//! A window slides over the file. The scanner says where messages end; those that are in the window as a whole, which are nearly all, are measured
//! there. A message that is larger than the window may become is measured as it passes by: by then it is not known yet how it is quoted, so it is
//! measured both ways.
//!
//! Invariants:
//! - What is found depends on the file's octets alone, not on the window.
//! - Each octet is read once, but for some KiB where the Content-Length of a message leads that is larger than the window.
//! - Memory: a window of [`WINDOW_BYTES_MAX`] and one piece.

use std::ops::Range;

use model::{DateTime, Error, ErrorKind, Result};
use platform::File;

use super::digest::{Measure, Measured, WholeMeasure};
use super::from_line::{LINE_BYTES_MAX, parse_from_line};
use super::place::Found;
use super::scan::{Ended, LOOK_BACK_BYTES, Message, PIECE_BYTES_MIN, Scanner, Settled, Step};

/// Octets that are read at a time: with what was kept they fit into a processor's second cache.
const PIECE_BYTES: usize = 256 << 10;
/// The most octets that are kept of a message that is not complete.
pub const WINDOW_BYTES_MAX: usize = 4 << 20;
/// When at least so many octets are to be read, they are not kept in the system's cache: it would give up for them what others have there, and much
/// of them before a client asks for it.
const ONCE_BYTES_MIN: u64 = 256 << 20;
/// Such reads end at multiples of this: Linux lets go of whole pages of its cache, of up to so many octets, also where only a part was read, and
/// would have to fetch the rest again.
const ONCE_PIECE_BYTES: u64 = 2 << 20;
/// Octets that are read at a time behind the place where the scanner is to stop: what is left is the rest of one message.
const REST_BYTES: usize = 16 << 10;
/// What [`Scanner::passed`] says may be so many octets behind the end of a message's content: line ends that belong to the mbox.
const LAG_BYTES: u64 = 8;

/// Reads a file on from `scanner`, [`Scanner::new`] at 0 for all of it, and gives each message to `take`, in order.
///
/// A file that is no mbox ends with [`Step::NotMbox`]. `Invalid`: the file is shorter than what the scanner has seen, or became shorter meanwhile.
pub fn intake(file: &dyn File, scanner: Scanner, take: &mut dyn FnMut(Found) -> Result<()>) -> Result<Ended> {
    intake_in_pieces(file, scanner, PIECE_BYTES, WINDOW_BYTES_MAX, take)
}

/// [`intake`] with another window: the result is the same.
pub fn intake_in_pieces(
    file: &dyn File,
    scanner: Scanner,
    piece_bytes: usize,
    window_bytes_max: usize,
    take: &mut dyn FnMut(Found) -> Result<()>,
) -> Result<Ended> {
    let len = file.len()?;
    if len < scanner.passed() {
        return Err(Error::new(ErrorKind::Invalid, "the file is shorter than it was"));
    }
    let piece_bytes = piece_bytes.max(PIECE_BYTES_MIN);
    let start = needed_from(&scanner).min(len);
    let stops_at = scanner.stops_at();
    let is_once = len - start >= ONCE_BYTES_MIN;
    let window =
        Window { file, len, stops_at, piece_bytes, is_once, bytes: Vec::new(), filled: 0, start, last_cr: None };
    let mut intake = Intake {
        window,
        window_bytes_max: window_bytes_max.max(piece_bytes) as u64,
        is_first: scanner.is_before_first(),
        scanner,
        passing: None,
        measure: WholeMeasure::default(),
        settled: None,
        messages: 0,
    };
    let step = intake.run(take)?;
    Ok(Ended { step, scanner: intake.scanner, settled: intake.settled, file_bytes: len })
}

struct Intake<'a> {
    window: Window<'a>,
    window_bytes_max: u64,
    scanner: Scanner,
    /// The message that is too large for the window, if one is.
    passing: Option<Passing>,
    /// For the others.
    measure: WholeMeasure,
    /// See [`Ended::settled`]; once it is there the scanner is told where the file ends.
    settled: Option<Settled>,
    /// How many were given.
    messages: usize,
    /// The next is the first of the file.
    is_first: bool,
}

impl Intake<'_> {
    fn run(&mut self, take: &mut dyn FnMut(Found) -> Result<()>) -> Result<Step> {
        loop {
            let step = self.advance(take)?;
            if step != Step::More {
                return Ok(step);
            }
            if self.is_far() {
                self.peek()?;
            } else if !self.window.is_last() {
                self.slide()?;
            } else if self.settled.is_none() {
                self.settle();
            } else {
                unreachable!("the scanner has the end of the file and wants nothing before the window");
            }
        }
    }

    /// Lets the scanner look at the window.
    fn advance(&mut self, take: &mut dyn FnMut(Found) -> Result<()>) -> Result<Step> {
        let Intake { window, scanner, passing, measure, settled, messages, is_first, .. } = self;
        let is_all = window.is_last() && settled.is_some();
        let mut error = None;
        let step = scanner.advance(window.filled(), window.start, is_all, &mut |message| {
            if error.is_some() {
                return;
            }
            *messages += 1;
            let is_first = std::mem::take(is_first);
            let found = match passing.take() {
                Some(passing) => passing.found(window, message, is_first),
                None => window.found(measure, message, is_first),
            };
            error = take(found).err();
        });
        error.map_or(Ok(step), Err)
    }

    /// Whether the scanner wants to look where a Content-Length leads that is out of the window's reach.
    fn is_far(&self) -> bool {
        if !self.scanner.is_looking_ahead() {
            return false;
        }
        let wants = self.scanner.wants();
        let reach = needed_from(&self.scanner).saturating_add(self.window_bytes_max);
        let is_near = self.passing.is_none() && wants.saturating_add(PIECE_BYTES_MIN as u64) <= reach;
        wants > self.window.end() && (wants > self.window.len || !is_near)
    }

    /// Lets it look there; the window stays where it is.
    fn peek(&mut self) -> Result<()> {
        let len = self.window.len;
        let start = self.scanner.wants().min(len);
        let end = len.min(start.saturating_add(PIECE_BYTES_MIN as u64));
        let mut bytes = vec![0; (end - start) as usize];
        read((self.window.file, self.window.is_once), &mut bytes, start)?;
        let is_all = end == len && self.settled.is_some();
        // No message can end here: it looks, and goes back to the beginning of the body.
        self.scanner.advance(&bytes, start, is_all, &mut |_| {});
        if self.scanner.wants() >= start && self.settled.is_none() {
            self.settle();
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.settled = Some(Settled { scanner: self.scanner.clone(), messages: self.messages });
    }

    /// Reads on, and drops what is not needed any more.
    fn slide(&mut self) -> Result<()> {
        let mut keep_from = needed_from(&self.scanner);
        let is_full = self.window.end().saturating_sub(keep_from) >= self.window_bytes_max;
        if let Some(begun) = self.scanner.begun()
            && (is_full || self.passing.is_some())
        {
            let passing = self.passing.get_or_insert_with(|| Passing::new(&self.window, begun));
            let passed = self.scanner.passed();
            let to = passed.saturating_sub(LAG_BYTES).min(self.window.end());
            let fed = passing.feed(&self.window, begun.header, to);
            keep_from = passed.saturating_sub(LOOK_BACK_BYTES as u64).min(fed);
        }
        self.window.slide(keep_from)
    }
}

/// From where on the scanner and the message that it is in want the window.
fn needed_from(scanner: &Scanner) -> u64 {
    let looked_at = scanner.passed().saturating_sub(LOOK_BACK_BYTES as u64);
    scanner.message_start().map_or(looked_at, |start| start.min(looked_at))
}

fn read((file, is_once): (&dyn File, bool), bytes: &mut [u8], at: u64) -> Result<()> {
    let result = if is_once { file.read_exact_once_at(bytes, at) } else { file.read_exact_at(bytes, at) };
    result.map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::Invalid, "the file became shorter meanwhile"),
        _ => error.into(),
    })
}

/// The part of the file that is in memory.
struct Window<'a> {
    file: &'a dyn File,
    /// Octets of the file when the reading began.
    len: u64,
    /// See [`Scanner::until`].
    stops_at: u64,
    piece_bytes: usize,
    /// Whether the octets are not wanted again soon.
    is_once: bool,
    bytes: Vec<u8>,
    /// How many of `bytes` are of the file.
    filled: usize,
    /// Where they stand in it.
    start: u64,
    /// A CR in the file; none in the window is behind it.
    last_cr: Option<u64>,
}

impl Window<'_> {
    fn filled(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    fn end(&self) -> u64 {
        self.start + self.filled as u64
    }

    fn is_last(&self) -> bool {
        self.end() == self.len
    }

    fn get(&self, range: Range<u64>) -> &[u8] {
        let index = |at: u64| usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.filled().get(index(range.start)..index(range.end)).unwrap_or_default()
    }

    /// Drops what stands before `keep_from`, and reads a piece behind what is left: a larger one when more is left, so that what the scanner looks
    /// at again does not add up.
    fn slide(&mut self, keep_from: u64) -> Result<()> {
        let drop = usize::try_from(keep_from.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.filled);
        self.bytes.copy_within(drop..self.filled, 0);
        self.start += drop as u64;
        self.filled -= drop;
        let rest = usize::try_from(self.len - self.end()).unwrap_or(usize::MAX);
        let piece_bytes = match self.stops_at.saturating_sub(self.end()) {
            0 => self.piece_bytes.min(REST_BYTES),
            before => usize::try_from(before).unwrap_or(usize::MAX).min(self.piece_bytes),
        };
        let mut count = piece_bytes.max(PIECE_BYTES_MIN).max(self.filled);
        if self.is_once && self.stops_at > self.end() {
            count = ((self.end() + count as u64).next_multiple_of(ONCE_PIECE_BYTES) - self.end()) as usize;
        }
        let count = count.min(rest);
        let end = self.filled + count;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let at = self.end();
        let piece = self.bytes.get_mut(self.filled..end).unwrap_or_default();
        read((self.file, self.is_once), piece, at)?;
        if let Some(cr) = memchr::memrchr(b'\r', piece) {
            self.last_cr = Some(at + cr as u64);
        }
        self.filled = end;
        Ok(())
    }

    /// Of a message that is in the window.
    fn found(&self, measure: &mut WholeMeasure, message: Message, is_first: bool) -> Found {
        let header_len = usize::try_from(message.body - message.header).unwrap_or(usize::MAX);
        let has_cr = self.last_cr.is_some_and(|cr| cr >= message.header);
        let measured = measure.measure(self.get(message.content()), header_len, message.form(), has_cr, is_first);
        found(message, measured, date(self.get(message.start..message.header)))
    }
}

/// A message that passes by.
struct Passing {
    date: Option<DateTime>,
    /// Unquoted, and as it is.
    measures: [Measure; 2],
    /// Up to where it was measured, from behind its `From ` line.
    fed: Option<u64>,
}

impl Passing {
    fn new(window: &Window<'_>, begun: &Message) -> Self {
        // A line that does not end within the window is longer than one that has a date.
        let date = date(window.get(begun.start..begun.header));
        Passing { date, measures: [true, false].map(Measure::new), fed: None }
    }

    /// Measures up to `to`, which is in the window; says up to where it was measured. `header`: 0 while it is not known.
    fn feed(&mut self, window: &Window<'_>, header: u64, to: u64) -> u64 {
        if header == 0 {
            return u64::MAX;
        }
        let from = self.fed.unwrap_or(header);
        let octets = window.get(from..to.max(from));
        self.measures.iter_mut().for_each(|measure| measure.push(octets));
        *self.fed.insert(to.max(from))
    }

    /// The message is complete.
    fn found(mut self, window: &Window<'_>, message: Message, is_first: bool) -> Found {
        self.feed(window, message.header, message.end);
        let [unquoted, as_it_is] = self.measures;
        let measure = if message.form().unquote { unquoted } else { as_it_is };
        found(message, measure.finish(is_first), self.date)
    }
}

fn found(message: Message, measured: Measured, date: Option<DateTime>) -> Found {
    let Measured { digest, octets, header_octets, meta } = measured;
    Found { message, digest, octets, header_octets, meta, date }
}

/// The date of a `From ` line, which is none when it is longer than a separator may be.
fn date(line: &[u8]) -> Option<DateTime> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > LINE_BYTES_MAX { None } else { parse_from_line(line) }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
