//! Verifying an image: every checksum, the order of the tokens, the shape of the lists; and what it says of each document as one number,
//! to be compared with that of an image made anew.
//!
//! Which words were frequent when a document was taken in shows in its tokens. So the new image is made with what the old one says was
//! frequent ([`Index::frequent`]): then every token must be the same.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use model::Result;

use crate::find::{CONTEXTS, JOINTS, SECTIONS};
use crate::format::corrupt;
use crate::frequent::{Frequent, FrequentField};
use crate::index::Index;
use crate::links::{self, PAIR};
use crate::lists::{self, Form};

/// Of each document a digest of its number and of its tokens in all sections, whatever their order: equal for equal sets.
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
        for section in 0..self.cuts().len() * SECTIONS {
            let mut before: &[u8] = &[];
            seen += self.section_blocks(section).len();
            self.each_token(section, |at, token, list, form| {
                if token.is_empty() || token <= before {
                    return Err(corrupt(at, "the tokens are not sorted"));
                }
                before = token;
                let hash = hash(section, token);
                let mut is_stranger = false;
                self.each_document(at, list, form, |document| match digests.get_mut(&document) {
                    Some(digest) => *digest = digest.wrapping_add(hash),
                    None => is_stranger = true,
                })?;
                match is_stranger {
                    true => Err(corrupt(at, "a list names a document that is not covered")),
                    false => Ok(()),
                }
            })?;
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

    /// For each document of a range the words and pairs of its own that were frequent when it was taken in; nothing for documents that
    /// have none. Memory: a number for each of them.
    pub fn frequent(&self, documents: Range<u64>) -> Result<BTreeMap<u64, Frequent>> {
        type Numbers = HashMap<u64, Vec<usize>>;
        let fields = self.cuts().len();
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let mut known: Vec<[Numbers; 2]> = Vec::new();
        for field in 0..fields {
            let mut of_field = [Numbers::new(), Numbers::new()];
            for (kind, section) in of_field.iter_mut().zip([CONTEXTS, JOINTS]) {
                self.each_token(field * SECTIONS + section, |at, token, list, form| {
                    let name = match section {
                        CONTEXTS => links::word_of(token).map(str::as_bytes),
                        _ => token.strip_suffix(&[PAIR]),
                    };
                    let Some(name) = name else { return Ok(()) };
                    names.push(name.into());
                    let number = names.len() - 1;
                    self.each_document(at, list, form, |document| {
                        if documents.contains(&document) {
                            kind.entry(document).or_default().push(number);
                        }
                    })
                })?;
            }
            known.push(of_field);
        }
        let ids: std::collections::BTreeSet<u64> =
            known.iter().flatten().flat_map(|numbers| numbers.keys()).copied().collect();
        let set = |numbers: &Numbers, document: u64| {
            let numbers = numbers.get(&document).map(Vec::as_slice).unwrap_or_default();
            numbers.iter().filter_map(|number| names.get(*number)).cloned().collect()
        };
        let frequent = ids.into_iter().map(|id| {
            let field = |[words, pairs]: &[Numbers; 2]| FrequentField { words: set(words, id), pairs: set(pairs, id) };
            (id, Frequent::of(known.iter().map(field).collect()))
        });
        Ok(frequent.collect())
    }

    /// Gives the tokens of a section in order, each with the place of its block and its list.
    fn each_token<'i>(
        &'i self,
        section: usize,
        mut visit: impl FnMut(u64, &'i [u8], &'i [u8], Form) -> Result<()>,
    ) -> Result<()> {
        for number in self.section_blocks(section) {
            let block = self.block(number)?;
            let mut lists = self.lists(&block)?;
            let malformed = || corrupt(block.at(), "a block is malformed");
            let mut count = 0;
            for token in block.each_token() {
                count += 1;
                let (list, form) = lists.next().ok_or_else(malformed)?;
                visit(block.at(), token, list, form)?;
            }
            if count != block.count() || !lists.is_at_end() {
                return Err(malformed());
            }
        }
        Ok(())
    }

    /// Gives the documents of a list in the block at `at`.
    fn each_document(&self, at: u64, list: &[u8], form: Form, mut visit: impl FnMut(u64)) -> Result<()> {
        let visit = |doc| visit(self.base().saturating_add(u64::from(doc)));
        lists::each(list, form, visit).ok_or_else(|| corrupt(at, "a block is malformed"))
    }
}
