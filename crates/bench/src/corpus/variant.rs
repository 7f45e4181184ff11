//! One message made from a real one: same shape, other content.
//!
//! A generation is one pass over the source. Within a generation everything that ties messages together is changed alike: an identifier
//! becomes the same new one wherever it is named, a subject keeps its replies, a sender stays one person.

mod attachment;
mod header;

use super::Source;
use super::calendar;
use super::words::Pool;
use crate::random::{Random, hash};
use std::collections::{HashMap, HashSet};

/// Of 256 words of a body, how many are replaced. All would leave no phrase, and text harder to compress than what people write; few
/// would leave long repeats between variants. With this share zstd packs generated mail, 128 KiB at a time, to 0.31 of its size; it
/// packs the SpamAssassin corpus to 0.26 in its own order and to 0.32 shuffled.
const WORDS_REPLACED: u64 = 96;

/// An address seen this often belongs to a mailing list or to the owner of the mailbox, and stays as it is.
const SHARED_ADDRESS: u32 = 20;

/// Senders change every few generations: the larger the mailbox, the more people write.
const GENERATIONS_PER_PERSON: u32 = 4;

/// Makes variants of the messages of a source.
pub struct Variants<'s> {
    source: &'s Source,
    pool: Pool,
    seed: u64,
    shared_addresses: HashSet<Vec<u8>>,
    /// Messages whose identifier is missing, or was used by an earlier message.
    without_own_id: HashSet<usize>,
}

/// What is to be made of a message.
struct Recipe<'v> {
    variants: &'v Variants<'v>,
    number: usize,
    generation: u32,
    seconds: u64,
}

impl<'s> Variants<'s> {
    /// Counts words, addresses and identifiers of the source.
    pub fn new(source: &'s Source, seed: u64) -> Variants<'s> {
        let pool = Pool::new(source.messages.iter().map(|message| message.body.as_slice()));
        let mut addresses: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut ids: HashSet<&[u8]> = HashSet::new();
        let mut without_own_id = HashSet::new();
        for (number, message) in source.messages.iter().enumerate() {
            let mut own_id = None;
            for field in header::fields(&message.head) {
                if field.is_any(&header::ADDRESSES) {
                    for address in header::addresses(field.value) {
                        *addresses.entry(address).or_default() += 1;
                    }
                } else if field.is_any(&["message-id"]) {
                    own_id = header::ids(field.value).next();
                }
            }
            if !own_id.is_some_and(|id| ids.insert(id)) {
                without_own_id.insert(number);
            }
        }
        addresses.retain(|_, count| *count >= SHARED_ADDRESS);
        Variants { source, pool, seed, shared_addresses: addresses.into_keys().collect(), without_own_id }
    }

    /// Appends a variant to `out` as it stands in an mbox: `From ` line, header, body, empty line.
    pub fn write(&self, number: usize, generation: u32, seconds: u64, out: &mut Vec<u8>) {
        let Some(message) = self.source.messages.get(number) else { return };
        let recipe = Recipe { variants: self, number, generation, seconds };
        let from_line = out.len();
        let sender = recipe.write_head(&message.head, out);
        // The sender is known only when the header is done.
        let line = [b"From ", sender.as_slice(), b" ", calendar::mbox_date(seconds).as_bytes(), b"\n"].concat();
        out.splice(from_line..from_line, line);
        out.push(b'\n');
        recipe.write_body(&message.body, out);
        out.push(b'\n');
    }
}

impl Recipe<'_> {
    fn key(&self) -> u64 {
        hash(self.variants.seed, &self.generation.to_le_bytes())
    }

    fn person_key(&self) -> u64 {
        hash(self.variants.seed, &(self.generation / GENERATIONS_PER_PERSON + 0x1000).to_le_bytes())
    }

    /// Randomness of this message alone.
    fn random(&self) -> Random {
        Random::new(hash(self.key(), &self.number.to_le_bytes()))
    }

    fn write_body(&self, body: &[u8], out: &mut Vec<u8>) {
        let mut random = self.random();
        let mut rest = body;
        let mut in_part_header = false;
        while !rest.is_empty() {
            let encoded = attachment::base64_lines(rest);
            if encoded > 0 {
                let (block, after) = rest.split_at(encoded);
                attachment::write(block, &self.variants.pool, WORDS_REPLACED, &mut random, out);
                rest = after;
                continue;
            }
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            let start = out.len();
            out.extend_from_slice(line);
            in_part_header = is_structure(line)
                || in_part_header && line.starts_with(b" ")
                || line.starts_with(b"\t") && in_part_header;
            if !in_part_header && let Some(copy) = out.get_mut(start..) {
                self.variants.pool.replace(copy, WORDS_REPLACED, &mut random);
            }
            // Only now: a word may have become a "From".
            if out.get(start..).is_some_and(|copy| copy.starts_with(b"From ")) {
                out.insert(start, b'>');
            }
        }
    }
}

/// Lines whose words mean something to a mail program: boundaries, header fields of parts and of messages inside messages.
fn is_structure(line: &[u8]) -> bool {
    let begins = |prefix: &[u8]| line.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    begins(b"--") || begins(b"content-") || begins(b"date:") || begins(b"mime-version:") || begins(b"begin ")
}
