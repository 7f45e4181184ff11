//! Decoding of header text: folding (RFC 5322 §2.2.3), encoded words (RFC 2047), raw 8-bit.
//!
//! Tolerant as readers of mail have to be: an encoded word may be too long, hold spaces, stand inside a
//! quoted string or touch other text. What cannot be read as an encoded word stays as it is. A character that
//! was split over adjacent encoded words of the same character set is put together again.

use crate::charset::{decode_charset, guess, has_shifts};
use crate::transfer::{Encoding, TransferDecoder};
use memchr::memmem;
use std::borrow::Cow;

/// A raw field value without its folding (RFC 5322 §2.2.3): line ends that white space follows are removed,
/// and so are line ends at the end. Any other line end, which no header can have, becomes a space.
pub fn unfold(value: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\n', value).is_none() {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'\n', rest) {
        let (line, after) = rest.split_at(at);
        out.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        rest = after.get(1..).unwrap_or_default();
        if !matches!(rest.first(), None | Some(b' ' | b'\t')) {
            out.push(b' ');
        }
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

/// A raw field value as text: unfolded, encoded words decoded, raw 8-bit octets guessed (UTF-8 if they are
/// valid UTF-8, else windows-1252). White space around it stays.
pub fn decode_unstructured(value: &[u8]) -> Cow<'_, str> {
    let unfolded = unfold(value);
    if memmem::find(&unfolded, b"=?").is_none() {
        return match unfolded {
            Cow::Borrowed(octets) => guess(octets),
            Cow::Owned(octets) => Cow::Owned(guess(&octets).into_owned()),
        };
    }
    Cow::Owned(decode_words(&unfolded))
}

/// One encoded word, taken apart.
struct EncodedWord<'a> {
    charset: &'a [u8],
    octets: Vec<u8>,
    /// Octets of the encoded word in the source.
    length: usize,
}

/// Decoded octets that wait for the next encoded word, which may complete their last character.
struct Pending {
    charset: Vec<u8>,
    octets: Vec<u8>,
}

fn decode_words(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pending: Option<Pending> = None;
    // Octets before this are in `out` or in `pending`.
    let mut done = 0;
    let mut position = 0;
    let mut ends = EndFinder { text, next: 0 };
    while let Some(found) = text.get(position..).and_then(|rest| memmem::find(rest, b"=?")) {
        let start = position + found;
        let Some(word) = encoded_word(text, start, &mut ends) else {
            position = start + 2;
            continue;
        };
        let between = text.get(done..start).unwrap_or_default();
        // RFC 2047 §6.2: white space between adjacent encoded words is not shown. §3: with shifts, every word begins in the initial
        // state: joining words would change what they say.
        let is_adjacent = pending.is_some() && between.iter().all(u8::is_ascii_whitespace);
        let same_charset = |p: &Pending| p.charset.eq_ignore_ascii_case(word.charset) && !has_shifts(word.charset);
        match &mut pending {
            Some(waiting) if is_adjacent && same_charset(waiting) => {
                waiting.octets.extend_from_slice(&word.octets);
            }
            _ => {
                flush(&mut pending, &mut out);
                if !is_adjacent {
                    out.push_str(&guess(between));
                }
                pending = Some(Pending { charset: word.charset.to_vec(), octets: word.octets });
            }
        }
        done = start + word.length;
        position = done;
    }
    flush(&mut pending, &mut out);
    out.push_str(&guess(text.get(done..).unwrap_or_default()));
    out
}

fn flush(pending: &mut Option<Pending>, out: &mut String) {
    if let Some(Pending { charset, octets }) = pending.take() {
        out.push_str(&decode_charset(&charset, &octets));
    }
}

/// Finds `?=` at or after a position; remembers the last answer, so that many starts without an end cost one
/// pass over the text.
struct EndFinder<'a> {
    text: &'a [u8],
    next: usize,
}

impl EndFinder<'_> {
    fn find(&mut self, from: usize) -> Option<usize> {
        if self.next < from {
            let rest = self.text.get(from..)?;
            self.next = memmem::find(rest, b"?=").map_or(usize::MAX, |at| from + at);
        }
        (self.next != usize::MAX).then_some(self.next)
    }
}

/// `encoded-word = "=?" charset ["*" language] "?" encoding "?" encoded-text "?="` (RFC 2047 §2, RFC 2231 §5)
/// at `start`, where `=?` is known to stand.
fn encoded_word<'a>(text: &'a [u8], start: usize, ends: &mut EndFinder<'_>) -> Option<EncodedWord<'a>> {
    let charset_start = start + 2;
    let rest = text.get(charset_start..)?;
    let charset_len = rest
        .iter()
        .take(CHARSET_NAME_BYTES_MAX)
        .take_while(|&&octet| octet.is_ascii_graphic() && octet != b'?')
        .count();
    let charset = rest.get(..charset_len)?;
    let [b'?', kind, b'?', ..] = *rest.get(charset_len..)? else {
        return None;
    };
    let body_start = charset_start + charset_len + 3;
    let body_end = ends.find(body_start)?;
    let body = text.get(body_start..body_end)?;
    // Another word begins before this one ends: this one is broken.
    if charset.is_empty() || memmem::find(body, b"=?").is_some() {
        return None;
    }
    let octets = match kind {
        b'q' | b'Q' => decode_q(body),
        b'b' | b'B' => {
            let mut octets = Vec::with_capacity(body.len());
            let mut decoder = TransferDecoder::tolerant(Encoding::Base64);
            decoder.push(body, &mut octets).ok()?;
            decoder.finish(&mut octets).ok()?;
            octets
        }
        _ => return None,
    };
    let charset = charset.split(|&octet| octet == b'*').next().unwrap_or(charset);
    Some(EncodedWord { charset, octets, length: body_end + 2 - start })
}

/// Longest name of a character set in an encoded word.
const CHARSET_NAME_BYTES_MAX: usize = 64;

/// RFC 2047 §4.2, "Q": broken escapes stay as they are.
fn decode_q(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut octets = body.iter();
    while let Some(&octet) = octets.next() {
        match octet {
            b'_' => out.push(b' '),
            b'=' => match hex_pair(octets.as_slice()) {
                Some(value) => {
                    out.push(value);
                    octets.nth(1);
                }
                None => out.push(b'='),
            },
            octet => out.push(octet),
        }
    }
    out
}

/// The octet that the first two characters name in hexadecimal.
pub(crate) fn hex_pair(text: &[u8]) -> Option<u8> {
    let digit = |octet: &u8| char::from(*octet).to_digit(16).and_then(|d| u8::try_from(d).ok());
    match text {
        [high, low, ..] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn decode(text: &str) -> String {
        decode_unstructured(text.as_bytes()).into_owned()
    }

    /// RFC 2047 §8.
    #[test]
    fn rfc_examples() {
        assert_eq!(decode("(=?ISO-8859-1?Q?a?=)"), "(a)");
        assert_eq!(decode("(=?ISO-8859-1?Q?a?= b)"), "(a b)");
        assert_eq!(decode("(=?ISO-8859-1?Q?a?= =?ISO-8859-1?Q?b?=)"), "(ab)");
        assert_eq!(decode("(=?ISO-8859-1?Q?a?=  =?ISO-8859-1?Q?b?=)"), "(ab)");
        assert_eq!(decode("(=?ISO-8859-1?Q?a?=\r\n    =?ISO-8859-1?Q?b?=)"), "(ab)");
        assert_eq!(decode("(=?ISO-8859-1?Q?a_b?=)"), "(a b)");
        assert_eq!(decode("(=?ISO-8859-1?Q?a?= =?ISO-8859-2?Q?_b?=)"), "(a b)");
        assert_eq!(decode("=?ISO-8859-1?Q?Andr=E9?= Pirard"), "Andr\u{e9} Pirard");
        assert_eq!(
            decode(
                "=?ISO-8859-1?B?SWYgeW91IGNhbiByZWFkIHRoaXMgeW8=?=\n =?ISO-8859-2?B?dSB1bmRlcnN0YW5kIHRoZSBleGFtcGxlLg==?="
            ),
            "If you can read this you understand the example."
        );
    }

    #[test]
    fn split_characters_are_joined() {
        assert_eq!(decode("=?utf-8?Q?caf=C3?= =?UTF-8?Q?=A9?= x"), "caf\u{e9} x");
        assert_eq!(decode("=?utf-8?B?4oI=?=\r\n =?utf-8?B?rA==?="), "\u{20ac}");
        assert_eq!(decode("=?us-ascii*en?q?hi?="), "hi");
        let kana = "=?iso-2022-jp?B?GyRCJDMbKEI=?=";
        assert_eq!(decode(&format!("{kana}\n {kana}")), "\u{3053}\u{3053}");
    }

    #[test]
    fn broken_words_stay() {
        for text in [
            "=?",
            "=??",
            "=?utf-8?",
            "=?utf-8?q",
            "=?utf-8?q?",
            "=?utf-8?q?a",
            "=?utf-8?x?a?=",
            "=??q?a?=",
            "a =? b ?= c",
            "=?utf 8?q?a?=",
        ] {
            assert_eq!(decode(text), text);
        }
        assert_eq!(decode("=?utf-8?q?a=4?="), "a=4");
        assert_eq!(decode("=?utf-8?Q?broken =?utf-8?Q?good?="), "=?utf-8?Q?broken good");
        assert_eq!(decode("=?utf-8?Q?two words?="), "two words");
        assert_eq!(decode("x=?utf-8?Q?y?=z"), "xyz");
    }

    #[test]
    fn raw_eight_bit_is_guessed() {
        assert_eq!(decode_unstructured("caf\u{e9}".as_bytes()), "caf\u{e9}");
        assert_eq!(decode_unstructured(b"caf\xe9 \x80"), "caf\u{e9} \u{20ac}");
        assert_eq!(decode("=?x-unknown?Q?caf=E9?="), "caf\u{e9}");
        assert_eq!(decode("=?x-unknown?Q?caf=C3=A9?="), "caf\u{e9}");
    }

    #[test]
    fn unfolding() {
        assert_eq!(&*unfold(b" a\r\n b\n\tc"), b" a b\tc");
        assert_eq!(&*unfold(b"a\r\n"), b"a");
        assert_eq!(&*unfold(b"a\nb"), b"a b");
        assert_eq!(&*unfold(b"a\rb"), b"a\rb");
    }

    #[test]
    fn starts_without_end_cost_linear_time() {
        decode_unstructured(&b"=?a?q?".repeat(100_000));
        decode_unstructured(&b"=?a?q?=?=".repeat(100_000));
    }
}
