//! A needle, taken apart into what the tokens of a text that contains it must look like.

use memchr::memmem::Finder;

use crate::format::DELIMITER;
use crate::token::{Cut, JOINT_BEFORE_BYTES, JOINT_BEHIND_BYTES, JOINT_GAP, NEEDLE_EXACT_BYTES_MAX, TOKEN_BYTES_MAX};
use crate::token::{head, runs, tail};

/// What is looked for, folded like the texts.
#[derive(Clone, Debug)]
pub struct Needle {
    /// All of it, as it is in one token when texts are not cut; none for an empty needle.
    whole: Vec<Piece>,
    tokens: Vec<Piece>,
    joints: Vec<Piece>,
    /// Short enough to be in one piece of a long token.
    is_short: bool,
    /// It lies inside one token.
    is_token: bool,
    /// It lies inside one joint.
    is_joint: bool,
}

/// One condition: some token has these bytes.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The bytes, with the delimiter before or behind them where a token must begin or end there.
    pattern: Vec<u8>,
    finder: Finder<'static>,
    /// Tokens that begin with it: they stand together in a sorted dictionary.
    pub(crate) is_prefix: bool,
}

impl Piece {
    fn new(bytes: &[u8], begins: bool, ends: bool) -> Self {
        let len = bytes.len();
        // A token that is cut into pieces keeps its beginning and its end in one piece, so far and no further.
        let is_whole = begins && ends && len <= TOKEN_BYTES_MAX;
        let (bytes, begins, ends) = match len > NEEDLE_EXACT_BYTES_MAX && !is_whole {
            false => (bytes, begins, ends),
            true if ends && !begins => (tail(bytes, NEEDLE_EXACT_BYTES_MAX), false, true),
            true => (head(bytes, NEEDLE_EXACT_BYTES_MAX), begins, false),
        };
        let mut pattern = Vec::with_capacity(bytes.len() + 2);
        pattern.extend(begins.then_some(DELIMITER));
        pattern.extend_from_slice(bytes);
        pattern.extend(ends.then_some(DELIMITER));
        Piece { finder: Finder::new(&pattern).into_owned(), pattern, is_prefix: begins }
    }

    /// What to look for in a block of the dictionary.
    pub(crate) fn finder(&self) -> &Finder<'static> {
        &self.finder
    }

    /// Of a piece that begins a token: how the tokens begin.
    pub(crate) fn prefix(&self) -> &[u8] {
        let pattern = self.pattern.strip_prefix(&[DELIMITER]).unwrap_or(&self.pattern);
        pattern.strip_suffix(&[DELIMITER]).unwrap_or(pattern)
    }
}

impl Needle {
    /// The needle for a folded text. An empty one is in every document.
    pub fn new(folded: &str) -> Self {
        let mut runs_of: Vec<&str> = Vec::new();
        runs(folded, |run, _| runs_of.push(run));
        let last = runs_of.len().saturating_sub(1);
        let is_short = folded.len() <= NEEDLE_EXACT_BYTES_MAX;
        let mut tokens = Vec::new();
        let (mut joints, mut is_joint) = (Vec::new(), false);
        for (n, run) in runs_of.iter().enumerate() {
            // That somewhere a space stands between two words says next to nothing.
            if n == 0 || n == last || *run != JOINT_GAP {
                tokens.push(Piece::new(run.as_bytes(), n > 0, n < last));
            }
            if *run == JOINT_GAP
                && let Some(before) = n.checked_sub(1).and_then(|n| runs_of.get(n))
                && let Some(behind) = runs_of.get(n + 1)
            {
                let (start, end) =
                    (tail(before.as_bytes(), JOINT_BEFORE_BYTES), head(behind.as_bytes(), JOINT_BEHIND_BYTES));
                // The word before is known whole, or as much of it as a joint has; likewise the one behind.
                let begins = n > 1 || before.len() >= JOINT_BEFORE_BYTES;
                let ends = n + 1 < last || behind.len() >= JOINT_BEHIND_BYTES;
                joints.push(Piece::new(&[start, run.as_bytes(), end].concat(), begins, ends));
                is_joint = start.len() == before.len() && end.len() == behind.len();
            }
        }
        // Those that are looked up come before those that need a scan; the longest first, which fewest documents have.
        for pieces in [&mut tokens, &mut joints] {
            pieces.sort_by_key(|piece| (!piece.is_prefix, usize::MAX - piece.pattern.len()));
        }
        let whole = (!folded.is_empty()).then(|| Piece::new(folded.as_bytes(), false, false));
        Needle {
            whole: whole.into_iter().collect(),
            is_token: runs_of.len() <= 1 && is_short,
            is_joint: is_joint && runs_of.len() == 3,
            is_short,
            tokens,
            joints,
        }
    }

    /// Whether the index alone answers it in a field that is cut so: otherwise the documents found are to be verified.
    pub fn is_exact(&self, cut: Cut) -> bool {
        match cut {
            Cut::Whole => self.is_short,
            Cut::Tokens => self.is_token,
            Cut::Joints => self.is_token || self.is_joint,
        }
    }

    /// What a document must have in a field that is cut so: of tokens, and of joints.
    pub(crate) fn pieces(&self, cut: Cut) -> (&[Piece], &[Piece]) {
        match cut {
            Cut::Whole => (&self.whole, &[]),
            Cut::Tokens => (&self.tokens, &[]),
            // Such a joint is all there is to the needle.
            Cut::Joints if self.is_joint => (&[], &self.joints),
            Cut::Joints => (&self.tokens, &self.joints),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(pieces: &[Piece]) -> Vec<String> {
        let shown = |byte: &u8| if *byte == DELIMITER { '|' } else { char::from(*byte) };
        pieces.iter().map(|piece| piece.pattern.iter().map(shown).collect()).collect()
    }

    #[test]
    fn tokens() {
        let tokens = |needle: &str| patterns(Needle::new(needle).pieces(Cut::Tokens).0);
        assert_eq!(tokens("happy"), ["happy"]);
        assert_eq!(tokens("--"), ["--"]);
        assert_eq!(tokens("new year"), ["|year", "new|"]);
        assert_eq!(tokens("a, b c"), ["|, |", "|b|", "|c", "a|"]);
        assert!(tokens("").is_empty());
    }

    #[test]
    fn joints() {
        let joints = |needle: &str| patterns(Needle::new(needle).pieces(Cut::Joints).1);
        assert_eq!(joints("new year"), ["|ew yea|"]);
        assert_eq!(joints("a year"), ["a yea|"]);
        assert_eq!(joints("proof a"), ["|of a"]);
        assert_eq!(joints("x a year b"), ["|a yea|", "|ar b", "x a|"]);
        for none in ["re:", " cats", "cats ", "a  b", "a, b", "happy", " "] {
            assert!(joints(none).is_empty(), "{none:?}");
        }
    }

    #[test]
    fn exactness() {
        let exact = |needle: &str| {
            let needle = Needle::new(needle);
            [Cut::Whole, Cut::Tokens, Cut::Joints].map(|cut| needle.is_exact(cut))
        };
        assert_eq!(exact("happy"), [true, true, true]);
        assert_eq!(exact(""), [true, true, true]);
        assert_eq!(exact("of the"), [true, false, true]);
        for needle in ["re:", "off the", "of them", "a b c", "a - b", "a  b", " the"] {
            assert_eq!(exact(needle), [true, false, false], "{needle:?}");
        }
        assert_eq!(exact(&"x".repeat(65)), [false, false, false]);
    }

    #[test]
    fn long_pieces_are_cut() {
        let (long, longest) = ("x".repeat(100), "x".repeat(200));
        let tokens = |needle: &str| patterns(Needle::new(needle).pieces(Cut::Tokens).0);
        assert_eq!(tokens(&long), ["x".repeat(64)]);
        assert!(tokens(&format!("-{long}-")).contains(&format!("|{long}|")));
        assert!(tokens(&format!("-{longest}-")).contains(&format!("|{}", "x".repeat(64))));
        assert!(tokens(&format!("-{longest}")).contains(&format!("|{}", "x".repeat(64))));
        assert!(tokens(&format!("{longest}-")).contains(&format!("{}|", "x".repeat(64))));
    }
}
