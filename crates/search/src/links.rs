//! What is noted of the places where words meet.
//!
//! * A *context*: a frequent word with up to [`CONTEXT_BEFORE_BYTES`] of what stands before it and [`CONTEXT_BEHIND_BYTES`] behind it. It is there instead of the word
//!   itself, for each different surrounding.
//! * A *joint*: two words that meet. Of two frequent words all, with a gap of up to [`GAP_BYTES_MAX`]; of others over a single space,
//!   and only the last [`JOINT_BEFORE_BYTES`] of the first and the first [`JOINT_BEHIND_BYTES`] of the second, with a [`CUT`] where
//!   something is left out.
//! * A *triple*: three frequent words whose two joints are both frequent pairs. Such a joint ends with [`PAIR`], a triple with
//!   [`TRIPLE`]: of a document that has two joints of three words with the mark and no triple, it is known that it has not the three.
//!
//! The marks stand only at the ends of tokens, where no word has such a byte.

use crate::frequent::{FREQUENT_BYTES_MAX, FrequentField};
use crate::token::{Class, Kind, head, tail};

/// Bytes of what stands before a word that a context has.
pub(crate) const CONTEXT_BEFORE_BYTES: usize = 2;
/// Bytes of what stands behind it: after a word nearly always comes a single space or a single sign.
pub(crate) const CONTEXT_BEHIND_BYTES: usize = 1;
/// The gap over which any two words have a joint.
pub(crate) const JOINT_GAP: &str = " ";
/// The longest gap over which two frequent words have one, bytes.
pub(crate) const GAP_BYTES_MAX: usize = 4;
/// Bytes of a word before the gap that is not frequent.
pub(crate) const JOINT_BEFORE_BYTES: usize = 2;
/// Bytes of a word behind it that is not frequent.
pub(crate) const JOINT_BEHIND_BYTES: usize = 3;
/// Stands where a word is cut.
pub(crate) const CUT: u8 = 1;
/// Ends a joint of two words that are a frequent pair.
pub(crate) const PAIR: u8 = 2;
/// Ends a triple.
pub(crate) const TRIPLE: u8 = 3;

/// A run of one class: its beginning and its end, both all of it when it is whole.
#[derive(Clone, Copy)]
pub(crate) struct Run<'t> {
    pub(crate) class: Class,
    pub(crate) start: &'t [u8],
    pub(crate) end: &'t [u8],
    pub(crate) is_whole: bool,
}

/// Follows the runs of one text. Memory: two words.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The word before, as a joint has it; empty: none.
    before: Vec<u8>,
    is_before_frequent: bool,
    /// What follows it; `None`: longer than a joint may have.
    gap: Option<Vec<u8>>,
    /// What stands before the next word.
    left: Vec<u8>,
    /// A frequent word with what stands before it, when what is behind is not known yet.
    context: Vec<u8>,
    /// The last joint, if it is a frequent pair.
    pair: Vec<u8>,
    token: Vec<u8>,
}

impl Links {
    /// Whether a run is a word that has contexts instead of being a token.
    #[inline]
    pub(crate) fn is_frequent(frequent: &FrequentField, run: &Run<'_>) -> bool {
        run.class == Class::Word
            && run.is_whole
            && run.start.len() <= FREQUENT_BYTES_MAX
            && frequent.words.contains(run.start)
    }

    /// The next run, and whether it is a [frequent word](Links::is_frequent).
    #[inline]
    pub(crate) fn run(
        &mut self,
        run: &Run<'_>,
        is_frequent: bool,
        frequent: Option<&FrequentField>,
        with_joints: bool,
        mut emit: impl FnMut(Kind, &[u8]),
    ) {
        match run.class {
            Class::Word => {
                if with_joints {
                    self.join(run, is_frequent, frequent, &mut emit);
                    self.before.clear();
                    let (word, is_cut) = match is_frequent {
                        true => (run.start, false),
                        false => (tail(run.end, JOINT_BEFORE_BYTES), run.end.len() > JOINT_BEFORE_BYTES),
                    };
                    self.before.extend(is_cut.then_some(CUT));
                    self.before.extend_from_slice(word);
                    self.is_before_frequent = is_frequent;
                }
                if is_frequent {
                    self.context.clear();
                    self.context.extend_from_slice(&self.left);
                    self.context.extend_from_slice(run.start);
                }
            }
            Class::Between => {
                if !self.context.is_empty() {
                    self.context.extend_from_slice(head(run.start, CONTEXT_BEHIND_BYTES));
                    emit(Kind::Context, &self.context);
                    self.context.clear();
                }
                self.left.clear();
                self.left.extend_from_slice(tail(run.end, CONTEXT_BEFORE_BYTES));
                if with_joints && !self.before.is_empty() {
                    let fits = run.is_whole && run.start.len() <= GAP_BYTES_MAX;
                    let gap = self.gap.take().filter(|_| fits);
                    self.gap = fits.then(|| {
                        let mut gap = gap.unwrap_or_default();
                        gap.clear();
                        gap.extend_from_slice(run.start);
                        gap
                    });
                }
            }
        }
    }

    /// A word comes after a gap: the joint, and perhaps the triple.
    #[inline]
    fn join(
        &mut self,
        run: &Run<'_>,
        is_frequent: bool,
        frequent: Option<&FrequentField>,
        emit: &mut impl FnMut(Kind, &[u8]),
    ) {
        let Some(gap) = self.gap.as_ref().filter(|_| !self.before.is_empty()) else {
            return self.pair.clear();
        };
        let are_frequent = self.is_before_frequent && is_frequent;
        if !are_frequent && gap != JOINT_GAP.as_bytes() {
            return self.pair.clear();
        }
        self.token.clear();
        if are_frequent {
            self.token.extend_from_slice(&self.before);
            self.token.extend_from_slice(gap);
            self.token.extend_from_slice(run.start);
        } else {
            // Of a frequent word that is kept whole.
            let is_cut = self.is_before_frequent && self.before.len() > JOINT_BEFORE_BYTES;
            let before = if is_cut { tail(&self.before, JOINT_BEFORE_BYTES) } else { &self.before };
            self.token.extend(is_cut.then_some(CUT));
            self.token.extend_from_slice(before);
            self.token.extend_from_slice(gap);
            self.token.extend_from_slice(head(run.start, JOINT_BEHIND_BYTES));
            self.token.extend((run.start.len() > JOINT_BEHIND_BYTES).then_some(CUT));
        }
        let is_pair = are_frequent && frequent.is_some_and(|frequent| frequent.pairs.contains(self.token.as_slice()));
        if !is_pair {
            emit(Kind::Joint, &self.token);
            return self.pair.clear();
        }
        self.token.push(PAIR);
        emit(Kind::Joint, &self.token);
        self.token.pop();
        if !self.pair.is_empty() {
            self.pair.extend_from_slice(gap);
            self.pair.extend_from_slice(run.start);
            self.pair.push(TRIPLE);
            emit(Kind::Joint, &self.pair);
        }
        std::mem::swap(&mut self.pair, &mut self.token);
    }

    /// The text ends.
    pub(crate) fn end(&mut self, mut emit: impl FnMut(Kind, &[u8])) {
        if !self.context.is_empty() {
            emit(Kind::Context, &self.context);
        }
        self.context.clear();
        self.before.clear();
        self.left.clear();
        self.pair.clear();
        self.gap = None;
    }
}

/// The word of a context.
pub(crate) fn word_of(context: &[u8]) -> Option<&str> {
    // What surrounds it may be parts of characters: the word begins and ends where whole ones do.
    (0..=CONTEXT_BEFORE_BYTES.min(context.len())).find_map(|from| {
        (0..=CONTEXT_BEHIND_BYTES).find_map(|less| {
            let word = context.get(from..context.len().checked_sub(less)?).filter(|word| !word.is_empty())?;
            let word = std::str::from_utf8(word).ok()?;
            word.chars().all(|character| Class::of(character) == Class::Word).then_some(word)
        })
    })
}

/// The two words of a joint without the mark of a pair, cuts included, if a single space is between them.
pub(crate) fn over_a_space(joint: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = joint.iter().position(|byte| JOINT_GAP.as_bytes() == [*byte])?;
    let (before, behind) = (joint.get(..at)?, joint.get(at + 1..)?);
    let is_word = |character: Option<char>| character.is_none_or(|character| Class::of(character) == Class::Word);
    // What is no whole text is a word that was cut.
    let last = std::str::from_utf8(before).ok().and_then(|text| text.chars().next_back());
    let first = behind.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    (is_word(last) && is_word(first)).then_some((before, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_contexts() {
        for (context, word) in
            [("the", "the"), (" the ", "the"), (", the.", "the"), ("\u{ab}\u{e9}t\u{e9}", "\u{e9}t\u{e9}")]
        {
            assert_eq!(word_of(context.as_bytes()), Some(word), "{context:?}");
        }
        let cut = ["\u{201c}".as_bytes().get(1..), Some(b"it"), "\u{2014}".as_bytes().get(..1)]
            .map(Option::unwrap_or_default);
        assert_eq!(word_of(&cut.concat()), Some("it"));
        assert_eq!(word_of(b".. "), None);
    }

    #[test]
    fn joints_over_a_space() {
        let shown = |joint: &[u8]| over_a_space(joint).map(|(before, behind)| (before.to_vec(), behind.to_vec()));
        assert_eq!(shown(b"of the"), Some((b"of".to_vec(), b"the".to_vec())));
        assert_eq!(shown(b"\x01he wor\x01"), Some((b"\x01he".to_vec(), b"wor\x01".to_vec())));
        let cut = ["\u{43b}\u{44f} ".as_bytes(), &"\u{434}\u{43b}".as_bytes()[..3], b"\x01"].concat();
        assert!(shown(&cut).is_some());
        for none in [&b"of, the"[..], b"of  the", b"of (the", b"http://www", b"of\r\nthe", b"of (x"] {
            assert_eq!(shown(none), None);
        }
    }
}
