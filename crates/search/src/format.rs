//! The image: blocks, numbers, the table of the blocks, the documents that are covered, the footer. Byte tables: `docs/format-search.md`.

use model::{Error, ErrorKind};

use crate::codec::Input;

/// The first bytes of a footer.
pub const MAGIC: u64 = u64::from_le_bytes(*b"MYSRCH\x01\n");
/// Bytes of the footer.
pub const FOOTER_BYTES: usize = 64;
/// Bytes of an entry in the table of the blocks.
pub const BLOCK_ENTRY_BYTES: usize = 36;
/// Bytes of a field in the table: how it is cut, the blocks of its tokens, the blocks of its joints.
pub const FIELD_BYTES: usize = 12;
/// A document without a number.
pub(crate) const NO_NUMBER: i32 = i32::MIN;
/// Fields that a document may have.
pub const FIELDS_MAX: usize = 32;
/// Stands before and behind every token: a byte that no UTF-8 text has.
pub(crate) const DELIMITER: u8 = 0xff;
/// A block is ended when its tokens take this many bytes.
pub(crate) const BLOCK_TOKENS_BYTES: usize = 16 << 10;
/// A block is ended when its lists take this many bytes.
pub(crate) const BLOCK_LISTS_BYTES: usize = 128 << 10;

/// The end of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footer {
    /// The document that stands as 0 in the lists.
    pub(crate) base: u64,
    /// Every document is below `base + span`.
    pub(crate) span: u64,
    /// Where the table begins, which reaches up to the footer.
    pub(crate) table_at: u64,
    pub(crate) blocks: u32,
    pub(crate) fields: u32,
    /// How many documents are covered.
    pub(crate) documents: u64,
    pub(crate) table_crc: u32,
    /// Of the numbers, which stand before the table.
    pub(crate) numbers_crc: u32,
}

impl Footer {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&self.base.to_le_bytes());
        out.extend_from_slice(&self.span.to_le_bytes());
        out.extend_from_slice(&self.table_at.to_le_bytes());
        out.extend_from_slice(&self.blocks.to_le_bytes());
        out.extend_from_slice(&self.fields.to_le_bytes());
        out.extend_from_slice(&self.documents.to_le_bytes());
        out.extend_from_slice(&self.table_crc.to_le_bytes());
        out.extend_from_slice(&self.numbers_crc.to_le_bytes());
        out.resize(from + FOOTER_BYTES - 4, 0);
        let crc = crc32c::crc32c(out.get(from..).unwrap_or_default());
        out.extend_from_slice(&crc.to_le_bytes());
    }

    pub(crate) fn read(bytes: &[u8; FOOTER_BYTES]) -> Option<Footer> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        let mut input = Input(body);
        if input.u64()? != MAGIC || crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        Some(Footer {
            base: input.u64()?,
            span: input.u64()?,
            table_at: input.u64()?,
            blocks: input.u32()?,
            fields: input.u32()?,
            documents: input.u64()?,
            table_crc: input.u32()?,
            numbers_crc: input.u32()?,
        })
    }
}

/// Where a block is: its tokens, then the lengths of their lists, then the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub(crate) at: u64,
    pub(crate) tokens: u32,
    pub(crate) tokens_len: u32,
    pub(crate) lengths_len: u32,
    pub(crate) lists_len: u32,
    pub(crate) tokens_crc: u32,
    /// Of the lengths and the lists.
    pub(crate) lists_crc: u32,
    pub(crate) reserved: u32,
}

impl BlockEntry {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at.to_le_bytes());
        for value in [
            self.tokens,
            self.tokens_len,
            self.lengths_len,
            self.lists_len,
            self.tokens_crc,
            self.lists_crc,
            self.reserved,
        ] {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }

    pub(crate) fn read(input: &mut Input<'_>) -> Option<BlockEntry> {
        Some(BlockEntry {
            at: input.u64()?,
            tokens: input.u32()?,
            tokens_len: input.u32()?,
            lengths_len: input.u32()?,
            lists_len: input.u32()?,
            tokens_crc: input.u32()?,
            lists_crc: input.u32()?,
            reserved: input.u32()?,
        })
    }
}

/// Damage at an offset of the image.
pub(crate) fn corrupt(at: u64, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("search index at {at}: {what}"))
}
