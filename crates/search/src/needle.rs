//! A needle, taken apart into what the tokens of a text that contains it must look like.

use memchr::memmem::Finder;

use crate::format::DELIMITER;
use crate::links::{
    BEFORE_BYTES, BEHIND_BYTES, CONTEXT_BYTES, GAP_EDGE_BYTES, JOINT_GAP_BYTES, PAIR, TRIPLE, is_in_a_link,
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
    /// It is in a link wherever it is in a text: links that contain it are hits, and there are no others.
    pub(crate) is_link: bool,
    /// It has one word and beside it no more than a context has: contexts that contain it are hits, and other contexts are none.
    pub(crate) is_context: bool,
    /// It begins and ends with a word: joints that contain it are hits.
    pub(crate) is_joint: bool,
    /// Each run of it: some token is as it says.
    pub(crate) runs: Vec<RunCondition>,
    /// Where a gap of it begins or ends beside a word that it has no joint with: some link has these bytes.
    pub(crate) edges: Vec<Piece>,
    /// Words of it that have a joint.
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
    /// Its place among the runs.
    pub(crate) number: usize,
    pub(crate) token: Piece,
    /// Or, of a word, some context.
    pub(crate) context: Option<Piece>,
}

/// Two words of the needle that meet over a short gap: some joint has them, or as much of them as a joint has.
#[derive(Clone, Debug)]
pub(crate) struct PairCondition {
    /// What every such joint has.
    pub(crate) core: Piece,
    /// The places of the two words among the runs.
    pub(crate) words: [usize; 2],
    before: Vec<u8>,
    behind: Vec<u8>,
    /// Whether `before` is all of a word, and `behind`.
    is_whole: [bool; 2],
    /// Where the words end in `core`.
    core_ends: [usize; 2],
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
    fn new([before, gap, behind]: [&[u8]; 3], words: [usize; 2], is_whole: [bool; 2]) -> Self {
        let (start, end) = (tail(before, BEFORE_BYTES), head(behind, BEHIND_BYTES));
        let core = Piece::new(&[start, gap, end], false, false);
        let core_ends = [start.len(), start.len() + gap.len()];
        PairCondition { core, words, before: before.to_vec(), behind: behind.to_vec(), is_whole, core_ends }
    }

    /// Whether a joint without its mark, which has the core at `at`, is of the two words or may be. Of what is no joint it does not matter.
    pub(crate) fn fit(&self, joint: &[u8], at: usize) -> Fit {
        let [before_end, behind_start] = self.core_ends.map(|end| at.saturating_add(end));
        let (Some(before), Some(behind)) = (joint.get(..before_end), joint.get(behind_start..)) else {
            return Fit::Not;
        };
        let [is_before_whole, is_behind_whole] = self.is_whole;
        let (is_before_cut, is_behind_cut) = (before.len() < self.before.len(), behind.len() < self.behind.len());
        // A word that is longer than what is kept of a word is all there.
        let fits_before = match is_before_cut {
            true => before.len() <= BEFORE_BYTES,
            false => before.ends_with(&self.before) && !(is_before_whole && before.len() > self.before.len()),
        };
        let fits_behind = match is_behind_cut {
            true => behind.len() <= BEHIND_BYTES,
            false => behind.starts_with(&self.behind) && !(is_behind_whole && behind.len() > self.behind.len()),
        };
        match (fits_before && fits_behind, is_before_cut || is_behind_cut) {
            (false, _) => Fit::Not,
            (true, true) => Fit::Cut,
            (true, false) => Fit::Whole,
        }
    }
}

/// How a joint is to two words of a needle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Of others.
    Not,
    /// Of these, as much as it has; it is cut, so that one of its words is not frequent.
    Cut,
    /// It has them all.
    Whole,
}

impl Needle {
    /// The needle for a folded text. An empty one is in every document.
    pub fn new(folded: &str) -> Self {
        let mut all: Vec<(&[u8], Class)> = Vec::new();
        runs(folded, |run, class| all.push((run.as_bytes(), class)));
        let last = all.len().saturating_sub(1);
        let run_at = |at: Option<usize>| at.and_then(|at| all.get(at)).map_or(&[][..], |(run, _)| *run);
        let is_short = folded.len() <= NEEDLE_EXACT_BYTES_MAX;
        let (mut conditions, mut edges) = (Vec::new(), Vec::new());
        let (mut pairs, mut triples) = (Vec::<PairCondition>::new(), Vec::new());
        // The gap of the last pair.
        let mut pair_at = None;
        for (n, (run, class)) in all.iter().enumerate() {
            let (begins, ends) = (n > 0, n < last);
            let (left, right) = (run_at(n.checked_sub(1)), run_at(Some(n + 1)));
            let is_joined = *class == Class::Between && begins && ends && run.len() <= JOINT_GAP_BYTES;
            if is_joined {
                pairs.push(PairCondition::new([left, run, right], [n - 1, n + 1], [n > 1, n + 1 < last]));
                if pair_at.is_some_and(|at| at + 2 == n) {
                    let words = [run_at(n.checked_sub(3)), run_at(n.checked_sub(2)), left, run, right];
                    triples.push((pairs.len() - 2, pairs.len() - 1, Piece::new(&words, false, false)));
                }
                pair_at = Some(n);
            } else if *class == Class::Between && all.len() > 1 {
                if begins {
                    edges.push(Piece::new(&[tail(left, BEFORE_BYTES), head(run, GAP_EDGE_BYTES)], false, false));
                }
                if ends {
                    edges.push(Piece::new(&[tail(run, GAP_EDGE_BYTES), head(right, BEHIND_BYTES)], false, false));
                }
            }
            // That somewhere such a gap stands between two words says next to nothing.
            if !is_joined {
                let around = [tail(left, CONTEXT_BYTES), run, head(right, CONTEXT_BYTES)];
                let context = (*class == Class::Word).then(|| Piece::new(&around, false, false));
                conditions.push(RunCondition { number: n, token: Piece::token(run, begins, ends), context });
            }
        }
        // The longest first, which fewest documents have.
        conditions.sort_by_key(|condition| usize::MAX - condition.token.pattern.len());
        let words = all.iter().filter(|(_, class)| *class == Class::Word).count();
        let first_word = all.iter().position(|(_, class)| *class == Class::Word);
        let fits = first_word.is_some_and(|at| {
            run_at(at.checked_sub(1)).len() <= CONTEXT_BYTES && run_at(Some(at + 1)).len() <= CONTEXT_BYTES
        });
        let ends_are_words =
            [all.first(), all.last()].iter().all(|run| run.is_some_and(|(_, class)| *class == Class::Word));
        // A needle that looks like a mark would be found in one.
        let is_plain = !folded.bytes().any(|byte| byte == PAIR || byte == TRIPLE);
        Needle {
            whole: (!folded.is_empty()).then(|| Piece::token(folded.as_bytes(), false, false)),
            is_short,
            is_run: all.len() <= 1,
            is_link: is_plain && is_in_a_link(&all),
            is_context: words == 1 && all.len() > 1 && fits && is_short,
            is_joint: is_plain && ends_are_words && (2..=3).contains(&words) && is_short,
            runs: conditions,
            edges,
            pairs,
            triples,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn patterns<'p>(pieces: impl IntoIterator<Item = &'p Piece>) -> Vec<String> {
        let shown = |byte: &u8| if *byte == DELIMITER { '|' } else { char::from(*byte) };
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
        assert_eq!(contexts("...you, "), ["..you, "]);
        for (needle, is_context) in [
            (" the", true),
            ("you, (", false),
            ("you, ", true),
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
        let joints = |needle: &str| patterns(Needle::new(needle).pairs.iter().map(|pair| &pair.core));
        assert_eq!(joints("new year"), ["ew ye"]);
        assert_eq!(joints("a-b c"), ["a-b", "b c"]);
        for none in ["re:", " cats", "cats ", "a  b", "a, b", "happy", " "] {
            assert!(joints(none).is_empty(), "{none:?}");
        }
        let edges = |needle: &str| patterns(&Needle::new(needle).edges);
        assert_eq!(edges("new, (year"), ["ew, ", " (ye"]);
        assert_eq!(edges(" a b."), [" a", "b."]);
        assert!(edges("a b").is_empty() && edges("...").is_empty());
        let triples = |needle: &str| patterns(Needle::new(needle).triples.iter().map(|(_, _, piece)| piece));
        assert_eq!(triples("one of the end"), ["one of the", "of the end"]);
        assert!(triples("one of, the end").is_empty());
        let fits = |needle: &str, joint: &str| {
            let pair = Needle::new(needle).pairs.pop().unwrap();
            pair.core.finder().find(joint.as_bytes()).map_or(Fit::Not, |at| pair.fit(joint.as_bytes(), at)) != Fit::Not
        };
        for (needle, joint, expected) in [
            ("other the", "er th", true),
            ("other the", "other the", true),
            ("other the", "her the", false),
            ("other the", "the the", false),
            ("of the", "of thi", false),
            ("of them", "of the", false),
            ("er th", "other these", true),
            ("other the.", "other these", false),
            (" er the", "er th", true),
            (" e the", "er th", false),
            (" r the", "er th", false),
            ("x r the", "other the", false),
        ] {
            assert_eq!(fits(needle, joint), expected, "{needle:?} {joint:?}");
        }
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
