//! The image: blocks, numbers, the table of the blocks, the documents that are covered, the footer. Byte tables: `docs/format-search.md`.

use model::{Error, ErrorKind};

use crate::codec::Input;

/// The first bytes of a footer.
pub const MAGIC: u64 = u64::from_le_bytes(*b"MYSRCH\x03\n");
/// Bytes of the footer.
pub const FOOTER_BYTES: usize = 64;
/// Bytes of an entry in the table of the blocks.
pub const BLOCK_ENTRY_BYTES: usize = 32;
/// Bytes of a field in the table: how it is cut, the blocks of its tokens, of its contexts and of its joints.
pub const FIELD_BYTES: usize = 16;
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
}

impl BlockEntry {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at.to_le_bytes());
        for value in [self.tokens, self.tokens_len, self.lengths_len, self.lists_len, self.tokens_crc, self.lists_crc] {
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
        })
    }
}

/// Damage at an offset of the image.
pub(crate) fn corrupt(at: u64, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("search index at {at}: {what}"))
}

/// The tables of the document, held against what the code writes.
#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;

    /// Each field of the table stands where the table says and has the value that the code was given; the table covers all.
    fn hold(heading: &str, bytes: &[u8], fields: &[(&str, u64)]) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format-search.md");
        let document = std::fs::read_to_string(path).unwrap();
        let (_, rest) = document.split_once(heading).expect("the heading is in the document");
        let rows = rest.lines().skip_while(|line| !line.starts_with("| offset |")).skip(2);
        let mut at = 0;
        let mut left: Vec<&(&str, u64)> = fields.iter().collect();
        for row in rows.take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let (offset, size): (usize, usize) = (cells[0].parse().unwrap(), cells[1].parse().unwrap());
            assert_eq!(offset, at, "{heading}: {}", cells[2]);
            at += size;
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(&bytes[offset..at]);
            let expected = match cells[2] {
                "reserved" => 0,
                "crc" => u64::from(crc32c::crc32c(&bytes[..offset])),
                name => {
                    let place = left.iter().position(|field| field.0 == name).expect("a field of the code");
                    left.remove(place).1
                }
            };
            assert_eq!(u64::from_le_bytes(wide), expected, "{heading}: {}", cells[2]);
        }
        assert_eq!(at, bytes.len(), "{heading}");
        assert!(left.is_empty(), "{heading}: not in the document: {left:?}");
    }

    #[test]
    fn footer() {
        let footer =
            Footer { base: 2, span: 3, table_at: 4, blocks: 5, fields: 6, documents: 7, table_crc: 8, numbers_crc: 9 };
        let mut bytes = Vec::new();
        footer.write(&mut bytes);
        let fields = [
            ("magic", MAGIC),
            ("base", 2),
            ("span", 3),
            ("table_at", 4),
            ("blocks", 5),
            ("fields", 6),
            ("documents", 7),
            ("table_crc", 8),
            ("numbers_crc", 9),
        ];
        hold("## Footer of a part", &bytes, &fields);
        assert_eq!(Footer::read(bytes.as_slice().try_into().unwrap()), Some(footer));
    }

    #[test]
    fn block_entry() {
        let entry =
            BlockEntry { at: 2, tokens: 3, tokens_len: 4, lengths_len: 5, lists_len: 6, tokens_crc: 7, lists_crc: 8 };
        let mut bytes = Vec::new();
        entry.write(&mut bytes);
        let fields = [
            ("at", 2),
            ("tokens", 3),
            ("tokens_len", 4),
            ("lengths_len", 5),
            ("lists_len", 6),
            ("tokens_crc", 7),
            ("lists_crc", 8),
        ];
        hold("## Entry of a block", &bytes, &fields);
        assert_eq!((bytes.len(), BlockEntry::read(&mut Input(&bytes))), (BLOCK_ENTRY_BYTES, Some(entry)));
    }
}
