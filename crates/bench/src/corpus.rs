//! Mail to measure with: a real corpus scaled to any size by a seeded generator.
//!
//! Real mail is small, and no two people may share theirs; random bytes compress like nothing that people write. So the generator makes
//! variants of real messages. What it keeps: the distribution of sizes (as nearly as the wanted mean allows), MIME structure, charsets,
//! line lengths, the frequencies of words, threads. What it changes, so that no two messages are equal: Message-ID (and with it the
//! references of the same thread), Date, senders, words of subject and body, the contents of attachments.
//!
//! Invariants:
//! - the same source, size and seed give the same bytes, on every machine;
//! - the number of messages is exact, the number of bytes within 2 % when the source allows it;
//! - no two messages have the same Message-ID, so no two are the same bytes; [`Shape`] shows that, and what else is to be kept.

mod calendar;
mod file;
mod plan;
mod shape;
mod source;
mod variant;
mod words;

pub use file::Corpus;
pub use plan::Size;
pub use shape::Shape;
pub use source::{SPAMASSASSIN, Source};

use crate::error::{Doing, Error, Result};
use crate::interrupt;
use std::io::Write;
use std::path::Path;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Messages.
    pub messages: u64,
    /// Bytes of the mbox file, its `From ` lines included.
    pub bytes: u64,
}

/// The wanted size may be missed by this share of the bytes.
const TOLERANCE: f64 = 0.02;

/// Writes an mbox file of the wanted size: LF line ends, body lines that begin with `From ` quoted with `>`.
pub fn write_mbox(source: &Source, size: Size, seed: u64, mut out: impl Write) -> Result<Written> {
    let variants = variant::Variants::new(source, seed);
    let mut message = Vec::new();
    // What each source message comes to once it is rewritten: not what it was, since dates and identifiers change length.
    let mut written_bytes = Vec::with_capacity(source.messages.len());
    for number in 0..source.messages.len() {
        interrupt::check()?;
        message.clear();
        variants.write(number, 0, 0, &mut message);
        written_bytes.push(message.len() as u64);
    }
    let mut written = Written { messages: 0, bytes: 0 };
    for pick in plan::plan(source, &written_bytes, size, seed)? {
        interrupt::check()?;
        message.clear();
        variants.write(pick.source, pick.generation, pick.seconds, &mut message);
        out.write_all(&message).doing("mbox")?;
        written.messages += 1;
        written.bytes += message.len() as u64;
    }
    out.flush().doing("mbox")?;
    let off = (written.bytes as f64 - size.bytes as f64).abs() / size.bytes as f64;
    if off > TOLERANCE {
        return Err(Error::new(format!(
            "the source cannot be scaled to {} messages of {} bytes: it came to {}",
            size.messages, size.bytes, written.bytes
        )));
    }
    Ok(written)
}

/// Reads a source and writes the mbox file `to`.
pub fn make(from: &Path, size: Size, seed: u64, to: &Path) -> Result<Written> {
    make_from(&Source::read(from)?, size, seed, to)
}

/// Writes the mbox file `to`, made from a source that was read already.
pub fn make_from(source: &Source, size: Size, seed: u64, to: &Path) -> Result<Written> {
    let file = std::fs::File::create(to).doing(to.display())?;
    write_mbox(source, size, seed, std::io::BufWriter::with_capacity(1 << 20, file))
}

#[cfg(test)]
mod tests {
    use super::{Shape, Size, Source, make_from, write_mbox};
    use std::collections::HashSet;

    fn source() -> Source {
        let words =
            ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs", "while", "seven", "wizards", "sleep"];
        let messages = (0..200usize).map(|number| {
            let mut text = format!(
                "From x@example.org Mon Jan  1 00:00:00 2001\nFrom: Person {number} <p{number}@example.org>\nTo: list@example.org\n\
                 Subject: about {}\nMessage-ID: <{number}@example.org>\nDate: Mon, 01 Jan 2001 00:00:00 +0000\n{}\n",
                words[number % words.len()],
                ["", "Content-Type: text/plain; charset=koi8-r\n", "Content-Type: multipart/mixed; boundary=b\n"][number % 3]
            );
            for word in 0..number * 3 {
                text.push_str(words[(word * 7 + number) % words.len()]);
                text.push(if word % 9 == 8 { '\n' } else { ' ' });
            }
            text.push_str("\nFrom here on nothing more.\n");
            text.into_bytes()
        });
        Source::from_messages(messages.collect()).expect("there are messages")
    }

    fn mbox(size: Size, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write_mbox(&source(), size, seed, &mut out).expect("the size can be reached");
        out
    }

    #[test]
    fn size_count_and_uniqueness() {
        for (messages, bytes) in [(100, 100_000), (1_000, 1_000_000), (3_000, 4_500_000)] {
            let out = mbox(Size { messages, bytes }, 7);
            assert!((out.len() as f64 / bytes as f64 - 1.0).abs() <= 0.02, "{} of {bytes}", out.len());
            let lines: Vec<&[u8]> = out.split(|byte| *byte == b'\n').collect();
            let starts = lines.iter().filter(|line| line.starts_with(b"From ")).count();
            assert_eq!(starts as u64, messages);
            let ids: HashSet<&[u8]> = lines.iter().filter(|line| line.starts_with(b"Message-ID:")).copied().collect();
            assert_eq!(ids.len() as u64, messages);
        }
    }

    #[test]
    fn the_shape_is_kept() {
        let source = source();
        let real = Shape::of_source(&source);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("made.mbox");
        // The source's own mean, so that the distribution of sizes is to stay: headers grow a little.
        let size = Size { messages: 2_000, bytes: real.bytes * 11 };
        make_from(&source, size, 3, &path).expect("the size can be reached");
        let made = Shape::of_mbox(&path).expect("an mbox");
        assert_eq!((made.messages, made.repeated), (2_000, 0));
        for (real, made) in real.deciles.iter().zip(made.deciles) {
            assert!((made as f64 / *real as f64 - 1.0).abs() < 0.25, "{real} and {made}");
        }
        assert!((real.multipart_share() - made.multipart_share()).abs() < 0.02);
        assert!((real.charset_share("koi8-r") - made.charset_share("koi8-r")).abs() < 0.02);
    }

    #[test]
    fn seeds() {
        let size = Size { messages: 300, bytes: 300_000 };
        assert_eq!(mbox(size, 1), mbox(size, 1));
        assert_ne!(mbox(size, 1), mbox(size, 2));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let size = Size { messages: 10, bytes: 1_000_000_000 };
        assert!(write_mbox(&source(), size, 1, &mut Vec::new()).is_err());
    }
}
