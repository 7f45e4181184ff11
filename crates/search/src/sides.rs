//! What stands beside a word in a document: a space before it, behind it, on both sides, on none. With that a word with a space before or
//! behind it is found without a look at the text (and those are what people look for when they mean a word, not a part of one).
//!
//! Each document of a word's list has a set of these four ways, one for each way in which the word stands somewhere in it. Most words of
//! a document stand there once, and most words stand between spaces, so that nearly all sets are one of two: a bit each, or three.

use crate::codec::Input;
use crate::lists::Form;

/// A set of the four ways in which a word can stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sides(u8);

/// The byte that is looked for beside a word.
const SPACE: u8 = b' ';

impl Sides {
    /// All four, or nothing known.
    pub(crate) const ANY: Sides = Sides(0b1111);
    /// Bits of a set.
    pub(crate) const BITS: u32 = 4;

    /// The one way: whether a space stands before the word, and whether behind it.
    #[inline]
    pub(crate) fn of(before: bool, behind: bool) -> Self {
        Sides(1 << (u8::from(before) | u8::from(behind) << 1))
    }

    /// All ways that are so; `None`: either.
    pub(crate) fn with(before: Option<bool>, behind: Option<bool>) -> Self {
        // By the numbers of the ways: odd ones have a space before the word, the upper two one behind it.
        let before = before.map_or(0b1111, |before| if before { 0b1010 } else { 0b0101 });
        let behind = behind.map_or(0b1111, |behind| if behind { 0b1100 } else { 0b0011 });
        Sides(before & behind)
    }

    /// Whether some way is in both.
    #[inline]
    pub(crate) fn meets(self, other: Sides) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// The lowest bits.
    #[inline]
    pub(crate) fn of_bits(bits: u32) -> Self {
        Sides(bits as u8 & Sides::ANY.0)
    }
}

/// Whether a run before which this is, or behind which, has a space there.
#[inline]
pub(crate) fn is_space(byte: Option<&u8>) -> bool {
    byte == Some(&SPACE)
}

/// The list of a token as it stands in an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'i> {
    pub(crate) documents: &'i [u8],
    pub(crate) form: Form,
    pub(crate) sides: ListSides<'i>,
}

/// The sides of the documents of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ListSides<'i> {
    /// All have these.
    All(Sides),
    /// One after another.
    Each(&'i [u8]),
}

/// Numbers beside the length of a list in a section with sides: the one way in which the word stands in all documents, or this.
const EACH: u64 = 4;
/// How many such numbers there are.
const CODES: u64 = EACH + 1;

/// The one way that all have.
fn common(sides: &[Sides]) -> Option<Sides> {
    let (first, rest) = sides.split_first()?;
    (first.0.is_power_of_two() && rest.iter().all(|other| other == first)).then_some(*first)
}

/// Puts what `sides` says of the documents of a list, which begins at `from` in `out`, behind it. The number beside the list's length.
pub(crate) fn encode(sides: &[Sides], from: usize, out: &mut Vec<u8>) -> u64 {
    if let Some(way) = common(sides) {
        return u64::from(way.0.trailing_zeros());
    }
    let mut counts = [0u32; 16];
    for one in sides {
        if let Some(count) = counts.get_mut(usize::from(one.0)) {
            *count += 1;
        }
    }
    let most = |but: Option<u8>| {
        (0..16u8).filter(|n| but != Some(*n)).max_by_key(|n| counts.get(usize::from(*n))).unwrap_or(0)
    };
    let first = most(None);
    let second = most(Some(first));
    let len = out.len() - from;
    out.push(first | second << Sides::BITS);
    let (mut open, mut have) = (0u32, 0u32);
    for one in sides {
        let (code, bits) = match one.0 {
            one if one == first => (0, 1),
            one if one == second => (1, 2),
            one => (3 | u32::from(one) << 2, 2 + Sides::BITS),
        };
        open |= code << have;
        have += bits;
        while have >= 8 {
            out.push(open as u8);
            open >>= 8;
            have -= 8;
        }
    }
    if have > 0 {
        out.push(open as u8);
    }
    // How long the list is stands before it.
    let mut head = Vec::new();
    crate::codec::put_varint(&mut head, len as u64);
    out.splice(from..from, head);
    EACH
}

/// What stands beside the length of a list in a section with sides: the length and the form, and the number that [`encode`] gave.
pub(crate) fn put_code(length: u64, code: u64) -> u64 {
    length.saturating_mul(CODES).saturating_add(code)
}

/// The two parts of [`put_code`].
#[inline]
pub(crate) fn split_code(value: u64) -> (u64, u64) {
    (value / CODES, value % CODES)
}

impl<'i> List<'i> {
    /// A list in a section without sides.
    #[inline]
    pub(crate) fn plain(documents: &'i [u8], form: Form) -> Self {
        List { documents, form, sides: ListSides::All(Sides::ANY) }
    }

    /// The list in these bytes, beside whose length that number stands; `None` when it is malformed.
    #[inline]
    pub(crate) fn with_sides(bytes: &'i [u8], form: Form, code: u64) -> Option<Self> {
        if code != EACH {
            return Some(List { documents: bytes, form, sides: ListSides::All(Sides::of_bits(1 << code)) });
        }
        let mut input = Input(bytes);
        let len = usize::try_from(input.varint()?).ok()?;
        let (documents, sides) = input.0.split_at_checked(len)?;
        Some(List { documents, form, sides: ListSides::Each(sides) })
    }

    /// The sides of its documents in order; malformed ones end early.
    pub(crate) fn each_sides(&self) -> SidesReader<'i> {
        let (bytes, all) = match self.sides {
            ListSides::All(all) => (&[][..], Some(all)),
            ListSides::Each(bytes) => (bytes, None),
        };
        let (common, rest) = bytes.split_first().unwrap_or((&0, &[]));
        let common = [Sides::of_bits(u32::from(*common)), Sides::of_bits(u32::from(*common) >> Sides::BITS)];
        SidesReader { all, common, rest, open: 0, have: 0 }
    }
}

/// See [`List::each_sides`].
pub(crate) struct SidesReader<'i> {
    all: Option<Sides>,
    /// The two that most documents have.
    common: [Sides; 2],
    rest: &'i [u8],
    open: u64,
    have: u32,
}

impl SidesReader<'_> {
    fn take(&mut self, bits: u32) -> Option<()> {
        self.open >>= bits;
        self.have = self.have.checked_sub(bits)?;
        Some(())
    }
}

impl Iterator for SidesReader<'_> {
    type Item = Sides;

    #[inline]
    fn next(&mut self) -> Option<Sides> {
        if self.all.is_some() {
            return self.all;
        }
        while self.have < 2 + Sides::BITS {
            let Some((byte, rest)) = self.rest.split_first() else { break };
            self.open |= u64::from(*byte) << self.have;
            self.have += 8;
            self.rest = rest;
        }
        let [first, second] = self.common;
        if self.open & 1 == 0 {
            self.take(1)?;
            return Some(first);
        }
        if self.open & 2 == 0 {
            self.take(2)?;
            return Some(second);
        }
        let sides = Sides::of_bits((self.open >> 2) as u32);
        self.take(2 + Sides::BITS)?;
        Some(sides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ways() {
        for (before, behind) in [(false, false), (true, false), (false, true), (true, true)] {
            let way = Sides::of(before, behind);
            for wanted_before in [None, Some(false), Some(true)] {
                for wanted_behind in [None, Some(false), Some(true)] {
                    let fits = wanted_before.is_none_or(|wanted| wanted == before)
                        && wanted_behind.is_none_or(|wanted| wanted == behind);
                    assert_eq!(way.meets(Sides::with(wanted_before, wanted_behind)), fits);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn sides_come_back(sets in prop::collection::vec(prop_oneof![Just(8u32), Just(8), 1u32..16], 1..200)) {
            let sides: Vec<Sides> = sets.into_iter().map(Sides::of_bits).collect();
            let mut out = b"xlist".to_vec();
            let code = encode(&sides, 1, &mut out);
            let list = List::with_sides(&out[1..], Form::Gaps, split_code(put_code(7, code)).1).expect("our own list");
            prop_assert_eq!(list.documents, b"list");
            prop_assert_eq!(list.each_sides().take(sides.len()).collect::<Vec<_>>(), sides);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), code in 0u64..5) {
            if let Some(list) = List::with_sides(&bytes, Form::Gaps, code) {
                prop_assert!(list.each_sides().take(1000).count() <= 1000);
            }
        }
    }
}
