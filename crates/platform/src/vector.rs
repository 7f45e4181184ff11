//! Comparing many octets at once with the processor's vector instructions.

/// Octets that are compared together.
pub const BLOCK_BYTES: usize = 64;

/// Bit n of the result is set when octet n is `byte`.
#[inline]
pub fn positions(byte: u8, block: &[u8; BLOCK_BYTES]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        sse2::positions(byte, block)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        positions_portable(byte, block)
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn positions_portable(byte: u8, block: &[u8; BLOCK_BYTES]) -> u64 {
    block.iter().enumerate().fold(0, |found, (n, octet)| found | (u64::from(*octet == byte) << n))
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};

    use super::BLOCK_BYTES;

    #[inline]
    #[expect(unsafe_code, reason = "vector instructions are only safe to call where they are known to exist")]
    pub(super) fn positions(byte: u8, block: &[u8; BLOCK_BYTES]) -> u64 {
        // SAFETY: the only condition of `compare` is that the processor has SSE2, and every x86-64 processor has it.
        unsafe { compare(byte, block) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn compare(byte: u8, block: &[u8; BLOCK_BYTES]) -> u64 {
        let wanted = _mm_set1_epi8(byte.cast_signed());
        let (parts, _) = block.as_chunks::<16>();
        parts.iter().enumerate().fold(0, |all, (n, part)| {
            let octets = u128::from_le_bytes(*part);
            // The compiler makes one load of this.
            let part = _mm_set_epi64x((octets >> 64) as i64, octets as i64);
            let found = _mm_movemask_epi8(_mm_cmpeq_epi8(part, wanted));
            all | (u64::from(found.cast_unsigned()) << (n * 16))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree() {
        let mut random = crate::Prng::new(1);
        for _ in 0..1000 {
            let block: [u8; BLOCK_BYTES] = std::array::from_fn(|_| (random.below(4) * 85) as u8);
            for byte in [0, 85, 170, 255, 7] {
                assert_eq!(positions(byte, &block), positions_portable(byte, &block));
            }
        }
        assert_eq!(positions(1, &[1; BLOCK_BYTES]), u64::MAX);
    }
}
