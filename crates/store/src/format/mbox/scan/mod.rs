//! Finding the messages of an mbox: one pass, forward, over bytes that may come in any pieces.
//!
//! [`Scanner`] is a state machine with no I/O: it says from where on it wants bytes ([`Scanner::wants`]) and takes as many as there are
//! ([`Scanner::advance`]). [`Reader`] drives it over a file, [`Table`] keeps what was found and goes on when the file has grown,
//! [`scan_parallel`] does it on several threads. `docs/format-mbox.md` has the rules.
//!
//! Invariants:
//! - What is found depends on the file's bytes alone, not on how they were cut: every decision looks at [`LOOK_BACK_BYTES`] before
//!   a place and [`LOOK_AHEAD_BYTES`] behind it, and waits until these are there or the file is said to end.
//! - Where a message begins the scanner knows nothing of what came before. So a scan that begins anywhere finds its way back to the one
//!   that began at the top as soon as both begin a message at the same place.
//! - Each octet is searched once: headers line by line (`lines.rs`), bodies for `From ` (memmem). Only where Content-Length leads is looked
//!   at twice.

pub(in crate::format) mod lines;
mod message;
mod parallel;
mod read;
mod table;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use memchr::memmem::Finder;

pub use self::message::{Dialect, Message, MessageFlags};
pub use self::parallel::{scan_in_parts, scan_parallel};
pub(super) use self::read::PIECE_BYTES_MIN;
pub use self::read::{Ended, Reader, Settled, not_an_mbox};
pub use self::table::Table;
use super::from_line::{LOOK_AHEAD_BYTES, PREFIX, Verdict, is_after_empty_line, judge};

/// How much of the file before the place where it stands the scanner looks at, octets. A line with more `>` before its `From ` is
/// not noted as quoted (it is still unquoted when the message is served).
pub const LOOK_BACK_BYTES: usize = 64;
/// A file whose first separator is farther from its beginning is no mbox, octets.
pub const PREAMBLE_BYTES_MAX: u64 = 1 << 20;
/// A Content-Length that is larger is not believed, octets.
pub const CONTENT_LENGTH_MAX: u64 = model::limits::MESSAGE_BYTES_MAX;
/// Line ends that may stand between the end that Content-Length gives and the next separator, octets: the body's own, and an empty line.
const BLANKS_MAX: usize = 4;
/// A Content-Length line that is longer is none, octets.
const LENGTH_LINE_BYTES_MAX: usize = 128;

static FROM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(PREFIX));

/// Why [`Scanner::advance`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It wants bytes from [`Scanner::wants`] on.
    More,
    /// The next message begins at or behind the place given to [`Scanner::until`].
    Reached,
    /// The file is done.
    Done,
    /// No separator was found near the beginning: no mbox.
    NotMbox,
}

/// Finds messages; see the module.
#[derive(Clone, Debug)]
pub struct Scanner {
    state: State,
    /// Everything before was looked at.
    at: u64,
    until: u64,
    /// Where the first message begins, or the text before it.
    text_start: u64,
    /// The message that is being read, as far as it is known.
    message: Message,
    content_length: Option<u64>,
    /// Up to where NULs were looked for.
    nul_checked: u64,
    /// It has found a message, or began in the middle of the file.
    is_behind_first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Line ends before the first message are passed over.
    Begin,
    /// Something else stands there: a separator is looked for, as far as `last`.
    Seek {
        last: u64,
        is_text: bool,
    },
    /// In the `From ` line.
    FromLine,
    /// In the header; the next line begins behind the next LF at or behind `at`.
    Header,
    /// Behind the header: does Content-Length lead somewhere? `at` is where it leads.
    Landing,
    /// In the body, up to the next separator or to a place that is known.
    Body(Option<Landed>),
    Done,
    NotMbox,
}

/// Where Content-Length leads to: the end of the content, and the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Landed {
    end: u64,
    next: u64,
}

/// A part of the file.
struct View<'a> {
    bytes: &'a [u8],
    start: u64,
    /// The file ends with it.
    is_all: bool,
    has_nul: bool,
}

impl<'a> View<'a> {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// As an index; places before the view are its start, those behind its end.
    fn index(&self, at: u64) -> usize {
        usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.bytes.len())
    }

    fn before(&self, at: u64) -> &'a [u8] {
        self.bytes.get(..self.index(at)).unwrap_or_default()
    }

    fn from(&self, at: u64) -> &'a [u8] {
        self.bytes.get(self.index(at)..).unwrap_or_default()
    }

    fn judge(&self, at: u64) -> Verdict {
        judge(self.before(at), self.from(at), self.is_all)
    }
}

/// What a step of the state machine asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Go,
    Stop,
}

impl Scanner {
    /// At `at`, where a message is expected, after any number of line ends; 0 for a whole file.
    pub fn new(at: u64) -> Self {
        Scanner {
            state: State::Begin,
            at,
            until: u64::MAX,
            text_start: at,
            message: Message::default(),
            content_length: None,
            nul_checked: at,
            is_behind_first: at > 0,
        }
    }

    /// At any place: begins with the first separator there is from there on.
    pub fn seeking(at: u64) -> Self {
        let state = State::Seek { last: u64::MAX, is_text: false };
        Scanner { state, is_behind_first: true, ..Scanner::new(at) }
    }

    /// Says where to stop: [`Step::Reached`] comes instead of the first message that begins there or behind it.
    pub fn until(mut self, until: u64) -> Self {
        self.until = until;
        self
    }

    /// The first octet of the file that [`Scanner::advance`] has to see next.
    pub fn wants(&self) -> u64 {
        self.at.saturating_sub(LOOK_BACK_BYTES as u64)
    }

    /// Everything of the file before this was seen; where Content-Length leads is looked at ahead of it.
    pub(super) fn passed(&self) -> u64 {
        if self.is_looking_ahead() { self.message.body } else { self.at }
    }

    /// Whether it wants to see where Content-Length leads, before it looks at the body.
    pub(super) fn is_looking_ahead(&self) -> bool {
        self.state == State::Landing
    }

    /// What was given to [`Scanner::until`].
    pub(super) fn stops_at(&self) -> u64 {
        self.until
    }

    /// Whether the first message of the file is still to come: then it is the next that is found.
    pub(super) fn is_before_first(&self) -> bool {
        !self.is_behind_first
    }

    /// The message that is being read, as far as it is known: places that are not are 0.
    pub(super) fn begun(&self) -> Option<&Message> {
        self.message_start().map(|_| &self.message)
    }

    /// Where the message begins that is being read.
    pub fn message_start(&self) -> Option<u64> {
        match self.state {
            State::Begin | State::Seek { .. } | State::Done | State::NotMbox => None,
            _ => Some(self.message.start),
        }
    }

    /// Takes `bytes`, which stand at `start` in the file (not behind [`Scanner::wants`]), and gives every message that is complete to
    /// `found`. `is_all`: the file ends with them.
    ///
    /// Given a little more than [`LOOK_BACK_BYTES`] and [`LOOK_AHEAD_BYTES`] together it always gets on.
    pub fn advance(&mut self, bytes: &[u8], start: u64, is_all: bool, found: &mut impl FnMut(Message)) -> Step {
        let view = View { bytes, start, is_all, has_nul: memchr::memchr(0, bytes).is_some() };
        loop {
            let is_outside = self.wants() < view.start || (self.at > view.end() && !view.is_all);
            let flow = match self.state {
                State::Done => return Step::Done,
                State::NotMbox => return Step::NotMbox,
                _ if is_outside => Flow::Stop,
                State::Begin => self.begin(&view),
                State::Seek { last, is_text } => self.seek(&view, last, is_text),
                State::FromLine if self.message.start >= self.until => return Step::Reached,
                State::FromLine => self.separator_line(&view, found),
                State::Header => self.header(&view, found),
                State::Landing => self.landing(&view),
                State::Body(limit) => self.body(&view, limit, found),
            };
            if flow == Flow::Stop {
                self.look_for_nul(&view, self.passed());
                return Step::More;
            }
        }
    }

    fn begin(&mut self, view: &View<'_>) -> Flow {
        let rest = view.from(self.at);
        let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.at += blank as u64;
        self.text_start = self.at;
        let rest = view.from(self.at);
        if rest.starts_with(PREFIX) {
            // The very first line may have any date, or none: nothing else begins so.
            self.begin_message(view, self.at, MessageFlags::default());
        } else if !view.is_all && PREFIX.starts_with(rest) {
            return Flow::Stop;
        } else if rest.is_empty() {
            self.state = State::Done;
        } else {
            self.state = State::Seek { last: self.at.saturating_add(PREAMBLE_BYTES_MAX), is_text: true };
        }
        Flow::Go
    }

    fn seek(&mut self, view: &View<'_>, last: u64, is_text: bool) -> Flow {
        let end = view.end();
        let first = match self.next_separator(view, end, &mut MessageFlags::default()) {
            Search::Separator(first) if first <= last => first,
            Search::None if !view.is_all && self.at <= last => return Flow::Stop,
            Search::More => return Flow::Stop,
            Search::Separator(_) | Search::None => {
                self.state = if is_text { State::NotMbox } else { State::Done };
                return Flow::Go;
            }
        };
        let mut flags = MessageFlags::default();
        flags.add_if(MessageFlags::TEXT_BEFORE, is_text);
        self.begin_message(view, first, flags);
        Flow::Go
    }

    fn begin_message(&mut self, view: &View<'_>, start: u64, mut flags: MessageFlags) {
        let before = view.before(start);
        flags.add_if(MessageFlags::NO_BLANK_BEFORE, !is_after_empty_line(before));
        self.message = Message { start, flags, ..Message::default() };
        self.content_length = None;
        self.at = start;
        self.nul_checked = start;
        self.state = State::FromLine;
    }

    fn separator_line(&mut self, view: &View<'_>, found: &mut impl FnMut(Message)) -> Flow {
        let rest = view.from(self.at);
        match memchr::memchr(b'\n', rest) {
            Some(end) => {
                let end = self.at + end as u64;
                self.message.flags.add_if(MessageFlags::CRLF, view.before(end).last() == Some(&b'\r'));
                self.message.header = end + 1;
                self.at = end;
                self.state = State::Header;
                Flow::Go
            }
            None if view.is_all => {
                self.message.header = view.end();
                self.message.flags.add(MessageFlags::TRUNCATED);
                self.end_of_file(view, found);
                Flow::Go
            }
            None => {
                self.at = view.end();
                Flow::Stop
            }
        }
    }

    fn header(&mut self, view: &View<'_>, found: &mut impl FnMut(Message)) -> Flow {
        enum End {
            EmptyLine(usize),
            Separator(usize),
            More(usize),
        }
        let bytes = view.bytes;
        let mut end: Option<End> = None;
        lines::each_line_start(bytes, view.index(self.at), |at| {
            let line = bytes.get(at..).unwrap_or_default();
            end = match line {
                [b'\n', ..] => Some(End::EmptyLine(at + 1)),
                [b'\r', b'\n', ..] => Some(End::EmptyLine(at + 2)),
                [] | [b'\r'] if !view.is_all => Some(End::More(at)),
                [b'F', ..] => match judge(bytes.get(..at).unwrap_or_default(), line, view.is_all) {
                    Verdict::Separator => Some(End::Separator(at)),
                    Verdict::More => Some(End::More(at)),
                    Verdict::Text => None,
                },
                [b'C' | b'c', ..] if self.content_length.is_none() => match content_length(line, view.is_all) {
                    Claim::More => Some(End::More(at)),
                    Claim::Octets(octets) => {
                        self.content_length = Some(octets);
                        None
                    }
                    Claim::Other => None,
                },
                _ => None,
            };
            end.is_none()
        });
        match end {
            Some(End::EmptyLine(at)) => {
                self.message.body = view.start + at as u64;
                self.at = self.message.body;
                self.state = State::Body(None);
                if let Some(octets) = self.content_length {
                    self.claim(octets);
                }
                Flow::Go
            }
            Some(End::Separator(at)) => {
                self.message.flags.add(MessageFlags::NO_HEADER_END);
                let next = view.start + at as u64;
                self.complete(view, next, next, found);
                Flow::Go
            }
            Some(End::More(at)) => {
                // The LF before the line is looked at again.
                self.at = view.start + at.saturating_sub(1) as u64;
                Flow::Stop
            }
            None if view.is_all => {
                self.message.flags.add(MessageFlags::TRUNCATED);
                self.end_of_file(view, found);
                Flow::Go
            }
            None => {
                self.at = view.end();
                Flow::Stop
            }
        }
    }

    /// The header says how long the body is.
    fn claim(&mut self, octets: u64) {
        match self.message.body.checked_add(octets).filter(|_| octets <= CONTENT_LENGTH_MAX) {
            Some(end) => {
                self.at = end;
                self.state = State::Landing;
            }
            None => self.message.flags.add(MessageFlags::CONTENT_LENGTH_WRONG),
        }
    }

    fn landing(&mut self, view: &View<'_>) -> Flow {
        let end = self.at;
        let landed = if end > view.end() {
            self.message.flags.add(MessageFlags::TRUNCATED);
            None
        } else {
            let rest = view.from(end);
            let blanks = rest.iter().take(BLANKS_MAX).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let next = end + blanks as u64;
            let is_line = view.before(next).last() == Some(&b'\n');
            match view.judge(next) {
                _ if blanks == rest.len() => {
                    if !view.is_all {
                        return Flow::Stop;
                    }
                    Some(Landed { end, next })
                }
                Verdict::More => return Flow::Stop,
                Verdict::Separator if is_line => Some(Landed { end, next }),
                _ => None,
            }
        };
        self.message.flags.add(match landed {
            Some(_) => MessageFlags::CONTENT_LENGTH,
            None => MessageFlags::CONTENT_LENGTH_WRONG,
        });
        self.at = self.message.body;
        self.state = State::Body(landed);
        Flow::Go
    }

    fn body(&mut self, view: &View<'_>, landed: Option<Landed>, found: &mut impl FnMut(Message)) -> Flow {
        let end = landed.map_or(view.end(), |landed| landed.end.min(view.end()));
        let mut flags = self.message.flags;
        let search = loop {
            match (self.next_separator(view, end, &mut flags), landed) {
                (Search::Separator(at), Some(_)) => {
                    flags.add(MessageFlags::ENCLOSES_SEPARATOR);
                    self.at = at + PREFIX.len() as u64;
                }
                (search, _) => break search,
            }
        };
        self.message.flags = flags;
        match (search, landed) {
            (Search::More, _) => Flow::Stop,
            (Search::Separator(next), _) => {
                let end = next - blank_line(view.before(next), next - self.message.header);
                self.complete(view, end, next, found);
                Flow::Go
            }
            (Search::None, Some(landed)) if end == landed.end && landed.next <= view.end() => {
                self.complete(view, landed.end, landed.next, found);
                Flow::Go
            }
            (Search::None, None) if view.is_all => {
                self.end_of_file(view, found);
                Flow::Go
            }
            _ => Flow::Stop,
        }
    }

    /// Looks for a separator from `self.at` up to `end` and notes in `flags` what else it sees of `From `. `self.at` moves: to the
    /// place that wants more octets, or near the end.
    fn next_separator(&mut self, view: &View<'_>, end: u64, flags: &mut MessageFlags) -> Search {
        let bytes = view.bytes.get(..view.index(end)).unwrap_or_default();
        let from = view.index(self.at);
        for found in FROM.find_iter(bytes.get(from..).unwrap_or_default()) {
            let at = from + found;
            let before = bytes.get(..at).unwrap_or_default();
            let place = view.start + at as u64;
            match before.last() {
                None | Some(b'\n') => match view.judge(place) {
                    Verdict::Separator => return Search::Separator(place),
                    Verdict::More => {
                        self.at = place;
                        return Search::More;
                    }
                    Verdict::Text => flags.add(MessageFlags::UNQUOTED),
                },
                Some(b'>') => {
                    let marks = before.iter().rev().take(LOOK_BACK_BYTES - 1).take_while(|byte| **byte == b'>').count();
                    if before.iter().rev().take(LOOK_BACK_BYTES).nth(marks) == Some(&b'\n') {
                        flags.add(MessageFlags::QUOTED);
                        flags.add_if(MessageFlags::QUOTED_TWICE, marks > 1);
                    }
                }
                _ => {}
            }
        }
        // The last octets may be the beginning of the next one.
        self.at = self.at.max(end.saturating_sub(PREFIX.len() as u64 - 1));
        Search::None
    }

    /// The message ends, another begins at `next` or the file ends there.
    fn complete(&mut self, view: &View<'_>, end: u64, next: u64, found: &mut impl FnMut(Message)) {
        self.look_for_nul(view, next);
        let message = &mut self.message;
        (message.end, message.next) = (end, next);
        message.body = if message.body == 0 { end } else { message.body.min(end) };
        found(*message);
        self.is_behind_first = true;
        if view.is_all && next == view.end() {
            self.state = State::Done;
        } else {
            self.begin_message(view, next, MessageFlags::default());
        }
    }

    fn end_of_file(&mut self, view: &View<'_>, found: &mut impl FnMut(Message)) {
        let len = view.end();
        let is_ended = view.before(len).last() == Some(&b'\n');
        self.message.flags.add_if(MessageFlags::NO_LAST_NEWLINE, !is_ended);
        let end = len - blank_line(view.before(len), len - self.message.header);
        self.complete(view, end, len, found);
    }

    fn look_for_nul(&mut self, view: &View<'_>, to: u64) {
        if view.has_nul && self.nul_checked < to {
            let range = view.index(self.nul_checked)..view.index(to);
            let has_nul = view.bytes.get(range).is_some_and(|bytes| memchr::memchr(0, bytes).is_some());
            self.message.flags.add_if(MessageFlags::NUL, has_nul);
        }
        self.nul_checked = self.nul_checked.max(to.min(view.end()));
    }
}

enum Search {
    Separator(u64),
    More,
    None,
}

/// Octets of the empty line at the end of a message's content, which is `content` octets long: it belongs to the mbox.
fn blank_line(before: &[u8], content: u64) -> u64 {
    match before {
        [.., b'\n', b'\r', b'\n'] if content >= 3 => 2,
        [.., b'\n', b'\n'] if content >= 2 => 1,
        _ => 0,
    }
}

enum Claim {
    Octets(u64),
    /// Another field.
    Other,
    More,
}

/// Reads `Content-Length: 123` at the start of `line`. What is no number counts as one that leads nowhere.
fn content_length(line: &[u8], is_all: bool) -> Claim {
    const NAME: &[u8] = b"Content-Length";
    let line = line.get(..LENGTH_LINE_BYTES_MAX).unwrap_or(line);
    let (name, rest) = line.split_at_checked(NAME.len()).unwrap_or((line, &[]));
    if !NAME.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name)) {
        return Claim::Other;
    }
    let Some(end) = memchr::memchr(b'\n', rest) else {
        return if is_all || line.len() == LENGTH_LINE_BYTES_MAX { Claim::Other } else { Claim::More };
    };
    let Some(value) = rest.get(..end).and_then(|rest| rest.trim_ascii_start().strip_prefix(b":")) else {
        return Claim::Other;
    };
    let octets = std::str::from_utf8(value.trim_ascii()).ok().and_then(|text| text.parse().ok());
    Claim::Octets(octets.unwrap_or(u64::MAX))
}
