//! Verifying an image: every checksum, the order of the tokens, the shape of the lists; and what it says of each document as one number,
//! to be compared with that of an image made anew.

use std::collections::BTreeMap;

use model::Result;

use crate::format::corrupt;
use crate::index::Index;
use crate::lists;

/// Of each document a digest of its number and of its tokens and joints in all fields, whatever their order: equal for equal sets.
pub type Digests = BTreeMap<u64, u64>;

/// FNV-1a.
fn hash(section: usize, token: &[u8]) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = token.iter().fold(step(0xcbf2_9ce4_8422_2325, section as u8), |hash, byte| step(hash, *byte));
    // Sums of hashes are compared: the bits should depend on all bytes.
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (hash >> 32)
}

impl Index {
    /// Reads and verifies everything. `Corrupt` with the place of the first damage. Memory: 16 bytes a document and a tree of them.
    pub fn digests(&self) -> Result<Digests> {
        self.distrust();
        let mut digests: Digests = self.covered().iter().cloned().flatten().map(|document| (document, 0)).collect();
        if digests.len() as u64 != self.documents() {
            return Err(corrupt(0, "the documents are not as many as the footer says"));
        }
        let mut seen = 0;
        for section in 0..self.cuts().len() * 2 {
            let mut before: &[u8] = &[];
            for number in self.section_blocks(section) {
                seen += 1;
                let block = self.block(number)?;
                let mut lists = self.lists(&block)?;
                let malformed = || corrupt(block.at(), "a block is malformed");
                let mut count = 0;
                for token in block.each_token() {
                    count += 1;
                    if token.is_empty() || token <= before {
                        return Err(corrupt(block.at(), "the tokens are not sorted"));
                    }
                    before = token;
                    let hash = hash(section, token);
                    let (list, is_bits) = lists.next().ok_or_else(malformed)?;
                    let mut is_stranger = false;
                    lists::each(list, is_bits, |doc| {
                        let digest = digests.get_mut(&self.base().saturating_add(u64::from(doc)));
                        match digest {
                            Some(digest) => *digest = digest.wrapping_add(hash),
                            None => is_stranger = true,
                        }
                    })
                    .ok_or_else(malformed)?;
                    if is_stranger {
                        return Err(corrupt(block.at(), "a list names a document that is not covered"));
                    }
                }
                if count != block.count() || !lists.is_at_end() {
                    return Err(malformed());
                }
            }
        }
        self.each_number(|document, number| {
            if let Some(digest) = digests.get_mut(&document) {
                *digest = digest.wrapping_add(hash(usize::MAX, &number.to_le_bytes()));
            }
        })?;
        if seen != self.block_count() {
            return Err(corrupt(0, "a block belongs to no field"));
        }
        Ok(digests)
    }
}
