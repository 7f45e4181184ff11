//! Randomness: the system's for keys and identifiers, a seeded generator for simulations and test data.

use std::fmt;

/// Where randomness comes from. Real sources are fit for keys and salts; seeded ones never are.
pub trait Random: Send + Sync + fmt::Debug {
    /// Fills the buffer with random bytes.
    fn fill(&self, buf: &mut [u8]);

    /// A random number over the whole range.
    fn u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// A small, fast, seeded generator (xoshiro256**, Blackman and Vigna, "Scrambled Linear Pseudorandom Number
/// Generators", 2018; seeded by SplitMix64). The sequence of a seed is the same on every machine and in every
/// release, so that a printed seed repeats a test. Not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prng {
    state: [u64; 4],
}

impl Prng {
    /// The generator of this seed. Any seed is as good as any other, 0 included.
    pub fn new(seed: u64) -> Self {
        let mut seed = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut seed)) }
    }

    /// The next number, over the whole range.
    pub fn u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number from 0 to `bound - 1`; 0 when `bound` is 0. The bias is at most `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire, "Fast Random Integer Generation in an Interval", 2019: the high half of the product.
        ((u128::from(self.u64()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into something of `len` elements; 0 when `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high, "an empty range has no number");
        match (high - low).checked_add(1) {
            Some(width) => low + self.below(width),
            None => self.u64(),
        }
    }

    /// True once in `n` times on average; never when `n` is 0.
    pub fn one_in(&mut self, n: u64) -> bool {
        n != 0 && self.below(n) == 0
    }

    /// A number from 0 (included) to 1 (excluded), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fills the buffer.
    pub fn fill(&mut self, buf: &mut [u8]) {
        for chunk in buf.chunks_mut(8) {
            let bytes = self.u64().to_le_bytes();
            for (to, from) in chunk.iter_mut().zip(bytes) {
                *to = from;
            }
        }
    }

    /// One of the elements; `None` when there is none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.index(of.len()))
    }

    /// Puts the elements in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, of: &mut [T]) {
        for last in (1..of.len()).rev() {
            of.swap(last, self.index(last + 1));
        }
    }

    /// A generator of its own whose sequence does not depend on how much is drawn from this one afterwards.
    pub fn fork(&mut self) -> Self {
        Self::new(self.u64())
    }
}

/// One step of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers: SplitMix64 and xoshiro256** by the authors' published C code.
    #[test]
    fn known_answers() {
        let mut seed = 0;
        assert_eq!(split_mix(&mut seed), 0xE220_A839_7B1D_CDAF);
        assert_eq!(split_mix(&mut seed), 0x6E78_9E6A_A1B9_65F4);
        let mut prng = Prng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..5).map(|_| prng.u64()).collect();
        assert_eq!(first, [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240, 1_216_172_134_540_287_360]);
    }

    #[test]
    fn numbers_stay_in_their_bounds_and_reach_them() {
        let mut prng = Prng::new(0);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[prng.index(7)] = true;
            assert!((3..=5).contains(&prng.between(3, 5)));
            assert!((0.0..1.0).contains(&prng.unit()));
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!((prng.below(0), prng.below(1), prng.index(0)), (0, 0, 0));
        assert!(!prng.one_in(0) && prng.one_in(1));
        assert_eq!(prng.between(9, 9), 9);
        prng.between(0, u64::MAX);
        assert_eq!(prng.pick::<u8>(&[]), None);
    }

    #[test]
    fn shuffling_loses_nothing() {
        let mut prng = Prng::new(1);
        let mut numbers: Vec<u32> = (0..100).collect();
        prng.shuffle(&mut numbers);
        assert_ne!(numbers, (0..100).collect::<Vec<_>>());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_fork_does_not_depend_on_what_follows() {
        let mut a = Prng::new(5);
        let mut b = a.clone();
        let mut from_a = a.fork();
        a.u64();
        assert_eq!(from_a.u64(), b.fork().u64());
    }

    #[test]
    fn filling_reaches_every_byte() {
        let mut prng = Prng::new(2);
        for len in 0..20 {
            let mut any = vec![0u8; len];
            for _ in 0..50 {
                let mut bytes = vec![0; len];
                prng.fill(&mut bytes);
                any.iter_mut().zip(bytes).for_each(|(any, byte)| *any |= byte);
            }
            assert!(any.iter().all(|byte| *byte == 0xFF));
        }
    }
}
