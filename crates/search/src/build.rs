//! Making an image from texts. Memory: the distinct tokens and eight bytes for each pair of token and document; the caller ends a batch
//! when [`Builder::memory_bytes`] says so.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use model::{Error, ErrorKind, Result};

use crate::find::SECTIONS;
use crate::format::{FIELDS_MAX, NO_NUMBER};
use crate::frequent::{FREQUENT_BYTES_MAX, Frequent};
use crate::token::{Class, Cut, Kind, Tokens};
use crate::write::{Output, Writer};

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
const NONE: u32 = u32::MAX;
/// What a distinct token costs beside its bytes: its entry in the map, its box, its last document. About.
const TOKEN_MEMORY_BYTES: usize = 64;

/// Gathers the tokens of documents; one text at a time.
#[derive(Debug)]
pub struct Builder {
    base: u64,
    frequent: Frequent,
    fields: Vec<Field>,
    tokens: Tokens,
    /// A number of each document that has one.
    numbers: Vec<(u32, i32)>,
    /// Which field the open text belongs to.
    field: usize,
    /// The open document, counted from `base`.
    doc: u32,
    /// The documents, in the order in which they came.
    docs: Vec<u32>,
    memory_bytes: usize,
    /// Lengths of the fields' pairs when the open document began.
    marks: Vec<[usize; SECTIONS]>,
}

/// One field.
#[derive(Debug)]
struct Field {
    cut: Cut,
    tokens: Dictionary,
    contexts: Dictionary,
    joints: Dictionary,
}

impl Field {
    #[inline]
    fn note(&mut self, kind: Kind, token: &[u8], doc: u32) -> usize {
        match kind {
            Kind::Token => self.tokens.note(token, doc),
            Kind::Context => self.contexts.note(token, doc),
            Kind::Joint => self.joints.note(token, doc),
        }
    }
}

/// The tokens of one field, its contexts or its joints.
#[derive(Debug, Default)]
struct Dictionary {
    /// Tokens of at most [`SHORT_BYTES_MAX`] bytes, nearly all, as numbers: looking one up touches one place in memory.
    short: HashMap<u128, Slot, Keyed>,
    long: HashMap<Box<[u8]>, Slot, Keyed>,
    /// Token and document.
    pairs: Vec<(u32, u32)>,
    /// Short tokens that were noted last, and the document: most of what a document has it has more than once, and this stays near the
    /// processor.
    recent: Vec<(u128, u32)>,
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
    /// The document that had it last.
    last: u32,
}

/// Bytes of a token that fit into a number beside its length.
const SHORT_BYTES_MAX: usize = 15;

/// A short token as a number: its length, then its bytes, so that no two are the same.
#[inline]
fn pack(token: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(token).for_each(|(to, from)| *to = *from);
    u128::from_le_bytes(bytes) | (token.len() as u128) << 120
}

/// The token that was packed.
fn unpack(packed: u128) -> Box<[u8]> {
    let len = (packed >> 120) as usize;
    packed.to_le_bytes().get(..len).unwrap_or_default().into()
}

impl Field {
    /// How many pairs each section has.
    fn lens(&self) -> [usize; SECTIONS] {
        [self.tokens.pairs.len(), self.contexts.pairs.len(), self.joints.pairs.len()]
    }
}

impl Dictionary {
    /// The tokens that `is_wanted` and that at least so many documents have, those that most have first, at most so many.
    fn frequent(&self, least: usize, most: usize, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Box<[u8]>> {
        let mut counts = vec![0usize; self.short.len() + self.long.len()];
        for (token, _) in &self.pairs {
            if let Some(count) = counts.get_mut(*token as usize) {
                *count += 1;
            }
        }
        let short = self.short.iter().map(|(token, slot)| (unpack(*token), slot.number));
        let long = self.long.iter().map(|(token, slot)| (token.clone(), slot.number));
        let counted =
            short.chain(long).map(|(token, number)| (counts.get(number as usize).copied().unwrap_or(0), token));
        let mut frequent: Vec<(usize, Box<[u8]>)> =
            counted.filter(|(count, token)| *count >= least && is_wanted(token)).collect();
        frequent.sort_unstable_by(|a, b| b.cmp(a));
        frequent.truncate(most);
        frequent.into_iter().map(|(_, token)| token).collect()
    }

    /// Notes that the document has the token. The memory that took.
    #[inline]
    fn note(&mut self, token: &[u8], doc: u32) -> usize {
        let packed = (token.len() <= SHORT_BYTES_MAX).then(|| pack(token));
        if let Some(packed) = packed {
            if self.recent.is_empty() {
                self.recent.resize(1 << RECENT_BITS, (0, NONE));
            }
            if let Some(place) = self.recent.get_mut(recent_place(packed)) {
                if *place == (packed, doc) {
                    return 0;
                }
                *place = (packed, doc);
            }
        }
        let count = self.short.len() + self.long.len();
        let new = Slot { number: count as u32, last: NONE };
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
            return 0;
        }
        let is_new = slot.last == NONE && slot.number == new.number;
        slot.last = doc;
        self.pairs.push((slot.number, doc));
        size_of::<(u32, u32)>() + if is_new { token.len() + TOKEN_MEMORY_BYTES } else { 0 }
    }

    /// Writes the tokens with their documents.
    fn write(self, writer: &mut Writer<'_>) -> Result<()> {
        // The pairs sorted by token: counted, then put where they belong.
        let mut ends = vec![0u32; self.short.len() + self.long.len() + 1];
        for (token, _) in &self.pairs {
            if let Some(count) = ends.get_mut(*token as usize + 1) {
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
        for (token, doc) in self.pairs {
            if let Some(at) = next.get_mut(token as usize) {
                if let Some(place) = docs.get_mut(*at as usize) {
                    *place = doc;
                }
                *at += 1;
            }
        }
        let short = self.short.into_iter().map(|(token, slot)| (unpack(token), slot.number));
        let long = self.long.into_iter().map(|(token, slot)| (token, slot.number));
        let mut tokens: Vec<(Box<[u8]>, u32)> = short.chain(long).collect();
        tokens.sort_unstable();
        for (token, number) in tokens {
            let bounds = (ends.get(number as usize), ends.get(number as usize + 1));
            let (Some(from), Some(to)) = bounds else { continue };
            let Some(docs) = docs.get_mut(*from as usize..*to as usize) else { continue };
            if !docs.is_sorted() {
                docs.sort_unstable();
            }
            writer.token(&token, docs)?;
        }
        writer.end_section()
    }
}

impl Builder {
    /// A builder for documents from `base` on with these fields, at most [`FIELDS_MAX`]. Any `frequent` will do: one that fits makes
    /// searches fast.
    pub fn new(base: u64, cuts: &[Cut], frequent: &Frequent) -> Self {
        let nothing = Dictionary::default;
        let field = |cut: &Cut| Field { cut: *cut, tokens: nothing(), contexts: nothing(), joints: nothing() };
        let fields = cuts.iter().take(FIELDS_MAX).map(field).collect();
        Builder {
            base,
            frequent: frequent.clone(),
            fields,
            tokens: Tokens::default(),
            numbers: Vec::new(),
            field: 0,
            doc: NONE,
            docs: Vec::new(),
            memory_bytes: 0,
            marks: Vec::new(),
        }
    }

    /// What is frequent in the documents that follow; the open one ends.
    pub fn set_frequent(&mut self, frequent: Frequent) {
        self.boundary();
        self.frequent = frequent;
    }

    /// Begins a document, each only once; in any order, but a rising one is quicker. `Invalid` when it is below the base or more than
    /// 2³² − 2 above.
    pub fn document(&mut self, document: u64) -> Result<()> {
        self.boundary();
        let doc = document.checked_sub(self.base).and_then(|doc| u32::try_from(doc).ok()).filter(|doc| *doc != NONE);
        self.doc = doc.ok_or_else(|| Error::new(ErrorKind::Invalid, "a document out of the builder's range"))?;
        self.docs.push(self.doc);
        self.marks.clear();
        self.marks.extend(self.fields.iter().map(Field::lens));
        Ok(())
    }

    /// The next texts belong to this field. Ends the text before.
    pub fn field(&mut self, field: usize) {
        self.boundary();
        self.field = field;
    }

    /// The next chunk of the text, folded.
    pub fn text(&mut self, folded: &str) {
        let Some(field) = self.fields.get_mut(self.field) else { return };
        let (doc, memory) = (self.doc, &mut self.memory_bytes);
        let frequent = self.frequent.field(self.field);
        self.tokens.push(folded, field.cut, frequent, |kind, token| *memory += field.note(kind, token, doc));
    }

    /// The text ends; no token reaches into the next.
    pub fn boundary(&mut self) {
        let Some(field) = self.fields.get_mut(self.field) else { return };
        let (doc, memory) = (self.doc, &mut self.memory_bytes);
        let frequent = self.frequent.field(self.field);
        self.tokens.end(field.cut, frequent, &mut |kind: Kind, token: &[u8]| *memory += field.note(kind, token, doc));
    }

    /// Gives the open document a number that it can be found by; [`i32::MIN`] is none.
    pub fn number(&mut self, number: i32) {
        self.numbers.push((self.doc, number));
    }

    /// Takes the open document out again, as if it had never been begun; it is not covered.
    pub fn abandon(&mut self) {
        self.boundary();
        if self.docs.pop().is_some() {
            for (field, lens) in self.fields.iter_mut().zip(&self.marks) {
                let sections = [&mut field.tokens, &mut field.contexts, &mut field.joints];
                sections.into_iter().zip(lens).for_each(|(section, len)| section.pairs.truncate(*len));
            }
            self.numbers.pop_if(|(doc, _)| *doc == self.doc);
        }
        // Tokens may remember it as their last document: it must not be begun again with the same number.
        self.doc = NONE;
    }

    pub(crate) fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Words of a field that at least so many documents have; none of a field without joints.
    pub(crate) fn frequent_words(&self, field: usize, least: usize, most: usize) -> Vec<Box<[u8]>> {
        let is_word = |token: &[u8]| {
            let text = std::str::from_utf8(token).unwrap_or_default();
            token.len() <= FREQUENT_BYTES_MAX
                && text.chars().next().is_some_and(|first| Class::of(first) == Class::Word)
        };
        let field = self.fields.get(field).filter(|field| field.cut == Cut::Joints);
        field.map_or_else(Vec::new, |field| field.tokens.frequent(least, most, is_word))
    }

    /// Joints of two frequent words that at least so many documents have, without marks.
    pub(crate) fn frequent_pairs(&self, field: usize, least: usize, most: usize) -> Vec<Box<[u8]>> {
        let Some(known) = self.frequent.field(field) else { return Vec::new() };
        let is_pair = |token: &[u8]| {
            // Between its words stands what is no word.
            let text = std::str::from_utf8(token).unwrap_or_default();
            let is_word = |character: char| Class::of(character) == Class::Word;
            let words = text.find(|character| !is_word(character)).zip(text.rfind(|character| !is_word(character)));
            words.is_some_and(|(before, gap)| {
                let behind = gap + text.get(gap..).and_then(|gap| gap.chars().next()).map_or(0, char::len_utf8);
                let is_known = |word: Option<&[u8]>| word.is_some_and(|word| known.words.contains(word));
                is_known(token.get(..before)) && is_known(token.get(behind..))
            })
        };
        self.fields.get(field).map_or_else(Vec::new, |field| field.joints.frequent(least, most, is_pair))
    }

    /// Documents so far.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// Memory held, bytes, about.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Writes the image in order to `out`. Its length, bytes.
    pub fn finish(mut self, out: &mut Output<'_>) -> Result<u64> {
        self.boundary();
        self.docs.sort_unstable();
        let span = self.docs.last().map_or(0, |last| u64::from(*last) + 1);
        let mut put = |bytes: &[u8]| out(bytes);
        let cuts: Vec<Cut> = self.fields.iter().map(|field| field.cut).collect();
        let mut writer = Writer::new(self.base, span, &cuts, &mut put);
        for field in self.fields {
            field.tokens.write(&mut writer)?;
            field.contexts.write(&mut writer)?;
            field.joints.write(&mut writer)?;
        }
        let mut numbers = vec![NO_NUMBER; usize::try_from(span).unwrap_or(0)];
        for (doc, number) in self.numbers {
            if let Some(place) = numbers.get_mut(doc as usize) {
                *place = number;
            }
        }
        writer.numbers(&numbers)?;
        writer.finish(self.docs.into_iter())
    }

    /// The image in memory.
    pub fn finish_in_memory(self) -> Result<Vec<u8>> {
        let mut image = Vec::new();
        self.finish(&mut |bytes| {
            image.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(image)
    }
}
