//! Mailbox names as file names.
//!
//! `%` and `.` are written as `%25` and `%2E` where they would mean something else: a dot at the start of a name hides a file, and
//! separates the levels of a Maildir++ name. A level that is too long for a file name is cut; the import then makes a mailbox of
//! that shorter name.

use std::path::PathBuf;

use model::{HIERARCHY_DELIMITER, MailboxName, encode_mailbox_utf7};

/// Longest level, octets; with an ending it stays below the 255 of most file systems.
const LEVEL_BYTES_MAX: usize = 240;

/// `a/b`: the file `a/b.mbox`.
pub(super) fn mbox_path(name: &MailboxName) -> PathBuf {
    let mut path: PathBuf = name.as_str().split(HIERARCHY_DELIMITER).map(|level| cut(&escape(level, false))).collect();
    path.as_mut_os_string().push(".mbox");
    path
}

/// `a/b`: the directory `.a.b`; INBOX is the top itself.
pub(super) fn maildir_path(name: &MailboxName) -> PathBuf {
    if name.is_inbox() {
        return PathBuf::new();
    }
    let levels = name.as_str().split(HIERARCHY_DELIMITER).map(|level| encode_mailbox_utf7(&escape(level, true)));
    PathBuf::from(cut(&format!(".{}", levels.collect::<Vec<_>>().join("."))))
}

fn escape(level: &str, every_dot: bool) -> String {
    let mut out = String::new();
    for (n, c) in level.chars().enumerate() {
        match c {
            '%' => out.push_str("%25"),
            '.' if every_dot || n == 0 => out.push_str("%2E"),
            c => out.push(c),
        }
    }
    out
}

/// What [`escape`] wrote, read back.
pub(crate) fn unescape(level: &str) -> String {
    level.replace("%2E", ".").replace("%25", "%")
}

fn cut(level: &str) -> String {
    let end = (0..=LEVEL_BYTES_MAX.min(level.len())).rev().find(|end| level.is_char_boundary(*end)).unwrap_or(0);
    level.get(..end).unwrap_or(level).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_there_and_back() {
        for (name, mbox, maildir) in [
            ("INBOX", "INBOX.mbox", ""),
            ("a/b", "a/b.mbox", ".a.b"),
            ("../..", "%2E./%2E..mbox", ".%2E%2E.%2E%2E"),
            ("a.b/100%/%2E", "a.b/100%25/%252E.mbox", ".a%2Eb.100%25.%252E"),
            ("ü", "ü.mbox", ".&APw-"),
        ] {
            let name = MailboxName::new(name).unwrap();
            assert_eq!((mbox_path(&name), maildir_path(&name)), (PathBuf::from(mbox), PathBuf::from(maildir)));
        }
        for level in ["a.b", "%2E", "100%", ".."] {
            assert_eq!(unescape(&escape(level, true)), level);
            assert_eq!(unescape(&escape(level, false)), level);
        }
        assert!(mbox_path(&MailboxName::new(&"ü".repeat(400)).unwrap()).as_os_str().len() < 255);
    }
}
