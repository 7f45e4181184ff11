//! Integers and strings as the log writes them: LEB128 varints, zigzag for signed ones, little-endian fixed widths.
//!
//! Reading never panics: [`Input`] answers `None` for whatever is not there or too large.

/// Writes a varint: seven bits a byte, the low ones first.
pub(crate) fn put_varint(out: &mut Vec<u8>, value: u64) {
    put_varint_wide(out, u128::from(value));
}

/// Writes a varint of up to 128 bits.
pub(crate) fn put_varint_wide(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a signed number: 0, -1, 1, -2 … become 0, 1, 2, 3 …
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Writes a length and that many bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes being read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn varint_wide(&mut self) -> Option<u128> {
        let mut value = 0u128;
        for shift in (0..=126).step_by(7) {
            let byte = self.u8()?;
            let bits = u128::from(byte & 0x7f);
            if shift == 126 && bits > 3 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        self.varint_wide()?.try_into().ok()
    }

    pub(crate) fn varint32(&mut self) -> Option<u32> {
        self.varint()?.try_into().ok()
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.take(len)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(wide in any::<u128>(), signed in any::<i64>(), cut in 0usize..40) {
            let mut out = Vec::new();
            put_varint_wide(&mut out, wide);
            put_signed(&mut out, signed);
            put_bytes(&mut out, b"abc");
            let mut input = Input(&out);
            prop_assert_eq!(input.varint_wide(), Some(wide));
            prop_assert_eq!(input.signed(), Some(signed));
            prop_assert_eq!(input.text(), Some("abc"));
            prop_assert!(input.is_empty());
            // Cut anywhere: an answer or none, never a panic.
            let mut input = Input(out.get(..cut).unwrap_or(&out));
            let _ = (input.varint_wide(), input.signed(), input.bytes());
        }
    }

    #[test]
    fn an_overlong_varint_is_refused() {
        assert_eq!(Input(&[0x80; 30]).varint_wide(), None);
        assert_eq!(Input(&[0xff; 30]).varint(), None);
    }
}
