//! Where lines begin, for text whose lines are short: headers.
//!
//! A search for each line end anew (memchr) costs more than the forty or so octets that it passes over. Here a block of 64 octets
//! becomes one word with a bit for each line end, and the bits are taken one by one.

use platform::vector::{BLOCK_BYTES, positions};

/// Calls `at_line` with the place behind each LF of `bytes` from `from` on, in order, until it says `false`.
#[inline]
pub(in crate::format) fn each_line_start(bytes: &[u8], from: usize, mut at_line: impl FnMut(usize) -> bool) {
    let mut base = from;
    let rest = bytes.get(from..).unwrap_or_default();
    let (blocks, tail) = rest.as_chunks::<BLOCK_BYTES>();
    for block in blocks {
        let mut ends = positions(b'\n', block);
        while ends != 0 {
            if !at_line(base + ends.trailing_zeros() as usize + 1) {
                return;
            }
            ends &= ends - 1;
        }
        base += BLOCK_BYTES;
    }
    for (n, byte) in tail.iter().enumerate() {
        if *byte == b'\n' && !at_line(base + n + 1) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn finds_every_line(text in "[\n a\u{0}\u{8a}]{0,200}", from in 0usize..70) {
            let mut found = Vec::new();
            each_line_start(text.as_bytes(), from, |at| {
                found.push(at);
                true
            });
            let expected: Vec<usize> =
                text.bytes().enumerate().skip(from).filter(|(_, b)| *b == b'\n').map(|(n, _)| n + 1).collect();
            proptest::prop_assert_eq!(&found, &expected);
            let mut first = None;
            each_line_start(text.as_bytes(), from, |at| {
                first = Some(at);
                false
            });
            proptest::prop_assert_eq!(first, expected.first().copied());
        }
    }
}
