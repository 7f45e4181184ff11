//! Base64 parts of a variant: text stays text, everything else is other bytes of the same entropy.

use crate::corpus::words::Pool;
use crate::random::Random;
use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Shorter lines of letters alone may be prose.
const LINE_MIN: usize = 56;

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How many bytes at the start of `text` are lines of base64: full lines and the shorter one that may end them. 0 when there are fewer
/// than two full lines.
pub fn base64_lines(text: &[u8]) -> usize {
    let mut end = 0;
    let mut full = 0;
    let mut width = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let short_enough = full == 0 || content.len() <= width;
        if content.is_empty() || !short_enough || !content.iter().all(|byte| is_digit(*byte) || *byte == b'=') {
            break;
        }
        if content.len() < LINE_MIN {
            if full > 0 {
                end += line.len();
            }
            break;
        }
        width = content.len();
        full += 1;
        end += line.len();
    }
    if full >= 2 { end } else { 0 }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

/// Appends a changed copy of lines of base64: the same lines, as long as they were.
pub fn write(block: &[u8], pool: &Pool, words_replaced: u64, random: &mut Random, out: &mut Vec<u8>) {
    let digits: Vec<u8> = block.iter().copied().filter(|byte| *byte != b'\n').collect();
    let changed = match text_inside(&digits) {
        Some(mut text) => {
            for line in text.split_inclusive_mut(|byte| *byte == b'\n') {
                pool.replace(line, words_replaced, random);
            }
            ENGINE.encode(text).into_bytes()
        }
        None => permuted(&digits, random),
    };
    // Words keep their lengths, so the text does; padding that the original left out is left out again.
    let mut changed = changed.into_iter();
    for byte in block {
        out.push(if *byte == b'\n' { b'\n' } else { changed.next().unwrap_or(b'=') });
    }
}

/// What the base64 says, when that is text in a superset of ASCII.
fn text_inside(digits: &[u8]) -> Option<Vec<u8>> {
    let bytes = ENGINE.decode(digits).ok()?;
    let start = bytes.get(..256).unwrap_or(&bytes);
    let plain = start.iter().filter(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')).count();
    (plain * 10 >= start.len() * 9).then_some(bytes)
}

/// Every digit replaced by another, the same one everywhere: as varied as before, and equal to no other variant.
fn permuted(digits: &[u8], random: &mut Random) -> Vec<u8> {
    let mut order: Vec<u8> = ALPHABET.as_str().bytes().collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
    let mut table = [0u8; 256];
    for (from, to) in ALPHABET.as_str().bytes().zip(order) {
        table[usize::from(from)] = to;
    }
    table[usize::from(b'=')] = b'=';
    // The group that is padded stays, since its last digit may only have certain values.
    let fixed = if digits.ends_with(b"=") { digits.len().saturating_sub(4) } else { digits.len() };
    digits.iter().enumerate().map(|(at, byte)| if at < fixed { table[usize::from(*byte)] } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::{ENGINE, base64_lines, write};
    use crate::corpus::words::Pool;
    use crate::random::Random;
    use base64::Engine;

    fn lines(bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for line in ENGINE.encode(bytes).as_bytes().chunks(76) {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        text
    }

    fn changed(block: &[u8]) -> Vec<u8> {
        let pool = Pool::new(["some words that are used here every day".as_bytes()].into_iter());
        let mut out = Vec::new();
        write(block, &pool, 256, &mut Random::new(1), &mut out);
        out
    }

    #[test]
    fn finds_blocks() {
        let block = lines(&[7; 500]);
        let with_more = [block.as_slice(), b"--boundary\n"].concat();
        assert_eq!(base64_lines(&with_more), block.len());
        assert_eq!(base64_lines(b"Just some prose that is long enough to be more than a full line of it.\n"), 0);
    }

    #[test]
    fn binary_stays_decodable() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| (n * n % 251) as u8).collect();
        let block = lines(&bytes);
        let other = changed(&block);
        assert_ne!(other, block);
        assert_eq!(other.len(), block.len());
        let digits: Vec<u8> = other.into_iter().filter(|byte| *byte != b'\n').collect();
        assert_eq!(ENGINE.decode(digits).expect("base64").len(), bytes.len());
    }

    #[test]
    fn text_stays_text() {
        let text = "These are words that people used when they had some days.\n".repeat(20);
        let other: Vec<u8> = changed(&lines(text.as_bytes())).into_iter().filter(|byte| *byte != b'\n').collect();
        let decoded = String::from_utf8(ENGINE.decode(other).expect("base64")).expect("ASCII");
        assert_ne!(decoded, text);
        assert_eq!(decoded.len(), text.len());
        assert_eq!(decoded.lines().count(), 20);
    }
}
