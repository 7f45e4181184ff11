//! Modified UTF-7, the form of mailbox names before UTF-8 (RFC 3501 §5.1.3).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,";

/// Writes `name` in modified UTF-7.
pub fn encode_mailbox_utf7(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut units: Vec<u16> = Vec::new();
    for c in name.chars() {
        if ('\x20'..='\x7e').contains(&c) {
            flush_shifted(&mut units, &mut out);
            out.push(c);
            if c == '&' {
                out.push('-');
            }
        } else {
            units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
        }
    }
    flush_shifted(&mut units, &mut out);
    out
}

fn flush_shifted(units: &mut Vec<u16>, out: &mut String) {
    if units.is_empty() {
        return;
    }
    out.push('&');
    let (mut bits, mut count) = (0u32, 0u32);
    for unit in units.drain(..) {
        bits = bits << 16 | u32::from(unit);
        count += 16;
        while count >= 6 {
            count -= 6;
            out.push(char::from(ALPHABET[(bits >> count & 63) as usize]));
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        out.push(char::from(ALPHABET[(bits << (6 - count) & 63) as usize]));
    }
    out.push('-');
}

/// Reads modified UTF-7. `None` when `text` is not exactly what [`encode_mailbox_utf7`] would write: RFC 3501 §5.1.3 forbids
/// every other spelling, and two spellings of one name would be two names to a client.
pub fn decode_mailbox_utf7(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(rest.get(..start)?);
        let (shifted, after) = rest.get(start + 1..)?.split_once('-')?;
        if shifted.is_empty() {
            out.push('&');
        } else {
            out.push_str(&decode_shifted(shifted)?);
        }
        rest = after;
    }
    out.push_str(rest);
    (encode_mailbox_utf7(&out) == text).then_some(out)
}

fn decode_shifted(shifted: &str) -> Option<String> {
    let mut units = Vec::with_capacity(shifted.len());
    let (mut bits, mut count) = (0u32, 0u32);
    for byte in shifted.bytes() {
        let digit = ALPHABET.iter().position(|known| *known == byte)? as u32;
        bits = bits << 6 | digit;
        count += 6;
        if count >= 16 {
            count -= 16;
            units.push((bits >> count) as u16);
            bits &= (1 << count) - 1;
        }
    }
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // The examples of RFC 3501 §5.1.3 and some of ours.
        for (name, encoded) in [
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("A&B", "A&-B"),
            ("😀", "&2D3eAA-"),
            ("plain", "plain"),
        ] {
            assert_eq!(encode_mailbox_utf7(name), encoded);
            assert_eq!(decode_mailbox_utf7(encoded).as_deref(), Some(name));
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for bad in ["&", "a&", "&U,BTFw", "&AGE-", "&U,BTFw-&ZeVnLIqe-", "&2D0-", "&!-", "&A-", "ü"] {
            assert_eq!(decode_mailbox_utf7(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn round_trip(name in "\\PC{0,40}") {
            proptest::prop_assert_eq!(decode_mailbox_utf7(&encode_mailbox_utf7(&name)), Some(name));
        }
    }
}
