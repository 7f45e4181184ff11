//! UTF-7 (RFC 2152), streaming, tolerant. Not IMAP's modified UTF-7 of mailbox names.

/// Decoder. `+` begins base64 of UTF-16BE; the first octet outside the base64 alphabet ends it, and is
/// swallowed if it is `-`; `+-` is a plus sign. What is no UTF-16 becomes U+FFFD; octets above 127, which
/// UTF-7 does not have, are taken as ISO-8859-1.
#[derive(Debug, Default)]
pub(crate) struct Utf7 {
    inside: bool,
    /// Nothing of the current base64 run was seen yet.
    fresh: bool,
    bits: u32,
    bits_count: u8,
    /// A high surrogate that waits for its low one.
    high: Option<u16>,
}

impl Utf7 {
    pub(crate) fn push(&mut self, input: &[u8], out: &mut String) {
        for &octet in input {
            if self.inside {
                self.inside_octet(octet, out);
            } else if octet == b'+' {
                *self = Utf7 { inside: true, fresh: true, ..Utf7::default() };
            } else {
                out.push(char::from(octet));
            }
        }
    }

    pub(crate) fn finish(&mut self, out: &mut String) {
        self.end_run(out);
    }

    fn inside_octet(&mut self, octet: u8, out: &mut String) {
        let Some(digit) = base64_digit(octet) else {
            let is_plus = self.fresh && octet == b'-';
            self.end_run(out);
            match octet {
                _ if is_plus => out.push('+'),
                b'-' => {}
                b'+' => *self = Utf7 { inside: true, fresh: true, ..Utf7::default() },
                octet => out.push(char::from(octet)),
            }
            return;
        };
        self.fresh = false;
        self.bits = self.bits << 6 | u32::from(digit);
        self.bits_count += 6;
        if self.bits_count >= 16 {
            self.bits_count -= 16;
            let unit = u16::try_from(self.bits >> self.bits_count & 0xFFFF).unwrap_or_default();
            self.bits &= (1 << self.bits_count) - 1;
            self.unit(unit, out);
        }
    }

    fn unit(&mut self, unit: u16, out: &mut String) {
        let is_high = (0xD800..0xDC00).contains(&unit);
        let is_low = (0xDC00..0xE000).contains(&unit);
        match self.high.take() {
            Some(high) if is_low => {
                out.extend(char::decode_utf16([high, unit]).flatten());
                return;
            }
            Some(_) => out.push(char::REPLACEMENT_CHARACTER),
            None => {}
        }
        if is_high {
            self.high = Some(unit);
        } else {
            out.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }

    fn end_run(&mut self, out: &mut String) {
        if self.high.is_some() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
        *self = Utf7::default();
    }
}

fn base64_digit(octet: u8) -> Option<u8> {
    Some(match octet {
        b'A'..=b'Z' => octet - b'A',
        b'a'..=b'z' => octet - b'a' + 26,
        b'0'..=b'9' => octet - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn decode(input: &str) -> String {
        let mut out = String::new();
        let mut utf7 = Utf7::default();
        utf7.push(input.as_bytes(), &mut out);
        utf7.finish(&mut out);
        out
    }

    /// RFC 2152, "Examples".
    #[test]
    fn known_answers() {
        assert_eq!(decode("A+ImIDkQ."), "A\u{2262}\u{391}.");
        assert_eq!(decode("Hi Mom -+Jjo--!"), "Hi Mom -\u{263a}-!");
        assert_eq!(decode("+ZeVnLIqe-"), "\u{65e5}\u{672c}\u{8a9e}");
        assert_eq!(decode("1 +- 1 = 2"), "1 + 1 = 2");
        assert_eq!(decode("+2D3eAA-"), "\u{1f600}");
    }

    #[test]
    fn broken() {
        assert_eq!(decode("+"), "");
        assert_eq!(decode("a+ b"), "a b");
        assert_eq!(decode("+2D0-x"), "\u{fffd}x");
        assert_eq!(decode("+2D3YPQ-x"), "\u{fffd}\u{fffd}x");
    }
}
