//! Posting lists: the documents of one token, as gaps or as bits, whichever is shorter.

use crate::codec::{Input, put_varint};
use crate::docs::DocSet;

/// Appends the list of `docs`, which rise strictly; whether it is one of bits.
pub(crate) fn encode(docs: &[u32], out: &mut Vec<u8>) -> bool {
    let (Some(&first), Some(&last)) = (docs.first(), docs.last()) else { return false };
    let start = out.len();
    put_varint(out, u64::from(first));
    let body = out.len();
    let bits_len = (last - first) as usize / 8 + 1;
    // A gap takes a byte at least.
    if docs.len() - 1 <= bits_len {
        for pair in docs.windows(2) {
            if let [before, doc] = pair {
                put_varint(out, u64::from(doc - before - 1));
            }
        }
        if out.len() - body <= bits_len {
            return false;
        }
        out.truncate(start);
        put_varint(out, u64::from(first));
    }
    out.resize(body + bits_len, 0);
    for doc in docs {
        let at = (doc - first) as usize;
        if let Some(byte) = out.get_mut(body + at / 8) {
            *byte |= 1 << (at % 8);
        }
    }
    true
}

/// Adds the documents of a list to the set, each `base` higher; `None` when the list is malformed.
#[inline]
pub(crate) fn add_to(list: &[u8], is_bits: bool, base: u64, set: &mut DocSet) -> Option<()> {
    let mut input = Input(list);
    let mut doc = base.checked_add(input.varint()?)?;
    if is_bits {
        for (n, byte) in input.0.iter().enumerate() {
            set.insert_byte(doc.checked_add(n as u64 * 8)?, *byte);
        }
        return Some(());
    }
    set.insert(doc);
    while !input.0.is_empty() {
        doc = doc.checked_add(input.varint()?)?.checked_add(1)?;
        set.insert(doc);
    }
    Some(())
}

/// Gives the documents of a list, rising; `None` when the list is malformed or names a document that does not fit.
pub(crate) fn each(list: &[u8], is_bits: bool, mut visit: impl FnMut(u32)) -> Option<()> {
    let mut input = Input(list);
    let mut doc = u32::try_from(input.varint()?).ok()?;
    if is_bits {
        for (n, byte) in input.0.iter().enumerate() {
            let first = doc.checked_add(u32::try_from(n).ok()?.checked_mul(8)?)?;
            for bit in (0..8).filter(|bit| byte >> bit & 1 != 0) {
                visit(first.checked_add(bit)?);
            }
        }
        return Some(());
    }
    visit(doc);
    while !input.0.is_empty() {
        doc = doc.checked_add(u32::try_from(input.varint()?).ok()?)?.checked_add(1)?;
        visit(doc);
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
            let is_bits = encode(&docs, &mut list);
            let mut back = Vec::new();
            each(&list, is_bits, |doc| back.push(doc)).expect("our own list");
            prop_assert_eq!(&back, &docs);
            let mut set = DocSet::new(base..base + u64::from(next));
            add_to(&list, is_bits, base, &mut set).expect("our own list");
            prop_assert!(set.iter().eq(docs.iter().map(|doc| base + u64::from(*doc))));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), is_bits: bool) {
            let mut set = DocSet::new(0..1000);
            let _ = add_to(&bytes, is_bits, 3, &mut set);
            let _ = each(&bytes, is_bits, |_| {});
        }
    }

    #[test]
    fn dense_lists_are_bits() {
        let mut list = Vec::new();
        assert!(encode(&(10..1010).collect::<Vec<_>>(), &mut list));
        assert_eq!(list.len(), 126);
        list.clear();
        assert!(!encode(&[7], &mut list));
        assert_eq!(list, [7]);
        list.clear();
        assert!(!encode(&[7, 8], &mut list));
        assert_eq!(list, [7, 0]);
    }
}
