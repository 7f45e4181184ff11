//! Writing an image from front to back: tokens come field by field, sorted, each with its documents.

use model::{Error, ErrorKind, Result};

use crate::codec::put_varint;
use crate::find::SECTIONS;
use crate::format::{BLOCK_LISTS_BYTES, BLOCK_TOKENS_BYTES, BlockEntry, DELIMITER, Footer};
use crate::lists::{self, Form};
use crate::sides::{self, Sides};
use crate::token::Cut;

/// Takes the bytes of an image in order.
pub(crate) type Output<'o> = dyn FnMut(&[u8]) -> Result<()> + 'o;

/// An image in the making. Memory: a block and the table.
pub(crate) struct Writer<'o> {
    out: &'o mut Output<'o>,
    at: u64,
    base: u64,
    span: u64,
    cuts: Vec<Cut>,
    /// Blocks of each section: the tokens, the contexts and the joints of one field after another.
    sections: Vec<u32>,
    numbers_crc: u32,
    table: Vec<u8>,
    blocks_before: u32,
    blocks: u32,
    tokens: Vec<u8>,
    count: u32,
    lengths: Vec<u8>,
    lists: Vec<u8>,
}

impl<'o> Writer<'o> {
    pub(crate) fn new(base: u64, span: u64, cuts: &[Cut], out: &'o mut Output<'o>) -> Self {
        Writer {
            out,
            at: 0,
            base,
            span,
            cuts: cuts.to_vec(),
            sections: Vec::new(),
            numbers_crc: 0,
            table: Vec::new(),
            blocks_before: 0,
            blocks: 0,
            tokens: Vec::new(),
            count: 0,
            lengths: Vec::new(),
            lists: Vec::new(),
        }
    }

    /// The next token of the field, greater than the one before, and its documents, which rise strictly. Without documents it is left out.
    /// `sides`: of each document, in a section that has them.
    pub(crate) fn token(&mut self, token: &[u8], docs: &[u32], sides: Option<&[Sides]>) -> Result<()> {
        if docs.is_empty() {
            return Ok(());
        }
        if self.tokens.is_empty() {
            self.tokens.push(DELIMITER);
        }
        self.tokens.extend_from_slice(token);
        self.tokens.push(DELIMITER);
        let from = self.lists.len();
        let form = lists::encode(docs, &mut self.lists);
        let code = sides.map(|sides| sides::encode(sides, from, &mut self.lists));
        let length = ((self.lists.len() - from) as u64) << Form::CODE_BITS | form.code();
        put_varint(&mut self.lengths, code.map_or(length, |code| sides::put_code(length, code)));
        self.count += 1;
        if self.tokens.len() >= BLOCK_TOKENS_BYTES || self.lists.len() >= BLOCK_LISTS_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let len = |bytes: &[u8]| {
            u32::try_from(bytes.len())
                .map_err(|_| Error::new(ErrorKind::Invalid, "a list of a search index is too long"))
        };
        let entry = BlockEntry {
            at: self.at,
            tokens: self.count,
            tokens_len: len(&self.tokens)?,
            lengths_len: len(&self.lengths)?,
            lists_len: len(&self.lists)?,
            tokens_crc: crc32c::crc32c(&self.tokens),
            lists_crc: crc32c::crc32c_append(crc32c::crc32c(&self.lengths), &self.lists),
        };
        entry.write(&mut self.table);
        for part in [&mut self.tokens, &mut self.lengths, &mut self.lists] {
            (self.out)(part)?;
            self.at += part.len() as u64;
            part.clear();
        }
        self.count = 0;
        self.blocks += 1;
        Ok(())
    }

    /// What follows belongs to the next section of the field, or to the first of the next one.
    pub(crate) fn end_section(&mut self) -> Result<()> {
        self.end_block()?;
        self.sections.push(self.blocks - self.blocks_before);
        self.blocks_before = self.blocks;
        Ok(())
    }

    /// Behind all sections: a number for each document of the span.
    pub(crate) fn numbers(&mut self, numbers: &[i32]) -> Result<()> {
        let mut bytes = Vec::with_capacity(numbers.len() * 4);
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        self.numbers_crc = crc32c::crc32c(&bytes);
        (self.out)(&bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Writes the table and the footer. `covered`: the documents of the image, rising, from its base on. The image's length, bytes.
    pub(crate) fn finish(mut self, covered: impl Iterator<Item = u32>) -> Result<u64> {
        let mut tail = Vec::new();
        for (cut, blocks) in self.cuts.iter().zip(self.sections.chunks(SECTIONS)) {
            tail.extend_from_slice(&cut.code().to_le_bytes());
            blocks.iter().for_each(|blocks| tail.extend_from_slice(&blocks.to_le_bytes()));
        }
        tail.append(&mut self.table);
        let documents = put_ranges(&mut tail, covered);
        let footer = Footer {
            base: self.base,
            span: self.span,
            table_at: self.at,
            blocks: self.blocks,
            fields: self.cuts.len() as u32,
            documents,
            table_crc: crc32c::crc32c(&tail),
            numbers_crc: self.numbers_crc,
        };
        footer.write(&mut tail);
        (self.out)(&tail)?;
        Ok(self.at + tail.len() as u64)
    }
}

/// Writes rising numbers as ranges: the gap before each, and its length less one. How many numbers there were.
fn put_ranges(out: &mut Vec<u8>, docs: impl Iterator<Item = u32>) -> u64 {
    let mut put = |gap: u32, len: u32| {
        put_varint(out, u64::from(gap));
        put_varint(out, u64::from(len - 1));
    };
    let (mut next, mut first, mut documents) = (0, None, 0);
    for doc in docs {
        documents += 1;
        match first {
            Some((_, end)) if end == doc => {}
            Some((first, end)) => {
                put(first - next, end - first);
                next = end;
            }
            None => {}
        }
        first = match first {
            Some((first, end)) if end == doc => Some((first, doc + 1)),
            _ => Some((doc, doc + 1)),
        };
    }
    if let Some((first, end)) = first {
        put(first - next, end - first);
    }
    documents
}
