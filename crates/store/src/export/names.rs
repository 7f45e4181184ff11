//! Mailbox names as file names.
//!
//! `%` and `.` are written as `%25` and `%2E` where they would mean something else: a dot at the start of a name hides a file, and
//! separates the levels of a Maildir++ name. A name that is too long for a file is cut and gets a digest of the whole, so that no two
//! mailboxes become one file; the import then makes a mailbox of that shorter name.

use std::path::PathBuf;

use model::{HIERARCHY_DELIMITER, MailboxName, encode_mailbox_utf7};
use sha2::{Digest, Sha256};

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

/// A name that is too long, with `~` and a digest instead of its end.
fn cut(level: &str) -> String {
    if level.len() <= LEVEL_BYTES_MAX {
        return level.to_owned();
    }
    let digest: String = Sha256::digest(level).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let end = LEVEL_BYTES_MAX - digest.len() - 1;
    let kept = (0..=end).rev().find_map(|end| level.get(..end)).unwrap_or_default();
    // Not within a character of modified UTF-7 (RFC 3501 §5.1.3), `&` to `-`.
    let kept = match kept.rfind('&') {
        Some(at) if level.is_ascii() && !kept.get(at..).unwrap_or_default().contains('-') => kept.get(..at),
        _ => Some(kept),
    };
    format!("{}~{digest}", kept.unwrap_or_default())
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
    }

    #[test]
    fn names_that_are_too_long_are_cut_and_stay_apart() {
        let paths = |name: &str| {
            let name = MailboxName::new(name).unwrap();
            [mbox_path(&name), maildir_path(&name)].map(|path| path.into_os_string().into_string().unwrap())
        };
        let at = "x".repeat(LEVEL_BYTES_MAX);
        // Each with what comes beside the name in one of the forms.
        assert_eq!(paths(&at)[0], format!("{at}.mbox"));
        assert_eq!(paths(&at[1..])[1], format!(".{}", &at[1..]));
        let over = ["a", "b"].map(|end| paths(&format!("{at}{end}")));
        for n in [0, 1] {
            assert_ne!(over[0][n], over[1][n]);
            assert!(over[0][n].len() <= LEVEL_BYTES_MAX + ".mbox".len(), "{over:?}");
        }
        assert!(over[0][0].starts_with(&"x".repeat(LEVEL_BYTES_MAX - 17)) && over[0][0].contains('~'));
        // Characters are not cut in two.
        for n in 0..8 {
            let [mbox, maildir] = paths(&format!("{}{}", "x".repeat(n), "ü".repeat(400)));
            assert!(mbox.len() < 255 && maildir.len() <= LEVEL_BYTES_MAX);
            let (kept, _) = maildir.split_once('~').unwrap();
            assert!(model::decode_mailbox_utf7(kept).is_some(), "{kept}");
        }
    }
}
