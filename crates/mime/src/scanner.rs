//! The streaming structure scanner (RFC 2046 §5.1, §5.2; RFC 5322 §2.1).
//!
//! It is driven by lines but does not hold them: in a body it looks only for line starts that may be
//! delimiters, and keeps of a line that was cut no more than a delimiter is long. A header block is kept up to a
//! limit until it ends. Open parts form an explicit stack.
//!
//! Rules where mail is not what the standard says:
//! * a delimiter is recognised at the start of any line, also inside a header, by its beginning: "it is sufficient
//!   that the boundary appear in its entirety following the CRLF" (RFC 2046 §5.1.2). If several open boundaries
//!   match, the longest wins, then the innermost;
//! * the delimiter of an outer multipart ends everything inside, closed or not;
//! * a header ends with an empty line, a delimiter, or the message; a line that is no field does not end it;
//! * a delimiter that the message ends with begins no part;
//! * a multipart without a boundary parameter is text/plain (RFC 2045 §5.2), one in which the boundary does not
//!   appear has one text/plain part with its whole body;
//! * message/rfc822 and multipart are read as they stand, even if they claim an encoding (RFC 2045 §6.4);
//! * a composite part beyond the limits on depth and number is an application/octet-stream leaf.

use crate::part_header::{DefaultType, make_opaque, make_text, parse_header, plain_text_part};
use crate::structure::Message;
use crate::{Content, Defect, DefectKind, Encoding, Envelope, HeaderBlock, Limits, Part, Structure};
use memchr::{memchr, memchr_iter, memmem};

/// Longest boundary that is looked for; RFC 2046 §5.1.1 allows 70.
pub(crate) const BOUNDARY_BYTES_MAX: usize = 1000;

/// No structure is deeper than this, whatever the limits say: readers of it recurse.
pub(crate) const DEPTH_MAX: usize = 250;

/// Input is taken in pieces of this size, so that the two passes over a body find it in the cache.
const PIECE_BYTES: usize = 32 * 1024;

/// What is kept of a line: as much as decides whether it is a delimiter.
const HELD_BYTES_MAX: usize = BOUNDARY_BYTES_MAX + 4;

/// Reads a message once, in any cut, and finds its structure. Memory is bounded by the limits, not by
/// the message.
#[derive(Debug)]
pub struct Scanner {
    limits: Limits,
    defects: Vec<Defect>,
    place: Place,
    /// Octets before the current line; in [`Place::BodyLine`], octets taken.
    offset: u64,
    /// Line ends among these.
    lines: u64,
    /// Octets of the last of these line ends, if it stands right before `offset` at the start of a line.
    line_end_len: u64,
    /// The last octet taken was a CR.
    after_cr: bool,
    /// The current line as far as it was taken, at most [`HELD_BYTES_MAX`] of it. Not used in
    /// [`Place::BodyLine`].
    held: Vec<u8>,
    /// Octets of that line that were taken but not held.
    held_more: u64,
    header: OpenHeader,
    /// Open parts, the outermost first.
    stack: Vec<OpenPart>,
    /// Boundaries of open multiparts that have not ended: index in `stack`, boundary. The innermost is last.
    boundaries: Vec<(usize, Vec<u8>)>,
    parts_count: usize,
    header_bytes_left: usize,
    addresses_left: usize,
    finder: memmem::Finder<'static>,
}

/// What the next octet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A line of a header.
    Header,
    /// The start of a line of a body, of which less than two octets are known.
    LineStart,
    /// A line of a body that begins with `--`.
    Candidate,
    /// A line of a body that is no delimiter.
    BodyLine,
}

/// The header block that is being read.
#[derive(Debug)]
struct OpenHeader {
    start: u64,
    octets: Vec<u8>,
    /// Length of `octets` at the start of the current line.
    line_start: usize,
    /// Octets did not fit.
    is_cut: bool,
    default: DefaultType,
    /// The header of a message, not of a body part.
    is_message: bool,
}

/// A part whose end was not seen yet.
#[derive(Debug)]
struct OpenPart {
    part: Part,
    /// Line ends before its body.
    lines_before: u64,
    /// Of the root of a message.
    envelope: Option<Envelope>,
    inside: Inside,
}

#[derive(Debug)]
enum Inside {
    Leaf,
    Multipart { children: Vec<Part>, is_closed: bool },
    Message(Option<Box<Message>>),
}

/// A line that is a delimiter: of the multipart at this index of the stack, and whether it is the last.
struct Delimiter {
    index: usize,
    closes: bool,
}

impl Scanner {
    /// A scanner with the default limits.
    pub fn new() -> Self {
        Scanner::with_limits(Limits::default())
    }

    /// A scanner with limits of one's own.
    pub fn with_limits(limits: Limits) -> Self {
        Scanner {
            defects: Vec::new(),
            place: Place::Header,
            offset: 0,
            lines: 0,
            line_end_len: 0,
            after_cr: false,
            held: Vec::new(),
            held_more: 0,
            header: OpenHeader::new(0, DefaultType::Text, true),
            stack: Vec::new(),
            boundaries: Vec::new(),
            parts_count: 1,
            header_bytes_left: limits.header_bytes_total_max,
            addresses_left: limits.addresses_max,
            finder: memmem::Finder::new(b"\n--"),
            limits,
        }
    }

    /// Takes the next octets of the message.
    pub fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE_BYTES) {
            let mut rest = piece;
            while !rest.is_empty() {
                let taken = match self.place {
                    Place::Header | Place::Candidate => self.line_octets(rest),
                    Place::LineStart => self.line_start_octets(rest),
                    Place::BodyLine => self.body_octets(rest),
                };
                rest = rest.get(taken..).unwrap_or_default();
            }
        }
    }

    /// The message ends.
    pub fn finish(mut self) -> (Structure, Vec<Defect>) {
        if !self.held.is_empty() {
            self.end_line(0);
        }
        // A header without an empty line; then perhaps the header of the message that it announced.
        while self.place == Place::Header {
            // A delimiter at the very end announces a part that never came.
            if !self.header.is_message && self.offset == self.header.start {
                break;
            }
            self.report(DefectKind::HeaderWithoutEnd, self.header.start);
            self.end_header();
        }
        let (end, lines) = (self.offset, self.lines);
        loop {
            if let Some(message) = self.close(end, lines) {
                self.defects.sort_by_key(|defect| defect.offset);
                return (Structure { message }, self.defects);
            }
        }
    }

    /// Octets of a header line or of a line that may be a delimiter. Returns how many were taken.
    fn line_octets(&mut self, input: &[u8]) -> usize {
        let end = memchr(b'\n', input);
        let line = input.get(..end.map_or(input.len(), |at| at + 1)).unwrap_or(input);
        let space = HELD_BYTES_MAX.saturating_sub(self.held.len()).min(line.len());
        self.held.extend_from_slice(line.get(..space).unwrap_or_default());
        self.held_more += (line.len() - space) as u64;
        if self.place == Place::Header {
            let octets_max = self.limits.header_bytes_max.min(self.header_bytes_left);
            self.header.take(line, octets_max);
        }
        let end_len = self.line_end_at_end(line);
        if end_len > 0 {
            self.end_line(end_len);
        }
        line.len()
    }

    /// Octets of the line end with which `octets`, just taken, end; 0 if they do not. Keeps `after_cr`.
    fn line_end_at_end(&mut self, octets: &[u8]) -> u64 {
        let after_cr = std::mem::replace(&mut self.after_cr, octets.last() == Some(&b'\r'));
        match octets {
            [.., b'\r', b'\n'] => 2,
            [b'\n'] => 1 + u64::from(after_cr),
            [.., b'\n'] => 1,
            _ => 0,
        }
    }

    /// The first two octets of a line decide whether it may be a delimiter.
    fn line_start_octets(&mut self, input: &[u8]) -> usize {
        match (self.held.as_slice(), input) {
            _ if self.boundaries.is_empty() => {}
            ([], [b'-', b'-', ..]) | ([b'-'], [b'-', ..]) => {
                self.place = Place::Candidate;
                return 0;
            }
            ([], [b'-']) => {
                self.held.push(b'-');
                self.after_cr = false;
                return 1;
            }
            _ => {}
        }
        self.offset += self.held.len() as u64;
        self.held.clear();
        self.place = Place::BodyLine;
        0
    }

    /// Octets of a body, up to the next line that may be a delimiter.
    fn body_octets(&mut self, input: &[u8]) -> usize {
        let found = if self.boundaries.is_empty() { None } else { self.finder.find(input) };
        let (length, at_line_start) = match found {
            Some(at) => (at + 1, true),
            None => match input {
                _ if self.boundaries.is_empty() => (input.len(), false),
                [.., b'\n', b'-'] => (input.len() - 1, true),
                [.., b'\n'] => (input.len(), true),
                _ => (input.len(), false),
            },
        };
        let taken = input.get(..length).unwrap_or(input);
        self.offset += taken.len() as u64;
        self.lines += memchr_iter(b'\n', taken).count() as u64;
        self.line_end_len = self.line_end_at_end(taken);
        if at_line_start {
            self.place = Place::LineStart;
        }
        taken.len()
    }

    /// A line of a header, or one of a body that may be a delimiter, was taken; `end_len` octets of it are its
    /// line end.
    fn end_line(&mut self, end_len: u64) {
        let held = std::mem::take(&mut self.held);
        let length = held.len() as u64 + std::mem::take(&mut self.held_more);
        let delimiter = self.delimiter(&held);
        if let Some(Delimiter { index, closes }) = delimiter {
            self.end_parts_before(index);
            self.pass_line(length, end_len);
            self.begin_after_delimiter(index, closes);
        } else {
            self.pass_line(length, end_len);
            match self.place {
                Place::Header if length == end_len => self.end_header(),
                Place::Header => self.header.line_start = self.header.octets.len(),
                Place::LineStart | Place::Candidate | Place::BodyLine => self.place = Place::LineStart,
            }
        }
    }

    fn pass_line(&mut self, length: u64, end_len: u64) {
        self.offset += length;
        self.lines += u64::from(end_len > 0);
        self.line_end_len = end_len;
    }

    /// Whether a line, of which `line` is the beginning, is the delimiter of an open multipart
    /// (RFC 2046 §5.1.1: `dash-boundary := "--" boundary`, `close-delimiter := delimiter "--"`).
    fn delimiter(&mut self, line: &[u8]) -> Option<Delimiter> {
        let text = line.strip_prefix(b"--")?;
        let matching = self.boundaries.iter().filter(|(_, boundary)| text.starts_with(boundary));
        // The last of equals is the innermost.
        let (index, boundary) = matching.max_by_key(|(_, boundary)| boundary.len())?;
        let closes = text.get(boundary.len()..).is_some_and(|rest| rest.starts_with(b"--"));
        if !closes && self.parts_count >= self.limits.parts_max {
            // The part that is open takes the rest of the message.
            self.boundaries.clear();
            self.report(DefectKind::TooManyParts, self.offset);
            return None;
        }
        Some(Delimiter { index: *index, closes })
    }

    /// A delimiter of the multipart at `index` begins at `offset`: everything inside ends.
    fn end_parts_before(&mut self, index: usize) {
        if self.place == Place::Header {
            self.header.octets.truncate(self.header.line_start);
        }
        while self.place == Place::Header {
            self.report(DefectKind::HeaderWithoutEnd, self.header.start);
            self.end_header();
        }
        // RFC 2046 §5.1.1: the line end before a delimiter belongs to it.
        let end = self.offset - self.line_end_len.min(self.offset);
        let lines = self.lines - u64::from(self.line_end_len > 0).min(self.lines);
        while self.stack.len() > index + 1 {
            self.close(end, lines);
        }
    }

    /// After a delimiter line of the multipart at `index`, now the innermost open part.
    fn begin_after_delimiter(&mut self, index: usize, closes: bool) {
        self.place = Place::LineStart;
        if closes {
            self.boundaries.retain(|(of, _)| *of != index);
        }
        let Some(OpenPart { part, inside: Inside::Multipart { is_closed, .. }, .. }) = self.stack.last_mut() else {
            return;
        };
        *is_closed |= closes;
        if !closes {
            let is_digest = part.media_subtype == b"DIGEST";
            let default = if is_digest { DefaultType::Message } else { DefaultType::Text };
            self.begin_header(default, false);
        }
    }

    fn begin_header(&mut self, default: DefaultType, is_message: bool) {
        self.parts_count += 1;
        self.header = OpenHeader::new(self.offset, default, is_message);
        self.place = Place::Header;
    }

    /// The header block ends at `offset`: its part begins.
    fn end_header(&mut self) {
        let default = self.header.default;
        let mut header = std::mem::replace(&mut self.header, OpenHeader::new(0, default, false));
        if header.is_cut {
            self.report(DefectKind::HeaderTooLong, header.start);
            // The last field may have lost its end.
            let last = HeaderBlock::new(&header.octets).items().last();
            header.octets.truncate(last.map_or(0, |item| item.offset()));
        }
        self.header_bytes_left = self.header_bytes_left.saturating_sub(header.octets.len());
        let addresses_left = header.is_message.then_some(&mut self.addresses_left);
        let parsed = parse_header(&header.octets, default, &self.limits, addresses_left);
        for (kind, offset) in parsed.defects {
            self.report(kind, header.start + offset as u64);
        }
        let mut part = parsed.part;
        part.header = header.start..self.offset;
        part.body = self.offset..self.offset;
        self.place = Place::LineStart;
        let inside = self.inside(&mut part);
        let opens_message = matches!(inside, Inside::Message(_));
        let envelope = header.is_message.then_some(parsed.envelope);
        self.stack.push(OpenPart { part, lines_before: self.lines, envelope, inside });
        if opens_message {
            self.begin_header(DefaultType::Text, true);
        }
    }

    /// What to expect inside `part`, which is about to be opened.
    fn inside(&mut self, part: &mut Part) -> Inside {
        let start = part.header.start;
        let is_multipart = part.media_type == b"MULTIPART";
        // RFC 2046 §5.2.1, RFC 6532 §3.7.
        let is_message =
            part.media_type == b"MESSAGE" && matches!(part.media_subtype.as_slice(), b"RFC822" | b"GLOBAL");
        if !is_multipart && !is_message {
            return Inside::Leaf;
        }
        if part.transfer_encoding() != Encoding::Identity {
            self.report(DefectKind::EncodedComposite, start);
        }
        let too_deep = self.stack.len() >= self.limits.depth_max.min(DEPTH_MAX);
        let too_many = is_message && self.parts_count >= self.limits.parts_max;
        if too_deep || too_many {
            self.report(if too_deep { DefectKind::TooDeep } else { DefectKind::TooManyParts }, start);
            make_opaque(part);
            return Inside::Leaf;
        }
        if is_message {
            return Inside::Message(None);
        }
        let boundary = part.parameters.iter().find(|parameter| parameter.name.eq_ignore_ascii_case(b"boundary"));
        let boundary = boundary.map(|parameter| parameter.value.trim_ascii_end().to_vec());
        match boundary.filter(|boundary| !boundary.is_empty() && boundary.len() <= BOUNDARY_BYTES_MAX) {
            Some(boundary) => {
                self.boundaries.push((self.stack.len(), boundary));
                Inside::Multipart { children: Vec::new(), is_closed: false }
            }
            None => {
                self.report(DefectKind::MultipartWithoutBoundary, start);
                make_text(part);
                Inside::Leaf
            }
        }
    }

    /// The innermost open part ends at `end`, with `lines` line ends before; the outermost message if that was
    /// it.
    fn close(&mut self, end: u64, lines: u64) -> Option<Message> {
        let OpenPart { mut part, lines_before, envelope, inside } = self.stack.pop()?;
        self.boundaries.retain(|(index, _)| *index < self.stack.len());
        // The line end that a delimiter claims may be the one that ended a header, of this part or of the last
        // one inside: then the part is empty, or ends with that one.
        let inner_end = match &inside {
            Inside::Leaf => None,
            Inside::Multipart { children, .. } => children.last().map(|child| child.body.end),
            Inside::Message(root) => root.as_ref().map(|message| message.root.body.end),
        };
        let end_min = inner_end.unwrap_or(part.body.start).max(part.body.start);
        let (end, lines) = if end < end_min { (end_min, self.lines) } else { (end, lines) };
        part.body.end = end;
        part.body_lines = lines.saturating_sub(lines_before);
        part.content = match inside {
            Inside::Leaf => Content::Leaf,
            Inside::Multipart { mut children, is_closed } => {
                if children.is_empty() {
                    self.report(DefectKind::MultipartWithoutParts, part.body.start);
                    let mut child = plain_text_part();
                    child.header = part.body.start..part.body.start;
                    child.body = part.body.clone();
                    child.body_lines = part.body_lines;
                    children.push(child);
                } else if !is_closed {
                    self.report(DefectKind::MultipartWithoutEnd, end);
                }
                Content::Multipart(children)
            }
            Inside::Message(Some(message)) => Content::Message(message),
            Inside::Message(None) => {
                make_opaque(&mut part);
                Content::Leaf
            }
        };
        let parent = self.stack.last_mut().map(|open| &mut open.inside);
        match (envelope, parent) {
            (Some(envelope), None) => {
                return Some(Message { envelope, root: part });
            }
            (Some(envelope), Some(Inside::Message(root))) => *root = Some(Box::new(Message { envelope, root: part })),
            (_, Some(Inside::Multipart { children, .. })) => children.push(part),
            // No part is opened inside a leaf, and a message has one root.
            _ => debug_assert!(false, "a part closes inside what cannot have it"),
        }
        None
    }

    fn report(&mut self, kind: DefectKind, offset: u64) {
        if self.defects.len() < self.limits.defects_max {
            self.defects.push(Defect { kind, offset });
        }
    }
}

impl OpenHeader {
    fn new(start: u64, default: DefaultType, is_message: bool) -> Self {
        OpenHeader { start, octets: Vec::new(), line_start: 0, is_cut: false, default, is_message }
    }

    /// Keeps octets, `octets_max` of them in all.
    fn take(&mut self, octets: &[u8], octets_max: usize) {
        let space = octets_max.saturating_sub(self.octets.len());
        self.is_cut |= octets.len() > space;
        self.octets.extend_from_slice(octets.get(..space).unwrap_or(octets));
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Scanner::new()
    }
}

/// The structure of a message that is at hand whole.
pub fn scan(message: &[u8]) -> (Structure, Vec<Defect>) {
    let mut scanner = Scanner::new();
    scanner.push(message);
    scanner.finish()
}

#[cfg(test)]
#[path = "scanner_tests.rs"]
mod tests;
