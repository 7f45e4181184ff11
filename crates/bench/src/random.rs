//! Seeded randomness that gives the same numbers on every machine and with every release of Rust.
//!
//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): fast, and good enough to choose messages and
//! words with. Not for secrets.

/// A generator; equal seeds give equal numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 when the bound is 0. The bias is below bound / 2^64.
    pub fn below(&mut self, bound: usize) -> usize {
        scale(self.bits(), bound)
    }

    /// A number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `count` distinct numbers of `1..=all`, rising.
    pub fn choose(&mut self, count: usize, all: u32) -> Vec<u32> {
        // Selection sampling: each number is taken with the chance (still wanted) / (still left).
        let mut wanted = count.min(all as usize);
        let mut chosen = Vec::with_capacity(wanted);
        for number in 1..=all {
            let left = (all - number) as usize + 1;
            if self.below(left) < wanted {
                chosen.push(number);
                wanted -= 1;
            }
        }
        chosen
    }
}

/// The number `bits` as a fraction of 2^64, times `bound`.
pub fn scale(bits: u64, bound: usize) -> usize {
    ((u128::from(bits) * bound as u128) >> 64) as usize
}

/// A hash of bytes under a key (FNV-1a with a final mix): the same everywhere.
pub fn hash(key: u64, bytes: &[u8]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325 ^ mix(key);
    for byte in bytes {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(state)
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn known_answers() {
        // The first outputs of SplitMix64 for the seed 1234567, as published with the reference implementation.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn chooses_exactly() {
        let mut random = Random::new(1);
        for count in [0, 1, 10, 99, 100, 200] {
            let chosen = random.choose(count, 100);
            assert_eq!(chosen.len(), count.min(100));
            assert!(chosen.is_sorted_by(|a, b| a < b));
            assert!(chosen.iter().all(|number| (1..=100).contains(number)));
        }
    }
}
