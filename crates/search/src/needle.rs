//! A needle, taken apart into what the tokens of a text that contains it must look like.

use memchr::memmem::Finder;

use crate::format::DELIMITER;
use crate::links::{
    CONTEXT_BEFORE_BYTES, CONTEXT_BEHIND_BYTES, CUT, JOINT_BEFORE_BYTES, JOINT_BEHIND_BYTES, JOINT_GAP,
};
use crate::token::{Class, NEEDLE_EXACT_BYTES_MAX, TOKEN_BYTES_MAX};
use crate::token::{head, runs, tail};

/// What is looked for, folded like the texts.
#[derive(Clone, Debug)]
pub struct Needle {
    /// All of it, or as much as one token has of it when texts are not cut; none for an empty needle.
    pub(crate) whole: Option<Piece>,
    /// Short enough to be in one piece of a long token.
    pub(crate) is_short: bool,
    /// It lies inside one run.
    pub(crate) is_run: bool,
    /// It has one word and beside it no more than a context has: contexts that contain it are hits, and other contexts are none.
    pub(crate) is_context: bool,
    /// It begins and ends with a word: joints that contain it are hits.
    pub(crate) is_joint: bool,
    /// Each run of it: some token is as it says.
    pub(crate) runs: Vec<RunCondition>,
    /// Words that meet over a single space.
    pub(crate) pairs: Vec<PairCondition>,
    /// Two pairs that share a word, by their places in `pairs`, and the three words.
    pub(crate) triples: Vec<(usize, usize, Piece)>,
}

/// Some token has these bytes.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The bytes, with the delimiter before or behind them where a token must begin or end there.
    pattern: Vec<u8>,
    finder: Finder<'static>,
    /// Tokens that begin with it: they stand together in a sorted dictionary.
    pub(crate) is_prefix: bool,
}

/// A run of the needle.
#[derive(Clone, Debug)]
pub(crate) struct RunCondition {
    pub(crate) token: Piece,
    /// Or, of a word, some context.
    pub(crate) context: Option<Piece>,
}

/// Two words of the needle that meet over a single space: some joint has one of these forms.
#[derive(Clone, Debug)]
pub(crate) struct PairCondition {
    pub(crate) forms: Vec<Piece>,
}

impl Piece {
    /// Of one class, as tokens have it.
    fn token(bytes: &[u8], begins: bool, ends: bool) -> Self {
        let len = bytes.len();
        // A token that is cut into pieces keeps its beginning and its end in one piece, so far and no further.
        let is_whole = begins && ends && len <= TOKEN_BYTES_MAX;
        match len > NEEDLE_EXACT_BYTES_MAX && !is_whole {
            false => Piece::new(&[bytes], begins, ends),
            true if ends && !begins => Piece::new(&[tail(bytes, NEEDLE_EXACT_BYTES_MAX)], false, true),
            true => Piece::new(&[head(bytes, NEEDLE_EXACT_BYTES_MAX)], begins, false),
        }
    }

    pub(crate) fn new(bytes: &[&[u8]], begins: bool, ends: bool) -> Self {
        let mut pattern = Vec::new();
        pattern.extend(begins.then_some(DELIMITER));
        bytes.iter().for_each(|bytes| pattern.extend_from_slice(bytes));
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

impl PairCondition {
    /// `before` is a whole word if `begins`, else the end of one; `behind` at least the beginning of one.
    fn new(before: &[u8], begins: bool, behind: &[u8]) -> Self {
        let gap = JOINT_GAP.as_bytes();
        // As they are, in a joint that has the words whole or at least so much of them; and where a word is cut shorter.
        let mut starts: Vec<(Vec<u8>, bool)> = vec![(before.to_vec(), begins)];
        if before.len() > JOINT_BEFORE_BYTES {
            starts.push(([&[CUT], tail(before, JOINT_BEFORE_BYTES)].concat(), true));
        }
        // The end of a token is not asked for: a mark may stand there.
        let mut behinds: Vec<(Vec<u8>, bool)> = vec![(behind.to_vec(), false)];
        if behind.len() > JOINT_BEHIND_BYTES {
            behinds.push(([head(behind, JOINT_BEHIND_BYTES), &[CUT]].concat(), true));
        }
        let forms = starts.iter().flat_map(|(start, begins)| {
            behinds.iter().map(move |(behind, ends)| Piece::new(&[start, gap, behind], *begins, *ends))
        });
        PairCondition { forms: forms.collect() }
    }
}

impl Needle {
    /// The needle for a folded text. An empty one is in every document.
    pub fn new(folded: &str) -> Self {
        let mut all: Vec<(&[u8], Class)> = Vec::new();
        runs(folded, |run, class| all.push((run.as_bytes(), class)));
        let last = all.len().saturating_sub(1);
        let run_at = |at: Option<usize>| at.and_then(|at| all.get(at)).map_or(&[][..], |(run, _)| *run);
        let is_short = folded.len() <= NEEDLE_EXACT_BYTES_MAX;
        let (mut conditions, mut pairs, mut triples) = (Vec::new(), Vec::new(), Vec::new());
        // Where in the needle the last pair began.
        let mut pair_at = None;
        for (n, (run, class)) in all.iter().enumerate() {
            let (begins, ends) = (n > 0, n < last);
            let is_gap = *class == Class::Between && begins && ends;
            // That somewhere a space stands between two words says next to nothing.
            if !is_gap || *run != JOINT_GAP.as_bytes() {
                let (left, right) = (run_at(n.checked_sub(1)), run_at(Some(n + 1)));
                let around = [tail(left, CONTEXT_BEFORE_BYTES), run, head(right, CONTEXT_BEHIND_BYTES)];
                let context = (*class == Class::Word).then(|| Piece::new(&around, false, false));
                conditions.push(RunCondition { token: Piece::token(run, begins, ends), context });
            }
            if is_gap && *run == JOINT_GAP.as_bytes() {
                let (before, behind) = (run_at(n.checked_sub(1)), run_at(Some(n + 1)));
                pairs.push(PairCondition::new(before, n > 1, behind));
                if pair_at.is_some_and(|at| at + 2 == n) {
                    let words = [run_at(n.checked_sub(3)), b" ", before, b" ", behind];
                    triples.push((pairs.len() - 2, pairs.len() - 1, Piece::new(&words, false, false)));
                }
                pair_at = Some(n);
            }
        }
        // The longest first, which fewest documents have.
        conditions.sort_by_key(|condition| usize::MAX - condition.token.pattern.len());
        let words = all.iter().filter(|(_, class)| *class == Class::Word).count();
        let first_word = all.iter().position(|(_, class)| *class == Class::Word);
        let fits = first_word.is_some_and(|at| {
            run_at(at.checked_sub(1)).len() <= CONTEXT_BEFORE_BYTES
                && run_at(Some(at + 1)).len() <= CONTEXT_BEHIND_BYTES
        });
        let ends_are_words =
            [all.first(), all.last()].iter().all(|run| run.is_some_and(|(_, class)| *class == Class::Word));
        Needle {
            whole: (!folded.is_empty()).then(|| Piece::token(folded.as_bytes(), false, false)),
            is_short,
            is_run: all.len() <= 1,
            is_context: words == 1 && all.len() > 1 && fits && is_short,
            is_joint: ends_are_words && (2..=3).contains(&words) && is_short,
            runs: conditions,
            pairs,
            triples,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns<'p>(pieces: impl IntoIterator<Item = &'p Piece>) -> Vec<String> {
        let shown = |byte: &u8| match *byte {
            DELIMITER => '|',
            CUT => '~',
            byte => char::from(byte),
        };
        pieces.into_iter().map(|piece| piece.pattern.iter().map(shown).collect()).collect()
    }

    #[test]
    fn tokens() {
        let tokens = |needle: &str| patterns(Needle::new(needle).runs.iter().map(|run| &run.token));
        assert_eq!(tokens("happy"), ["happy"]);
        assert_eq!(tokens("--"), ["--"]);
        assert_eq!(tokens("new year"), ["|year", "new|"]);
        assert_eq!(tokens("a, b c"), ["|, |", "|b|", "a|", "|c"]);
        assert!(tokens("").is_empty());
    }

    #[test]
    fn contexts() {
        let contexts = |needle: &str| patterns(Needle::new(needle).runs.iter().filter_map(|run| run.context.as_ref()));
        assert_eq!(contexts("new year"), [" year", "new "]);
        assert_eq!(contexts("...you, "), ["..you,"]);
        for (needle, is_context) in [
            (" the", true),
            ("you, ", false),
            ("you,", true),
            ("\r\nthe ", true),
            ("...a", false),
            ("a b", false),
            ("the", false),
        ] {
            assert_eq!(Needle::new(needle).is_context, is_context, "{needle:?}");
        }
    }

    #[test]
    fn joints() {
        let joints = |needle: &str| patterns(Needle::new(needle).pairs.iter().flat_map(|pair| &pair.forms));
        assert_eq!(joints("new year"), ["new year", "new yea~|", "|~ew year", "|~ew yea~|"]);
        assert_eq!(joints("a b"), ["a b"]);
        assert_eq!(joints(" a b"), ["|a b"]);
        for none in ["re:", " cats", "cats ", "a  b", "a, b", "happy", " "] {
            assert!(joints(none).is_empty(), "{none:?}");
        }
        let triples = |needle: &str| patterns(Needle::new(needle).triples.iter().map(|(_, _, piece)| piece));
        assert_eq!(triples("one of the end"), ["one of the", "of the end"]);
        assert!(triples("one of, the end").is_empty());
        for (needle, is_joint) in [
            ("of the", true),
            ("one of the", true),
            ("a://b", true),
            ("a b c d", false),
            (" a b", false),
            ("ab", false),
        ] {
            assert_eq!(Needle::new(needle).is_joint, is_joint, "{needle:?}");
        }
    }

    #[test]
    fn long_pieces_are_cut() {
        let (long, longest) = ("x".repeat(100), "x".repeat(200));
        let tokens = |needle: &str| patterns(Needle::new(needle).runs.iter().map(|run| &run.token));
        assert_eq!(tokens(&long), ["x".repeat(64)]);
        assert!(tokens(&format!("-{long}-")).contains(&format!("|{long}|")));
        assert!(tokens(&format!("-{longest}-")).contains(&format!("|{}", "x".repeat(64))));
        assert!(tokens(&format!("-{longest}")).contains(&format!("|{}", "x".repeat(64))));
        assert!(tokens(&format!("{longest}-")).contains(&format!("{}|", "x".repeat(64))));
    }
}
