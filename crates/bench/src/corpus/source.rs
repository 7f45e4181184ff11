//! The real mail that the generator starts from: the fetched corpus, a Maildir, a folder of message files, or an mbox file.

mod files;

pub use files::SPAMASSASSIN;

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
    /// Reads the fetched corpus ([`SPAMASSASSIN`]), a Maildir, another folder (every file in it and below that looks like a message) or
    /// an mbox file.
    pub fn read(from: &Path) -> Result<Source> {
        let from = files::locate(from)?;
        let folders = if from.is_dir() {
            let read = |path: &PathBuf| std::fs::read(path).doing(path.display());
            let each = files::listed(&from)?.into_iter();
            each.map(|folder| folder.iter().map(read).collect()).collect::<Result<_>>()?
        } else {
            let bytes = std::fs::read(&from).doing(from.display())?;
            vec![split_mbox(&bytes).map_err(|why| Error::new(format!("{} is no mbox file: {why}", from.display())))?]
        };
        Source::from_folders(folders).ok_or_else(|| files::nothing_in(&from))
    }

    /// A source of messages that are in memory already; `None` when none of them is one.
    #[cfg(test)]
    pub fn from_messages(messages: Vec<Vec<u8>>) -> Option<Source> {
        Source::from_folders(vec![messages])
    }

    fn from_folders(folders: Vec<Vec<Vec<u8>>>) -> Option<Source> {
        let mut messages = Vec::new();
        for folder in folders {
            let parsed: Vec<Message> = folder.iter().filter_map(|bytes| Message::parse(bytes)).collect();
            let count = parsed.len().max(1) as f64;
            let placed =
                parsed.into_iter().enumerate().map(|(n, message)| Message { place: n as f64 / count, ..message });
            messages.extend(placed);
        }
        (!messages.is_empty()).then_some(Source { messages })
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
        // RFC 5322 §2.2 allows more, down to `{"text"`; nobody's mail begins with such a field, and many a file does.
        let of_a_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        if name.is_empty() || name.len() > 80 || !name.iter().all(of_a_name) {
            return None;
        }
        let (head, body) = match memchr::memmem::find(rest, b"\n\n") {
            Some(end) => (rest.get(..=end)?, rest.get(end + 2..)?),
            None => (rest, &[][..]),
        };
        Some(Message { head: head.to_vec(), body: body.to_vec(), place: 0.0 })
    }
}

/// The messages of an mbox: each begins with a `From ` line that starts the file or follows an empty line (RFC 4155 appendix A). An error
/// says what the file is instead.
fn split_mbox(bytes: &[u8]) -> std::result::Result<Vec<Vec<u8>>, &'static str> {
    let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let bytes = bytes.get(blank..).unwrap_or_default();
    if bytes.is_empty() {
        return Err("it is empty");
    }
    if !bytes.starts_with(b"From ") {
        // Text of any charset has no NUL; UTF-16 has, and is no mail either.
        let binary = bytes.get(..BEGINNING).unwrap_or(bytes).contains(&0) || bytes.starts_with(GZIP);
        return Err(if binary { "it is a binary file" } else { "it does not begin with \"From \"" });
    }
    let line_end: &[u8] =
        if memchr::memmem::find(bytes, b"\n\r\nFrom ").is_some() { b"\n\r\nFrom " } else { b"\n\nFrom " };
    let mut starts: Vec<usize> =
        memchr::memmem::find_iter(bytes, line_end).map(|at| at + line_end.len() - b"From ".len()).collect();
    starts.insert(0, 0);
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    Ok(starts.iter().zip(ends).filter_map(|(start, end)| bytes.get(*start..end)).map(<[u8]>::to_vec).collect())
}

/// So much of a file is looked at to say what it is.
const BEGINNING: usize = 4096;
/// RFC 1952 §2.3.1.
const GZIP: &[u8] = &[0x1f, 0x8b];

#[cfg(test)]
mod tests {
    use super::{Message, Source, split_mbox};

    #[test]
    fn takes_apart() {
        let message = Message::parse(b"From a b\r\nSubject: x\r\n y\r\n\r\nbody\r\nend").expect("a message");
        assert_eq!(message.head, b"Subject: x\n y\n");
        assert_eq!(message.body, b"body\nend\n");
        assert!(Message::parse(b"just some text\nwithout a field\n").is_none());
        assert!(Message::parse(b"{\"text\":\"Subject: x\"}\n").is_none());
        assert!(Message::parse(b"Subject: only a header").is_some_and(|message| message.body.is_empty()));
    }

    #[test]
    fn mbox() {
        let messages =
            split_mbox(b"From a\nA: 1\n\nFrom the body? no, a message\nB: 2\n\nx\nFrom y\n\n").expect("an mbox");
        assert_eq!(messages.len(), 2);
        assert!(Source::from_messages(messages).is_some_and(|source| source.messages.len() == 2));
        assert_eq!(split_mbox(b"From a\r\nA: 1\r\n\r\nx\r\n\r\nFrom b\r\nB: 2\r\n\r\n").map(|all| all.len()), Ok(2));
    }

    #[test]
    fn what_is_no_mail_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            Source::read(&path).err().expect("no mail").to_string()
        };
        assert!(said("empty", b"\n").ends_with("no mbox file: it is empty"));
        assert!(said("text", b"Dear all,\n").ends_with("it does not begin with \"From \""));
        assert!(said("binary", &[7, 0, 9]).ends_with("it is a binary file"));
        assert!(said("packed", &[0x1f, 0x8b, 8, 1]).ends_with("it is a binary file"));
        assert!(said("bare", b"From here on nothing\n\nthat is mail\n").contains("holds no mail"));
        let only_files = Source::read(folder.path()).err().expect("no mail").to_string();
        assert!(only_files.contains("holds no mail"), "{only_files}");
    }
}
