//! Hiding the fields in which programs keep what they know of a message ([`MetaName`]): clients are served a message without them, and they do
//! not count for what message it is.
//!
//! Invariant: what is kept depends on the octets alone, not on how they were cut.

use super::meta::{LineStart, MetaName, NAME_BYTES_MAX};
use crate::format::served::{Form, Normaliser};

/// Appends to `out` the header that IMAP serves for `raw`, a message's octets in the file from behind its `From ` line to behind the empty line that
/// ends its header: without the fields of [`MetaName`], in `form`.
pub fn served_header(raw: &[u8], form: Form, out: &mut Vec<u8>) {
    let mut normaliser = Normaliser::new(form);
    let mut filter = Filter::new();
    filter.push(raw, &mut |kept| normaliser.push(kept, out));
    filter.finish(&mut |kept| normaliser.push(kept, out));
    normaliser.finish(out);
}

/// Drops the lines of the fields of [`MetaName`] from a message that comes in any pieces, and finds where its header ends.
#[derive(Debug)]
pub(super) struct Filter {
    state: State,
    /// Whether the lines that continue the last field are dropped.
    is_dropped: bool,
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
        Filter { state: State::LineStart, is_dropped: false, held: [0; NAME_BYTES_MAX], held_len: 0 }
    }

    /// Takes the next octets and gives those that are kept, until the header has ended with its empty line. Returns what is left: the
    /// beginning of the body.
    pub(super) fn push<'a>(&mut self, mut input: &'a [u8], keep: &mut impl FnMut(&[u8])) -> &'a [u8] {
        while !input.is_empty() {
            input = match self.state {
                State::Body => return input,
                State::LineStart => self.line_start(input, keep),
                State::Line => self.line(input, keep),
            };
        }
        input
    }

    /// Whether the header has ended.
    pub(super) fn is_in_body(&self) -> bool {
        self.state == State::Body
    }

    /// The message ends.
    pub(super) fn finish(&mut self, keep: &mut impl FnMut(&[u8])) {
        // It would have begun a field of these, had it had a colon; or is a CR alone.
        keep(self.held.get(..self.held_len).unwrap_or_default());
        self.held_len = 0;
    }

    /// Inside of a line: up to its end.
    fn line<'a>(&mut self, input: &'a [u8], keep: &mut impl FnMut(&[u8])) -> &'a [u8] {
        let end = memchr::memchr(b'\n', input).map(|at| at + 1);
        let (line, rest) = input.split_at(end.unwrap_or(input.len()));
        if !self.is_dropped {
            keep(line);
        }
        if end.is_some() {
            self.state = State::LineStart;
        }
        rest
    }

    /// Decides what becomes of a line.
    fn line_start<'a>(&mut self, input: &'a [u8], keep: &mut impl FnMut(&[u8])) -> &'a [u8] {
        if self.held_len == 0 {
            match judge(input) {
                Fate::More => {}
                fate => return self.decide(fate, input, keep),
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
                    self.decide(fate, held, keep);
                    return rest;
                }
            }
        }
        rest
    }

    /// Enters the line that `bytes` begin, of which at least the first octet is there.
    fn decide<'a>(&mut self, fate: Fate, bytes: &'a [u8], keep: &mut impl FnMut(&[u8])) -> &'a [u8] {
        self.state = State::Line;
        match fate {
            Fate::End(len) => {
                let (end, body) = bytes.split_at_checked(len).unwrap_or((bytes, &[]));
                keep(end);
                self.state = State::Body;
                return body;
            }
            Fate::Meta => self.is_dropped = true,
            Fate::Other => self.is_dropped = false,
            Fate::Continues | Fate::More => {}
        }
        self.line(bytes, keep)
    }
}

/// What a line of a header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The empty line, of so many octets.
    End(usize),
    /// It belongs to the field above.
    Continues,
    Meta,
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
            LineStart::Meta(_) => Fate::Meta,
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

    fn kept(pieces: &[&[u8]]) -> (Vec<u8>, usize) {
        let (mut filter, mut out, mut body) = (Filter::new(), Vec::new(), 0);
        for piece in pieces {
            body += filter.push(piece, &mut |kept| out.extend_from_slice(kept)).len();
        }
        filter.finish(&mut |kept| out.extend_from_slice(kept));
        assert_eq!(filter.is_in_body(), mime::header_len(&pieces.concat()) > 0 && has_empty_line(&pieces.concat()));
        (out, body)
    }

    fn has_empty_line(message: &[u8]) -> bool {
        let header = message.get(..mime::header_len(message)).unwrap();
        matches!(header, b"\n" | b"\r\n") || header.ends_with(b"\n\n") || header.ends_with(b"\n\r\n")
    }

    /// As [`meta_fields`] sees it, which has the whole header.
    fn expected(message: &[u8]) -> (Vec<u8>, usize) {
        let (header, body) = message.split_at(mime::header_len(message));
        let (mut out, mut at) = (Vec::new(), 0);
        for field in meta_fields(header) {
            out.extend_from_slice(&header[at..field.line.start]);
            at = field.line.end;
        }
        out.extend_from_slice(&header[at..]);
        (out, body.len())
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
            ("X-Mailyard-Filler: xxxxx\nx-imapBASE: 1 2\nX-IMAP: 1\nX-Keywords: a\nX-Status: A\nContent-Length: 9", ""),
            ("X-UID", "X-UID"),
            ("Statusx: 1\nX-UIDs: 2\nSubject: 3\n\n", "Statusx: 1\r\nX-UIDs: 2\r\nSubject: 3\r\n\r\n"),
            ("", ""),
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
            proptest::prop_assert_eq!(&kept(&[message]), &expected);
            let single: Vec<&[u8]> = message.chunks(1).collect();
            proptest::prop_assert_eq!(&kept(&single), &expected);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(message.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut at = 0;
            for cut in cuts.into_iter().chain([message.len()]) {
                pieces.push(&message[at..cut]);
                at = cut;
            }
            proptest::prop_assert_eq!(&kept(&pieces), &expected);
        }
    }
}
