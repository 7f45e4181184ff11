//! The character classes of RFC 9051 §9, each a function from an octet to yes or no.

/// ATOM-CHAR: a CHAR that is none of `( ) { SP CTL % * " \ ]`.
pub(crate) const fn is_atom_char(byte: u8) -> bool {
    CLASSES[byte as usize] & ATOM != 0
}

/// ASTRING-CHAR: ATOM-CHAR or `]`.
pub(crate) const fn is_astring_char(byte: u8) -> bool {
    CLASSES[byte as usize] & (ATOM | RESP_SPECIAL) != 0
}

/// list-char: ATOM-CHAR, `%`, `*` or `]`.
pub(crate) const fn is_list_char(byte: u8) -> bool {
    CLASSES[byte as usize] & (ATOM | RESP_SPECIAL | WILDCARD) != 0
}

/// A character of a tag: ASTRING-CHAR other than `+`.
pub(crate) const fn is_tag_char(byte: u8) -> bool {
    is_astring_char(byte) && byte != b'+'
}

/// What may stand in a quoted string unescaped: TEXT-CHAR other than `"` and `\`, or any octet above 127. IMAP4rev2 and
/// UTF8=ACCEPT allow UTF-8 there; before that clients send it all the same, and what the octets mean is for the reader of the
/// string to say.
pub(crate) const fn is_quoted_char(byte: u8) -> bool {
    !matches!(byte, 0 | b'\r' | b'\n' | b'"' | b'\\')
}

/// A character of base64, `=` included.
pub(crate) const fn is_base64_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// A character of an objectid (RFC 8474 §7).
pub(crate) const fn is_objectid_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

const ATOM: u8 = 1;
const RESP_SPECIAL: u8 = 2;
const WILDCARD: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        classes[byte] = match byte as u8 {
            b'(' | b')' | b'{' | b'"' | b'\\' => 0,
            b'%' | b'*' => WILDCARD,
            b']' => RESP_SPECIAL,
            _ => ATOM,
        };
        byte += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_octet_is_in_its_classes() {
        for byte in 0..=255u8 {
            // The grammar, written the other way round: CHAR without CTL and SP, without the specials that it lists.
            let printable = byte.is_ascii_graphic();
            let is_in = |set: &str| set.bytes().any(|special| special == byte);
            assert_eq!(is_atom_char(byte), printable && !is_in("(){%*\"\\]"), "atom {byte}");
            assert_eq!(is_astring_char(byte), printable && !is_in("(){%*\"\\"), "astring {byte}");
            assert_eq!(is_list_char(byte), printable && !is_in("(){\"\\"), "list {byte}");
            assert_eq!(is_tag_char(byte), printable && !is_in("(){%*\"\\+"), "tag {byte}");
            assert_eq!(is_quoted_char(byte), !is_in("\0\r\n\"\\"), "quoted {byte}");
            let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
            assert_eq!(is_base64_char(byte), is_in(letters) || is_in("+/="), "base64 {byte}");
            assert_eq!(is_objectid_char(byte), is_in(letters) || is_in("_-"), "objectid {byte}");
        }
    }
}
