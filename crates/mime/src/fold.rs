//! Case folding and substring search: the equivalences of i;unicode-casemap (RFC 5051), which RFC 5255 §4.6 asks
//! for and RFC 9051 §6.4.4 leaves open.
//!
//! RFC 5051 maps every character by itself: to title case, then to its full compatibility decomposition. Two
//! texts that it makes equal are made equal here too; the folded form itself is lower case. Beyond RFC 5051,
//! `ß` equals `ss` and the compatibility forms of letters lose their case as well (`ℎ` is `h`).
//!
//! Consequences: `e` is found in `é` (the accent is a character of its own after decomposition), while `é` is
//! not found in `e`; since no character looks at its neighbours, folding text in chunks is folding the whole,
//! and combining marks in another order are another text.

use memchr::memmem;
use unicode_normalization::char::decompose_compatible;

/// `text` folded for comparison. `fold(fold(x)) == fold(x)`; `fold(a + b) == fold(a) + fold(b)`.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    fold_into(text, &mut out);
    out
}

/// Changes whenever some text would be folded differently than before: for whoever keeps folded text. Tables of Unicode change with the
/// compiler and with the crate that decomposes.
pub fn fold_version() -> u32 {
    /// Of the rules in this file.
    const RULES: u32 = 1;
    let (a, b) = (char::UNICODE_VERSION, unicode_normalization::UNICODE_VERSION);
    [a.0, a.1, a.2, b.0, b.1, b.2]
        .into_iter()
        .fold(RULES, |all, part| all.wrapping_mul(31).wrapping_add(u32::from(part)))
}

/// Appends `text`, folded.
pub fn fold_into(text: &str, out: &mut String) {
    let mut rest = text;
    while !rest.is_empty() {
        // Most text is ASCII nearly everywhere.
        let (ascii, others) = rest.split_at(ascii_len(rest.as_bytes()));
        let start = out.len();
        out.push_str(ascii);
        if let Some(new) = out.get_mut(start..) {
            new.make_ascii_lowercase();
        }
        rest = others.trim_start_matches(|character: char| {
            let is_other = !character.is_ascii();
            if is_other {
                fold_character(character, out);
            }
            is_other
        });
    }
}

/// Octets of ASCII at the beginning.
fn ascii_len(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let all = words.iter().position(|word| u64::from_ne_bytes(*word) & 0x8080_8080_8080_8080 != 0);
    let start = all.unwrap_or(words.len()) * 8;
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().position(|byte| !byte.is_ascii()).unwrap_or(rest.len())
}

/// Decomposes, folds, and decomposes again: case mappings give composed characters (U+0130) and decompositions
/// give upper case.
fn fold_character(character: char, out: &mut String) {
    decompose_compatible(character, |piece| {
        // Lower, upper, lower: the first brings U+1E9E to U+00DF, the second unites U+03C2 with U+03C3 and
        // U+017F with s, the third is the form.
        for lower in piece.to_lowercase() {
            for upper in lower.to_uppercase() {
                for last in upper.to_lowercase() {
                    decompose_compatible(last, |decomposed| out.push(decomposed));
                }
            }
        }
    });
}

/// A search string, folded once.
#[derive(Clone, Debug)]
pub struct Needle {
    folded: String,
    finder: memmem::Finder<'static>,
}

impl Needle {
    /// The needle for `text`. An empty needle is in every text (RFC 9051 §6.4.4, HEADER).
    pub fn new(text: &str) -> Self {
        let folded = fold(text);
        let finder = memmem::Finder::new(folded.as_bytes()).into_owned();
        Needle { folded, finder }
    }

    /// The folded needle.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// Whether `text` (not folded) contains the needle.
    pub fn is_in(&self, text: &str) -> bool {
        self.find(&fold(text)).is_some()
    }

    /// Where the needle begins in text that is already folded, in octets.
    pub fn find(&self, folded: &str) -> Option<usize> {
        self.finder.find(folded.as_bytes())
    }
}

/// Finds a needle in text that comes in chunks, also over their borders. Memory: the folded chunk and the
/// needle's length.
#[derive(Debug)]
pub struct Matcher<'n> {
    needle: &'n Needle,
    /// The end of the folded text so far, shorter than the needle, and room for the next chunk.
    window: String,
    is_found: bool,
}

impl<'n> Matcher<'n> {
    /// A matcher that has seen nothing.
    pub fn new(needle: &'n Needle) -> Self {
        Matcher { needle, window: String::new(), is_found: needle.folded.is_empty() }
    }

    /// Takes the next chunk (not folded); true as soon as the needle was found, and from then on.
    pub fn push(&mut self, chunk: &str) -> bool {
        if !self.is_found {
            fold_into(chunk, &mut self.window);
            self.is_found = self.needle.find(&self.window).is_some();
            // A match over the border begins with less than a whole needle.
            let keep_from = (self.window.len() + 1).saturating_sub(self.needle.folded.len());
            let keep_from = self.window.floor_char_boundary(keep_from);
            self.window.drain(..keep_from);
        }
        self.is_found
    }

    /// The text ends here; what follows is another text. Returns like [`Matcher::push`].
    pub fn boundary(&mut self) -> bool {
        self.window.clear();
        self.is_found
    }

    /// Whether the needle was found.
    pub fn is_found(&self) -> bool {
        self.is_found
    }
}

impl crate::TextSink for Matcher<'_> {
    fn text(&mut self, chunk: &str) -> std::ops::ControlFlow<()> {
        stop_if(self.push(chunk))
    }

    fn boundary(&mut self) -> std::ops::ControlFlow<()> {
        stop_if(Matcher::boundary(self))
    }
}

fn stop_if(found: bool) -> std::ops::ControlFlow<()> {
    if found { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equivalences() {
        for (left, right) in [
            ("HELLO", "hello"),
            ("\u{c9}", "e\u{301}"),
            ("stra\u{df}e", "STRASSE"),
            ("\u{1e9e}", "SS"),
            ("\u{3a3}\u{38a}\u{3a3}\u{3a5}\u{3a6}\u{39f}\u{3a3}", "\u{3c3}\u{3af}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c2}"),
            ("\u{1c4}", "d\u{17e}"),
            ("\u{fb01}", "FI"),
            ("\u{ff21}", "a"),
            ("\u{212a}", "k"),
            ("\u{130}", "i\u{307}"),
            ("\u{42f}", "\u{44f}"),
            ("\u{17f}", "S"),
            ("\u{210e}", "H"),
            ("\u{2460}", "1"),
        ] {
            assert_eq!(fold(left), fold(right), "{left} {right}");
        }
        assert_ne!(fold("\u{e9}"), fold("e"));
    }

    #[test]
    fn every_character_folds_once() {
        for character in '\0'..=char::MAX {
            let once = fold(&character.to_string());
            assert_eq!(fold(&once), once, "{:x}", u32::from(character));
            // The octets a character has at least one of: no character vanishes.
            assert!(!once.is_empty());
        }
    }

    #[test]
    fn needles() {
        assert!(Needle::new("CAF\u{c9}").is_in("the caf\u{e9}"));
        assert!(Needle::new("cafe").is_in("the caf\u{e9}"));
        assert!(!Needle::new("caf\u{e9}").is_in("the cafe"));
        assert!(Needle::new("").is_in(""));
        assert_eq!(Needle::new("B").find("abc"), Some(1));
    }

    #[test]
    fn boundaries_part_texts() {
        let needle = Needle::new("ab");
        let mut matcher = Matcher::new(&needle);
        assert!(!matcher.push("a"));
        assert!(!matcher.boundary());
        assert!(!matcher.push("b"));
        assert!(!matcher.push("A"));
        assert!(matcher.push("B"));
        assert!(matcher.push("x"));
        assert!(Matcher::new(&Needle::new("")).is_found());
    }

    proptest! {
        #[test]
        fn chunks_match_like_the_whole(text in "[abAB\u{e9}\u{c9}\u{130}\u{df}s]{0,12}", needle in "[ab\u{e9}\u{307}s]{0,4}") {
            let needle = Needle::new(&needle);
            let whole = needle.is_in(&text);
            for step in 1..4 {
                let mut matcher = Matcher::new(&needle);
                let characters: Vec<char> = text.chars().collect();
                for chunk in characters.chunks(step) {
                    matcher.push(&chunk.iter().collect::<String>());
                }
                prop_assert_eq!(matcher.is_found(), whole);
            }
        }

        #[test]
        fn folding_is_a_homomorphism(left in ".{0,8}", right in ".{0,8}") {
            prop_assert_eq!(fold(&format!("{left}{right}")), fold(&left) + &fold(&right));
            prop_assert_eq!(fold(&fold(&left)), fold(&left));
        }
    }
}
