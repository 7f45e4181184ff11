//! Random input for those who have no fuzzer: samples, changed a little, by a seed.

/// SplitMix64: equal seeds give equal input everywhere.
pub struct Random(pub u64);

impl Random {
    /// A number below `bound` (0 when that is 0).
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((u128::from(bits) * bound as u128) >> 64) as usize
    }

    fn pick<'s>(&mut self, from: &[&'s [u8]]) -> &'s [u8] {
        from.get(self.below(from.len())).copied().unwrap_or_default()
    }
}

/// One sample, or two joined, with up to eight changes: bytes overwritten, cut out, doubled, exchanged with pieces of other samples, or
/// with a word that means something to the parser.
pub fn mutated(random: &mut Random, samples: &[&[u8]], words: &[&[u8]]) -> Vec<u8> {
    let mut data = random.pick(samples).to_vec();
    if random.below(4) == 0 {
        data.extend_from_slice(random.pick(samples));
    }
    for _ in 0..random.below(9) {
        let at = random.below(data.len() + 1);
        let end = (at + random.below(12)).min(data.len());
        match random.below(7) {
            0 => data.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.below(256) as u8),
            1 => drop(data.drain(at..end)),
            2 => {
                let piece: Vec<u8> = data.drain(at..end).collect();
                let piece = [piece.as_slice(), &piece].concat();
                data.splice(at..at, piece);
            }
            3 => {
                let other = random.pick(samples);
                let from = random.below(other.len() + 1);
                let piece = other.iter().copied().skip(from).take(random.below(40)).collect::<Vec<u8>>();
                data.splice(at..end, piece);
            }
            4 => data.truncate(at),
            _ => drop(data.splice(at..end, random.pick(words).iter().copied())),
        }
    }
    data
}
