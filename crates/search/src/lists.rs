//! Posting lists: the documents of one token, as gaps, as bits, or as gaps in a Rice or an exponential Golomb code, whichever is shortest.
//! The last fits what comes in bursts, as the words of a discussion do: many small gaps and some very large ones.

use crate::codec::{Input, put_varint};
use crate::docs::DocSet;
use crate::sides::{List, ListSides, Sides};

/// How a list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A varint for each gap.
    Gaps,
    /// A bit for each document.
    Bits,
    /// A byte for the number of low bits, then for each gap its high part in unary (zeros and a one) and its low bits, the lowest first.
    Rice,
    /// A byte k, then for each gap plus 2^k as many zeros as its highest bit is above bit k, a one, and the bits below the highest, the
    /// lowest first.
    Exponential,
}

impl Form {
    /// Its number in an image, beside the length of the list.
    pub(crate) fn code(self) -> u64 {
        match self {
            Form::Gaps => 0,
            Form::Bits => 1,
            Form::Rice => 2,
            Form::Exponential => 3,
        }
    }

    /// Bits of the number.
    pub(crate) const CODE_BITS: u32 = 2;

    pub(crate) fn of_code(code: u64) -> Option<Self> {
        [Form::Gaps, Form::Bits, Form::Rice, Form::Exponential].into_iter().find(|form| form.code() == code & 3)
    }
}

/// A code of bits is slower to read: it has to be this much shorter, percent.
const CODE_PERCENT_MAX: usize = 95;

/// Appends the list of `docs`, which rise strictly; how it is written.
pub(crate) fn encode(docs: &[u32], out: &mut Vec<u8>) -> Form {
    let (Some(&first), Some(&last)) = (docs.first(), docs.last()) else { return Form::Gaps };
    put_varint(out, u64::from(first));
    let body = out.len();
    let gaps = || docs.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()? - 1));
    gaps().for_each(|gap| put_varint(out, u64::from(gap)));
    let bits_len = (last - first) as usize / 8 + 1;
    let shortest = (out.len() - body).min(bits_len);
    if let Some(low_bits) = low_bits(first, last, docs.len() - 1) {
        let code = codes(gaps(), low_bits).into_iter().min_by_key(|(_, _, bits)| *bits);
        if let Some((form, low_bits, bits)) = code
            && (1 + bits.div_ceil(8)) * 100 <= shortest * CODE_PERCENT_MAX
        {
            out.truncate(body);
            write_code(gaps(), form, low_bits, out);
            return form;
        }
    }
    if out.len() - body <= bits_len {
        return Form::Gaps;
    }
    out.truncate(body);
    out.resize(body + bits_len, 0);
    for doc in docs {
        let at = (doc - first) as usize;
        if let Some(byte) = out.get_mut(body + at / 8) {
            *byte |= 1 << (at % 8);
        }
    }
    Form::Bits
}

/// About as many as make the code shortest: the logarithm of the mean gap times that of two. `None`: there are no gaps.
fn low_bits(first: u32, last: u32, gaps: usize) -> Option<u32> {
    let mean = u64::from(last - first).checked_sub(gaps as u64)?.checked_div(gaps as u64)?;
    Some((mean * 177 / 256).checked_ilog2().map_or(0, |bits| bits + 1).min(31))
}

/// How many bits the gaps take in a Rice code with so many low bits, and in the exponential one that suits them best, as nearly as the
/// gaps' lengths tell.
fn codes(gaps: impl Iterator<Item = u32> + Clone, low_bits: u32) -> [(Form, u32, usize); 2] {
    let mut lengths = [0usize; u32::BITS as usize + 1];
    for gap in gaps.clone() {
        if let Some(count) = lengths.get_mut((u32::BITS - gap.leading_zeros()) as usize) {
            *count += 1;
        }
    }
    // One low bit more: a bit more for each gap, and two less for each that is longer.
    let gaps_count = lengths.iter().sum::<usize>();
    let (mut longer, mut best) = (gaps_count, 0);
    for count in lengths.iter().take(low_bits as usize + 1) {
        longer -= count;
        if longer * 2 < gaps_count {
            break;
        }
        best += 1;
    }
    let best = u32::min(best, low_bits);
    let mut codes = [(Form::Rice, low_bits, 0), (Form::Exponential, best, 0)];
    for gap in gaps {
        let [(_, _, rice), (_, _, exponential)] = &mut codes;
        *rice += (gap >> low_bits) as usize + 1 + low_bits as usize;
        *exponential += 2 * above(gap, best) as usize + 1 + best as usize;
    }
    codes
}

/// How far the highest bit of a gap plus 2^`low_bits` is above that bit.
#[inline]
fn above(gap: u32, low_bits: u32) -> u32 {
    (u64::from(gap) + (1 << low_bits)).ilog2() - low_bits
}

fn write_code(gaps: impl Iterator<Item = u32>, form: Form, low_bits: u32, out: &mut Vec<u8>) {
    out.push(low_bits as u8);
    let (mut open, mut have) = (0u64, 0u32);
    let mut put = |value: u64, bits: u32| {
        open |= value << have;
        have += bits;
        while have >= 8 {
            out.push(open as u8);
            open >>= 8;
            have -= 8;
        }
    };
    for gap in gaps {
        let (mut zeros, low, bits) = match form {
            Form::Exponential => {
                let above = above(gap, low_bits);
                (above, u64::from(gap) + (1 << low_bits), low_bits + above)
            }
            _ => (gap >> low_bits, u64::from(gap), low_bits),
        };
        while zeros >= 32 {
            put(0, 32);
            zeros -= 32;
        }
        put(1 << zeros, zeros + 1);
        put(low & ((1 << bits) - 1), bits);
    }
    if have > 0 {
        out.push(open as u8);
    }
}

/// Bits from the front, the lowest of a byte first.
struct Bits<'i> {
    rest: &'i [u8],
    open: u64,
    have: u32,
}

impl Bits<'_> {
    /// Has more than 32 bits at hand if there are so many.
    #[inline]
    fn fill(&mut self) {
        while self.have <= 32 {
            if let Some((four, more)) = self.rest.split_first_chunk::<4>() {
                self.open |= u64::from(u32::from_le_bytes(*four)) << self.have;
                self.have += 32;
                self.rest = more;
            } else if let Some((byte, more)) = self.rest.split_first() {
                self.open |= u64::from(*byte) << self.have;
                self.have += 8;
                self.rest = more;
            } else {
                break;
            }
        }
    }

    /// How many zeros there are before the next one, which is taken too; `None` when there is no more.
    #[inline]
    fn zeros(&mut self) -> Option<u64> {
        let mut count = 0;
        loop {
            self.fill();
            if self.open != 0 {
                let zeros = self.open.trailing_zeros();
                self.open = (self.open >> zeros) >> 1;
                self.have -= zeros + 1;
                return Some(count + u64::from(zeros));
            }
            if self.rest.is_empty() {
                return None;
            }
            count += u64::from(self.have);
            self.have = 0;
        }
    }

    /// So many bits, at most 32.
    #[inline]
    fn take(&mut self, bits: u32) -> Option<u64> {
        if self.have < bits {
            self.fill();
        }
        self.have = self.have.checked_sub(bits)?;
        let value = self.open & ((1 << bits) - 1);
        self.open >>= bits;
        Some(value)
    }
}

/// Gives the gaps of a code of bits; what is left at the end without a one is filling. `None` when it is malformed.
#[inline]
fn read_code(bytes: &[u8], form: Form, mut visit: impl FnMut(u64) -> Option<()>) -> Option<()> {
    let (&low_bits, rest) = bytes.split_first()?;
    let low_bits = u32::from(low_bits);
    if low_bits > 31 {
        return None;
    }
    let mut bits = Bits { rest, open: 0, have: 0 };
    if form == Form::Rice {
        while let Some(high) = bits.zeros() {
            visit(high << low_bits | bits.take(low_bits)?)?;
        }
        return Some(());
    }
    while let Some(above) = bits.zeros() {
        let len = u32::try_from(above).ok()?.checked_add(low_bits).filter(|len| *len <= 32)?;
        visit((1 << len | bits.take(len)?) - (1 << low_bits))?;
    }
    Some(())
}

/// Adds the documents of a list in which the word stands in one of these ways to the set, each `base` higher; `None` when the list is
/// malformed.
#[inline]
pub(crate) fn add_beside(list: &List<'_>, wanted: Sides, base: u64, set: &mut DocSet) -> Option<()> {
    match list.sides {
        ListSides::All(sides) if !sides.meets(wanted) => Some(()),
        ListSides::Each(_) if wanted != Sides::ANY => {
            let mut is_sound = true;
            each(list, |doc, sides| match base.checked_add(u64::from(doc)) {
                Some(doc) if sides.meets(wanted) => set.insert(doc),
                Some(_) => {}
                None => is_sound = false,
            })?;
            is_sound.then_some(())
        }
        _ => add_to(list, base, set),
    }
}

/// Adds the documents of a list to the set, each `base` higher; `None` when the list is malformed.
#[inline]
pub(crate) fn add_to(list: &List<'_>, base: u64, set: &mut DocSet) -> Option<()> {
    let form = list.form;
    let mut input = Input(list.documents);
    let mut doc = base.checked_add(input.varint()?)?;
    if form == Form::Bits {
        for (n, byte) in input.0.iter().enumerate() {
            set.insert_byte(doc.checked_add(n as u64 * 8)?, *byte);
        }
        return Some(());
    }
    set.insert(doc);
    let mut add = |gap: u64| {
        doc = doc.checked_add(gap)?.checked_add(1)?;
        set.insert(doc);
        Some(())
    };
    if form == Form::Rice || form == Form::Exponential {
        return read_code(input.0, form, add);
    }
    while !input.0.is_empty() {
        add(input.varint()?)?;
    }
    Some(())
}

/// Gives the documents of a list, rising, and how the word stands in each; `None` when the list is malformed or names a document that
/// does not fit.
pub(crate) fn each(list: &List<'_>, mut visit: impl FnMut(u32, Sides)) -> Option<()> {
    let mut sides = list.each_sides();
    let mut is_sound = true;
    each_document(list.documents, list.form, |doc| match sides.next() {
        Some(sides) => visit(doc, sides),
        None => is_sound = false,
    })?;
    is_sound.then_some(())
}

fn each_document(list: &[u8], form: Form, mut visit: impl FnMut(u32)) -> Option<()> {
    let mut input = Input(list);
    let mut doc = u32::try_from(input.varint()?).ok()?;
    if form == Form::Bits {
        for (n, byte) in input.0.iter().enumerate() {
            let first = doc.checked_add(u32::try_from(n).ok()?.checked_mul(8)?)?;
            for bit in (0..8).filter(|bit| byte >> bit & 1 != 0) {
                visit(first.checked_add(bit)?);
            }
        }
        return Some(());
    }
    visit(doc);
    let mut add = |gap: u64| {
        doc = doc.checked_add(u32::try_from(gap).ok()?)?.checked_add(1)?;
        visit(doc);
        Some(())
    };
    if form == Form::Rice || form == Form::Exponential {
        return read_code(input.0, form, add);
    }
    while !input.0.is_empty() {
        add(input.varint()?)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_come_back(gaps in prop::collection::vec(prop_oneof![8 => 0u32..3, 2 => 0u32..300, 1 => 0u32..70_000, 1 => 0u32..900_000], 1..200), base in 0u64..200) {
            let mut docs = Vec::new();
            let mut next = 0;
            for gap in gaps {
                docs.push(next + gap);
                next += gap + 1;
            }
            let mut list = Vec::new();
            let form = encode(&docs, &mut list);
            let mut back = Vec::new();
            let list = List::plain(&list, form);
            each(&list, |doc, _| back.push(doc)).expect("our own list");
            prop_assert_eq!(&back, &docs);
            let mut set = DocSet::new(base..base + u64::from(next));
            add_to(&list, base, &mut set).expect("our own list");
            prop_assert!(set.iter().eq(docs.iter().map(|doc| base + u64::from(*doc))));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), code in 0u64..4) {
            let form = Form::of_code(code).expect("a form");
            let mut set = DocSet::new(0..1000);
            let list = List::plain(&bytes, form);
            let _ = add_to(&list, 3, &mut set);
            let _ = each(&list, |_, _| {});
        }
    }

    #[test]
    fn the_shortest_form() {
        let mut list = Vec::new();
        assert_eq!(encode(&(10..1010).collect::<Vec<_>>(), &mut list), Form::Bits);
        assert_eq!(list.len(), 126);
        for (docs, expected) in [(&[7][..], &[7][..]), (&[7, 8], &[7, 0])] {
            list.clear();
            assert_eq!(encode(docs, &mut list), Form::Gaps);
            assert_eq!(list, expected);
        }
        list.clear();
        let sparse: Vec<u32> = (0..100).map(|n| n * 300 + n % 7).collect();
        assert_eq!(encode(&sparse, &mut list), Form::Rice);
        assert!(list.len() < 130, "{}", list.len());
        list.clear();
        let bursts: Vec<u32> = (0..200).map(|n| n % 20 + n / 20 * 5000).collect();
        assert_eq!(encode(&bursts, &mut list), Form::Exponential);
        assert!(list.len() < 70, "{}", list.len());
    }
}
