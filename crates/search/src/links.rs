//! What is noted of the places where words meet what is no word.
//!
//! * A *joint*: two words that meet over a gap of one byte, the last [`BEFORE_BYTES`] of the first, the gap, and the first
//!   [`BEHIND_BYTES`] of the second. Of two frequent words it is both whole, and over any gap of up to [`GAP_BYTES_MAX`].
//! * An *edge*: where another gap stands, or none of two words, the last [`BEFORE_BYTES`] of the word before it with the first
//!   [`GAP_EDGE_BYTES`] of the gap, and the last [`GAP_EDGE_BYTES`] of the gap with the first [`BEHIND_BYTES`] of the word behind it.
//! * A *context*: a frequent word with up to [`CONTEXT_BYTES`] of what stands before it and as many behind it. It is there instead of
//!   the word itself, for each different surrounding, and instead of its edges.
//! * A *triple*: three frequent words whose two joints are both frequent pairs. Such a joint ends with [`PAIR`], a triple with
//!   [`TRIPLE`]: of a document that has two joints of three words with the mark and no triple, it is known that it has not the three.
//!
//! Each of them without its mark is a piece of the text as it stands. So whatever is found in one is in the text; and what is short
//! enough to be inside one wherever it stands ([`is_in_a_link`]) is in no other text.

use crate::frequent::{FREQUENT_BYTES_MAX, FrequentField};
use crate::token::{Class, Kind, head, tail};

/// Bytes of a word before a gap.
pub(crate) const BEFORE_BYTES: usize = 2;
/// Bytes of a word behind it.
pub(crate) const BEHIND_BYTES: usize = 2;
/// Bytes of a gap beside a word, in an edge.
pub(crate) const GAP_EDGE_BYTES: usize = 2;
/// Bytes that a context has on either side of the word; at least what an edge has of a gap.
pub(crate) const CONTEXT_BYTES: usize = GAP_EDGE_BYTES;
/// The gap over which any two words have a joint, bytes.
pub(crate) const JOINT_GAP_BYTES: usize = 1;
/// The longest gap over which two frequent words have one, bytes.
pub(crate) const GAP_BYTES_MAX: usize = 4;
/// Ends a joint of two words that are a frequent pair.
pub(crate) const PAIR: u8 = 2;
/// Ends a triple.
pub(crate) const TRIPLE: u8 = 3;

/// Whether a needle of these runs is in a link wherever it is in a text: a link has so much of a word or a gap that ends the needle.
pub(crate) fn is_in_a_link(runs: &[(&[u8], Class)]) -> bool {
    match runs {
        [(gap, Class::Between), (word, Class::Word)] => gap.len() <= GAP_EDGE_BYTES && word.len() <= BEHIND_BYTES,
        [(word, Class::Word), (gap, Class::Between)] => word.len() <= BEFORE_BYTES && gap.len() <= GAP_EDGE_BYTES,
        [(before, Class::Word), (gap, Class::Between), (behind, Class::Word)] => {
            before.len() <= BEFORE_BYTES && gap.len() <= JOINT_GAP_BYTES && behind.len() <= BEHIND_BYTES
        }
        _ => false,
    }
}

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
    /// The word before: all of it if it is frequent, else its end; empty: none.
    before: Vec<u8>,
    is_before_frequent: bool,
    /// What follows it.
    gap: Gap,
    /// A frequent word with what stands before it, when what is behind is not known yet.
    context: Vec<u8>,
    /// The last joint, if it is a frequent pair.
    pair: Vec<u8>,
    token: Vec<u8>,
}

/// What stands between two words.
#[derive(Debug, Default)]
struct Gap {
    /// All of it, or its beginning, as much as an edge needs; empty: none.
    start: Vec<u8>,
    /// The same for its end.
    end: Vec<u8>,
    is_whole: bool,
}

impl Gap {
    fn set(&mut self, run: &Run<'_>) {
        self.start.clear();
        self.end.clear();
        self.is_whole = run.is_whole && run.start.len() <= GAP_BYTES_MAX;
        if self.is_whole {
            self.start.extend_from_slice(run.start);
            self.end.extend_from_slice(run.start);
        } else {
            self.start.extend_from_slice(head(run.start, GAP_EDGE_BYTES));
            self.end.extend_from_slice(tail(run.end, GAP_EDGE_BYTES));
        }
    }

    fn clear(&mut self) {
        self.start.clear();
        self.end.clear();
    }

    fn is_joined(&self) -> bool {
        self.is_whole && self.start.len() <= JOINT_GAP_BYTES
    }
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
        mut emit: impl FnMut(Kind, &[u8]),
    ) {
        match run.class {
            Class::Word => {
                if !self.gap.start.is_empty() {
                    self.meet(run, is_frequent, frequent, &mut emit);
                }
                if is_frequent {
                    self.context.clear();
                    self.context.extend_from_slice(tail(&self.gap.end, CONTEXT_BYTES));
                    self.context.extend_from_slice(run.start);
                }
                self.before.clear();
                self.before.extend_from_slice(if is_frequent { run.start } else { tail(run.end, BEFORE_BYTES) });
                self.is_before_frequent = is_frequent;
                self.gap.clear();
            }
            Class::Between => {
                if !self.context.is_empty() {
                    self.context.extend_from_slice(head(run.start, CONTEXT_BYTES));
                    emit(Kind::Context, &self.context);
                    self.context.clear();
                }
                self.gap.set(run);
            }
        }
    }

    /// A word comes after a gap, before which a word may stand.
    #[inline]
    fn meet(
        &mut self,
        run: &Run<'_>,
        is_frequent: bool,
        frequent: Option<&FrequentField>,
        emit: &mut impl FnMut(Kind, &[u8]),
    ) {
        if self.before.is_empty() || !self.gap.is_joined() {
            self.edge_before(emit);
            if !is_frequent {
                self.token.clear();
                self.token.extend_from_slice(tail(&self.gap.end, GAP_EDGE_BYTES));
                self.token.extend_from_slice(head(run.start, BEHIND_BYTES));
                emit(Kind::Joint, &self.token);
            }
        }
        if self.is_before_frequent && is_frequent && self.gap.is_whole && !self.before.is_empty() {
            return self.join(run, frequent, emit);
        }
        self.pair.clear();
        if !self.before.is_empty() && self.gap.is_joined() {
            self.token.clear();
            self.token.extend_from_slice(tail(&self.before, BEFORE_BYTES));
            self.token.extend_from_slice(&self.gap.start);
            self.token.extend_from_slice(head(run.start, BEHIND_BYTES));
            emit(Kind::Joint, &self.token);
        }
    }

    /// The edge between a word that is not frequent and the gap behind it.
    fn edge_before(&mut self, emit: &mut impl FnMut(Kind, &[u8])) {
        if !self.before.is_empty() && !self.is_before_frequent {
            self.token.clear();
            self.token.extend_from_slice(&self.before);
            self.token.extend_from_slice(head(&self.gap.start, GAP_EDGE_BYTES));
            emit(Kind::Joint, &self.token);
        }
    }

    /// Two frequent words: the joint, and perhaps the triple.
    #[inline]
    fn join(&mut self, run: &Run<'_>, frequent: Option<&FrequentField>, emit: &mut impl FnMut(Kind, &[u8])) {
        self.token.clear();
        self.token.extend_from_slice(&self.before);
        self.token.extend_from_slice(&self.gap.start);
        self.token.extend_from_slice(run.start);
        if !frequent.is_some_and(|frequent| frequent.pairs.contains(self.token.as_slice())) {
            emit(Kind::Joint, &self.token);
            return self.pair.clear();
        }
        self.token.push(PAIR);
        emit(Kind::Joint, &self.token);
        self.token.pop();
        if !self.pair.is_empty() {
            self.pair.extend_from_slice(&self.gap.start);
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
        if !self.gap.start.is_empty() {
            self.edge_before(&mut emit);
        }
        self.context.clear();
        self.before.clear();
        self.pair.clear();
        self.gap.clear();
    }
}

/// The word of a context.
pub(crate) fn word_of(context: &[u8]) -> Option<&str> {
    // What surrounds it may be parts of characters: the word begins and ends where whole ones do.
    (0..=CONTEXT_BYTES.min(context.len())).find_map(|from| {
        (0..=CONTEXT_BYTES).find_map(|less| {
            let word = context.get(from..context.len().checked_sub(less)?).filter(|word| !word.is_empty())?;
            let word = std::str::from_utf8(word).ok()?;
            word.chars().all(|character| Class::of(character) == Class::Word).then_some(word)
        })
    })
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

    /// What a text has, as it is noted without its marks.
    fn links(text: &str, frequent: &[&str]) -> Vec<String> {
        let words = frequent.iter().map(|word| word.as_bytes().into()).collect();
        let frequent = FrequentField { words, ..FrequentField::default() };
        let mut all = Vec::new();
        let mut emit = |kind, token: &[u8]| {
            if kind != Kind::Token {
                all.push(String::from_utf8_lossy(token).into_owned());
            }
        };
        let mut tokens = crate::token::Tokens::default();
        tokens.push(text, crate::token::Cut::Joints, Some(&frequent), &mut emit);
        tokens.end(crate::token::Cut::Joints, Some(&frequent), &mut emit);
        all
    }

    #[test]
    fn joints_and_edges() {
        assert_eq!(links("the quick-brown, fox", &[]), ["he qu", "ck-br", "wn, ", ", fo"]);
        assert_eq!(links(" a\r\n\r\nb.", &[]), [" a", "a\r\n", "\r\nb", "b."]);
        assert_eq!(links("...", &[]), [""; 0]);
        assert_eq!(
            links("so the end, of the day", &["the", "of"]),
            ["so th", " the ", "he en", "nd, ", ", of ", "of the", " the ", "he da"]
        );
        assert_eq!(links("the, of", &["the", "of"]), ["the, ", "the, of", ", of"]);
    }

    #[test]
    fn what_is_short_is_in_a_link() {
        use crate::token::runs;
        let fits = |needle: &str| {
            let mut all = Vec::new();
            runs(needle, |run, class| all.push((run.as_bytes(), class)));
            is_in_a_link(&all)
        };
        for needle in [". i", " bo", "n't", "i'm", "ed,", "r: ", "/s", "e t"] {
            assert!(fits(needle), "{needle:?}");
        }
        for needle in ["a", " the", "you,", ".. a", "a...", "a, b", " a "] {
            assert!(!fits(needle), "{needle:?}");
        }
        for frequent in [&[][..], &["the", "of", "it"]] {
            let text = "it's of, the (end) of - the day; it isn't \u{201c}so\u{201d}.\r\n\r\n> the it of\r\n";
            let links = links(text, frequent);
            for (start, _) in text.char_indices() {
                for needle in
                    (start + 1..=text.len()).filter_map(|end| text.get(start..end)).filter(|needle| fits(needle))
                {
                    assert!(links.iter().any(|link| link.contains(needle)), "{needle:?}");
                }
            }
        }
    }
}
