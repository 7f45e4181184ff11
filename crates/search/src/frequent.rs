//! The words that very many documents have, and pairs of them. What stands around them is noted too: of a rare word it costs little to look
//! at every document that has it, of these it would be nearly all. Only fields in which joints are noted have them.
//!
//! Which words these are changes what is written, and never an answer: each token says by its form what it knows
//! ([`crate::links`]), so that documents which were taken in with different words lie together in an image.

use std::collections::HashSet;
use std::sync::Arc;

use crate::build::{Builder, Keyed};

/// A longer word is none of these, bytes.
pub(crate) const FREQUENT_BYTES_MAX: usize = 24;
/// A word is frequent that one in so many documents has.
const WORD_SHARE: usize = 5;
/// A pair is frequent that one in so many documents has.
const PAIR_SHARE: usize = 32;
/// And at least so many: a handful of messages says nothing of the others.
const DOCUMENTS_MIN: usize = 6;
/// Of each field: more would be of no use.
const WORDS_MAX: usize = 4000;
const PAIRS_MAX: usize = 8000;

/// The frequent words and pairs of each field; of none when nothing is known yet.
#[derive(Clone, Debug, Default)]
pub struct Frequent {
    fields: Arc<Vec<FrequentField>>,
}

/// The words that are frequent in one field.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrequentField {
    pub(crate) words: HashSet<Box<[u8]>, Keyed>,
    /// Two words with what is between them.
    pub(crate) pairs: HashSet<Box<[u8]>, Keyed>,
}

impl Frequent {
    /// What is frequent in documents that are like others to come. The first time words are found, and pairs when those who filled the
    /// builder knew the words.
    pub fn in_sample(sample: &Builder, known: &Frequent) -> Self {
        let docs = sample.len();
        let field = |number: usize| {
            let least = |share: usize| (docs / share).max(DOCUMENTS_MIN);
            let words = match known.field(number) {
                Some(known) if !known.words.is_empty() => known.words.clone(),
                _ => sample.frequent_words(number, least(WORD_SHARE), WORDS_MAX).into_iter().collect(),
            };
            let pairs = sample.frequent_pairs(number, least(PAIR_SHARE), PAIRS_MAX).into_iter().collect();
            FrequentField { words, pairs }
        };
        Frequent { fields: Arc::new((0..sample.fields()).map(field).collect()) }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.fields.iter().all(|field| field.words.is_empty())
    }

    /// From the words and pairs of each field.
    pub(crate) fn of(fields: Vec<FrequentField>) -> Self {
        Frequent { fields: Arc::new(fields) }
    }

    pub(crate) fn field(&self, number: usize) -> Option<&FrequentField> {
        self.fields.get(number)
    }
}
