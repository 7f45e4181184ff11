//! The distinct tokens of one section in the making, and the documents that have each. Memory: the tokens and eight bytes for each pair
//! of token and document.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use model::Result;

use crate::sides::Sides;
use crate::write::Writer;

/// A hash of short keys that is several times faster than the standard one. It begins from a secret number, so that nobody can send mail
/// whose words all fall into one place.
#[derive(Clone, Debug)]
pub(crate) struct Keyed(u64);

impl Default for Keyed {
    fn default() -> Self {
        Keyed(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyedHasher;

    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher(self.0)
    }
}

/// See [`Keyed`].
pub(crate) struct KeyedHasher(u64);

impl KeyedHasher {
    /// Multiplies to twice the width and folds: every bit of both depends on every bit.
    #[inline]
    fn mix(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.mix(u64::from_le_bytes(last));
    }

    #[inline]
    fn write_u128(&mut self, value: u128) {
        self.mix(value as u64);
        self.mix((value >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// No document, no token.
pub(crate) const NONE: u32 = u32::MAX;
/// What a distinct token costs beside its bytes: its entry in the map, its box, its last document. About.
const TOKEN_MEMORY_BYTES: usize = 64;

/// The tokens of one field, its contexts or its joints.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    /// Tokens of at most [`SHORT_BYTES_MAX`] bytes, nearly all, as numbers: looking one up touches one place in memory.
    short: HashMap<u128, Slot, Keyed>,
    long: HashMap<Box<[u8]>, Slot, Keyed>,
    pairs: Vec<Pair>,
    /// Short tokens that were noted last, the document and the sides: most of what a document has it has more than once, and this stays
    /// near the processor.
    recent: Vec<(u128, u32, u8)>,
}

/// A token in a document: the token's number, above it the bits of [`Sides`]; the document. Who has so much memory that the numbers reach
/// these bits ends the batch long before.
type Pair = (u32, u32);
/// The bits of a token's number.
const NUMBER_BITS: u32 = u32::BITS - Sides::BITS;

/// The number of a pair's token.
fn number_of(pair: &Pair) -> u32 {
    pair.0 & ((1 << NUMBER_BITS) - 1)
}

/// The binary logarithm of how many recent tokens are remembered.
const RECENT_BITS: u32 = 11;

/// Where a packed token is among the recent ones.
#[inline]
fn recent_place(packed: u128) -> usize {
    let folded = (packed as u64) ^ ((packed >> 64) as u64).rotate_left(29);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT_BITS)) as usize
}

/// What is known of a token.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its number: they are counted as they come.
    number: u32,
    /// The document that had it last, and where that pair is.
    last: u32,
    pair: u32,
}

/// Bytes of a token that fit into a number beside its length.
const SHORT_BYTES_MAX: usize = 15;

/// A short token as a number: its bytes, the first one highest, then its length, so that no two are the same and numbers are sorted as
/// the tokens are.
#[inline]
fn pack(token: &[u8]) -> u128 {
    // Read as two halves that may overlap: the same bytes come to stand in the same places.
    let len = token.len() as u32;
    let bytes = if let (Some(first), Some(last)) = (token.first_chunk(), token.last_chunk()) {
        u128::from(u64::from_be_bytes(*first)) << 64 | u128::from(u64::from_be_bytes(*last)) << (8 * (16 - len))
    } else if let (Some(first), Some(last)) = (token.first_chunk(), token.last_chunk()) {
        let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
        u128::from(u64::from(first) << 32 | u64::from(last) << (8 * (8 - len))) << 64
    } else {
        token.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)) << (8 * (15 - len)) << 8
    };
    bytes | u128::from(len)
}

/// A short token taken out of its number again.
struct Unpacked([u8; 16]);

impl Unpacked {
    fn new(packed: u128) -> Self {
        Unpacked(packed.to_be_bytes())
    }

    fn bytes(&self) -> &[u8] {
        let [token @ .., len] = &self.0;
        token.get(..usize::from(*len)).unwrap_or_default()
    }
}

impl Dictionary {
    /// How many pairs of token and document there are.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Takes the last pairs out again, up to so many.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.pairs.truncate(len);
    }

    /// The tokens that `is_wanted` and that at least so many documents have, those that most have first, at most so many.
    pub(crate) fn frequent(&self, least: usize, most: usize, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Box<[u8]>> {
        let mut counts = vec![0usize; self.short.len() + self.long.len()];
        for pair in &self.pairs {
            if let Some(count) = counts.get_mut(number_of(pair) as usize) {
                *count += 1;
            }
        }
        let short = self.short.iter().map(|(token, slot)| (Unpacked::new(*token).bytes().into(), slot.number));
        let long = self.long.iter().map(|(token, slot)| (token.clone(), slot.number));
        let counted =
            short.chain(long).map(|(token, number)| (counts.get(number as usize).copied().unwrap_or(0), token));
        let mut frequent: Vec<(usize, Box<[u8]>)> =
            counted.filter(|(count, token)| *count >= least && is_wanted(token)).collect();
        frequent.sort_unstable_by(|a, b| b.cmp(a));
        frequent.truncate(most);
        frequent.into_iter().map(|(_, token)| token).collect()
    }

    /// Notes that the document has the token, with these sides. The memory that took.
    #[inline]
    pub(crate) fn note(&mut self, token: &[u8], doc: u32, sides: u8) -> usize {
        let packed = (token.len() <= SHORT_BYTES_MAX).then(|| pack(token));
        if let Some(packed) = packed {
            if self.recent.is_empty() {
                self.recent.resize(1 << RECENT_BITS, (0, NONE, 0));
            }
            if let Some(place) = self.recent.get_mut(recent_place(packed)) {
                let known = if (place.0, place.1) == (packed, doc) { Some(place.2) } else { None };
                if known.is_some_and(|known| known | sides == known) {
                    return 0;
                }
                *place = (packed, doc, known.unwrap_or(0) | sides);
            }
        }
        let count = self.short.len() + self.long.len();
        let new = Slot { number: count as u32, last: NONE, pair: 0 };
        let marks = u32::from(sides) << NUMBER_BITS;
        let slot = if let Some(packed) = packed {
            self.short.entry(packed).or_insert(new)
        } else {
            // Not by `entry`, which would need a copy of a token that is there already.
            if !self.long.contains_key(token) {
                self.long.insert(token.into(), new);
            }
            let Some(slot) = self.long.get_mut(token) else { return 0 };
            slot
        };
        if slot.last == doc {
            if let Some(pair) = self.pairs.get_mut(slot.pair as usize) {
                pair.0 |= marks;
            }
            return 0;
        }
        let is_new = slot.last == NONE && slot.number == new.number;
        (slot.last, slot.pair) = (doc, self.pairs.len() as u32);
        self.pairs.push((slot.number | marks, doc));
        size_of::<Pair>() + if is_new { token.len() + TOKEN_MEMORY_BYTES } else { 0 }
    }

    /// Writes the tokens with their documents, and how they stand in them if the section has that.
    pub(crate) fn write(self, has_sides: bool, writer: &mut Writer<'_>) -> Result<()> {
        // The pairs sorted by token: counted, then put where they belong.
        let mut ends = vec![0u32; self.short.len() + self.long.len() + 1];
        for pair in &self.pairs {
            if let Some(count) = ends.get_mut(number_of(pair) as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in &mut ends {
            sum += *count;
            *count = sum;
        }
        let mut next = ends.clone();
        let mut docs = vec![0; self.pairs.len()];
        let mut sides = vec![Sides::ANY; if has_sides { docs.len() } else { 0 }];
        for pair in self.pairs {
            if let Some(at) = next.get_mut(number_of(&pair) as usize) {
                if let Some(place) = docs.get_mut(*at as usize) {
                    *place = pair.1;
                }
                if let Some(place) = sides.get_mut(*at as usize) {
                    *place = Sides::of_bits(pair.0 >> NUMBER_BITS);
                }
                *at += 1;
            }
        }
        let mut short: Vec<(u128, u32)> = self.short.into_iter().map(|(token, slot)| (token, slot.number)).collect();
        short.sort_unstable();
        let mut long: Vec<(Box<[u8]>, u32)> = self.long.into_iter().map(|(token, slot)| (token, slot.number)).collect();
        long.sort_unstable();
        let mut long = long.into_iter().peekable();
        let mut write = |token: &[u8], number: u32| {
            let bounds = (ends.get(number as usize), ends.get(number as usize + 1));
            let (Some(from), Some(to)) = bounds else { return Ok(()) };
            let range = *from as usize..*to as usize;
            let docs = docs.get_mut(range.clone()).unwrap_or_default();
            let mut sides = sides.get_mut(range);
            if !docs.is_sorted() {
                sort_both(docs, sides.as_deref_mut().unwrap_or_default());
            }
            writer.token(token, docs, sides.as_deref().filter(|_| has_sides))
        };
        for (packed, number) in short {
            let token = Unpacked::new(packed);
            while let Some((before, number)) = long.next_if(|(long, _)| **long < *token.bytes()) {
                write(&before, number)?;
            }
            write(token.bytes(), number)?;
        }
        for (token, number) in long {
            write(&token, number)?;
        }
        writer.end_section()
    }
}

/// Sorts documents, and their sides with them if there are any.
fn sort_both(docs: &mut [u32], sides: &mut [Sides]) {
    let known = sides.iter().copied().chain(std::iter::repeat(Sides::ANY));
    let mut both: Vec<(u32, Sides)> = docs.iter().copied().zip(known).collect();
    both.sort_unstable_by_key(|(doc, _)| *doc);
    docs.iter_mut().zip(&both).for_each(|(to, (doc, _))| *to = *doc);
    sides.iter_mut().zip(&both).for_each(|(to, (_, sides))| *to = *sides);
}
