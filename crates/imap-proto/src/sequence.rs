//! Sequence sets as they are written: `2,4:7,12:*`, `$` (RFC 9051 §9 sequence-set, RFC 5182 §2.1).

use std::num::NonZeroU32;

use model::NumSet;

/// A number of a sequence set (RFC 9051 §9 seq-number).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SeqNumber {
    /// A message sequence number, or a UID in a UID command.
    Number(NonZeroU32),
    /// `*`: the largest number in use.
    Largest,
}

impl SeqNumber {
    /// The number, `max` standing for `*`.
    pub fn resolve(self, max: u32) -> u32 {
        match self {
            SeqNumber::Number(number) => number.get(),
            SeqNumber::Largest => max,
        }
    }
}

/// Two numbers and all between them, in either order; a single number is a range from itself to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeqRange {
    /// The number written first.
    pub first: SeqNumber,
    /// The number written last.
    pub last: SeqNumber,
}

/// A sequence set: message sequence numbers, or UIDs in a UID command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceSet {
    /// The ranges as written.
    pub ranges: Vec<SeqRange>,
    /// Whether `$`, the saved result of a SEARCH, is part of the set.
    pub saved: bool,
}

impl SequenceSet {
    /// The numbers, `max` standing for `*`; what `$` stands for is the caller's to add. With `max` zero (an empty mailbox)
    /// `*` stands for nothing, and a range with `*` in it for nothing.
    pub fn resolve(&self, max: u32) -> NumSet {
        let mut ranges: Vec<(u32, u32)> = self
            .ranges
            .iter()
            .map(|range| (range.first.resolve(max), range.last.resolve(max)))
            .filter(|(first, last)| *first != 0 && *last != 0)
            .map(|(first, last)| (first.min(last), first.max(last)))
            .collect();
        // Rising order makes each insertion constant time.
        ranges.sort_unstable();
        let mut set = NumSet::new();
        for (first, last) in ranges {
            set.insert_range(first, last);
        }
        set
    }

    /// Whether a number above `max` is named, or `*` while `max` is zero: as message sequence numbers, such a set is answered
    /// with BAD (RFC 9051 §9 seq-number); as UIDs it is not an error.
    pub fn exceeds(&self, max: u32) -> bool {
        let outside = |number: SeqNumber| max == 0 || number.resolve(max) > max;
        self.ranges.iter().any(|range| outside(range.first) || outside(range.last))
    }
}

/// What a NumSet says, as ranges of plain numbers.
impl From<&NumSet> for SequenceSet {
    fn from(set: &NumSet) -> Self {
        let number = |n: u32| NonZeroU32::new(n).map(SeqNumber::Number);
        let ranges = set.ranges().iter().filter_map(|&(a, b)| Some(SeqRange { first: number(a)?, last: number(b)? }));
        SequenceSet { ranges: ranges.collect(), saved: false }
    }
}

/// Which part of a result is wanted, by position (RFC 9394 §4 partial-range). The positions are as written, in either order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartialRange {
    /// Positions counted from the oldest, from 1.
    FromFirst(NonZeroU32, NonZeroU32),
    /// Positions counted back from the newest, from 1: `-1:-100` is `FromLast(1, 100)`.
    FromLast(NonZeroU32, NonZeroU32),
}
