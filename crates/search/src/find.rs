//! Which documents contain a needle: certainly, or perhaps.

use model::Result;

use crate::docs::DocSet;
use crate::format::{DELIMITER, corrupt};
use crate::index::Index;
use crate::links::{PAIR, TRIPLE};
use crate::lists::{self, Form};
use crate::needle::{Needle, PairCondition, Piece};
use crate::token::Cut;

/// Sections of a field in an image.
pub(crate) const SECTIONS: usize = 3;
/// Which of them has what.
pub(crate) const TOKENS: usize = 0;
pub(crate) const CONTEXTS: usize = 1;
pub(crate) const JOINTS: usize = 2;

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
        has_joints: bool,
        surely: &mut DocSet,
        maybe: &mut DocSet,
    ) -> Result<()> {
        if needle.is_context {
            self.piece(base + CONTEXTS, whole, surely)?;
        } else if needle.is_joint && has_joints {
            self.piece(base + JOINTS, whole, surely)?;
        }
        let nothing = || DocSet::new(self.range());
        let mut conditions: Vec<DocSet> = Vec::new();
        let pairs = if has_joints { needle.pairs.as_slice() } else { &[] };
        let pairs = pairs.iter().map(|pair| self.pair(base + JOINTS, pair)).collect::<Result<Vec<_>>>()?;
        for (a, b, words) in &needle.triples {
            let (Some(a), Some(b)) = (pairs.get(*a), pairs.get(*b)) else { continue };
            let mut have = nothing();
            self.piece(base + JOINTS, words, &mut have)?;
            // Where both pairs have the mark, a triple would be there.
            for (one, other) in [(a, b), (b, a)] {
                let mut both = one.plain.clone();
                both.intersect_with(&other.any());
                have.union_with(&both);
            }
            conditions.push(have);
        }
        conditions.extend(pairs.iter().map(Pair::any));
        for run in &needle.runs {
            if conditions.last().is_some_and(DocSet::is_empty) {
                return Ok(());
            }
            let mut have = nothing();
            self.piece(base + TOKENS, &run.token, &mut have)?;
            // What the contexts of a word have to say of such a needle has been said.
            if let Some(context) = run.context.as_ref().filter(|_| !needle.is_context) {
                self.piece(base + CONTEXTS, context, &mut have)?;
            }
            conditions.push(have);
        }
        let all = conditions.into_iter().reduce(|mut all, have| {
            all.intersect_with(&have);
            all
        });
        all.iter().flat_map(DocSet::iter).for_each(|doc| maybe.insert(doc));
        Ok(())
    }

    /// The documents that have a joint of two words.
    fn pair(&self, section: usize, pair: &PairCondition) -> Result<Pair> {
        let mut found = Pair { plain: DocSet::new(self.range()), marked: DocSet::new(self.range()) };
        for form in &pair.forms {
            self.each_hit(section, form, |token_end, list, form| {
                let set = match token_end {
                    PAIR => &mut found.marked,
                    // Its pairs are there by themselves.
                    TRIPLE => return Some(()),
                    _ => &mut found.plain,
                };
                lists::add_to(list, form, self.base(), set)
            })?;
        }
        Ok(found)
    }

    /// Adds the documents that have this very token.
    pub(crate) fn exactly(&self, section: usize, token: &[u8], found: &mut DocSet) -> Result<()> {
        self.piece(section, &Piece::new(&[token], true, true), found)
    }

    /// Adds the documents that have a token with the piece.
    fn piece(&self, section: usize, piece: &Piece, found: &mut DocSet) -> Result<()> {
        self.each_hit(section, piece, |_, list, form| lists::add_to(list, form, self.base(), found))
    }

    /// Gives the list of each token with the piece, and the token's last byte. `visit` says `None` of a list that is malformed.
    fn each_hit(
        &self,
        section: usize,
        piece: &Piece,
        mut visit: impl FnMut(u8, &[u8], Form) -> Option<()>,
    ) -> Result<()> {
        let range = self.section_blocks(section);
        let range = if piece.is_prefix { self.blocks_with_prefix(range, piece.prefix())? } else { range };
        range.into_iter().try_for_each(|number| self.hits_in_block(number, piece, &mut visit))
    }

    fn hits_in_block(
        &self,
        number: usize,
        piece: &Piece,
        visit: &mut impl FnMut(u8, &[u8], Form) -> Option<()>,
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
            let last = end.checked_sub(1).and_then(|last| tokens.get(last)).copied().unwrap_or_default();
            visit(last, list, form).ok_or_else(malformed)?;
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
