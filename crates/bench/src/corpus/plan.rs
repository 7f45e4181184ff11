//! Which source message comes next, how often each is used, and when it was sent.

use super::Source;
use crate::error::{Error, Result};
use crate::random::Random;

/// How much mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Messages.
    pub messages: u64,
    /// Bytes of the mbox file.
    pub bytes: u64,
}

impl Size {
    /// The sizes that measurements of mail stores have been published for, by name.
    pub const NAMED: [(&'static str, Size); 5] = [
        ("small", Size { messages: 1_046, bytes: 5_000_000 }),
        ("medium", Size { messages: 8_734, bytes: 30_000_000 }),
        ("large", Size { messages: 21_282, bytes: 100_000_000 }),
        ("lohoff", Size { messages: 58_000, bytes: 350_000_000 }),
        ("lkml", Size { messages: 361_052, bytes: 1_400_000_000 }),
    ];

    /// The size with this name.
    pub fn named(name: &str) -> Option<Size> {
        Size::NAMED.iter().find(|(known, _)| *known == name).map(|(_, size)| *size)
    }
}

/// One message to write.
pub struct Pick {
    /// Its number in the source.
    pub source: usize,
    /// How many times the source message was used before.
    pub generation: u32,
    /// When it was sent, in seconds since 1970.
    pub seconds: u64,
}

/// 1998-01-01: at 100 messages a day the largest named size ends in 2007.
const FIRST_SECOND: u64 = 883_612_800;
const SECONDS_BETWEEN: u64 = 864;

/// The messages to write, in the order of their dates.
pub fn plan(source: &Source, written_bytes: &[u64], size: Size, seed: u64) -> Result<Vec<Pick>> {
    let mut random = Random::new(seed);
    let mut picks = picks(source, written_bytes, size, &mut random)?;
    // Generations follow each other; within one, the folders of the source run side by side, so that threads stay together and two
    // variants of a message stand as far apart as can be.
    picks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let with_dates = picks.into_iter().enumerate().map(|(number, (place, source))| {
        let jitter = random.below(SECONDS_BETWEEN as usize) as u64;
        Pick { source, generation: place as u32, seconds: FIRST_SECOND + number as u64 * SECONDS_BETWEEN + jitter }
    });
    Ok(with_dates.collect())
}

/// Source numbers with their places: generation plus the place within it.
fn picks(source: &Source, written_bytes: &[u64], size: Size, random: &mut Random) -> Result<Vec<(f64, usize)>> {
    let count = size.messages as usize;
    if count == 0 {
        return Err(Error::new("a corpus needs at least one message"));
    }
    let weights = weights(written_bytes, size.bytes as f64 / count as f64);
    // Systematic sampling in the order of size: every message is taken its share of times, rounded up or down, and the sum of the sizes
    // comes out close to the expected one whatever the tail looks like.
    let mut by_size: Vec<usize> = (0..written_bytes.len()).collect();
    by_size.sort_by_key(|number| written_bytes.get(*number));
    let mut picks = Vec::with_capacity(count);
    let mut taken = random.unit();
    let mut reached = 0.0;
    let mut last = (0, 0);
    for number in by_size {
        reached += weights.get(number).copied().unwrap_or_default() * count as f64;
        let mut generation = 0;
        let place = source.messages.get(number).map_or(0.0, |message| message.place);
        while taken < reached && picks.len() < count {
            picks.push((f64::from(generation) + place, number));
            generation += 1;
            taken += 1.0;
        }
        last = (number, generation);
    }
    // Rounding of the sum may leave the last one out.
    while picks.len() < count {
        picks.push((f64::from(last.1), last.0));
        last.1 += 1;
    }
    Ok(picks)
}

/// The share of each message, so that the mean size is the wanted one: `size^tilt`, the gentlest change of the distribution that
/// moves the mean of the logarithm. A tilt of 0 keeps the source's distribution.
fn weights(bytes: &[u64], mean: f64) -> Vec<f64> {
    let tilted = |tilt: f64| -> Vec<f64> {
        let raw: Vec<f64> = bytes.iter().map(|bytes| (*bytes as f64).max(1.0).powf(tilt)).collect();
        let sum: f64 = raw.iter().sum();
        raw.into_iter().map(|weight| weight / sum).collect()
    };
    let (mut low, mut high) = (-4.0, 4.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let reached: f64 = tilted(middle).iter().zip(bytes).map(|(weight, bytes)| weight * *bytes as f64).sum();
        if reached < mean {
            low = middle;
        } else {
            high = middle;
        }
    }
    tilted((low + high) / 2.0)
}
