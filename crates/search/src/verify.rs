//! Verifying an image: every checksum, the order of the tokens, the shape of the lists; and what it says of each document as one number,
//! to be compared with that of an image made anew.
//!
//! Which words were frequent when an image was made shows in its tokens and not in the numbers: contexts count as their words, joints as
//! they would be if no word were frequent, and what only frequent words have does not count.

use std::collections::{BTreeMap, HashMap};

use model::Result;

use crate::docs::DocSet;
use crate::find::{CONTEXTS, JOINTS, SECTIONS, TOKENS};
use crate::format::corrupt;
use crate::index::Index;
use crate::links::{self, CUT, JOINT_BEFORE_BYTES, JOINT_BEHIND_BYTES, JOINT_GAP, PAIR, TRIPLE};
use crate::lists;
use crate::token::{head, tail};

/// Of each document a digest of its number and of its tokens and joints in all fields, whatever their order: equal for equal sets.
pub type Digests = BTreeMap<u64, u64>;

/// FNV-1a.
fn hash(section: usize, token: &[u8]) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = token.iter().fold(step(0xcbf2_9ce4_8422_2325, section as u8), |hash, byte| step(hash, *byte));
    // Sums of hashes are compared: the bits should depend on all bytes.
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (hash >> 32)
}

/// The section and the token that a token counts as; `None`: it does not count.
fn counted(section: usize, token: &[u8]) -> Option<(usize, Vec<u8>)> {
    match section % SECTIONS {
        CONTEXTS => links::word_of(token).map(|word| (section - CONTEXTS + TOKENS, word.as_bytes().to_vec())),
        JOINTS if token.last() == Some(&TRIPLE) => None,
        JOINTS => {
            let token = token.strip_suffix(&[PAIR]).unwrap_or(token);
            let (before, behind) = links::over_a_space(token)?;
            let cut = |is_cut: bool| is_cut.then_some(CUT);
            let mut joint = Vec::new();
            joint.extend(cut(before.first() != Some(&CUT) && before.len() > JOINT_BEFORE_BYTES));
            joint.extend_from_slice(match before.first() {
                Some(&CUT) => before,
                _ => tail(before, JOINT_BEFORE_BYTES),
            });
            joint.extend_from_slice(JOINT_GAP.as_bytes());
            let is_cut = behind.last() == Some(&CUT);
            joint.extend_from_slice(if is_cut { behind } else { head(behind, JOINT_BEHIND_BYTES) });
            joint.extend(cut(!is_cut && behind.len() > JOINT_BEHIND_BYTES));
            Some((section, joint))
        }
        _ => Some((section, token.to_vec())),
    }
}

impl Index {
    /// Reads and verifies everything. `Corrupt` with the place of the first damage. Memory: 16 bytes a document and a tree of them, and
    /// for each frequent word and joint of such a bit a document.
    pub fn digests(&self) -> Result<Digests> {
        self.distrust();
        let mut digests: Digests = self.covered().iter().cloned().flatten().map(|document| (document, 0)).collect();
        if digests.len() as u64 != self.documents() {
            return Err(corrupt(0, "the documents are not as many as the footer says"));
        }
        // What several tokens count as.
        let mut shared: HashMap<(usize, Vec<u8>), Vec<u64>> = HashMap::new();
        let mut seen = 0;
        for section in 0..self.cuts().len() * SECTIONS {
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
                    let counted = counted(section, token);
                    let is_itself = counted.as_ref().is_some_and(|(of, as_token)| *of == section && as_token == token);
                    let hash = hash(section, token);
                    let (list, form) = lists.next().ok_or_else(malformed)?;
                    let mut docs = (!is_itself && counted.is_some()).then(Vec::new);
                    let mut is_stranger = false;
                    lists::each(list, form, |doc| {
                        let document = self.base().saturating_add(u64::from(doc));
                        match (digests.get_mut(&document), &mut docs) {
                            (None, _) => is_stranger = true,
                            (Some(_), Some(docs)) => docs.push(document),
                            (Some(digest), None) if is_itself => *digest = digest.wrapping_add(hash),
                            (Some(_), None) => {}
                        }
                    })
                    .ok_or_else(malformed)?;
                    if is_stranger {
                        return Err(corrupt(block.at(), "a list names a document that is not covered"));
                    }
                    if let (Some(key), Some(docs)) = (counted, docs) {
                        shared.entry(key).or_default().extend(docs);
                    }
                }
                if count != block.count() || !lists.is_at_end() {
                    return Err(malformed());
                }
            }
        }
        self.count_shared(shared, &mut digests)?;
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

    /// Counts once for each document what several of its tokens count as, if it has not been counted as itself.
    fn count_shared(&self, shared: HashMap<(usize, Vec<u8>), Vec<u64>>, digests: &mut Digests) -> Result<()> {
        for ((section, token), documents) in shared {
            let hash = hash(section, &token);
            let mut itself = DocSet::new(self.range());
            self.exactly(section, &token, &mut itself)?;
            let mut set = DocSet::new(self.range());
            documents.into_iter().for_each(|document| set.insert(document));
            set.subtract(&itself);
            for document in set.iter() {
                if let Some(digest) = digests.get_mut(&document) {
                    *digest = digest.wrapping_add(hash);
                }
            }
        }
        Ok(())
    }
}
