//! Posting lists: the documents of one token, as gaps, as bits, or as gaps in a Rice code, whichever is shortest.

use crate::codec::{Input, put_varint};
use crate::docs::DocSet;

/// How a list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A varint for each gap.
    Gaps,
    /// A bit for each document.
    Bits,
    /// A byte for the number of low bits, then for each gap its high part in unary (zeros and a one) and its low bits, the lowest first.
    Rice,
}

impl Form {
    /// Its number in an image, beside the length of the list.
    pub(crate) fn code(self) -> u64 {
        match self {
            Form::Gaps => 0,
            Form::Bits => 1,
            Form::Rice => 2,
        }
    }

    /// Bits of the number.
    pub(crate) const CODE_BITS: u32 = 2;

    pub(crate) fn of_code(code: u64) -> Option<Self> {
        [Form::Gaps, Form::Bits, Form::Rice].into_iter().find(|form| form.code() == code & 3)
    }
}

/// A Rice code is slower to read: it has to be this much shorter, percent.
const RICE_PERCENT_MAX: usize = 95;

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
        let high = gaps().map(|gap| (gap >> low_bits) as usize).sum::<usize>();
        let len = 1 + (high + (docs.len() - 1) * (low_bits as usize + 1)).div_ceil(8);
        if len * 100 <= shortest * RICE_PERCENT_MAX {
            out.truncate(body);
            write_rice(gaps(), low_bits, out);
            return Form::Rice;
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

fn write_rice(gaps: impl Iterator<Item = u32>, low_bits: u32, out: &mut Vec<u8>) {
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
        let mut high = gap >> low_bits;
        while high >= 32 {
            put(0, 32);
            high -= 32;
        }
        put(1 << high, high + 1);
        put(u64::from(gap) & ((1 << low_bits) - 1), low_bits);
    }
    if have > 0 {
        out.push(open as u8);
    }
}

/// Gives the gaps of a Rice code; what is left at the end without a one is filling. `None` when it is malformed.
#[inline]
fn read_rice(bytes: &[u8], mut visit: impl FnMut(u64) -> Option<()>) -> Option<()> {
    let (&low_bits, mut rest) = bytes.split_first()?;
    let low_bits = u32::from(low_bits);
    if low_bits > 31 {
        return None;
    }
    let (mut open, mut have, mut high) = (0u64, 0u32, 0u64);
    loop {
        while have <= 32 {
            if let Some((four, more)) = rest.split_first_chunk::<4>() {
                open |= u64::from(u32::from_le_bytes(*four)) << have;
                have += 32;
                rest = more;
            } else if let Some((byte, more)) = rest.split_first() {
                open |= u64::from(*byte) << have;
                have += 8;
                rest = more;
            } else {
                break;
            }
        }
        if open == 0 {
            if rest.is_empty() {
                return Some(());
            }
            high += u64::from(have);
            have = 0;
            continue;
        }
        let zeros = open.trailing_zeros();
        if zeros + 1 + low_bits > have {
            // The low bits may still be to come.
            if rest.is_empty() {
                return None;
            }
            high += u64::from(zeros);
            open >>= zeros;
            have -= zeros;
            if have > 32 {
                return None;
            }
            continue;
        }
        high += u64::from(zeros);
        open = (open >> zeros) >> 1;
        visit(high << low_bits | open & ((1 << low_bits) - 1))?;
        open >>= low_bits;
        have -= zeros + 1 + low_bits;
        high = 0;
    }
}

/// Adds the documents of a list to the set, each `base` higher; `None` when the list is malformed.
#[inline]
pub(crate) fn add_to(list: &[u8], form: Form, base: u64, set: &mut DocSet) -> Option<()> {
    let mut input = Input(list);
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
    if form == Form::Rice {
        return read_rice(input.0, add);
    }
    while !input.0.is_empty() {
        add(input.varint()?)?;
    }
    Some(())
}

/// Gives the documents of a list, rising; `None` when the list is malformed or names a document that does not fit.
pub(crate) fn each(list: &[u8], form: Form, mut visit: impl FnMut(u32)) -> Option<()> {
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
    if form == Form::Rice {
        return read_rice(input.0, add);
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
        fn lists_come_back(gaps in prop::collection::vec(prop_oneof![0u32..3, 0u32..300, 0u32..70_000], 1..200), base in 0u64..200) {
            let mut docs = Vec::new();
            let mut next = 0;
            for gap in gaps {
                docs.push(next + gap);
                next += gap + 1;
            }
            let mut list = Vec::new();
            let form = encode(&docs, &mut list);
            let mut back = Vec::new();
            each(&list, form, |doc| back.push(doc)).expect("our own list");
            prop_assert_eq!(&back, &docs);
            let mut set = DocSet::new(base..base + u64::from(next));
            add_to(&list, form, base, &mut set).expect("our own list");
            prop_assert!(set.iter().eq(docs.iter().map(|doc| base + u64::from(*doc))));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), code in 0u64..3) {
            let form = Form::of_code(code).expect("a form");
            let mut set = DocSet::new(0..1000);
            let _ = add_to(&bytes, form, 3, &mut set);
            let _ = each(&bytes, form, |_| {});
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
    }
}
