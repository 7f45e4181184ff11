//! Several images as one, without looking at any text again.

use std::ops::Range;

use model::{Error, ErrorKind, Result};

use crate::find::SECTIONS;
use crate::format::{NO_NUMBER, corrupt};
use crate::index::{Index, Lists, has_sides};
use crate::lists;
use crate::sides::Sides;
use crate::write::{Output, Writer};

/// Goes through one section of an image: the tokens of a field, its contexts or its joints.
struct Cursor<'i> {
    index: &'i Index,
    /// Blocks that are still to come.
    blocks: Range<usize>,
    tokens: Box<dyn Iterator<Item = &'i [u8]> + 'i>,
    lists: Option<Lists<'i>>,
    /// The token at which it stands.
    token: Option<&'i [u8]>,
}

impl<'i> Cursor<'i> {
    fn new(index: &'i Index, section: usize) -> Result<Self> {
        let blocks = index.section_blocks(section);
        let mut cursor = Cursor { index, blocks, tokens: Box::new(std::iter::empty()), lists: None, token: None };
        cursor.advance()?;
        Ok(cursor)
    }

    fn advance(&mut self) -> Result<()> {
        self.token = self.tokens.next();
        while self.token.is_none() {
            let Some(number) = self.blocks.next() else { return Ok(()) };
            let block = self.index.block(number)?;
            self.lists = Some(self.index.lists(&block)?);
            self.tokens = Box::new(block.each_token());
            self.token = self.tokens.next();
        }
        Ok(())
    }

    /// Appends the documents of the token at which it stands, counted from `base`, and how it stands in them.
    fn take(&mut self, base: u64, is_live: &impl Fn(u64) -> bool, docs: &mut Vec<(u32, Sides)>) -> Result<()> {
        let own = self.index.base();
        let malformed = || corrupt(own, "a list is malformed");
        let list = self.lists.as_mut().and_then(Lists::next).ok_or_else(malformed)?;
        let mut is_too_far = false;
        lists::each(&list, |doc, sides| {
            let document = own.saturating_add(u64::from(doc));
            if is_live(document) {
                match u32::try_from(document.wrapping_sub(base)) {
                    Ok(doc) => docs.push((doc, sides)),
                    Err(_) => is_too_far = true,
                }
            }
        })
        .filter(|()| !is_too_far)
        .ok_or_else(malformed)
    }
}

/// Writes one image of all documents of `indexes` for which `is_live` holds. They cover different documents and have the same fields.
/// Its length, bytes. Memory: a block of the new image, its table, the documents of one token, and four bytes a document of the range.
///
/// `Corrupt` when one of the images is damaged; `Invalid` when the documents are too far apart for one.
pub fn merge(indexes: &[&Index], is_live: &dyn Fn(u64) -> bool, out: &mut Output<'_>) -> Result<u64> {
    let base = indexes.iter().map(|index| index.range().start).min().unwrap_or(0);
    let end = indexes.iter().map(|index| index.range().end).max().unwrap_or(0);
    let span = end.saturating_sub(base);
    if span >= u64::from(u32::MAX) {
        return Err(Error::new(ErrorKind::Invalid, "the documents are too far apart for one search index"));
    }
    let cuts = indexes.first().map_or(&[][..], |index| index.cuts());
    if indexes.iter().any(|index| index.cuts() != cuts) {
        return Err(Error::new(ErrorKind::Invalid, "search indexes of different kinds"));
    }
    // Most often nothing is gone; that need not be asked for every document of every token.
    let is_all_live = indexes.iter().all(|index| index.covered().iter().cloned().flatten().all(is_live));
    let is_live = |document: u64| is_all_live || is_live(document);
    let mut put = |bytes: &[u8]| out(bytes);
    let mut writer = Writer::new(base, span, cuts, &mut put);
    let mut taken: Vec<(u32, Sides)> = Vec::new();
    let (mut docs, mut sides) = (Vec::new(), Vec::new());
    for section in 0..cuts.len() * SECTIONS {
        let mut cursors = indexes.iter().map(|index| Cursor::new(index, section)).collect::<Result<Vec<_>>>()?;
        while let Some(token) = cursors.iter().filter_map(|cursor| cursor.token).min() {
            taken.clear();
            for cursor in cursors.iter_mut().filter(|cursor| cursor.token == Some(token)) {
                cursor.take(base, &is_live, &mut taken)?;
                cursor.advance()?;
            }
            if !taken.is_sorted_by_key(|(doc, _)| *doc) {
                taken.sort_unstable_by_key(|(doc, _)| *doc);
            }
            docs.clear();
            docs.extend(taken.iter().map(|(doc, _)| *doc));
            sides.clear();
            sides.extend(taken.iter().map(|(_, sides)| *sides));
            writer.token(token, &docs, has_sides(cuts, section).then_some(&sides))?;
        }
        writer.end_section()?;
    }
    let mut numbers = vec![NO_NUMBER; usize::try_from(span).unwrap_or(0)];
    for index in indexes {
        index.each_number(|document, number| {
            let place = usize::try_from(document.wrapping_sub(base)).ok().and_then(|at| numbers.get_mut(at));
            if let Some(place) = place.filter(|_| is_live(document)) {
                *place = number;
            }
        })?;
    }
    writer.numbers(&numbers)?;
    let mut covered: Vec<Range<u64>> = indexes.iter().flat_map(|index| index.covered()).cloned().collect();
    covered.sort_unstable_by_key(|range| range.start);
    let covered = covered.into_iter().flatten().filter(|document| is_live(*document));
    // Within the span, which was compared with the largest number above.
    writer.finish(covered.map(|document| (document - base) as u32))
}
