//! The real mail that the generator starts from: a folder of message files, or an mbox file.

use crate::error::{Doing, Error, Result};
use std::path::{Path, PathBuf};

/// Messages, all in memory.
pub struct Source {
    /// In the order of their names, or of the mbox.
    pub messages: Vec<Message>,
}

/// A message with LF line ends and without its mbox `From ` line.
pub struct Message {
    /// The header fields, each line with its LF.
    pub head: Vec<u8>,
    /// Everything after the empty line.
    pub body: Vec<u8>,
    /// Where the message stands among those of its folder, from 0 to 1: the order in which they arrived.
    pub place: f64,
}

impl Source {
    /// Reads a folder (every file in it and below that looks like a message) or an mbox file.
    pub fn read(from: &Path) -> Result<Source> {
        if from.is_file() {
            let bytes = std::fs::read(from).doing(from.display())?;
            return Source::from_folders(vec![split_mbox(&bytes)]);
        }
        let mut folders = Vec::new();
        let mut waiting = vec![from.to_path_buf()];
        while let Some(folder) = waiting.pop() {
            let mut files: Vec<PathBuf> = Vec::new();
            for entry in std::fs::read_dir(&folder).doing(folder.display())? {
                let path = entry.doing(folder.display())?.path();
                if path.is_dir() {
                    waiting.push(path);
                } else {
                    files.push(path);
                }
            }
            // The order of a listing is the file system's; the names' order is the same everywhere.
            files.sort();
            waiting.sort();
            let read = |path: &PathBuf| std::fs::read(path).doing(path.display());
            folders.push(files.iter().map(read).collect::<Result<Vec<_>>>()?);
        }
        Source::from_folders(folders).map_err(|error| Error::new(format!("{}: {error}", from.display())))
    }

    /// A source of messages that are in memory already.
    pub fn from_messages(messages: Vec<Vec<u8>>) -> Result<Source> {
        Source::from_folders(vec![messages])
    }

    fn from_folders(folders: Vec<Vec<Vec<u8>>>) -> Result<Source> {
        let mut messages = Vec::new();
        for folder in folders {
            let parsed: Vec<Message> = folder.iter().filter_map(|bytes| Message::parse(bytes)).collect();
            let count = parsed.len().max(1) as f64;
            let placed =
                parsed.into_iter().enumerate().map(|(n, message)| Message { place: n as f64 / count, ..message });
            messages.extend(placed);
        }
        if messages.is_empty() {
            return Err(Error::new("no messages found; `cargo xtask fetch-mail` fetches some"));
        }
        Ok(Source { messages })
    }
}

impl Message {
    /// Takes a message apart; `None` when it does not begin with a header field.
    fn parse(bytes: &[u8]) -> Option<Message> {
        let mut text = Vec::with_capacity(bytes.len() + 1);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            text.extend_from_slice(line.strip_suffix(b"\r\n").unwrap_or(line));
            if line.ends_with(b"\r\n") {
                text.push(b'\n');
            }
        }
        if text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
        let mut rest = text.as_slice();
        if rest.starts_with(b"From ") || rest.starts_with(b">From ") {
            rest = rest.get(memchr::memchr(b'\n', rest)? + 1..)?;
        }
        let name = rest.split(|byte| *byte == b':').next()?;
        if name.is_empty() || name.len() > 80 || !name.iter().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let (head, body) = match memchr::memmem::find(rest, b"\n\n") {
            Some(end) => (rest.get(..=end)?, rest.get(end + 2..)?),
            None => (rest, &[][..]),
        };
        Some(Message { head: head.to_vec(), body: body.to_vec(), place: 0.0 })
    }
}

/// The messages of an mbox: each begins with a `From ` line that starts the file or follows an empty line.
fn split_mbox(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut starts: Vec<usize> = memchr::memmem::find_iter(bytes, b"\n\nFrom ").map(|at| at + 2).collect();
    if bytes.starts_with(b"From ") {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| bytes.get(*start..end)).map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::{Message, Source, split_mbox};

    #[test]
    fn takes_apart() {
        let message = Message::parse(b"From a b\r\nSubject: x\r\n y\r\n\r\nbody\r\nend").expect("a message");
        assert_eq!(message.head, b"Subject: x\n y\n");
        assert_eq!(message.body, b"body\nend\n");
        assert!(Message::parse(b"just some text\nwithout a field\n").is_none());
        assert!(Message::parse(b"Subject: only a header").is_some_and(|message| message.body.is_empty()));
    }

    #[test]
    fn mbox() {
        let messages = split_mbox(b"From a\nA: 1\n\nFrom the body? no, a message\nB: 2\n\nx\nFrom y\n\n");
        assert_eq!(messages.len(), 2);
        assert!(Source::from_messages(messages).is_ok_and(|source| source.messages.len() == 2));
    }
}
