//! Content-Transfer-Encoding (RFC 2045 §6), streaming.
//!
//! Two voices: `tolerant` makes the best of anything, `strict` reports what is broken (BINARY's UNKNOWN-CTE).
//! The output does not depend on how the input was cut.

use crate::encoded_word::hex_pair;
use memchr::{memchr, memchr2};

/// A Content-Transfer-Encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// 7bit, 8bit, binary, or none: as it stands.
    Identity,
    /// quoted-printable.
    QuotedPrintable,
    /// base64.
    Base64,
    /// x-uuencode and its aliases.
    Uuencode,
    /// Anything else: BINARY answers UNKNOWN-CTE (RFC 9051 §6.4.5).
    Unknown,
}

impl Encoding {
    /// The encoding with this name (any case).
    pub fn from_name(name: &[u8]) -> Encoding {
        let lower = name.trim_ascii().to_ascii_lowercase();
        match lower.as_slice() {
            b"" | b"7bit" | b"8bit" | b"binary" | b"7-bit" | b"8-bit" | b"7bits" | b"8bits" => Encoding::Identity,
            b"quoted-printable" => Encoding::QuotedPrintable,
            b"base64" => Encoding::Base64,
            b"x-uuencode" | b"uuencode" | b"x-uue" | b"uue" => Encoding::Uuencode,
            _ => Encoding::Unknown,
        }
    }
}

/// The encoded data is broken or its encoding unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferError;

impl std::fmt::Display for TransferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken transfer encoding")
    }
}

impl std::error::Error for TransferError {}

/// Streaming transfer decoder.
#[derive(Debug)]
pub struct TransferDecoder {
    state: State,
    strict: bool,
}

#[derive(Debug)]
enum State {
    Identity,
    Base64(Base64),
    QuotedPrintable(QuotedPrintable),
    Uuencode(Uuencode),
}

impl TransferDecoder {
    /// A decoder that makes the best of anything and never returns an error; an unknown encoding is identity.
    pub fn tolerant(encoding: Encoding) -> Self {
        TransferDecoder { state: State::of(encoding).unwrap_or(State::Identity), strict: false }
    }

    /// A decoder that reports broken data (BINARY's UNKNOWN-CTE). An unknown encoding is an error at once.
    pub fn strict(encoding: Encoding) -> Result<Self, TransferError> {
        Ok(TransferDecoder { state: State::of(encoding).ok_or(TransferError)?, strict: true })
    }

    /// Decodes `input`, appending to `out`. After an error the output is of no use.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), TransferError> {
        let broken = match &mut self.state {
            State::Identity => {
                out.extend_from_slice(input);
                false
            }
            State::Base64(base64) => base64.push(input, out),
            State::QuotedPrintable(quoted) => quoted.push(input, out),
            State::Uuencode(uuencode) => uuencode.push(input, out),
        };
        self.verdict(broken)
    }

    /// Flushes; in strict mode reports data that ends in the middle.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), TransferError> {
        let broken = match &mut self.state {
            State::Identity => false,
            State::Base64(base64) => base64.finish(out),
            State::QuotedPrintable(quoted) => quoted.finish(out),
            State::Uuencode(uuencode) => uuencode.finish(out),
        };
        self.verdict(broken)
    }

    fn verdict(&self, broken: bool) -> Result<(), TransferError> {
        if broken && self.strict { Err(TransferError) } else { Ok(()) }
    }
}

impl State {
    fn of(encoding: Encoding) -> Option<State> {
        Some(match encoding {
            Encoding::Identity => State::Identity,
            Encoding::Base64 => State::Base64(Base64::default()),
            Encoding::QuotedPrintable => State::QuotedPrintable(QuotedPrintable::default()),
            Encoding::Uuencode => State::Uuencode(Uuencode::default()),
            Encoding::Unknown => return None,
        })
    }
}

// ---- base64 (RFC 2045 §6.8) -------------------------------------------------------------------------------

/// Not a character of the base64 alphabet.
const NO_DIGIT: u8 = 0xFF;

/// Value of each octet as a base64 digit.
const BASE64_DIGITS: [u8; 256] = {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0u8;
    while (value as usize) < alphabet.len() {
        digits[alphabet[value as usize] as usize] = value;
        value += 1;
    }
    digits
};

/// Tolerant: characters outside the alphabet are passed over, padding ends a group and not the data
/// (concatenated encodings are common), a last group may lack its padding.
#[derive(Debug, Default)]
struct Base64 {
    /// Digits of the current group, six bits each, and their number (0-3).
    bits: u32,
    digits: u8,
    /// Padding characters seen after the last digit of the group.
    padding: u8,
    ended: bool,
}

impl Base64 {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> bool {
        let digit = |octet: u8| BASE64_DIGITS.get(usize::from(octet)).copied().unwrap_or(NO_DIGIT);
        out.reserve(input.len() / 4 * 3 + 3);
        let mut broken = false;
        let mut rest = input;
        while let Some((&octet, after)) = rest.split_first() {
            if self.digits == 0 {
                // Whole groups of digits, which is nearly all there is.
                let mut groups = rest.chunks_exact(4);
                let mut taken = 0;
                for group in &mut groups {
                    let &[a, b, c, d] = group else { break };
                    let (a, b, c, d) = (digit(a), digit(b), digit(c), digit(d));
                    if (a | b | c | d) & 0xC0 != 0 {
                        break;
                    }
                    let bits = u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d);
                    let [_, first, second, third] = bits.to_be_bytes();
                    out.extend_from_slice(&[first, second, third]);
                    taken += 4;
                }
                if taken > 0 {
                    broken |= self.ended;
                    rest = rest.get(taken..).unwrap_or_default();
                    continue;
                }
            }
            rest = after;
            match digit(octet) {
                NO_DIGIT if octet == b'=' => {
                    self.padding = self.padding.saturating_add(1);
                    broken |= self.pad(out);
                }
                NO_DIGIT => broken |= !octet.is_ascii_whitespace(),
                value => {
                    broken |= self.ended;
                    self.padding = 0;
                    self.bits = self.bits << 6 | u32::from(value);
                    self.digits += 1;
                    if self.digits == 4 {
                        let [_, first, second, third] = self.bits.to_be_bytes();
                        out.extend_from_slice(&[first, second, third]);
                        (self.bits, self.digits) = (0, 0);
                    }
                }
            }
        }
        broken
    }

    /// A padding character: the group ends. The first of two ends it already.
    fn pad(&mut self, out: &mut Vec<u8>) -> bool {
        let broken = match (self.digits, self.padding) {
            (2 | 3, 1) => false,
            (0, 2) => !self.ended,
            _ => true,
        };
        self.flush(out);
        self.ended = true;
        broken
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        let [_, high, middle, low] = self.bits.to_be_bytes();
        match self.digits {
            // 12 bits: one octet; 18 bits: two.
            2 => out.push((u16::from_be_bytes([middle, low]) >> 4) as u8),
            3 => out.extend_from_slice(&[
                (u16::from_be_bytes([high, middle]) >> 2) as u8,
                (u16::from_be_bytes([middle, low]) >> 2) as u8,
            ]),
            _ => {}
        }
        (self.bits, self.digits) = (0, 0);
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        let broken = self.digits != 0;
        self.flush(out);
        broken
    }
}

// ---- quoted-printable (RFC 2045 §6.7) ---------------------------------------------------------------------

/// White space that may turn out to stand at the end of a line and is then dropped is held back; a longer run
/// than this is not.
const HELD_SPACE_BYTES_MAX: usize = 1000;

/// Tolerant: an `=` that begins no escape stays, lower-case digits count, line ends stay as they are.
#[derive(Debug, Default)]
struct QuotedPrintable {
    /// What cannot be decided yet: white space, or `=` and what follows it.
    held: Vec<u8>,
}

/// How many octets at the start of quoted-printable text stand for themselves whatever follows: up to an `=`, through the end of a
/// line, or up to the white space at the end of a line or of the text.
fn plain_octets(text: &[u8]) -> usize {
    let end = memchr2(b'=', b'\n', text).unwrap_or(text.len());
    let line = text.get(..end).unwrap_or_default();
    let stop = text.get(end);
    if stop == Some(&b'=') {
        return end;
    }
    let content = line.strip_suffix(b"\r").unwrap_or(line);
    let blanks = content.iter().rev().take_while(|octet| matches!(octet, b' ' | b'\t')).count();
    match blanks.checked_sub(1) {
        // What is more than can be held is kept.
        Some(more) => content.len() - blanks + more / HELD_SPACE_BYTES_MAX * HELD_SPACE_BYTES_MAX,
        // A CR may be the start of a line end, but nothing is held before it: it can go.
        None => end + usize::from(stop.is_some()),
    }
}

impl QuotedPrintable {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> bool {
        out.reserve(input.len());
        let mut broken = false;
        let mut rest = input;
        while !rest.is_empty() {
            if self.held.is_empty() {
                let (plain, after) = rest.split_at(plain_octets(rest));
                out.extend_from_slice(plain);
                rest = after;
                if let Some((&octet, after)) = rest.split_first()
                    && matches!(octet, b'=' | b' ' | b'\t')
                {
                    self.held.push(octet);
                    rest = after;
                }
            } else if let Some((&octet, after)) = rest.split_first() {
                if self.held.first() == Some(&b'=') {
                    rest = after;
                    broken |= self.escape(octet, out);
                } else {
                    // White space: dropped before a line end (RFC 2045 §6.7 rule 3), kept before anything else.
                    match octet {
                        b' ' | b'\t' if self.held.len() < HELD_SPACE_BYTES_MAX && self.held.last() != Some(&b'\r') => {
                            self.held.push(octet);
                            rest = after;
                        }
                        b'\r' if self.held.last() != Some(&b'\r') => {
                            self.held.push(octet);
                            rest = after;
                        }
                        b'\n' => {
                            if self.held.last() == Some(&b'\r') {
                                out.push(b'\r');
                            }
                            out.push(b'\n');
                            self.held.clear();
                            rest = after;
                        }
                        // What was held is plain; the octet is looked at again.
                        _ => out.append(&mut self.held),
                    }
                }
            }
        }
        broken
    }

    /// One more octet after an `=`.
    fn escape(&mut self, octet: u8, out: &mut Vec<u8>) -> bool {
        self.held.push(octet);
        let after = self.held.get(1..).unwrap_or_default();
        match after {
            // Soft line break, also with white space before the line end.
            [blank @ .., b'\n'] if is_blank(blank) => self.held.clear(),
            [b' ' | b'\t', ..] | [b'\r'] if self.held.len() < HELD_SPACE_BYTES_MAX && is_blank(after) => {}
            [first] if first.is_ascii_hexdigit() => {}
            pair => match hex_pair(pair) {
                Some(value) => {
                    out.push(value);
                    self.held.clear();
                }
                None => {
                    // No escape. The octets after the "=" may begin something themselves.
                    let held = std::mem::take(&mut self.held);
                    out.push(b'=');
                    self.push(held.get(1..).unwrap_or_default(), out);
                    return true;
                }
            },
        }
        false
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        let held = std::mem::take(&mut self.held);
        match held.split_first() {
            // A soft line break at the very end has lost its line end.
            Some((b'=', after)) if is_blank(after) => !after.is_empty(),
            Some((b'=', _)) => {
                out.extend_from_slice(&held);
                true
            }
            _ => {
                // White space at the end of the data is at the end of a line.
                if held.last() == Some(&b'\r') {
                    out.push(b'\r');
                }
                false
            }
        }
    }
}

/// Only white space that may stand before a line end: spaces, tabs, at most one CR as the last.
fn is_blank(octets: &[u8]) -> bool {
    let spaces = octets.strip_suffix(b"\r").unwrap_or(octets);
    spaces.iter().all(|octet| matches!(octet, b' ' | b'\t'))
}

// ---- uuencode (POSIX) -------------------------------------------------------------------------------------

/// Longest line of uuencoded data: a length, 60 characters, a checksum that some write, a line end.
const UUENCODE_LINE_BYTES_MAX: usize = 128;

/// Lines from `begin` to `end`; everything outside is passed over.
#[derive(Debug, Default)]
struct Uuencode {
    line: Vec<u8>,
    place: UuencodePlace,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum UuencodePlace {
    #[default]
    Before,
    Inside,
    After,
}

impl Uuencode {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> bool {
        let mut broken = false;
        let mut rest = input;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest);
            let (part, after) = rest.split_at(end.map_or(rest.len(), |at| at + 1));
            let space = UUENCODE_LINE_BYTES_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(part.get(..space.min(part.len())).unwrap_or_default());
            rest = after;
            if end.is_some() {
                broken |= self.end_line(out);
            }
        }
        broken
    }

    fn end_line(&mut self, out: &mut Vec<u8>) -> bool {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii_end();
        match self.place {
            UuencodePlace::Before if text.starts_with(b"begin ") => self.place = UuencodePlace::Inside,
            UuencodePlace::Inside if text == b"end" => self.place = UuencodePlace::After,
            UuencodePlace::Inside => return decode_uuencode_line(text, out),
            _ => {}
        }
        false
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        self.end_line(out) | (self.place != UuencodePlace::After)
    }
}

/// One data line: its first character is the number of octets.
fn decode_uuencode_line(line: &[u8], out: &mut Vec<u8>) -> bool {
    let value = |octet: u8| octet.wrapping_sub(b' ') & 0x3F;
    let Some((&count, digits)) = line.split_first() else {
        return false;
    };
    let count = usize::from(value(count));
    let mut octets = Vec::with_capacity(48);
    for group in digits.chunks(4) {
        // Spaces at the end of a line, which are zeros, get lost on the way.
        let digit = |at: usize| u32::from(group.get(at).copied().map_or(0, value));
        let bits = digit(0) << 18 | digit(1) << 12 | digit(2) << 6 | digit(3);
        octets.extend_from_slice(bits.to_be_bytes().get(1..).unwrap_or_default());
    }
    octets.resize(count, 0);
    out.extend_from_slice(&octets);
    digits.iter().any(|octet| !(b' '..=b'`').contains(octet)) || digits.len() > count.div_ceil(3) * 4 + 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn tolerant(encoding: Encoding, input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut decoder = TransferDecoder::tolerant(encoding);
        decoder.push(input, &mut out).unwrap();
        decoder.finish(&mut out).unwrap();
        out
    }

    fn strict(encoding: Encoding, input: &[u8]) -> Result<Vec<u8>, TransferError> {
        let mut out = Vec::new();
        let mut decoder = TransferDecoder::strict(encoding)?;
        decoder.push(input, &mut out)?;
        decoder.finish(&mut out)?;
        Ok(out)
    }

    fn cut_everywhere(encoding: Encoding, input: &[u8]) {
        let whole = tolerant(encoding, input);
        let whole_strict = strict(encoding, input);
        for at in 0..=input.len() {
            let (head, tail) = input.split_at(at);
            let mut out = Vec::new();
            let mut decoder = TransferDecoder::tolerant(encoding);
            decoder.push(head, &mut out).unwrap();
            decoder.push(tail, &mut out).unwrap();
            decoder.finish(&mut out).unwrap();
            assert_eq!(out, whole, "{encoding:?} cut at {at}");
            let mut decoder = TransferDecoder::strict(encoding).unwrap();
            let mut out = Vec::new();
            let result = decoder.push(head, &mut out).and_then(|()| decoder.push(tail, &mut out));
            let result = result.and_then(|()| decoder.finish(&mut out)).map(|()| out);
            assert_eq!(result, whole_strict, "{encoding:?} cut at {at}");
        }
    }

    #[test]
    fn names() {
        assert_eq!(Encoding::from_name(b"Base64"), Encoding::Base64);
        assert_eq!(Encoding::from_name(b"QUOTED-PRINTABLE"), Encoding::QuotedPrintable);
        assert_eq!(Encoding::from_name(b""), Encoding::Identity);
        assert_eq!(Encoding::from_name(b"8bit"), Encoding::Identity);
        assert_eq!(Encoding::from_name(b"x-uuencode"), Encoding::Uuencode);
        assert_eq!(Encoding::from_name(b"rot13"), Encoding::Unknown);
        assert_eq!(TransferDecoder::strict(Encoding::Unknown).unwrap_err(), TransferError);
        assert_eq!(tolerant(Encoding::Unknown, b"x"), b"x");
    }

    /// RFC 4648 §10.
    #[test]
    fn base64_known_answers() {
        for (input, output) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
            ("Zm9v\r\nYmFy\r\n", "foobar"),
            ("Z m 9 v", "foo"),
        ] {
            assert_eq!(tolerant(Encoding::Base64, input.as_bytes()), output.as_bytes());
            assert_eq!(strict(Encoding::Base64, input.as_bytes()).unwrap(), output.as_bytes());
        }
    }

    #[test]
    fn base64_broken() {
        for (input, output) in [
            ("Zg", "f"),
            ("Zm8", "fo"),
            ("Zg==Zg==", "ff"),
            ("Z*g==", "f"),
            ("Zg===", "f"),
            ("=", ""),
            ("Z", ""),
            ("Zm9v=", "foo"),
            ("Zg=Zm9v", "ffoo"),
        ] {
            assert_eq!(tolerant(Encoding::Base64, input.as_bytes()), output.as_bytes(), "{input}");
            assert_eq!(strict(Encoding::Base64, input.as_bytes()), Err(TransferError), "{input}");
        }
    }

    #[test]
    fn base64_every_octet_as_a_digit() {
        for octet in 0..=255u8 {
            let is_digit = octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'/');
            assert_eq!(tolerant(Encoding::Base64, &[octet, b'A', b'A', b'A']).len() == 3, is_digit, "{octet}");
        }
    }

    #[test]
    fn quoted_printable_known_answers() {
        for (input, output) in [
            ("", ""),
            ("a=3Db", "a=b"),
            ("a=\r\nb", "ab"),
            ("a=\nb", "ab"),
            ("a= \t\r\nb", "ab"),
            ("a  \r\nb", "a\r\nb"),
            ("a \nb", "a\nb"),
            ("a b", "a b"),
            ("a =20\r\n", "a  \r\n"),
            ("caf=c3=A9", "caf\u{e9}"),
            ("a\t", "a"),
            ("a \r b", "a \r b"),
            ("a\r\n\r\nb", "a\r\n\r\nb"),
        ] {
            assert_eq!(tolerant(Encoding::QuotedPrintable, input.as_bytes()), output.as_bytes(), "{input:?}");
            assert_eq!(strict(Encoding::QuotedPrintable, input.as_bytes()).unwrap(), output.as_bytes(), "{input:?}");
        }
    }

    #[test]
    fn quoted_printable_broken() {
        for (input, output) in [
            ("a=zz", "a=zz"),
            ("a=4", "a=4"),
            ("==41", "=A"),
            ("a= b", "a= b"),
            ("a==", "a="),
            ("=4=41", "=4A"),
            ("= =41", "= A"),
            ("=\r=41", "=\rA"),
        ] {
            assert_eq!(tolerant(Encoding::QuotedPrintable, input.as_bytes()), output.as_bytes(), "{input:?}");
            assert_eq!(strict(Encoding::QuotedPrintable, input.as_bytes()), Err(TransferError), "{input:?}");
        }
        assert_eq!(tolerant(Encoding::QuotedPrintable, b"a="), b"a");
    }

    #[test]
    fn uuencode_known_answers() {
        let input = b"text\nbegin 644 cat.txt\n#0V%T\n`\nend\nmore\n";
        assert_eq!(tolerant(Encoding::Uuencode, input), b"Cat");
        assert_eq!(strict(Encoding::Uuencode, input).unwrap(), b"Cat");
        assert_eq!(strict(Encoding::Uuencode, b"begin 644 x\n#0V%T\n"), Err(TransferError));
        assert_eq!(tolerant(Encoding::Uuencode, b"begin 644 x\n#0V%T"), b"Cat");
        assert_eq!(tolerant(Encoding::Uuencode, b"nothing\n"), b"");
    }

    #[test]
    fn the_cut_does_not_matter() {
        cut_everywhere(Encoding::Base64, b"Zm9v\r\nYm*Fy=Zm=8=\r\nZg==");
        cut_everywhere(Encoding::Base64, b"Zm9vYmFy\r\nZg=\r\n=\r\n");
        cut_everywhere(Encoding::QuotedPrintable, b"a =\r\n b= \r\n=4=41=zz \t \r\n = x=\r\r\n \r \r\n=");
        cut_everywhere(Encoding::QuotedPrintable, b"a=20b \r\nc=\r\n\r\n");
        for blanks in [1, 2, 3] {
            for more in [0, 1, 2] {
                let line = [b"a".as_slice(), &vec![b' '; HELD_SPACE_BYTES_MAX * blanks + more - 1], b"\r\nb"].concat();
                cut_everywhere(Encoding::QuotedPrintable, &line);
            }
        }
        cut_everywhere(Encoding::Uuencode, b"a\nbegin 644 cat.txt\r\n#0V%T\r\n`\nend\nmore");
    }

    #[test]
    fn long_white_space_is_not_held_for_ever() {
        let input = [b"a".to_vec(), b" ".repeat(5000), b"b".to_vec()].concat();
        assert_eq!(tolerant(Encoding::QuotedPrintable, &input), input);
        let input = [b"a=".to_vec(), b" ".repeat(5000), b"b".to_vec()].concat();
        assert_eq!(tolerant(Encoding::QuotedPrintable, &input), input);
    }

    proptest! {
        #[test]
        fn any_cut_of_anything(input in proptest::collection::vec(
            prop_oneof![Just(b'='), Just(b' '), Just(b'\r'), Just(b'\n'), Just(b'4'), Just(b'A'), any::<u8>()], 0..40)) {
            for encoding in [Encoding::Base64, Encoding::QuotedPrintable, Encoding::Uuencode] {
                cut_everywhere(encoding, &input);
            }
        }
    }
}
