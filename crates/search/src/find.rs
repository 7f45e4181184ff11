//! Which documents contain a needle: certainly, or perhaps.

use model::Result;

use crate::docs::DocSet;
use crate::format::{DELIMITER, corrupt};
use crate::index::Index;
use crate::links::{PAIR, TRIPLE};
use crate::lists::{self, Form};
use crate::needle::{Fit, Needle, PairCondition, Piece};
use crate::token::Cut;

/// Sections of a field in an image.
pub(crate) const SECTIONS: usize = 3;
/// Which of them has what.
pub(crate) const TOKENS: usize = 0;
pub(crate) const CONTEXTS: usize = 1;
pub(crate) const JOINTS: usize = 2;

/// So few documents are looked at sooner than a dictionary.
const FEW: u64 = 8;

impl Index {
    /// Adds the covered documents that contain the needle in one of these fields to `surely`, and to `maybe` others that may: none that
    /// contains it is left out of both. `Corrupt` when a block is damaged: what was added is of no use then.
    pub fn find(&self, fields: &[usize], needle: &Needle, surely: &mut DocSet, maybe: &mut DocSet) -> Result<()> {
        for field in fields {
            let Some(cut) = self.cuts().get(*field) else { continue };
            let base = field * SECTIONS;
            let Some(whole) = &needle.whole else {
                self.covered().iter().for_each(|range| surely.insert_range(range.clone()));
                continue;
            };
            match cut {
                Cut::Whole => self.piece(base + TOKENS, whole, if needle.is_short { surely } else { maybe })?,
                Cut::Tokens | Cut::Joints if needle.is_run => {
                    self.run(base, needle, if needle.is_short { surely } else { maybe })?
                }
                Cut::Tokens | Cut::Joints => self.phrase(base, needle, whole, *cut == Cut::Joints, surely, maybe)?,
            }
        }
        Ok(())
    }

    /// A needle inside one run: in the tokens, and in the words of contexts.
    fn run(&self, base: usize, needle: &Needle, found: &mut DocSet) -> Result<()> {
        for condition in &needle.runs {
            self.piece(base + TOKENS, &condition.token, found)?;
            if let Some(context) = &condition.context {
                self.piece(base + CONTEXTS, context, found)?;
            }
        }
        Ok(())
    }

    /// A needle of several runs.
    fn phrase(
        &self,
        base: usize,
        needle: &Needle,
        whole: &Piece,
        has_links: bool,
        surely: &mut DocSet,
        maybe: &mut DocSet,
    ) -> Result<()> {
        if has_links && (needle.is_link || needle.is_context) {
            self.piece(base + CONTEXTS, whole, surely)?;
        }
        if has_links && (needle.is_link || needle.is_joint) {
            self.piece(base + JOINTS, whole, surely)?;
        }
        if has_links && needle.is_link {
            return Ok(());
        }
        if let Some(all) = self.candidates(base, needle, has_links)? {
            all.iter().for_each(|doc| maybe.insert(doc));
        }
        Ok(())
    }

    /// The documents that have all that a text with a needle of several runs has. None may be missing, others may be there: when
    /// few are left, the rest is not asked.
    fn candidates(&self, base: usize, needle: &Needle, has_links: bool) -> Result<Option<DocSet>> {
        let mut all: Option<DocSet> = None;
        let is_few = |all: &Option<DocSet>| all.as_ref().is_some_and(|all| all.len() <= FEW);
        let keep = |all: &mut Option<DocSet>, have: DocSet| match all {
            Some(all) => all.intersect_with(&have),
            None => *all = Some(have),
        };
        // Where a run is a token, and no frequent word.
        let mut rare: Vec<(usize, DocSet)> = Vec::new();
        for run in &needle.runs {
            let mut have = DocSet::new(self.range());
            self.piece(base + TOKENS, &run.token, &mut have)?;
            if !needle.pairs.is_empty() {
                rare.push((run.number, have.clone()));
            }
            // What the contexts of a word have to say of such a needle has been said.
            if let Some(context) = run.context.as_ref().filter(|_| has_links && !needle.is_context) {
                self.piece(base + CONTEXTS, context, &mut have)?;
            }
            keep(&mut all, have);
            if is_few(&all) {
                return Ok(all);
            }
        }
        if !has_links {
            return Ok(all);
        }
        for edge in &needle.edges {
            let mut have = DocSet::new(self.range());
            self.piece(base + JOINTS, edge, &mut have)?;
            if !needle.is_context {
                self.piece(base + CONTEXTS, edge, &mut have)?;
            }
            keep(&mut all, have);
            if is_few(&all) {
                return Ok(all);
            }
        }
        let mut pairs = Vec::new();
        for pair in &needle.pairs {
            let pair = self.pair(base + JOINTS, pair, &rare)?;
            keep(&mut all, pair.any());
            if is_few(&all) {
                return Ok(all);
            }
            pairs.push(pair);
        }
        for (a, b, words) in &needle.triples {
            let (Some(a), Some(b)) = (pairs.get(*a), pairs.get(*b)) else { continue };
            let mut have = DocSet::new(self.range());
            self.piece(base + JOINTS, words, &mut have)?;
            // Where both pairs have the mark, a triple would be there.
            for (one, other) in [(a, b), (b, a)] {
                let mut both = one.plain.clone();
                both.intersect_with(&other.any());
                have.union_with(&both);
            }
            keep(&mut all, have);
        }
        Ok(all)
    }

    /// The documents that have a joint of two words. `rare`: for each word where it is not frequent.
    fn pair(&self, section: usize, pair: &PairCondition, rare: &[(usize, DocSet)]) -> Result<Pair> {
        let nothing = || DocSet::new(self.range());
        let mut found = Pair { plain: nothing(), marked: nothing() };
        let mut cut = nothing();
        self.each_hit(section, &pair.core, |token, at, list, form| {
            let (joint, set) = match token.split_last() {
                Some((&PAIR, joint)) => (joint, &mut found.marked),
                // Its pairs are there by themselves.
                Some((&TRIPLE, _)) => return Some(()),
                _ => (token, &mut found.plain),
            };
            match pair.fit(joint, at) {
                Fit::Not => Some(()),
                Fit::Cut => lists::add_to(list, form, self.base(), &mut cut),
                Fit::Whole => lists::add_to(list, form, self.base(), set),
            }
        })?;
        // Of two frequent words the joint is whole.
        let mut either = nothing();
        rare.iter().filter(|(word, _)| pair.words.contains(word)).for_each(|(_, docs)| either.union_with(docs));
        cut.intersect_with(&either);
        found.plain.union_with(&cut);
        Ok(found)
    }

    /// Adds the documents that have a token with the piece.
    fn piece(&self, section: usize, piece: &Piece, found: &mut DocSet) -> Result<()> {
        self.each_hit(section, piece, |_, _, list, form| lists::add_to(list, form, self.base(), found))
    }

    /// Gives each token with the piece, where in it that begins, and the token's list. `visit` says `None` of a list that is malformed.
    fn each_hit(
        &self,
        section: usize,
        piece: &Piece,
        mut visit: impl FnMut(&[u8], usize, &[u8], Form) -> Option<()>,
    ) -> Result<()> {
        let range = self.section_blocks(section);
        let range = if piece.is_prefix { self.blocks_with_prefix(range, piece.prefix())? } else { range };
        range.into_iter().try_for_each(|number| self.hits_in_block(number, piece, &mut visit))
    }

    fn hits_in_block(
        &self,
        number: usize,
        piece: &Piece,
        visit: &mut impl FnMut(&[u8], usize, &[u8], Form) -> Option<()>,
    ) -> Result<()> {
        let block = self.block(number)?;
        let tokens = block.tokens;
        let malformed = || corrupt(block.at(), "a block is malformed");
        let Some(mut hit) = piece.finder().find(tokens) else { return Ok(()) };
        let mut lists = self.lists(&block)?;
        // Where the token of the last hit ends, and how many tokens end before it.
        let mut at = 0;
        loop {
            // A pattern that begins with a delimiter begins behind it; the delimiter ends the token before.
            let inside = if tokens.get(hit) == Some(&DELIMITER) { hit + 1 } else { hit };
            let before = tokens.get(at..inside).ok_or_else(malformed)?;
            let skipped = memchr::memchr_iter(DELIMITER, before).count();
            // The first delimiter ends no token.
            lists.skip(if at == 0 { skipped.saturating_sub(1) } else { skipped }).ok_or_else(malformed)?;
            let (list, form) = lists.next().ok_or_else(malformed)?;
            let rest = tokens.get(inside..).unwrap_or_default();
            let end = inside + memchr::memchr(DELIMITER, rest).ok_or_else(malformed)?;
            let start =
                tokens.get(..inside).and_then(|before| memchr::memrchr(DELIMITER, before)).map_or(0, |at| at + 1);
            let token = tokens.get(start..end).unwrap_or_default();
            visit(token, inside - start, list, form).ok_or_else(malformed)?;
            // Behind the delimiter that ends the token; a pattern may begin with that very delimiter.
            at = end + 1;
            match piece.finder().find(tokens.get(end..).unwrap_or_default()) {
                Some(next) => hit = end + next,
                None => return Ok(()),
            }
        }
    }
}

/// The documents that have a joint of two words: some joint without a mark, or one with the mark of frequent pairs. It may be both.
struct Pair {
    plain: DocSet,
    marked: DocSet,
}

impl Pair {
    fn any(&self) -> DocSet {
        let mut any = self.plain.clone();
        any.union_with(&self.marked);
        any
    }
}
