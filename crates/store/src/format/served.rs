//! The bytes of a message as IMAP serves them, from those of a foreign file: bare LF becomes CRLF, `>From ` loses one `>` (mboxrd).
//!
//! Everything else stays as it is: CRLF, a CR alone, NULs, octets above 127. The result does not depend on how the input was cut, nor on
//! anything but the input: the same bytes are served the same for ever.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use model::Result;
use platform::File;

use super::mbox::scan::lines::each_line_start;

/// Octets that are read at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// What a line that may be quoted has.
static QUOTED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b">From "));

/// With fewer octets it does not pay to look at all of them first.
const MANY_BYTES: usize = 256;

/// How a message is written in a foreign file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Whether bare LFs stand for CRLF.
    pub convert: bool,
    /// Whether lines of `>…>From ` lose one `>`.
    pub unquote: bool,
}

/// Gives the octets of a message at `range` of `file`, in `form`, piece by piece as they are served. Memory: two pieces.
pub fn read(file: &dyn File, range: Range<u64>, form: Form, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut normaliser = Normaliser::new(form);
    let (mut raw, mut served) = (Vec::new(), Vec::new());
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at.saturating_add(PIECE_BYTES));
        raw.resize((end - at) as usize, 0);
        file.read_exact_at(&mut raw, at)?;
        served.clear();
        normaliser.push(&raw, &mut served);
        take(&served)?;
        at = end;
    }
    served.clear();
    normaliser.finish(&mut served);
    take(&served)
}

/// How many octets [`read`] gives: what RFC822.SIZE says (RFC 9051 §2.3.4).
pub fn size(file: &dyn File, range: Range<u64>, form: Form) -> Result<u64> {
    let mut size = 0;
    read(file, range, form, &mut |piece| {
        size += piece.len() as u64;
        Ok(())
    })?;
    Ok(size)
}

/// Streams message bytes from a file with foreign line ends. It holds less than ten octets back, however they are cut, so that a reader
/// may keep it and go on with it later.
#[derive(Debug)]
pub struct Normaliser {
    form: Form,
    /// The last octet was a CR.
    after_cr: bool,
    /// Where in a line that may be quoted: `None` once it is clear that it is not.
    held: Option<Held>,
}

/// The beginning of a line that still may be `>+From `. All `>` but the last are written: at most one is taken away.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// A `>` that is not written yet.
    has_mark: bool,
    /// How much of `From `.
    matched: usize,
}

impl Normaliser {
    /// At the start of a message.
    pub fn new(form: Form) -> Self {
        Normaliser { form, after_cr: false, held: Some(Held::default()) }
    }

    /// Takes the next octets and appends what they become to `out`.
    pub fn push(&mut self, mut input: &[u8], out: &mut Vec<u8>) {
        if input.len() >= MANY_BYTES
            && self.held.is_none_or(|held| !held.has_mark)
            && let Some(last) = memchr::memrchr(b'\n', input)
        {
            // Hardly any piece of a message has a quoted line. What is behind the last line end may go on in the next piece.
            let (lines, rest) = input.split_at(last + 1);
            if !self.form.unquote || QUOTED.find(lines).is_none() {
                self.push_lines(lines, out);
                input = rest;
            }
        }
        while !input.is_empty() {
            if let Some(held) = self.held {
                input = self.push_held(held, input, out);
                continue;
            }
            let Some(at) = memchr::memchr(b'\n', input) else {
                out.extend_from_slice(input);
                self.after_cr = input.last() == Some(&b'\r');
                return;
            };
            let (line, rest) = input.split_at(at);
            out.extend_from_slice(line);
            let has_cr = line.last().map_or(self.after_cr, |last| *last == b'\r');
            out.extend_from_slice(if has_cr || !self.form.convert { b"\n" } else { b"\r\n" });
            self.after_cr = false;
            self.held = Some(Held::default());
            input = rest.get(1..).unwrap_or_default();
        }
    }

    /// The message ends.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.end(out);
    }

    /// As [`Normaliser::finish`], for one that cannot be given away; it is not to be used any more.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(held) = self.held.take() {
            write_held(held, out);
        }
    }

    /// Takes octets that end a line and have no quoted one.
    fn push_lines(&mut self, lines: &[u8], out: &mut Vec<u8>) {
        out.reserve(lines.len() + lines.len() / 32);
        let mut at = 0;
        if self.form.convert {
            each_line_start(lines, 0, |next| {
                let (line, before) = (next - 1, next.checked_sub(2));
                let has_cr = before.map_or(self.after_cr, |before| lines.get(before) == Some(&b'\r'));
                if !has_cr {
                    out.extend_from_slice(lines.get(at..line).unwrap_or_default());
                    out.extend_from_slice(b"\r\n");
                    at = next;
                }
                true
            });
        }
        out.extend_from_slice(lines.get(at..).unwrap_or_default());
        self.after_cr = false;
        self.held = Some(Held::default());
    }

    /// Looks at octets while the line may still be quoted; returns what is left of the input.
    fn push_held<'a>(&mut self, mut held: Held, input: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        const FROM: &[u8] = super::mbox::from_line::PREFIX;
        if !self.form.unquote {
            self.held = None;
            return input;
        }
        for (n, byte) in input.iter().enumerate() {
            if held.matched == 0 && *byte == b'>' {
                write_held(held, out);
                held.has_mark = true;
            } else if held.has_mark && FROM.get(held.matched) == Some(byte) {
                held.matched += 1;
                if held.matched == FROM.len() {
                    write_held(Held { has_mark: false, ..held }, out);
                    self.held = None;
                    return input.get(n + 1..).unwrap_or_default();
                }
            } else {
                write_held(held, out);
                self.held = None;
                return input.get(n..).unwrap_or_default();
            }
        }
        self.held = Some(held);
        &[]
    }
}

fn write_held(held: Held, out: &mut Vec<u8>) {
    out.extend_from_slice(if held.has_mark { b">" } else { b"" });
    out.extend_from_slice(super::mbox::from_line::PREFIX.get(..held.matched).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn normal(pieces: &[&[u8]], unquote: bool) -> Vec<u8> {
        let mut normaliser = Normaliser::new(Form { convert: true, unquote });
        let mut out = Vec::new();
        for piece in pieces {
            normaliser.push(piece, &mut out);
        }
        normaliser.finish(&mut out);
        out
    }

    #[test]
    fn known_answers() {
        for (input, expected) in [
            (&b"a\nb\r\nc\rd\n\n"[..], &b"a\r\nb\r\nc\rd\r\n\r\n"[..]),
            (b">From a\n>>From b\n>Fro\n> From\n>", b"From a\r\n>From b\r\n>Fro\r\n> From\r\n>"),
            (b"From a\nx>From b\n>\n>>", b"From a\r\nx>From b\r\n>\r\n>>"),
            (b"\0\xff\n\r\n\r", b"\0\xff\r\n\r\n\r"),
            (b"", b""),
        ] {
            assert_eq!(normal(&[input], true), expected, "{input:?}");
        }
        assert_eq!(normal(&[b">From a\n"], false), b">From a\r\n");
    }

    #[test]
    fn longer_than_a_piece() {
        let text = b"a\n>From b\n".repeat(PIECE_BYTES as usize / 8);
        let disk = platform::sim::SimEnv::new(1).env().disk;
        let file = disk.open(std::path::Path::new("/x"), platform::OpenMode::Create).unwrap();
        file.write_at(&text, 0).unwrap();
        let form = Form { convert: true, unquote: true };
        let (range, mut out) = (2..text.len() as u64 - 1, Vec::new());
        read(&*file, range.clone(), form, &mut |piece| {
            out.extend_from_slice(piece);
            Ok(())
        })
        .unwrap();
        assert!(out == normal(&[&text[2..text.len() - 1]], true));
        assert_eq!(size(&*file, range, form).unwrap(), out.len() as u64);
    }

    /// Line by line, from the whole message.
    fn naive(message: &[u8], form: Form) -> Vec<u8> {
        let mut out = Vec::new();
        for line in message.split_inclusive(|byte| *byte == b'\n') {
            let marks = line.iter().take_while(|byte| **byte == b'>').count();
            let is_quoted = form.unquote && marks > 0 && line[marks..].starts_with(b"From ");
            let line = &line[usize::from(is_quoted)..];
            match line.strip_suffix(b"\n") {
                Some(start) if form.convert && !start.ends_with(b"\r") => out.extend([start, b"\r\n"].concat()),
                _ => out.extend_from_slice(line),
            }
        }
        out
    }

    proptest::proptest! {
        #[test]
        fn like_a_naive_one(
            pieces in proptest::collection::vec("(From |>From |>|\n|\r|\r\n|a|a{300}|aaaaaaaaa\n){0,12}", 0..6),
            convert: bool,
            unquote: bool,
        ) {
            let form = Form { convert, unquote };
            let (mut normaliser, mut out) = (Normaliser::new(form), Vec::new());
            for piece in &pieces {
                normaliser.push(piece.as_bytes(), &mut out);
            }
            normaliser.finish(&mut out);
            let expected = naive(pieces.concat().as_bytes(), form);
            proptest::prop_assert_eq!(out, expected, "{:?}", pieces);
        }

        #[test]
        fn cuts_do_not_matter(text in "[>From \r\na]{0,40}", cut in 0usize..41, unquote: bool) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(cut.min(bytes.len()));
            proptest::prop_assert_eq!(normal(&[a, b], unquote), normal(&[bytes], unquote));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            proptest::prop_assert_eq!(normal(&single, unquote), normal(&[bytes], unquote));
        }
    }
}
