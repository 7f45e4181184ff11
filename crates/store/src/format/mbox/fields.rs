//! Hiding the fields in which programs keep what they know of a message ([`MetaName`]): clients are served a message without them, and they do
//! not count for what message it is.
//!
//! Invariant: what is kept depends on the octets alone, not on how they were cut.

use super::meta::{LineStart, MetaName, NAME_BYTES_MAX};
use crate::format::served::{Form, Normaliser};

/// Appends to `out` the header that IMAP serves for `raw`, a message's octets in the file from behind its `From ` line to behind the empty line that
/// ends its header: without the fields of [`MetaName`], in `form`. If no empty line ends it, one is added: many programs do that when they write the
/// message anew, and it is to stay the same message.
pub fn served_header(raw: &[u8], form: Form, out: &mut Vec<u8>) {
    let mut normaliser = Normaliser::new(form);
    let mut filter = Filter::new();
    let mut keep = |part: Part<'_>| {
        if let Part::Kept(octets) = part {
            normaliser.push(octets, out);
        }
    };
    filter.push(raw, &mut keep);
    filter.end_header(&mut keep);
    normaliser.finish(out);
}

/// Octets of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// They are served.
    Kept(&'a [u8]),
    /// They are of a field of this name.
    Dropped(MetaName, &'a [u8]),
}

/// Drops the lines of the fields of [`MetaName`] from a message that comes in any pieces, and finds where its header ends.
#[derive(Debug)]
pub(super) struct Filter {
    state: State,
    /// The field, if it is one that is dropped: lines that continue it go the same way.
    dropped: Option<MetaName>,
    /// What was kept ends in the middle of a line.
    is_mid_line: bool,
    /// The beginning of a line, while it is not known what it is.
    held: [u8; NAME_BYTES_MAX],
    held_len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the beginning of a line, or behind what is held of one.
    LineStart,
    /// Inside a line.
    Line,
    Body,
}

impl Filter {
    /// At the start of a message.
    pub(super) fn new() -> Self {
        Filter { state: State::LineStart, dropped: None, is_mid_line: false, held: [0; NAME_BYTES_MAX], held_len: 0 }
    }

    /// Takes the next octets and gives them back in their order, each as kept or dropped, until the header has ended with its empty
    /// line. Returns what is left: the beginning of the body.
    pub(super) fn push<'a>(&mut self, mut input: &'a [u8], take: &mut impl FnMut(Part<'_>)) -> &'a [u8] {
        while !input.is_empty() {
            input = match self.state {
                State::Body => return input,
                State::LineStart => self.line_start(input, take),
                State::Line => self.line(input, take),
            };
        }
        input
    }

    /// Whether the header has ended.
    pub(super) fn is_in_body(&self) -> bool {
        self.state == State::Body
    }

    /// The message ends.
    pub(super) fn finish(&mut self, take: &mut impl FnMut(Part<'_>)) {
        // It would have begun a field of these, had it had a colon; or is a CR alone.
        take(Part::Kept(self.held.get(..self.held_len).unwrap_or_default()));
        self.held_len = 0;
    }

    /// The message ends; if its header has not ended yet, it does so with an empty line.
    pub(super) fn end_header(&mut self, take: &mut impl FnMut(Part<'_>)) {
        let is_mid_line = self.is_mid_line || self.held_len > 0;
        // That would be the empty line, had it its LF.
        let is_lone_cr = !self.is_mid_line && self.held.get(..self.held_len) == Some(b"\r");
        self.finish(take);
        if !self.is_in_body() {
            if is_mid_line && !is_lone_cr {
                take(Part::Kept(b"\n"));
            }
            take(Part::Kept(b"\n"));
        }
    }

    /// Inside of a line: up to its end.
    fn line<'a>(&mut self, input: &'a [u8], take: &mut impl FnMut(Part<'_>)) -> &'a [u8] {
        let end = memchr::memchr(b'\n', input).map(|at| at + 1);
        let (line, rest) = input.split_at(end.unwrap_or(input.len()));
        take(match self.dropped {
            Some(name) => Part::Dropped(name, line),
            None => Part::Kept(line),
        });
        self.is_mid_line = end.is_none() && self.dropped.is_none();
        if end.is_some() {
            self.state = State::LineStart;
        }
        rest
    }

    /// Decides what becomes of a line.
    fn line_start<'a>(&mut self, input: &'a [u8], take: &mut impl FnMut(Part<'_>)) -> &'a [u8] {
        if self.held_len == 0 {
            match judge(input) {
                Fate::More => {}
                fate => return self.decide(fate, input, take),
            }
        }
        // Octets are held one by one: that happens at the edges of pieces only, and as far as the line is not decided.
        let mut rest = input;
        while let Some((byte, after)) = rest.split_first()
            && let Some(place) = self.held.get_mut(self.held_len)
        {
            *place = *byte;
            self.held_len += 1;
            rest = after;
            let (held, len) = (self.held, self.held_len);
            let held = held.get(..len).unwrap_or_default();
            match judge(held) {
                Fate::More => {}
                fate => {
                    self.held_len = 0;
                    self.decide(fate, held, take);
                    return rest;
                }
            }
        }
        rest
    }

    /// Enters the line that `bytes` begin, of which at least the first octet is there.
    fn decide<'a>(&mut self, fate: Fate, bytes: &'a [u8], take: &mut impl FnMut(Part<'_>)) -> &'a [u8] {
        self.state = State::Line;
        match fate {
            Fate::End(len) => {
                let (end, body) = bytes.split_at_checked(len).unwrap_or((bytes, &[]));
                take(Part::Kept(end));
                self.state = State::Body;
                return body;
            }
            Fate::Meta(name) => self.dropped = Some(name),
            Fate::Other => self.dropped = None,
            Fate::Continues | Fate::More => {}
        }
        self.line(bytes, take)
    }
}

/// What a line of a header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The empty line, of so many octets.
    End(usize),
    /// It belongs to the field above.
    Continues,
    Meta(MetaName),
    Other,
    More,
}

/// What the line is that begins with `line`; [`NAME_BYTES_MAX`] octets are always enough.
fn judge(line: &[u8]) -> Fate {
    match line {
        [] | [b'\r'] => Fate::More,
        [b'\n', ..] => Fate::End(1),
        [b'\r', b'\n', ..] => Fate::End(2),
        [b' ' | b'\t', ..] => Fate::Continues,
        _ => match MetaName::at(line) {
            LineStart::Meta(name) => Fate::Meta(name),
            LineStart::Other => Fate::Other,
            LineStart::More => Fate::More,
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::format::mbox::meta::meta_fields;

    /// What is kept, what is dropped, and how much is left for the body.
    fn parted(pieces: &[&[u8]]) -> (Vec<u8>, Vec<u8>, usize) {
        let (mut filter, mut kept, mut dropped, mut body) = (Filter::new(), Vec::new(), Vec::new(), 0);
        let mut take = |part: Part<'_>| match part {
            Part::Kept(octets) => kept.extend_from_slice(octets),
            Part::Dropped(_, octets) => dropped.extend_from_slice(octets),
        };
        for piece in pieces {
            body += filter.push(piece, &mut take).len();
        }
        filter.finish(&mut take);
        assert_eq!(filter.is_in_body(), mime::header_len(&pieces.concat()) > 0 && has_empty_line(&pieces.concat()));
        (kept, dropped, body)
    }

    fn has_empty_line(message: &[u8]) -> bool {
        let header = message.get(..mime::header_len(message)).unwrap();
        matches!(header, b"\n" | b"\r\n") || header.ends_with(b"\n\n") || header.ends_with(b"\n\r\n")
    }

    /// As [`meta_fields`] sees it, which has the whole header.
    fn expected(message: &[u8]) -> (Vec<u8>, Vec<u8>, usize) {
        let (header, body) = message.split_at(mime::header_len(message));
        let (mut kept, mut dropped, mut at) = (Vec::new(), Vec::new(), 0);
        for field in meta_fields(header) {
            kept.extend_from_slice(&header[at..field.line.start]);
            dropped.extend_from_slice(&header[field.line.clone()]);
            at = field.line.end;
        }
        kept.extend_from_slice(&header[at..]);
        (kept, dropped, body.len())
    }

    #[test]
    fn known_headers() {
        let served = |raw: &str| {
            let mut out = Vec::new();
            served_header(raw.as_bytes(), Form { convert: true, unquote: true }, &mut out);
            String::from_utf8(out).unwrap()
        };
        for (raw, expected) in [
            ("A: 1\nStatus: RO\nX-UID: 7 \n\n", "A: 1\r\n\r\n"),
            ("Status: RO\r\n folded\r\n\tmore\r\nA: 1\r\n b\r\n\r\n", "A: 1\r\n b\r\n\r\n"),
            (" junk\n>From x\nstatus : O\n\n", " junk\r\nFrom x\r\n\r\n"),
            (
                "X-Mailyard-Filler: xxxxx\nx-imapBASE: 1 2\nX-IMAP: 1\nX-Keywords: a\nX-Status: A\nContent-Length: 9",
                "\r\n",
            ),
            ("X-UID", "X-UID\r\n\r\n"),
            ("A: 1", "A: 1\r\n\r\n"),
            ("A: 1\r", "A: 1\r\n\r\n"),
            ("A: 1\n\r", "A: 1\r\n\r\n"),
            ("A: 1\nStatus: R", "A: 1\r\n\r\n"),
            ("Statusx: 1\nX-UIDs: 2\nSubject: 3\n\n", "Statusx: 1\r\nX-UIDs: 2\r\nSubject: 3\r\n\r\n"),
            ("", "\r\n"),
            ("\n", "\r\n"),
        ] {
            assert_eq!(served(raw), expected, "{raw:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn cuts_do_not_matter(
            message in "((Status|X-UID|x-imap|Content-Length|S|X)[ \t\r]{0,2}[:\n]?|[ :\t\r\nax]|\n\n| {61}){0,40}",
            cuts in proptest::collection::vec(0usize..200, 0..4),
        ) {
            let message = message.as_bytes();
            let expected = expected(message);
            proptest::prop_assert_eq!(&parted(&[message]), &expected);
            let single: Vec<&[u8]> = message.chunks(1).collect();
            proptest::prop_assert_eq!(&parted(&single), &expected);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(message.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut at = 0;
            for cut in cuts.into_iter().chain([message.len()]) {
                pieces.push(&message[at..cut]);
                at = cut;
            }
            proptest::prop_assert_eq!(&parted(&pieces), &expected);
        }
    }
}
