//! Values to bytes, appended to a caller's buffer.
//!
//! Nothing here goes through `std::fmt`: a FETCH of flags over hundreds of thousands of messages passes here once a message.

use model::NumSet;

/// Writes a number.
pub fn number(out: &mut Vec<u8>, mut value: u64) {
    // 20 digits hold 2⁶⁴-1.
    let mut digits = [0u8; 20];
    let mut count = 0;
    for slot in digits.iter_mut().rev() {
        *slot = b'0' + (value % 10) as u8;
        count += 1;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - count..).unwrap_or_default());
}

/// Writes a quoted string; the caller knows that `text` has no NUL, CR or LF.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Writes a set of numbers: `1:3,5`; nothing for the empty set, which the grammar cannot write.
pub fn num_set(out: &mut Vec<u8>, set: &NumSet) {
    for (n, &(first, last)) in set.ranges().iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        number(out, u64::from(first));
        if last != first {
            out.push(b':');
            number(out, u64::from(last));
        }
    }
}
