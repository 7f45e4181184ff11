//! The order of strings: i;unicode-casemap (RFC 5051), which RFC 5256 §7 demands of SORT and THREAD.
//!
//! A string becomes a key; keys are compared octet by octet. Two strings are equal here exactly when RFC 5051 says so. That is not the
//! form in which SEARCH folds ([`mime::fold`]): it makes the same strings equal and a few more, but its lower case sorts `_` before
//! the letters, where title case sorts it behind.

use unicode_normalization::char::decompose_compatible;

/// Appends the key of `text` to `out` (RFC 5051 §2: title case, then full compatibility decomposition, character by character).
pub(super) fn append_key(text: &str, out: &mut Vec<u8>) {
    if text.is_ascii() {
        out.extend(text.bytes().map(|byte| byte.to_ascii_uppercase()));
        return;
    }
    let mut utf8 = [0; 4];
    for character in text.chars() {
        decompose_compatible(title_case(character), |piece| {
            out.extend_from_slice(piece.encode_utf8(&mut utf8).as_bytes());
        });
    }
}

/// The simple title case mapping of UnicodeData.txt.
///
/// The standard library has the full upper case mappings. The simple title case is the same where that is one character, but for the
/// digraphs and for Georgian; where it is more than one, only the Greek letters with an iota below have a simple mapping.
fn title_case(character: char) -> char {
    match character {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        '\u{10d0}'..='\u{10ff}' => character,
        '\u{1f80}'..='\u{1faf}' => char::from_u32(character as u32 | 8).unwrap_or(character),
        '\u{1fb3}' => '\u{1fbc}',
        '\u{1fc3}' => '\u{1fcc}',
        '\u{1ff3}' => '\u{1ffc}',
        _ => {
            let mut upper = character.to_uppercase();
            match (upper.next(), upper.next()) {
                (Some(one), None) => one,
                _ => character,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        append_key(text, &mut out);
        out
    }

    fn text(of: &str) -> String {
        String::from_utf8(key(of)).expect("a key is UTF-8")
    }

    #[test]
    fn the_example_of_rfc_5051() {
        for digraph in ["\u{1c4}", "\u{1c5}", "\u{1c6}"] {
            assert_eq!(text(digraph), "Dz\u{30c}");
        }
    }

    #[test]
    fn known_answers() {
        for (from, to) in [
            ("aZ_[", "AZ_["),
            ("é", "E\u{301}"),
            ("straße", "STRAßE"),
            ("ﬁ", "fi"),
            ("ᾳ", "\u{391}\u{345}"),
            ("ᾀ", "\u{391}\u{313}\u{345}"),
            ("ᾈ", "\u{391}\u{313}\u{345}"),
            ("ა", "ა"),
            ("ς", "Σ"),
            ("ı", "I"),
            ("①", "1"),
            ("각", "\u{1100}\u{1161}\u{11a8}"),
        ] {
            assert_eq!(text(from), to, "{from}");
        }
    }

    #[test]
    fn what_is_equal_here_is_equal_to_search() {
        // One character stands for all that have its key.
        let mut firsts = std::collections::HashMap::new();
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let mut utf8 = [0; 4];
            let one: &str = character.encode_utf8(&mut utf8);
            let first = *firsts.entry(key(one)).or_insert(character);
            if first != character {
                assert_eq!(mime::fold(one), mime::fold(&first.to_string()), "{character:?} {first:?}");
            }
        }
        assert!(firsts.len() > 100_000);
    }

    #[test]
    fn ascii_takes_no_other_way() {
        for byte in 0..128u8 {
            let one = char::from(byte).to_string();
            let through_the_tables = title_case(char::from(byte)).to_string();
            assert_eq!(text(&one), through_the_tables);
        }
    }
}
