//! A set of document numbers within a range, one bit each.

use std::ops::Range;

/// Documents of a range that was given when the set was made. Sets that are combined have the same range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocSet {
    /// The document of the first bit; a multiple of 64.
    base: u64,
    words: Vec<u64>,
}

impl DocSet {
    /// An empty set of documents of `range`, rounded to multiples of 64. Memory: a bit each.
    pub fn new(range: Range<u64>) -> Self {
        let base = range.start & !63;
        let len = range.end.saturating_sub(base).div_ceil(64);
        DocSet { base, words: vec![0; usize::try_from(len).unwrap_or(0)] }
    }

    /// An empty set of the same range.
    pub fn empty_like(&self) -> Self {
        DocSet { base: self.base, words: vec![0; self.words.len()] }
    }

    /// All documents of the same range.
    pub fn full_like(&self) -> Self {
        DocSet { base: self.base, words: vec![u64::MAX; self.words.len()] }
    }

    /// Puts a document in; one outside of the range is not taken.
    #[inline]
    pub fn insert(&mut self, doc: u64) {
        let at = doc.wrapping_sub(self.base);
        if let Some(word) = self.words.get_mut((at / 64) as usize) {
            *word |= 1 << (at % 64);
        }
    }

    /// Puts all documents of a range in, as far as they are in the set's range.
    pub fn insert_range(&mut self, docs: Range<u64>) {
        let end = docs.end.min(self.base.saturating_add(self.words.len() as u64 * 64));
        let mut at = docs.start.max(self.base);
        while at < end {
            let upto = ((at / 64 + 1) * 64).min(end);
            let bits = if upto - at == 64 { u64::MAX } else { ((1 << (upto - at)) - 1) << (at % 64) };
            self.insert_bits(at & !63, bits);
            at = upto;
        }
    }

    /// Puts in those of the 64 documents from `first` on whose bit is set. `first` is a multiple of 64.
    #[inline]
    fn insert_bits(&mut self, first: u64, bits: u64) {
        if let Some(word) = self.words.get_mut((first.wrapping_sub(self.base) / 64) as usize) {
            *word |= bits;
        }
    }

    /// Puts in those of the documents from `first` on whose bit is set.
    #[inline]
    pub(crate) fn insert_byte(&mut self, first: u64, bits: u8) {
        let (shift, start) = (first % 64, first & !63);
        self.insert_bits(start, u64::from(bits) << shift);
        if shift > 56 {
            self.insert_bits(start.wrapping_add(64), u64::from(bits) >> (64 - shift));
        }
    }

    /// Whether a document is in the set; one outside of the range is not.
    #[inline]
    pub fn contains(&self, doc: u64) -> bool {
        let at = doc.wrapping_sub(self.base);
        self.words.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// Adds the documents of `other`.
    pub fn union_with(&mut self, other: &DocSet) {
        self.combine(other, |a, b| a | b);
    }

    /// Keeps the documents that `other` has as well.
    pub fn intersect_with(&mut self, other: &DocSet) {
        self.combine(other, |a, b| a & b);
    }

    /// Takes the documents of `other` out.
    pub fn subtract(&mut self, other: &DocSet) {
        self.combine(other, |a, b| a & !b);
    }

    fn combine(&mut self, other: &DocSet, with: impl Fn(u64, u64) -> u64) {
        assert_eq!((self.base, self.words.len()), (other.base, other.words.len()), "sets of one range");
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word = with(*word, *other);
        }
    }

    /// How many documents are in it.
    pub fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The documents, rising.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (self.base..).step_by(64).zip(&self.words).flat_map(|(first, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(first + u64::from(bit))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ranges_and_bytes_are_as_if_one_by_one() {
        for start in 60..70 {
            for end in start..200 {
                let mut set = DocSet::new(50..150);
                set.insert_range(start..end);
                let expected: Vec<u64> = (start..end.min(192)).collect();
                assert_eq!(set.iter().collect::<Vec<_>>(), expected, "{start}..{end}");
                assert_eq!(set.len(), expected.len() as u64);
            }
        }
        for first in 0..200u64 {
            let mut set = DocSet::new(64..192);
            set.insert_byte(first, 0b1010_0101);
            let expected: Vec<u64> =
                [0, 2, 5, 7].into_iter().map(|bit| first + bit).filter(|doc| (64..192).contains(doc)).collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), expected, "{first}");
        }
    }

    #[test]
    fn sets_combine() {
        let set = |docs: &[u64]| {
            let mut set = DocSet::new(3..1000);
            docs.iter().for_each(|doc| set.insert(*doc));
            set
        };
        let (a, b) = (set(&[3, 64, 999, 5000]), set(&[64, 65, 999]));
        let both = |with: fn(&mut DocSet, &DocSet)| {
            let mut all = a.clone();
            with(&mut all, &b);
            all.iter().collect::<BTreeSet<_>>()
        };
        assert_eq!(both(DocSet::union_with), [3, 64, 65, 999].into());
        assert_eq!(both(DocSet::intersect_with), [64, 999].into());
        assert_eq!(both(DocSet::subtract), [3].into());
        assert!(a.contains(3) && !a.contains(4) && !a.contains(5000) && !a.contains(u64::MAX));
        assert!(a.empty_like().is_empty() && a.full_like().contains(4));
    }
}
