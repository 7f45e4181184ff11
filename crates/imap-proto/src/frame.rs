//! The stream of a client, cut into commands, before any grammar but that of literals (RFC 9051 §2.2.1 and §4.3, RFC 7888).
//!
//! A [`Framer`] takes octets in any cuts and gives the same [`Frame`]s whatever the cuts were. Literals are kept in memory with
//! their command, within limits, except those of messages (APPEND, REPLACE): their octets pass through and are never held.
//!
//! It never reads ahead: octets that do not belong to the frame stay with the caller. So whatever a command changes (TLS,
//! compression, a line that is no command) holds from the next octet on.
//!
//! Decided here: a bare LF ends a line as CRLF does (the common servers accept it, and no command can hold a LF outside a
//! literal, so nothing can be smuggled past it). `{n}` at the end of a line is a literal unless it stands inside a quoted
//! string, which no line end can.
//!
//! After an error the rest of the command is skipped: its line, the non-synchronising literals that the line announces, and
//! the lines behind those. A synchronising literal ends the skipping, since a client that has read NO or BAD does not send it.

use crate::command::{Tag, leads_to_message, tag_of};
use crate::limits;

/// The limits of a [`Framer`]; the defaults are those of [`crate::limits`]. A session may hold less before login.
#[derive(Clone, Copy, Debug)]
pub struct FrameLimits {
    /// Octets of a command outside its literals, line ends included; see [`limits::LINE_BYTES_MAX`].
    pub line_bytes_max: usize,
    /// Octets of all literals of a command that are kept in memory; see [`limits::LITERAL_MEMORY_BYTES_MAX`].
    pub literal_memory_bytes_max: usize,
    /// How many literals of a command are kept in memory; see [`limits::LITERALS_PER_COMMAND_MAX`].
    pub literals_per_command_max: usize,
    /// Largest non-synchronising literal: `None` under LITERAL+, [`limits::LITERAL_MINUS_BYTES_MAX`] under LITERAL-.
    pub non_synchronising_bytes_max: Option<u64>,
}

impl Default for FrameLimits {
    fn default() -> Self {
        FrameLimits {
            line_bytes_max: limits::LINE_BYTES_MAX,
            literal_memory_bytes_max: limits::LITERAL_MEMORY_BYTES_MAX,
            literals_per_command_max: limits::LITERALS_PER_COMMAND_MAX,
            non_synchronising_bytes_max: None,
        }
    }
}

/// The announcement of a literal at the end of a line: `{n}`, `{n+}`, `~{n}`, `~{n+}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiteralMark {
    /// Octets.
    pub size: u64,
    /// Whether the client waits for a continuation request.
    pub synchronising: bool,
    /// Whether it is a literal8.
    pub binary: bool,
}

/// What the stream says next; octets of messages are borrowed from the input, everything else from the framer.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'f, 'i> {
    /// A command with its literals in place, without its last line end.
    Command(&'f [u8]),
    /// The line that was asked for with [`Framer::expect_line`], without its line end.
    Line(&'f [u8]),
    /// A synchronising literal that will be kept in memory: a continuation request is due.
    Continue,
    /// A message's literal begins. If it is synchronising, a continuation request or [`Framer::refuse`] is due.
    Message {
        /// What stands before the literal's mark: from the tag on for the first message of a command, from the end of the
        /// literal before for others.
        head: &'f [u8],
        /// The literal.
        mark: LiteralMark,
    },
    /// Octets of a message.
    Chunk(&'i [u8]),
    /// The message's literal is complete.
    MessageEnd,
    /// The line end of a command with messages; what stands between the last literal and it.
    CommandEnd(&'f [u8]),
    /// Something is over a limit; the rest of the command is being skipped.
    Error {
        /// The command's tag, when it could be read. `None` too behind a message, where the caller has it already.
        tag: Option<Tag>,
        /// What is wrong.
        error: FrameError,
    },
}

/// What a framer refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// `line_bytes_max`
    LineTooLong,
    /// `literal_memory_bytes_max`: a literal that is no message's, with its size.
    LiteralTooLarge(u64),
    /// `literals_per_command_max`
    TooManyLiterals,
    /// `literal_minus_bytes_max`: a non-synchronising literal larger than LITERAL- allows, with its size.
    NonSynchronisingTooLarge {
        /// Octets.
        size: u64,
        /// Whether it is a message: the answer must carry TOOBIG then (RFC 7888 §5).
        message: bool,
    },
    /// A size over 63 bits. If the literal is non-synchronising, nothing behind it can be told apart: the connection must end.
    LiteralSize {
        /// Whether that is so.
        fatal: bool,
    },
}

impl FrameError {
    /// The name of the limit that was met.
    pub fn limit(self) -> &'static str {
        match self {
            FrameError::LineTooLong => "line_bytes_max",
            FrameError::LiteralTooLarge(_) => "literal_memory_bytes_max",
            FrameError::TooManyLiterals => "literals_per_command_max",
            FrameError::NonSynchronisingTooLarge { .. } => "literal_minus_bytes_max",
            FrameError::LiteralSize { .. } => "number64_max",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a line.
    Line,
    /// In a literal that is kept.
    Literal { left: usize },
    /// In a message's literal.
    Message { left: u64 },
    /// In a line of a command that is given up.
    SkipLine,
    /// In a literal of a command that is given up.
    SkipLiteral { left: u64 },
    /// Nothing can be read any more.
    Lost,
}

/// Cuts a client's stream into frames.
#[derive(Debug)]
pub struct Framer {
    limits: FrameLimits,
    state: State,
    /// The command so far, or the part of it since its last message; the line's last octets while skipping.
    buffer: Vec<u8>,
    /// The buffer was given out and is cleared before anything else goes in.
    given_out: bool,
    /// Where the current line begins in the buffer.
    line_start: usize,
    line_bytes: usize,
    literal_bytes: usize,
    literals: usize,
    /// A message of this command has begun: whatever literal follows is another.
    in_messages: bool,
    line_expected: bool,
}

/// What the buffer may keep between commands.
const IDLE_BUFFER_BYTES: usize = 1024;
/// Enough of a line's end to recognise any literal whose size fits: `~{` 19 digits, leading zeros aside, `+}` CR.
const SKIPPED_TAIL_BYTES: usize = 64;

impl Framer {
    /// A framer at the start of a stream.
    pub fn new(limits: FrameLimits) -> Self {
        Framer {
            limits,
            state: State::Line,
            buffer: Vec::new(),
            given_out: false,
            line_start: 0,
            line_bytes: 0,
            literal_bytes: 0,
            literals: 0,
            in_messages: false,
            line_expected: false,
        }
    }

    /// Other limits from here on.
    pub fn set_limits(&mut self, limits: FrameLimits) {
        self.limits = limits;
    }

    /// The next line is no command: a response to an AUTHENTICATE challenge, or what ends IDLE. To be called between frames,
    /// at the start of a line.
    pub fn expect_line(&mut self) {
        self.line_expected = true;
    }

    /// Gives up the command of the last frame: to be called after [`Frame::Message`] up to [`Frame::CommandEnd`]. Of a message
    /// whose continuation request was not sent, nothing will come; pass its mark as `unsent`.
    pub fn refuse(&mut self, unsent: Option<LiteralMark>) {
        let waits = unsent.is_some_and(|mark| mark.synchronising);
        match self.state {
            State::Message { .. } if waits => self.start_command(),
            State::Message { left } => self.state = State::SkipLiteral { left },
            State::Line if self.in_messages => self.skip_line(),
            _ => {}
        }
    }

    /// Whether a command has begun: octets were taken for it and it is not complete.
    pub fn is_inside(&self) -> bool {
        self.state != State::Line || self.in_messages || (!self.given_out && !self.buffer.is_empty())
    }

    /// The next frame, taking from `input` what it needs. `None` when all of `input` is taken and more is needed.
    pub fn next<'f, 'i>(&'f mut self, input: &mut &'i [u8]) -> Option<Frame<'f, 'i>> {
        if self.given_out {
            self.clear_buffer();
        }
        loop {
            match self.state {
                State::Line => match self.line(input)? {
                    // Another literal: go on behind it.
                    None => {}
                    Some(Step::Continue) => return Some(Frame::Continue),
                    Some(Step::Command) => {
                        self.start_command();
                        self.given_out = true;
                        return Some(Frame::Command(without_line_end(&self.buffer)));
                    }
                    Some(Step::Line) => {
                        self.start_command();
                        self.given_out = true;
                        return Some(Frame::Line(without_line_end(&self.buffer)));
                    }
                    Some(Step::CommandEnd) => {
                        self.start_command();
                        self.given_out = true;
                        return Some(Frame::CommandEnd(without_line_end(&self.buffer)));
                    }
                    Some(Step::Message { head, mark }) => {
                        self.given_out = true;
                        return Some(Frame::Message { head: self.buffer.get(..head).unwrap_or_default(), mark });
                    }
                    Some(Step::Error { tag, error }) => return Some(Frame::Error { tag, error }),
                },
                State::Literal { left: 0 } => self.state = State::Line,
                State::Literal { left } => {
                    let taken = take(input, left as u64)?;
                    self.buffer.extend_from_slice(taken);
                    self.line_start = self.buffer.len();
                    self.state = State::Literal { left: left.saturating_sub(taken.len()) };
                }
                State::Message { left: 0 } => {
                    self.state = State::Line;
                    self.line_start = 0;
                    self.line_bytes = 0;
                    return Some(Frame::MessageEnd);
                }
                State::Message { left } => {
                    let taken = take(input, left)?;
                    self.state = State::Message { left: left.saturating_sub(taken.len() as u64) };
                    return Some(Frame::Chunk(taken));
                }
                State::SkipLine => self.skip(input)?,
                State::SkipLiteral { left: 0 } => self.state = State::SkipLine,
                State::SkipLiteral { left } => {
                    let taken = take(input, left)?;
                    self.state = State::SkipLiteral { left: left.saturating_sub(taken.len() as u64) };
                }
                State::Lost => {
                    *input = &[];
                    return None;
                }
            }
        }
    }

    /// Reads on in a line. The outer `None` asks for more input, the inner one says that the line led into a literal.
    fn line(&mut self, input: &mut &[u8]) -> Option<Option<Step>> {
        let room = self.limits.line_bytes_max.saturating_sub(self.line_bytes);
        let window = input.get(..room.min(input.len())).unwrap_or_default();
        let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
            self.buffer.extend_from_slice(window);
            self.line_bytes += window.len();
            *input = input.get(window.len()..).unwrap_or_default();
            if self.line_bytes >= self.limits.line_bytes_max {
                let step = self.error(FrameError::LineTooLong);
                self.skip_line();
                return Some(Some(step));
            }
            return None;
        };
        let (line, rest) = input.split_at(end + 1);
        self.buffer.extend_from_slice(line);
        self.line_bytes += line.len();
        *input = rest;
        if self.line_expected {
            return Some(Some(Step::Line));
        }
        let line = self.buffer.get(self.line_start..).unwrap_or_default();
        match literal_mark(line) {
            Some((start, mark)) if !ends_in_quotes(line.get(..start).unwrap_or_default()) => {
                Some(self.announced(self.line_start + start, mark))
            }
            _ if self.in_messages => Some(Some(Step::CommandEnd)),
            _ => Some(Some(Step::Command)),
        }
    }

    /// A literal is announced; its mark begins at `head` in the buffer. `mark` is an error when the size is too large to say.
    fn announced(&mut self, head: usize, mark: Result<LiteralMark, bool>) -> Option<Step> {
        let mark = match mark {
            Ok(mark) => mark,
            Err(synchronising) => {
                let step = self.error(FrameError::LiteralSize { fatal: !synchronising });
                self.start_command();
                self.buffer.clear();
                if !synchronising {
                    self.state = State::Lost;
                }
                return Some(step);
            }
        };
        let message = self.in_messages || leads_to_message(self.buffer.get(..head).unwrap_or_default());
        let too_large_unasked = self.limits.non_synchronising_bytes_max.is_some_and(|max| mark.size > max);
        let room = self.limits.literal_memory_bytes_max.saturating_sub(self.literal_bytes);
        let size = usize::try_from(mark.size).ok().filter(|size| *size <= room);
        let error = if !mark.synchronising && too_large_unasked {
            FrameError::NonSynchronisingTooLarge { size: mark.size, message }
        } else if message {
            self.in_messages = true;
            self.state = State::Message { left: mark.size };
            return Some(Step::Message { head, mark });
        } else if self.literals >= self.limits.literals_per_command_max {
            FrameError::TooManyLiterals
        } else if let Some(size) = size {
            self.literals += 1;
            self.literal_bytes += size;
            self.state = State::Literal { left: size };
            self.line_start = self.buffer.len();
            return mark.synchronising.then_some(Step::Continue);
        } else {
            FrameError::LiteralTooLarge(mark.size)
        };
        let step = self.error(error);
        self.start_command();
        self.buffer.clear();
        if !mark.synchronising {
            self.state = State::SkipLiteral { left: mark.size };
        }
        Some(step)
    }

    fn error(&self, error: FrameError) -> Step {
        let is_command = !self.in_messages && !self.line_expected;
        Step::Error { tag: if is_command { tag_of(&self.buffer) } else { None }, error }
    }

    /// The state at the start of a command; the buffer is left for a frame that still shows it.
    fn start_command(&mut self) {
        self.state = State::Line;
        self.line_start = 0;
        self.line_bytes = 0;
        self.literal_bytes = 0;
        self.literals = 0;
        self.in_messages = false;
        self.line_expected = false;
    }

    /// Gives up the rest of the command, in a line.
    fn skip_line(&mut self) {
        let line_was_expected = self.line_expected;
        self.start_command();
        self.state = State::SkipLine;
        // A line that is no command announces no literal: it stays expected to be one until its end.
        self.line_expected = line_was_expected;
        self.keep_tail();
    }

    /// Makes room for the next command; an idle session keeps no more than an ordinary command needs.
    fn clear_buffer(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(IDLE_BUFFER_BYTES);
        self.given_out = false;
    }

    fn keep_tail(&mut self) {
        if self.given_out {
            self.clear_buffer();
        }
        let surplus = self.buffer.len().saturating_sub(SKIPPED_TAIL_BYTES);
        self.buffer.drain(..surplus);
    }

    /// Skips on in a line; `None` asks for more input.
    fn skip(&mut self, input: &mut &[u8]) -> Option<()> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let (line, rest) = input.split_at(end.map_or(input.len(), |end| end + 1));
        self.buffer.extend_from_slice(line.get(line.len().saturating_sub(SKIPPED_TAIL_BYTES)..).unwrap_or_default());
        self.keep_tail();
        *input = rest;
        end?;
        let mark = literal_mark(&self.buffer).filter(|_| !self.line_expected);
        self.start_command();
        self.buffer.clear();
        match mark {
            Some((_, Ok(LiteralMark { size, synchronising: false, .. }))) => {
                self.state = State::SkipLiteral { left: size };
            }
            Some((_, Err(false))) => self.state = State::Lost,
            _ => {}
        }
        Some(())
    }
}

/// A frame without the bytes that it borrows.
enum Step {
    Command,
    Line,
    Continue,
    CommandEnd,
    Message { head: usize, mark: LiteralMark },
    Error { tag: Option<Tag>, error: FrameError },
}

/// Takes at most `left` octets, `None` when there are none.
fn take<'a>(input: &mut &'a [u8], left: u64) -> Option<&'a [u8]> {
    let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
    let (taken, rest) = input.split_at(count);
    *input = rest;
    if taken.is_empty() { None } else { Some(taken) }
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Where the literal's mark begins that a line ends with, and what it says; `Err` when its size is over 63 bits, with whether
/// it is synchronising.
pub(crate) fn literal_mark(line: &[u8]) -> Option<(usize, Result<LiteralMark, bool>)> {
    let line = without_line_end(line).strip_suffix(b"}")?;
    let (line, synchronising) = match line.strip_suffix(b"+") {
        Some(line) => (line, false),
        None => (line, true),
    };
    let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (line, digits) = line.split_at_checked(line.len().checked_sub(digits)?)?;
    let line = line.strip_suffix(b"{")?;
    if digits.is_empty() {
        return None;
    }
    let (start, binary) = match line.strip_suffix(b"~") {
        Some(line) => (line.len(), true),
        None => (line.len(), false),
    };
    let size = digits
        .iter()
        .try_fold(0u64, |size, digit| size.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0'))));
    let mark = match size {
        Some(size) if size <= limits::NUMBER64_MAX => Ok(LiteralMark { size, synchronising, binary }),
        _ => Err(synchronising),
    };
    Some((start, mark))
}

/// Whether `line` ends inside a quoted string.
fn ends_in_quotes(line: &[u8]) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    for &byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
    }
    quoted
}
