//! Sets of non-zero numbers as ranges: UIDs, sequence numbers, the values of a sequence-set (RFC 9051 §9).

use std::fmt;

use crate::Uid;

/// A set of numbers from 1 to 2³²-1, kept as sorted, disjoint, non-adjacent, inclusive ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumSet {
    ranges: Vec<(u32, u32)>,
}

/// A set of UIDs.
pub type UidSet = NumSet;

impl NumSet {
    /// The empty set.
    pub const fn new() -> Self {
        NumSet { ranges: Vec::new() }
    }

    /// The numbers `first..=last` in either order; zero is left out.
    pub fn range(first: u32, last: u32) -> Self {
        let mut set = NumSet::new();
        set.insert_range(first, last);
        set
    }

    /// Adds one number. Appending in rising order costs constant time.
    pub fn insert(&mut self, number: u32) {
        self.insert_range(number, number);
    }

    /// Adds the numbers `first..=last` in either order; zero is left out.
    pub fn insert_range(&mut self, first: u32, last: u32) {
        let (low, high) = (first.min(last).max(1), first.max(last));
        if high == 0 {
            return;
        }
        // The usual case: behind everything so far, or at its end.
        match self.ranges.last_mut() {
            None => return self.ranges.push((low, high)),
            Some(end) if low > end.1 => {
                if low - 1 == end.1 {
                    end.1 = high;
                } else {
                    self.ranges.push((low, high));
                }
                return;
            }
            Some(end) if low >= end.0 => {
                end.1 = end.1.max(high);
                return;
            }
            Some(_) => {}
        }
        let from = self.ranges.partition_point(|range| range.1 < low.saturating_sub(1));
        let to = self.ranges.partition_point(|range| range.0 <= high.saturating_add(1));
        let merged = match self.ranges.get(from..to) {
            Some([first, .., last]) => (low.min(first.0), high.max(last.1)),
            Some([only]) => (low.min(only.0), high.max(only.1)),
            _ => (low, high),
        };
        self.ranges.splice(from..to, [merged]);
    }

    /// Whether `number` is in the set.
    pub fn contains(&self, number: u32) -> bool {
        let at = self.ranges.partition_point(|range| range.1 < number);
        self.ranges.get(at).is_some_and(|range| range.0 <= number)
    }

    /// Whether the UID is in the set.
    pub fn contains_uid(&self, uid: Uid) -> bool {
        self.contains(uid.get())
    }

    /// The ranges, inclusive, rising.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// The numbers, rising.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.ranges.iter().flat_map(|range| range.0..=range.1)
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|range| u64::from(range.1 - range.0) + 1).sum()
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u32> {
        self.ranges.first().map(|range| range.0)
    }

    /// The largest number.
    pub fn last(&self) -> Option<u32> {
        self.ranges.last().map(|range| range.1)
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &NumSet) -> NumSet {
        let mut out = NumSet::new();
        let (mut a, mut b) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let (low, high) = (x.0.max(y.0), x.1.min(y.1));
            if low <= high {
                out.insert_range(low, high);
            }
            if x.1 < y.1 {
                a.next();
            } else {
                b.next();
            }
        }
        out
    }

    /// What is here and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &NumSet) -> NumSet {
        let mut out = NumSet::new();
        let mut cuts = other.ranges.iter().peekable();
        for &(first, last) in &self.ranges {
            let mut low = u64::from(first);
            let last = u64::from(last);
            while let Some(cut) = cuts.peek() {
                if u64::from(cut.1) < low {
                    cuts.next();
                    continue;
                }
                if u64::from(cut.0) > last {
                    break;
                }
                if u64::from(cut.0) > low {
                    out.insert_range(low as u32, cut.0 - 1);
                }
                low = u64::from(cut.1) + 1;
                if low > last {
                    break;
                }
            }
            if low <= last {
                out.insert_range(low as u32, last as u32);
            }
        }
        out
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &NumSet) -> NumSet {
        let mut out = NumSet { ranges: Vec::with_capacity(self.ranges.len().max(other.ranges.len())) };
        let (mut a, mut b) = (self.ranges.as_slice(), other.ranges.as_slice());
        // The lower one first, so that each goes behind what is there or widens its end.
        while let (Some((x, after_x)), Some((y, after_y))) = (a.split_first(), b.split_first()) {
            let (first, last) = *x.min(y);
            if x <= y {
                a = after_x
            } else {
                b = after_y
            }
            out.insert_range(first, last);
        }
        for range in a.iter().chain(b) {
            out.insert_range(range.0, range.1);
        }
        out
    }
}

impl FromIterator<u32> for NumSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut set = NumSet::new();
        set.extend(numbers);
        set
    }
}

impl Extend<u32> for NumSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, numbers: I) {
        for number in numbers {
            self.insert(number);
        }
    }
}

impl FromIterator<Uid> for NumSet {
    fn from_iter<I: IntoIterator<Item = Uid>>(uids: I) -> Self {
        uids.into_iter().map(Uid::get).collect()
    }
}

/// As a sequence-set or uid-set: `1:3,5,7:9`; nothing for the empty set, which the grammar cannot write.
impl fmt::Display for NumSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, range) in self.ranges.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            match range {
                (first, last) if first == last => write!(f, "{first}")?,
                (first, last) => write!(f, "{first}:{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn display_is_a_sequence_set() {
        let set: NumSet = [5u32, 1, 2, 3, 9, 8, 7].into_iter().collect();
        assert_eq!(set.to_string(), "1:3,5,7:9");
        assert_eq!(NumSet::range(u32::MAX, 0).to_string(), "1:4294967295");
        assert_eq!(NumSet::range(0, 0).to_string(), "");
    }

    type Ranges = Vec<(u32, u32)>;

    fn ranges() -> impl Strategy<Value = Ranges> {
        proptest::collection::vec((0u32..60, 0u32..60), 0..8)
    }

    fn both(ranges: &[(u32, u32)]) -> (NumSet, BTreeSet<u32>) {
        let (mut set, mut model) = (NumSet::new(), BTreeSet::new());
        for &(a, b) in ranges {
            set.insert_range(a, b);
            model.extend((a.min(b)..=a.max(b)).filter(|n| *n > 0));
        }
        (set, model)
    }

    proptest! {
        #[test]
        fn behaves_as_a_set(a in ranges(), b in ranges()) {
            let ((a, model_a), (b, model_b)) = (both(&a), both(&b));
            prop_assert!(a.iter().eq(model_a.iter().copied()));
            prop_assert!(a.ranges().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            prop_assert_eq!(a.len() as usize, model_a.len());
            prop_assert!((0..70).all(|n| a.contains(n) == model_a.contains(&n)));
            prop_assert!(a.intersection(&b).iter().eq(model_a.intersection(&model_b).copied()));
            prop_assert!(a.difference(&b).iter().eq(model_a.difference(&model_b).copied()));
            prop_assert!(a.union(&b).iter().eq(model_a.union(&model_b).copied()));
        }
    }
}
