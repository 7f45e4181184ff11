//! Tokens: the maximal runs of characters of one class, words or what stands between words; long ones as overlapping pieces.
//!
//! The classes are fixed by number and do not depend on a version of Unicode: any division of the characters would be exact, this one
//! makes short tokens that many documents share. What an image was made with, a reader must use.
//!
//! A run longer than [`TOKEN_BYTES_MAX`] becomes pieces of that length, each beginning [`STRIDE`] bytes after the one before. So any
//! [`NEEDLE_EXACT_BYTES_MAX`] bytes of a run lie together in one piece: the first piece begins the run, the last one ends it and is no
//! shorter than that.
//!
//! Where words meet, more is noted: see [`crate::links`].

use crate::frequent::FrequentField;
use crate::links::{Links, Run};

/// The longest token, bytes.
pub const TOKEN_BYTES_MAX: usize = 128;
/// A needle of one class up to this length is answered exactly, bytes.
pub const NEEDLE_EXACT_BYTES_MAX: usize = 64;
/// How far the pieces of a long run are apart: any needle that begins before the next piece ends within this one.
const STRIDE: usize = TOKEN_BYTES_MAX - NEEDLE_EXACT_BYTES_MAX + 1;

/// The class of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Letters, digits, marks, and whatever else a script writes words with.
    Word,
    /// White space, punctuation, symbols, controls.
    Between,
}

impl Class {
    #[inline]
    pub(crate) fn of(character: char) -> Class {
        let is_word = match character {
            '\0'..='\x7f' => character.is_ascii_alphanumeric(),
            // Controls and signs of Latin-1, times, divided by; punctuation and symbols; punctuation of East Asia and its forms.
            '\u{80}'..='\u{bf}' | '\u{d7}' | '\u{f7}' => false,
            '\u{2000}'..='\u{206f}' | '\u{2190}'..='\u{2bff}' => false,
            '\u{3000}'..='\u{3004}' | '\u{3008}'..='\u{3020}' | '\u{3030}' => false,
            '\u{fe10}'..='\u{fe1f}' | '\u{fe30}'..='\u{fe6f}' | '\u{fff9}'..='\u{fffd}' => false,
            _ => true,
        };
        if is_word { Class::Word } else { Class::Between }
    }
}

/// Calls `run` with each maximal run of one class in `text`, and the class.
#[inline]
pub(crate) fn runs<'t>(text: &'t str, mut run: impl FnMut(&'t str, Class)) {
    let mut start = 0;
    let mut class = None;
    for (at, character) in text.char_indices() {
        let next = Class::of(character);
        if class != Some(next) {
            if let Some(class) = class {
                run(text.get(start..at).unwrap_or_default(), class);
            }
            (start, class) = (at, Some(next));
        }
    }
    if let Some(class) = class {
        run(text.get(start..).unwrap_or_default(), class);
    }
}

/// How the texts of a field are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Not at all: any needle lies inside one token. For short texts that many documents share.
    Whole,
    /// Into words and what stands between.
    Tokens,
    /// The same, and what meets is noted as well: needles of several tokens have fewer wrong candidates, short ones none.
    Joints,
}

impl Cut {
    /// Its number in an image.
    pub(crate) fn code(self) -> u32 {
        match self {
            Cut::Whole => 0,
            Cut::Tokens => 1,
            Cut::Joints => 2,
        }
    }

    pub(crate) fn of_code(code: u32) -> Option<Self> {
        [Cut::Whole, Cut::Tokens, Cut::Joints].into_iter().find(|cut| cut.code() == code)
    }
}

/// What the tokenizer found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A token.
    Token,
    /// A frequent word with what surrounds it.
    Context,
    /// Where words meet, or a word and what is none.
    Joint,
}

/// The first `len` bytes, or all.
pub(crate) fn head(bytes: &[u8], len: usize) -> &[u8] {
    bytes.get(..len).unwrap_or(bytes)
}

/// The last `len` bytes, or all.
pub(crate) fn tail(bytes: &[u8], len: usize) -> &[u8] {
    bytes.get(bytes.len().saturating_sub(len)..).unwrap_or(bytes)
}

/// Cuts texts that come in chunks into tokens. Memory: a few tokens.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// The run so far, or the end of it that the next piece needs.
    open: Vec<u8>,
    class: Option<Class>,
    /// How the open run begins, when it was too long to be there still.
    head: Vec<u8>,
    links: Links,
}

impl Tokens {
    /// Takes the next chunk of a text, all of whose chunks are cut alike.
    pub(crate) fn push(
        &mut self,
        chunk: &str,
        cut: Cut,
        frequent: Option<&FrequentField>,
        mut emit: impl FnMut(Kind, &[u8]),
    ) {
        if cut == Cut::Whole {
            self.class = Some(Class::Word);
            return self.extend(chunk.as_bytes(), &mut emit);
        }
        let end = chunk.len();
        let mut at = 0;
        runs(chunk, |run, class| {
            if self.class != Some(class) {
                self.end_run(cut, frequent, &mut emit);
            }
            let run = run.as_bytes();
            at += run.len();
            if at < end && self.open.is_empty() && run.len() <= TOKEN_BYTES_MAX {
                // The usual case: the run begins and ends here.
                let run = Run { class, start: run, end: run, is_whole: true };
                return follow(&mut self.links, &run, cut, frequent, &mut emit);
            }
            self.class = Some(class);
            self.extend(run, &mut emit);
        });
    }

    /// More of the open run.
    fn extend(&mut self, run: &[u8], emit: &mut impl FnMut(Kind, &[u8])) {
        for piece in run.chunks(TOKEN_BYTES_MAX) {
            self.open.extend_from_slice(piece);
            while let Some(piece) = self.open.get(..TOKEN_BYTES_MAX).filter(|_| self.open.len() > TOKEN_BYTES_MAX) {
                emit(Kind::Token, piece);
                if self.head.is_empty() {
                    self.head.extend_from_slice(head(piece, HEAD_BYTES));
                }
                self.open.drain(..STRIDE);
            }
        }
    }

    fn end_run(&mut self, cut: Cut, frequent: Option<&FrequentField>, emit: &mut impl FnMut(Kind, &[u8])) {
        if let Some(class) = self.class.take().filter(|_| !self.open.is_empty()) {
            let is_whole = self.head.is_empty();
            let start = if is_whole { &self.open } else { &self.head };
            let run = Run { class, start, end: &self.open, is_whole };
            follow(&mut self.links, &run, cut, frequent, emit);
            self.open.clear();
        }
        self.head.clear();
    }

    /// The text ends; no run reaches into the next one.
    pub(crate) fn end(&mut self, cut: Cut, frequent: Option<&FrequentField>, emit: &mut impl FnMut(Kind, &[u8])) {
        self.end_run(cut, frequent, emit);
        self.links.end(emit);
    }
}

/// Of a long run so much is kept of the beginning: more than anything notes of it.
const HEAD_BYTES: usize = 8;

/// A run has ended: its last token, and what it links.
#[inline]
fn follow(
    links: &mut Links,
    run: &Run<'_>,
    cut: Cut,
    frequent: Option<&FrequentField>,
    emit: &mut impl FnMut(Kind, &[u8]),
) {
    let is_frequent = cut == Cut::Joints && frequent.is_some_and(|frequent| Links::is_frequent(frequent, run));
    if !is_frequent {
        emit(Kind::Token, run.end);
    }
    if cut == Cut::Joints {
        links.run(run, is_frequent, frequent, emit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(chunks: &[&str], cut: Cut, wanted: Kind) -> Vec<String> {
        let mut tokens = Tokens::default();
        let mut all = Vec::new();
        let mut emit = |kind: Kind, token: &[u8]| {
            if kind == wanted {
                all.push(token.iter().copied().map(char::from).collect());
            }
        };
        for chunk in chunks {
            tokens.push(chunk, cut, None, &mut emit);
        }
        tokens.end(cut, None, &mut emit);
        all
    }

    fn tokens(chunks: &[&str]) -> Vec<String> {
        let bytes = cut(chunks, Cut::Tokens, Kind::Token);
        let bytes = bytes.iter().map(|token| token.chars().map(|byte| byte as u8).collect::<Vec<u8>>());
        bytes.map(|token| String::from_utf8_lossy(&token).into_owned()).collect()
    }

    fn joints(chunks: &[&str]) -> Vec<String> {
        cut(chunks, Cut::Joints, Kind::Joint)
    }

    #[test]
    fn joints_are_where_words_meet() {
        assert_eq!(joints(&["the quick bro", "wn, fox"]), ["he qu", "ck br", "wn, ", ", fo"]);
        for none in ["word", "...", " ", ""] {
            assert!(joints(&[none]).is_empty(), "{none:?}");
        }
        let (word, gap) = ("abcdefgh".repeat(40), ".,;:".repeat(60));
        assert_eq!(joints(&[&word, " ", &word]), ["gh ab"]);
        assert_eq!(joints(&[&word, &gap, &word]), ["gh.,", ";:ab"]);
    }

    #[test]
    fn whole_texts_are_one_token() {
        assert_eq!(cut(&["Re: ", "a b"], Cut::Whole, Kind::Token), ["Re: a b"]);
        assert!(cut(&["Re: ", "a b"], Cut::Whole, Kind::Joint).is_empty());
        assert_eq!(cut(&["a b".repeat(50).as_str()], Cut::Whole, Kind::Token).len(), 2);
    }

    #[test]
    fn runs_of_one_class() {
        assert_eq!(tokens(&["hello, world 42x--"]), ["hello", ", ", "world", " ", "42x", "--"]);
        assert_eq!(
            tokens(&["cafe\u{301} \u{201c}stra", "sse\u{201d}"]),
            ["cafe\u{301}", " \u{201c}", "strasse", "\u{201d}"]
        );
        assert_eq!(tokens(&["a", "", "b", " ", " c"]), ["ab", "  ", "c"]);
        assert_eq!(tokens(&[""]), Vec::<String>::new());
        assert_eq!(tokens(&["\u{65e5}\u{672c}\u{3002}\u{6771}"]), ["\u{65e5}\u{672c}", "\u{3002}", "\u{6771}"]);
    }

    #[test]
    fn long_runs_overlap_enough() {
        for len in [1usize, 64, 127, 128, 129, 192, 193, 194, 257, 258, 1000] {
            let run: Vec<u8> = (0..len).map(|n| b'a' + (n * n / 7 % 26) as u8).collect();
            let text = String::from_utf8_lossy(&run).into_owned();
            let pieces = tokens(&[&text]);
            assert!(pieces.iter().all(|piece| piece.len() <= TOKEN_BYTES_MAX), "{len}");
            for size in [1, 40, NEEDLE_EXACT_BYTES_MAX] {
                for needle in run.windows(size) {
                    let has = |piece: &String| piece.as_bytes().windows(size).any(|window| window == needle);
                    assert!(pieces.iter().any(has), "{len} {size}");
                }
                let end = &text[len.saturating_sub(size)..];
                assert!(pieces.last().is_some_and(|last| last.ends_with(end)), "{len} {size}");
                assert!(pieces.first().is_some_and(|first| first.starts_with(&text[..size.min(len)])), "{len}");
            }
        }
    }

    #[test]
    fn every_character_has_a_class() {
        let words = (0..=255u8).map(char::from).filter(|character| Class::of(*character) == Class::Word);
        let expected =
            ('0'..='9').chain('A'..='Z').chain('a'..='z').chain('\u{c0}'..='\u{d6}').chain('\u{d8}'..='\u{f6}');
        assert!(words.eq(expected.chain('\u{f8}'..='\u{ff}')));
    }

    proptest! {
        #[test]
        fn chunks_are_no_borders(text in "[a-c ,\u{e9}]{0,300}", cuts in prop::collection::vec(0usize..300, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            prop_assert_eq!(tokens(&chunks), tokens(&[&text]));
            prop_assert_eq!(joints(&chunks), joints(&[&text]));
            prop_assert_eq!(cut(&chunks, Cut::Whole, Kind::Token), cut(&[&text], Cut::Whole, Kind::Token));
        }
    }
}
