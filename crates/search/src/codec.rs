//! Integers as the image has them: LEB128 varints and little-endian fixed widths. Reading never panics.

/// Writes a varint: seven bits a byte, the low ones first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes being read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl Input<'_> {
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*taken))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*taken))
    }

    /// A varint of at most 63 bits.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..63).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut out = Vec::new();
        let values = [0, 1, 127, 128, 300, u64::from(u32::MAX), (1 << 62) + 5, (1 << 63) - 1];
        for value in values {
            put_varint(&mut out, value);
        }
        let mut input = Input(&out);
        for value in values {
            assert_eq!(input.varint(), Some(value));
        }
        assert_eq!(input.varint(), None);
        assert_eq!(Input(&[0xff; 20]).varint(), None, "too long");
        assert_eq!(Input(&[0x80]).varint(), None, "cut");
        assert_eq!((Input(&[1, 2, 3]).u32(), Input(&[1; 7]).u64()), (None, None));
    }
}
