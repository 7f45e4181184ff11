//! The mailboxes that are scanned: the corpus, and equal parts of it.

use crate::corpus::Corpus;
use crate::error::{Doing, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An mbox file and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// The file.
    pub path: PathBuf,
    /// How many messages a program has to find.
    pub messages: u64,
    /// Its bytes.
    pub bytes: u64,
}

impl Mailbox {
    /// The whole corpus.
    pub fn of(corpus: &Corpus) -> Mailbox {
        Mailbox { path: corpus.path.clone(), messages: corpus.messages, bytes: corpus.bytes }
    }
}

/// Writes the corpus as so many files, cut between messages, into a new folder. With fewer messages than that some files are empty, and
/// left out.
pub fn split(corpus: &Corpus, count: usize, folder: &Path) -> Result<Vec<Mailbox>> {
    std::fs::create_dir_all(folder).doing(folder.display())?;
    let mut lines = BufReader::with_capacity(1 << 20, File::open(&corpus.path).doing(corpus.path.display())?);
    let mut parts: Vec<Mailbox> = Vec::new();
    let mut out = None;
    let mut line = Vec::new();
    let mut read = 0;
    while {
        line.clear();
        lines.read_until(b'\n', &mut line).doing(corpus.path.display())? > 0
    } {
        let begins = line.starts_with(b"From ");
        // The number of the part that the byte at `read` is to be in.
        let wanted = (u128::from(read) * count as u128 / u128::from(corpus.bytes.max(1))) as usize;
        if begins && (parts.is_empty() || parts.len() <= wanted) {
            let path = folder.join(format!("{}.mbox", parts.len() + 1));
            out = Some(BufWriter::with_capacity(1 << 20, File::create(&path).doing(path.display())?));
            parts.push(Mailbox { path, messages: 0, bytes: 0 });
        }
        let (Some(out), Some(part)) = (&mut out, parts.last_mut()) else { continue };
        out.write_all(&line).doing(part.path.display())?;
        part.messages += u64::from(begins);
        part.bytes += line.len() as u64;
        read += line.len() as u64;
    }
    if let Some(mut out) = out {
        out.flush().doing(folder.display())?;
    }
    Ok(parts)
}

/// Removes the folder.
pub fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).doing(folder.display())
}

#[cfg(test)]
mod tests {
    use super::{Mailbox, remove, split};
    use crate::corpus::Corpus;

    #[test]
    fn nothing_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mbox");
        let text: String = (0..50).map(|number| format!("From a\nA: {number}\n\n{}\n\n", "x".repeat(number))).collect();
        std::fs::write(&path, &text).expect("written");
        let corpus = Corpus::open(&path).expect("an mbox");
        let parts = split(&corpus, 7, &folder.path().join("parts")).expect("split");
        assert_eq!(parts.len(), 7);
        assert_eq!(parts.iter().map(|part| part.messages).sum::<u64>(), corpus.messages);
        assert_eq!(Mailbox::of(&corpus).messages, 50);
        let mut together = String::new();
        for part in &parts {
            let of_part = std::fs::read_to_string(&part.path).expect("read");
            assert_eq!(of_part.len() as u64, part.bytes);
            assert!(part.bytes > corpus.bytes / 14 && part.messages > 0, "{part:?}");
            together.push_str(&of_part);
        }
        assert_eq!(together, text);
        remove(&folder.path().join("parts")).expect("removed");
    }
}
