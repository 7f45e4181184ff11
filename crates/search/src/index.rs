//! Reading an image: which documents contain a needle.
//!
//! Every block is verified against its checksums before its bytes are believed, once as long as the image is open. What does not match is
//! `Corrupt`: then nothing that the image says may be used, since a token that is not read is a document that is missed.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU8, Ordering};

use model::Result;
use platform::Mapped;

use crate::codec::Input;
use crate::docs::DocSet;
use crate::find::{SECTIONS, TOKENS};
use crate::format::{BLOCK_ENTRY_BYTES, BlockEntry, DELIMITER, FIELDS_MAX, FOOTER_BYTES, Footer, NO_NUMBER, corrupt};
use crate::lists::Form;
use crate::sides::{List, split_code};
use crate::token::Cut;

/// A block's tokens, or its lists, were verified.
const TOKENS_VERIFIED: u8 = 1;
const LISTS_VERIFIED: u8 = 2;

/// An image that can be asked.
#[derive(Debug)]
pub struct Index {
    image: Mapped,
    footer: Footer,
    blocks: Vec<BlockEntry>,
    /// How the texts of each field are cut.
    cuts: Vec<Cut>,
    /// Which blocks belong to each section: the tokens of a field, its contexts, its joints, those of the next one.
    sections: Vec<Range<usize>>,
    /// The blocks whose lists say how words stand in the documents.
    sided: Vec<Range<usize>>,
    /// The documents, as ranges that rise and do not touch.
    covered: Vec<Range<u64>>,
    verified: Vec<AtomicU8>,
    are_numbers_verified: AtomicU8,
}

/// One block, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'i> {
    number: usize,
    entry: BlockEntry,
    pub(crate) tokens: &'i [u8],
}

/// The lists of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists<'i> {
    lengths: Input<'i>,
    lists: &'i [u8],
    at: usize,
    /// Each says how its word stands in the documents.
    has_sides: bool,
}

impl<'i> Lists<'i> {
    /// The length of the next token's list with its form, and the number beside them.
    #[inline]
    fn length(&mut self) -> Option<(u64, u64)> {
        let value = self.lengths.varint()?;
        Some(if self.has_sides { split_code(value) } else { (value, 0) })
    }

    /// The next token's list.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<List<'i>> {
        let (length, code) = self.length()?;
        let end = self.at.checked_add(usize::try_from(length >> Form::CODE_BITS).ok()?)?;
        let list = self.lists.get(self.at..end)?;
        self.at = end;
        let form = Form::of_code(length)?;
        if self.has_sides { List::with_sides(list, form, code) } else { Some(List::plain(list, form)) }
    }

    /// Passes over lists.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> Option<()> {
        for _ in 0..count {
            let (length, _) = self.length()?;
            self.at = self.at.checked_add(usize::try_from(length >> Form::CODE_BITS).ok()?)?;
        }
        Some(())
    }

    /// Whether all lengths were read and all lists are theirs.
    pub(crate) fn is_at_end(&self) -> bool {
        self.lengths.0.is_empty() && self.at == self.lists.len()
    }
}

/// Whether the lists of a section say how words stand in the documents.
pub(crate) fn has_sides(cuts: &[Cut], section: usize) -> bool {
    section % SECTIONS == TOKENS && cuts.get(section / SECTIONS) == Some(&Cut::Joints)
}

/// What the end of an image says.
struct Parsed {
    footer: Footer,
    blocks: Vec<BlockEntry>,
    cuts: Vec<Cut>,
    sections: Vec<Range<usize>>,
    covered: Vec<Range<u64>>,
}

impl Index {
    /// Opens an image. `Corrupt` when its footer or table is damaged or of another version; blocks are verified when they are read.
    pub fn open(image: Mapped) -> Result<Index> {
        let at = image.len().saturating_sub(FOOTER_BYTES) as u64;
        let parsed = Self::parse(&image).ok_or_else(|| corrupt(at, "the footer or the table is damaged"))?;
        let Parsed { footer, blocks, cuts, sections, covered } = parsed;
        let verified = blocks.iter().map(|_| AtomicU8::new(0)).collect();
        let are_numbers_verified = AtomicU8::new(0);
        let sided = (0..sections.len()).filter(|section| has_sides(&cuts, *section));
        let sided = sided.filter_map(|section| sections.get(section).cloned()).collect();
        Ok(Index { image, footer, blocks, cuts, sections, sided, covered, verified, are_numbers_verified })
    }

    fn parse(image: &[u8]) -> Option<Parsed> {
        let (body, footer) = image.split_last_chunk::<FOOTER_BYTES>()?;
        let footer = Footer::read(footer)?;
        let table = body.get(usize::try_from(footer.table_at).ok()?..)?;
        let blocks_len = (footer.blocks as usize).checked_mul(BLOCK_ENTRY_BYTES)?;
        if footer.fields as usize > FIELDS_MAX || crc32c::crc32c(table) != footer.table_crc || blocks_len > table.len()
        {
            return None;
        }
        footer.base.checked_add(footer.span)?;
        let mut input = Input(table);
        let (mut cuts, mut sections) = (Vec::new(), Vec::new());
        let mut from = 0usize;
        for _ in 0..footer.fields {
            cuts.push(Cut::of_code(input.u32()?)?);
            for _ in 0..SECTIONS {
                let to = from.checked_add(input.u32()? as usize)?;
                sections.push(from..to);
                from = to;
            }
        }
        if from != footer.blocks as usize {
            return None;
        }
        let mut blocks = Vec::with_capacity(from);
        for _ in 0..from {
            blocks.push(BlockEntry::read(&mut input)?);
        }
        let mut covered = Vec::new();
        let mut at = 0u64;
        while !input.0.is_empty() {
            let first = at.checked_add(input.varint()?)?;
            at = first.checked_add(input.varint()?)?.checked_add(1)?;
            covered.push(footer.base.checked_add(first)?..footer.base.checked_add(at)?);
        }
        let numbers_len = footer.span.checked_mul(4)?;
        let is_sound = at <= footer.span && numbers_len <= footer.table_at;
        is_sound.then_some(Parsed { footer, blocks, cuts, sections, covered })
    }

    /// The image itself.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Its length, bytes.
    pub fn bytes(&self) -> u64 {
        self.image.len() as u64
    }

    /// How many documents it covers.
    pub fn documents(&self) -> u64 {
        self.footer.documents
    }

    /// The documents that it covers, as ranges that rise. Of others it says nothing.
    pub fn covered(&self) -> &[Range<u64>] {
        &self.covered
    }

    /// The range that the documents lie in.
    pub fn range(&self) -> Range<u64> {
        self.footer.base..self.footer.base.saturating_add(self.footer.span)
    }

    /// How the texts of each field are cut.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Bytes of the tokens of these fields: what a search of them looks through.
    pub fn token_bytes(&self, fields: &[usize]) -> u64 {
        let blocks = fields.iter().filter_map(|field| self.blocks.get(self.section_blocks(field * SECTIONS)));
        blocks.flatten().map(|block| u64::from(block.tokens_len)).sum()
    }

    /// What the image consists of: of each section, as `field.section`, the tokens, and the bytes of these and of their lists.
    pub fn section_bytes(&self) -> Vec<(String, [u64; 3])> {
        let sum = |section: usize| {
            let blocks = self.blocks.get(self.section_blocks(section)).unwrap_or_default().iter();
            blocks.fold([0; 3], |[tokens, token_bytes, lists], block| {
                let lists_len = u64::from(block.lengths_len) + u64::from(block.lists_len);
                [tokens + u64::from(block.tokens), token_bytes + u64::from(block.tokens_len), lists + lists_len]
            })
        };
        let sections = (0..self.cuts.len() * SECTIONS).map(|n| (format!("{}.{}", n / SECTIONS, n % SECTIONS), sum(n)));
        sections.filter(|(_, [tokens, ..])| *tokens > 0).collect()
    }

    pub(crate) fn base(&self) -> u64 {
        self.footer.base
    }

    /// Adds the documents whose number is in the range.
    pub fn find_numbers(&self, numbers: RangeInclusive<i32>, found: &mut DocSet) -> Result<()> {
        self.each_number(|document, number| {
            if numbers.contains(&number) {
                found.insert(document);
            }
        })
    }

    /// Gives the documents that have a number, and it.
    pub(crate) fn each_number(&self, mut visit: impl FnMut(u64, i32)) -> Result<()> {
        let len = self.footer.span.saturating_mul(4);
        let at = self.footer.table_at.saturating_sub(len);
        let bounds = usize::try_from(at).ok().zip(usize::try_from(self.footer.table_at).ok());
        let bytes = bounds.and_then(|(from, to)| self.image.get(from..to)).unwrap_or_default();
        if self.are_numbers_verified.load(Ordering::Relaxed) == 0 {
            if crc32c::crc32c(bytes) != self.footer.numbers_crc {
                return Err(corrupt(at, "the numbers do not match their checksum"));
            }
            self.are_numbers_verified.store(1, Ordering::Relaxed);
        }
        let (numbers, _) = bytes.as_chunks::<4>();
        for (document, number) in (self.base()..).zip(numbers) {
            let number = i32::from_le_bytes(*number);
            if number != NO_NUMBER {
                visit(document, number);
            }
        }
        Ok(())
    }

    /// Those of a section's blocks that may have tokens with this beginning.
    pub(crate) fn blocks_with_prefix(&self, range: Range<usize>, prefix: &[u8]) -> Result<Range<usize>> {
        // The first block whose first token is greater than every token with the prefix; the one that begins below it comes before.
        let mut bounds = [range.start, range.start];
        for (bound, or_equal) in bounds.iter_mut().zip([false, true]) {
            let (mut low, mut high) = (range.start, range.end);
            while low < high {
                let middle = low + (high - low) / 2;
                let first = self.block(middle)?.first_token();
                let is_before = if or_equal { first < prefix || first.starts_with(prefix) } else { first < prefix };
                if is_before {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            *bound = low;
        }
        let [start, end] = bounds;
        Ok(start.saturating_sub(1).max(range.start)..end)
    }

    pub(crate) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn section_blocks(&self, section: usize) -> Range<usize> {
        self.sections.get(section).cloned().unwrap_or(0..0)
    }

    /// The part of the image from `at` on, `len` bytes.
    fn part(&self, at: u64, len: u32) -> Option<&[u8]> {
        let at = usize::try_from(at).ok()?;
        self.image.get(at..at.checked_add(len as usize)?)
    }

    /// A block, its tokens verified.
    pub(crate) fn block(&self, number: usize) -> Result<Block<'_>> {
        let missing = || corrupt(self.footer.table_at, "there is no such block");
        let entry = *self.blocks.get(number).ok_or_else(missing)?;
        let tokens = self.part(entry.at, entry.tokens_len).ok_or_else(missing)?;
        self.verify(number, TOKENS_VERIFIED, entry, || crc32c::crc32c(tokens) == entry.tokens_crc)?;
        Ok(Block { number, entry, tokens })
    }

    /// The lists of a block, verified.
    pub(crate) fn lists<'i>(&'i self, block: &Block<'i>) -> Result<Lists<'i>> {
        let entry = block.entry;
        let missing = || corrupt(entry.at, "a block reaches behind the image");
        let at = entry.at.saturating_add(u64::from(entry.tokens_len));
        let lengths = self.part(at, entry.lengths_len).ok_or_else(missing)?;
        let lists = self.part(at.saturating_add(u64::from(entry.lengths_len)), entry.lists_len).ok_or_else(missing)?;
        self.verify(block.number, LISTS_VERIFIED, entry, || {
            crc32c::crc32c_append(crc32c::crc32c(lengths), lists) == entry.lists_crc
        })?;
        let has_sides = self.sided.iter().any(|blocks| blocks.contains(&block.number));
        Ok(Lists { lengths: Input(lengths), lists, at: 0, has_sides })
    }

    fn verify(&self, number: usize, what: u8, entry: BlockEntry, is_whole: impl FnOnce() -> bool) -> Result<()> {
        let Some(verified) = self.verified.get(number) else { return Ok(()) };
        if verified.load(Ordering::Relaxed) & what == 0 {
            if !is_whole() {
                return Err(corrupt(entry.at, "a block does not match its checksum"));
            }
            verified.fetch_or(what, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Forgets what was verified: a check reads everything again.
    pub(crate) fn distrust(&self) {
        self.verified.iter().for_each(|verified| verified.store(0, Ordering::Relaxed));
        self.are_numbers_verified.store(0, Ordering::Relaxed);
    }
}

impl<'i> Block<'i> {
    /// The first token; empty when the block is malformed.
    fn first_token(&self) -> &'i [u8] {
        self.each_token().next().unwrap_or_default()
    }

    /// The tokens in order.
    pub(crate) fn each_token(&self) -> impl Iterator<Item = &'i [u8]> + use<'i> {
        let tokens = self.tokens.strip_prefix(&[DELIMITER]).unwrap_or_default();
        let tokens = tokens.strip_suffix(&[DELIMITER]).unwrap_or_default();
        tokens.split(|byte| *byte == DELIMITER)
    }

    /// How many tokens the table says that there are.
    pub(crate) fn count(&self) -> usize {
        self.entry.tokens as usize
    }

    /// Where it begins in the image.
    pub(crate) fn at(&self) -> u64 {
        self.entry.at
    }
}
