//! A needle, taken apart into what the tokens of a text that contains it must look like.

use memchr::memmem::Finder;

use crate::format::DELIMITER;
use crate::token::{NEEDLE_EXACT_BYTES_MAX, TOKEN_BYTES_MAX, runs};

/// What is looked for, folded like the texts.
#[derive(Clone, Debug)]
pub struct Needle {
    pieces: Vec<Piece>,
    is_exact: bool,
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
    fn new(bytes: &str, begins: bool, ends: bool) -> Self {
        let bytes = bytes.as_bytes();
        let len = bytes.len();
        // A token that is cut into pieces keeps its beginning and its end in one piece, so far and no further.
        let is_whole = begins && ends && len <= TOKEN_BYTES_MAX;
        let (bytes, begins, ends) = match len > NEEDLE_EXACT_BYTES_MAX && !is_whole {
            false => (bytes, begins, ends),
            true if ends && !begins => (bytes.get(len - NEEDLE_EXACT_BYTES_MAX..).unwrap_or_default(), false, true),
            true => (bytes.get(..NEEDLE_EXACT_BYTES_MAX).unwrap_or_default(), begins, false),
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
        let mut parts = Vec::new();
        runs(folded, |run, _| parts.push(run));
        let last = parts.len().saturating_sub(1);
        let is_exact = parts.len() <= 1 && folded.len() <= NEEDLE_EXACT_BYTES_MAX;
        let pieces = parts.iter().enumerate();
        // A space between two words says next to nothing.
        let pieces = pieces.filter(|(n, part)| *n == 0 || *n == last || **part != " ");
        let mut pieces: Vec<Piece> = pieces.map(|(n, part)| Piece::new(part, n > 0, n < last)).collect();
        // Those that are looked up come before those that need a scan; the longest first, which fewest documents have.
        pieces.sort_by_key(|piece| (!piece.is_prefix, usize::MAX - piece.pattern.len()));
        Needle { pieces, is_exact }
    }

    /// Whether the index alone answers it: otherwise the documents found are to be verified.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(needle: &str) -> (Vec<String>, bool) {
        let needle = Needle::new(needle);
        let shown = |byte: &u8| if *byte == DELIMITER { '|' } else { char::from(*byte) };
        let text = |piece: &Piece| piece.pattern.iter().map(shown).collect();
        (needle.pieces().iter().map(text).collect(), needle.is_exact())
    }

    #[test]
    fn pieces() {
        assert_eq!(patterns("happy"), (vec!["happy".to_owned()], true));
        assert_eq!(patterns("--"), (vec!["--".to_owned()], true));
        assert_eq!(patterns("new year"), (vec!["|year".to_owned(), "new|".to_owned()], false));
        assert_eq!(patterns("a, b c"), (["|, |", "|b|", "|c", "a|"].map(str::to_owned).to_vec(), false));
        assert_eq!(patterns(""), (vec![], true));
    }

    #[test]
    fn long_pieces_are_cut() {
        let (long, longest) = ("x".repeat(100), "x".repeat(200));
        assert_eq!(patterns(&long), (vec!["x".repeat(64)], false));
        assert!(patterns(&format!("-{long}-")).0.contains(&format!("|{long}|")));
        assert!(patterns(&format!("-{longest}-")).0.contains(&format!("|{}", "x".repeat(64))));
        assert!(patterns(&format!("-{longest}")).0.contains(&format!("|{}", "x".repeat(64))));
        assert!(patterns(&format!("{longest}-")).0.contains(&format!("{}|", "x".repeat(64))));
    }
}
