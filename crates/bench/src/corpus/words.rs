//! The words of the source, and how often it uses them.
//!
//! A pool holds, for each length, every occurrence of every word of that length. A word taken at random from it comes as often as the
//! source uses it, and a word replaced by one of its own length keeps lines, parts and messages exactly as long as they were.

use crate::random::{Random, scale};

const LENGTH_MIN: usize = 2;
const LENGTH_MAX: usize = 16;

/// Words by length, in small letters and with a capital.
pub struct Pool {
    small: [Vec<u8>; LENGTH_MAX + 1],
    capital: [Vec<u8>; LENGTH_MAX + 1],
}

/// What a word looks like: only words that look alike are exchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Small,
    Capital,
}

impl Pool {
    /// The words of all these texts.
    pub fn new<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Pool {
        let mut pool = Pool { small: Default::default(), capital: Default::default() };
        for text in texts {
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                let mut at = 0;
                while let Some((start, end)) = next_word(line, at) {
                    let word = line.get(start..end).unwrap_or_default();
                    if let Some(of_length) = shape(word).and_then(|shape| pool.row_mut(shape, word.len())) {
                        of_length.extend_from_slice(word);
                    }
                    at = end;
                }
            }
        }
        pool
    }

    /// Replaces about `share` of 256 words of a line, in place.
    pub fn replace(&self, line: &mut [u8], share: u64, random: &mut Random) {
        let mut at = 0;
        while let Some((start, end)) = next_word(line, at) {
            at = end;
            let bits = random.bits();
            if bits & 0xff < share
                && let Some(word) = line.get_mut(start..end)
            {
                self.put(word, bits);
            }
        }
    }

    /// Replaces every word of a line by one that depends only on the word and the key: equal lines stay equal.
    pub fn replace_by_key(&self, line: &mut [u8], key: u64) {
        let mut at = 0;
        while let Some((start, end)) = next_word(line, at) {
            at = end;
            if let Some(word) = line.get_mut(start..end) {
                // "Re: " and its kin are grammar, not words (RFC 5256 §2.1).
                if !matches!(&*word, b"Re" | b"Fw" | b"Fwd") {
                    self.put(word, crate::random::hash(key, word));
                }
            }
        }
    }

    fn put(&self, word: &mut [u8], bits: u64) {
        let length = word.len();
        let Some(row) = shape(word).and_then(|shape| self.row(shape, length)) else { return };
        let start = scale(bits, row.len() / length) * length;
        if let Some(other) = row.get(start..start + length) {
            word.copy_from_slice(other);
        }
    }

    fn row(&self, shape: Shape, length: usize) -> Option<&Vec<u8>> {
        let rows = if shape == Shape::Small { &self.small } else { &self.capital };
        rows.get(length).filter(|row| !row.is_empty())
    }

    fn row_mut(&mut self, shape: Shape, length: usize) -> Option<&mut Vec<u8>> {
        let rows = if shape == Shape::Small { &mut self.small } else { &mut self.capital };
        rows.get_mut(length)
    }
}

/// The next run of letters at or after `at` that stands free: between spaces or punctuation that occurs in prose. Names of HTML tags and
/// attributes, parts of addresses and links, and what follows a quoted-printable `=` are thereby left alone.
fn next_word(line: &[u8], mut at: usize) -> Option<(usize, usize)> {
    loop {
        while !line.get(at)?.is_ascii_alphabetic() {
            at += 1;
        }
        let start = at;
        while line.get(at).is_some_and(u8::is_ascii_alphabetic) {
            at += 1;
        }
        let before = start.checked_sub(1).and_then(|before| line.get(before)).copied().unwrap_or(b' ');
        let after = line.get(at).copied().unwrap_or(b' ');
        if matches!(before, b' ' | b'\t' | b'(')
            && matches!(after, b' ' | b'\t' | b'\n' | b',' | b'.' | b'!' | b'?' | b')' | b';')
        {
            // A dot may end a sentence or stand inside a host name.
            let inside_name = after == b'.' && line.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
            if !inside_name && (LENGTH_MIN..=LENGTH_MAX).contains(&(at - start)) {
                return Some((start, at));
            }
        }
    }
}

fn shape(word: &[u8]) -> Option<Shape> {
    let (first, rest) = word.split_first()?;
    if !rest.iter().all(u8::is_ascii_lowercase) {
        return None;
    }
    Some(if first.is_ascii_lowercase() { Shape::Small } else { Shape::Capital })
}

#[cfg(test)]
mod tests {
    use super::{Pool, next_word};
    use crate::random::Random;

    fn words(line: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some((start, end)) = next_word(line.as_bytes(), at) {
            found.push(&line[start..end]);
            at = end;
        }
        found
    }

    #[test]
    fn only_free_words() {
        assert_eq!(words("Hello there, you (two)."), ["Hello", "there", "you", "two"]);
        assert!(words("<td align=left>x</td> www.example.org/path =E9t=E9 user@host a").is_empty());
        assert_eq!(words("see example.org. Then"), ["see", "Then"]);
    }

    #[test]
    fn keeps_lengths_and_marks() {
        let pool = Pool::new(["Some words here and there, Most of them very short.\n".as_bytes()].into_iter());
        let mut line = b"Take care, then (well) they met some.\n".to_vec();
        let before = line.clone();
        pool.replace(&mut line, 256, &mut Random::new(3));
        assert_ne!(line, before);
        let marks = |line: &[u8]| line.iter().map(|byte| byte.is_ascii_alphabetic()).collect::<Vec<_>>();
        assert_eq!(marks(&line), marks(&before));
    }

    #[test]
    fn the_key_decides() {
        let pool = Pool::new(["one two six ten who are you and him her all".as_bytes()].into_iter());
        let mut first = b"Re: who are you".to_vec();
        let mut second = b"Fwd: who are you".to_vec();
        pool.replace_by_key(&mut first, 9);
        pool.replace_by_key(&mut second, 9);
        assert_eq!(first.get(4..), second.get(5..));
    }
}
