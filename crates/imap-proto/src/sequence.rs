//! Sequence sets as they are written: `2,4:7,12:*`, `$` (RFC 9051 §9 sequence-set, RFC 5182 §2.1).

use std::num::NonZeroU32;

use model::NumSet;

use crate::encode::number;
use crate::error::Parse;
use crate::limits;
use crate::scan::Scan;

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

// RFC 9051 §9 sequence-set = (seq-number / seq-range) ["," sequence-set] / seq-last-command
pub(crate) fn sequence_set(scan: &mut Scan) -> Parse<SequenceSet> {
    let mut set = SequenceSet::default();
    for count in 1.. {
        if count > limits::SET_RANGES_MAX {
            return scan.over_limit("set_ranges_max");
        }
        if scan.eat(b'$') {
            set.saved = true;
        } else {
            set.ranges.push(seq_range(scan)?);
        }
        if !scan.eat(b',') {
            break;
        }
    }
    Ok(set)
}

// RFC 9051 §9 seq-range = seq-number ":" seq-number
fn seq_range(scan: &mut Scan) -> Parse<SeqRange> {
    let first = seq_number(scan)?;
    let last = if scan.eat(b':') { seq_number(scan)? } else { first };
    Ok(SeqRange { first, last })
}

// RFC 9051 §9 seq-number = nz-number / "*"
pub(crate) fn seq_number(scan: &mut Scan) -> Parse<SeqNumber> {
    if scan.eat(b'*') { Ok(SeqNumber::Largest) } else { scan.nz_number().map(SeqNumber::Number) }
}

/// A set in which neither `*` nor `$` may stand (RFC 9051 §9 uid-set, RFC 7162 §7 known-uids).
pub(crate) fn known_set(scan: &mut Scan) -> Parse<NumSet> {
    let before = scan.clone();
    let set = sequence_set(scan)?;
    let symbolic = |number: SeqNumber| number == SeqNumber::Largest;
    if set.saved || set.ranges.iter().any(|range| symbolic(range.first) || symbolic(range.last)) {
        return before.error("a set of numbers without * and $");
    }
    Ok(set.resolve(u32::MAX))
}

// RFC 9394 §4 partial-range = partial-range-first / partial-range-last
pub(crate) fn partial_range(scan: &mut Scan) -> Parse<PartialRange> {
    let from_last = scan.eat(b'-');
    let first = scan.nz_number()?;
    scan.expect(b':', ": in a partial range")?;
    if from_last {
        scan.expect(b'-', "- before the second number of a partial range")?;
    }
    let last = scan.nz_number()?;
    Ok(if from_last { PartialRange::FromLast(first, last) } else { PartialRange::FromFirst(first, last) })
}

pub(crate) fn write_sequence_set(out: &mut Vec<u8>, set: &SequenceSet) {
    let start = out.len();
    for range in &set.ranges {
        if out.len() > start {
            out.push(b',');
        }
        write_seq_number(out, range.first);
        if range.last != range.first {
            out.push(b':');
            write_seq_number(out, range.last);
        }
    }
    if set.saved {
        if out.len() > start {
            out.push(b',');
        }
        out.push(b'$');
    }
}

pub(crate) fn write_seq_number(out: &mut Vec<u8>, value: SeqNumber) {
    match value {
        SeqNumber::Number(value) => number(out, u64::from(value.get())),
        SeqNumber::Largest => out.push(b'*'),
    }
}

/// Writes a partial-range.
pub(crate) fn write_partial_range(out: &mut Vec<u8>, range: PartialRange) {
    let (sign, first, last): (&[u8], _, _) = match range {
        PartialRange::FromFirst(first, last) => (b"", first, last),
        PartialRange::FromLast(first, last) => (b"-", first, last),
    };
    out.extend_from_slice(sign);
    number(out, u64::from(first.get()));
    out.push(b':');
    out.extend_from_slice(sign);
    number(out, u64::from(last.get()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str) -> Option<SequenceSet> {
        let mut scan = Scan::new(input.as_bytes());
        let set = sequence_set(&mut scan).ok()?;
        scan.end().ok().map(|()| set)
    }

    #[test]
    fn the_examples_of_rfc_9051() {
        let resolved = |input, max| read(input).map(|set| set.resolve(max).to_string()).unwrap();
        assert_eq!(resolved("2,4:7,9,12:*", 15), "2,4:7,9,12:15");
        assert_eq!(resolved("*:4,5:7", 10), "4:10");
        assert_eq!(resolved("3291:*", 15), "15:3291");
        assert_eq!(resolved("*", 0), "");
        assert_eq!(resolved("5:*,2", 0), "2");
        let saved = read("1,$").unwrap();
        assert!(saved.saved && saved.resolve(9).to_string() == "1");
        for bad in ["", "0", "1,", "1:", ":1", "1:2:3", "4294967296", "1 ,2", "-1", "$$"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn sets_beyond_the_mailbox_are_seen() {
        let exceeds = |input, max| read(input).unwrap().exceeds(max);
        assert!(!exceeds("1:*", 1) && !exceeds("3,1:2", 3) && !exceeds("$", 0));
        assert!(exceeds("1:4", 3) && exceeds("*", 0));
    }

    #[test]
    fn a_set_has_a_limit() {
        let set = vec!["7"; limits::SET_RANGES_MAX].join(",");
        assert_eq!(read(&set).unwrap().ranges.len(), limits::SET_RANGES_MAX);
        let error = sequence_set(&mut Scan::new(format!("{set},7").as_bytes())).unwrap_err();
        assert_eq!(error.limit, Some("set_ranges_max"));
    }
}
