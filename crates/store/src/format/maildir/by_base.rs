//! Which entry has the file of a base name: kept up as names come and go, so that one new file does not cost a look at all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use twox_hash::XxHash3_64;

/// Numbers (UIDs, or positions) by digests of base names. Whoever asks compares the names.
#[derive(Clone, Debug, Default)]
pub(super) struct ByBase {
    uids: HashMap<u64, u32>,
    /// Those whose digest was taken: none, as a rule.
    others: Vec<u32>,
}

impl<'n> FromIterator<(&'n [u8], u32)> for ByBase {
    fn from_iter<I: IntoIterator<Item = (&'n [u8], u32)>>(names: I) -> Self {
        let mut by_base = ByBase::default();
        names.into_iter().for_each(|(base, uid)| by_base.insert(base, uid));
        by_base
    }
}

impl ByBase {
    pub(super) fn insert(&mut self, base: &[u8], uid: u32) {
        match self.uids.entry(XxHash3_64::oneshot(base)) {
            Entry::Vacant(vacant) => drop(vacant.insert(uid)),
            Entry::Occupied(found) if *found.get() == uid => {}
            Entry::Occupied(_) => self.others.push(uid),
        }
    }

    pub(super) fn remove(&mut self, base: &[u8], uid: u32) {
        match self.uids.entry(XxHash3_64::oneshot(base)) {
            Entry::Occupied(found) if *found.get() == uid => drop(found.remove()),
            _ => self.others.retain(|other| *other != uid),
        }
    }

    /// The entries that may have it.
    pub(super) fn candidates(&self, base: &[u8]) -> impl Iterator<Item = u32> + '_ {
        let first = self.uids.get(&XxHash3_64::oneshot(base));
        first.into_iter().chain(&self.others).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_and_removed() {
        let candidates = |by_base: &ByBase, base: &[u8]| by_base.candidates(base).collect::<Vec<_>>();
        let mut by_base = ByBase::default();
        by_base.insert(b"a", 1);
        by_base.insert(b"a", 1);
        by_base.insert(b"b", 2);
        assert_eq!((candidates(&by_base, b"a"), candidates(&by_base, b"c")), (vec![1], vec![]));
        by_base.remove(b"a", 7);
        by_base.remove(b"b", 2);
        assert_eq!((candidates(&by_base, b"a"), candidates(&by_base, b"b")), (vec![1], vec![]));
        // The same base twice, or another of the same digest.
        by_base.insert(b"a", 3);
        assert_eq!((candidates(&by_base, b"a"), candidates(&by_base, b"c")), (vec![1, 3], vec![3]));
        by_base.remove(b"a", 1);
        assert_eq!(candidates(&by_base, b"a"), [3]);
        by_base.remove(b"a", 3);
        assert_eq!(candidates(&by_base, b"a"), []);
    }
}
