//! Mailbox names as directories below the Maildir of INBOX, in the two layouts that programs know.
//!
//! - Maildir++ (Courier, Dovecot): `a/b` is `.a.b`, INBOX the top itself. A path is one file name, so long names do not fit.
//! - fs (Dovecot's `LAYOUT=fs`): `a/b` is `a/b`, INBOX the top itself; a directory can be between others and no mailbox.
//!
//! Each level is written in modified UTF-7 (RFC 3501 §5.1.3). What would mean something else in the layout is written as `\xx`, two hexadecimal
//! digits, as Dovecot's `listescape` does: the dot in Maildir++; in fs a dot at the start and the names `cur`, `new` and `tmp`; the backslash
//! where it would be read as an escape, and `~` at the start of a name, in both.

use std::path::{Path, PathBuf};

use model::{Error, HIERARCHY_DELIMITER, MailboxName, Result, decode_mailbox_utf7, encode_mailbox_utf7};

use crate::format::MaildirLayout;

/// Longest file name, octets: what most file systems have.
const FILE_NAME_BYTES_MAX: usize = 255;
/// The directories that make a Maildir.
pub(crate) const SUBDIRS: [&str; 3] = ["tmp", "new", "cur"];

/// The directory that a mailbox of this name should have, below the root; empty for INBOX. `Limit`: the name is too long for it.
pub(crate) fn path_of(layout: MaildirLayout, name: &MailboxName) -> Result<PathBuf> {
    let mut path = PathBuf::new();
    if name.is_inbox() {
        return Ok(path);
    }
    let levels = name.as_str().split(HIERARCHY_DELIMITER).map(|level| escape(layout, level));
    match layout {
        MaildirLayout::MaildirPlusPlus => path.push(format!(".{}", levels.collect::<Vec<_>>().join("."))),
        MaildirLayout::Fs => path.extend(levels),
    }
    let is_too_long = path.components().any(|component| component.as_os_str().len() > FILE_NAME_BYTES_MAX);
    match is_too_long {
        true => {
            Err(Error::over_limit("file_name_bytes_max", "the mailbox's name is too long for the name of a directory"))
        }
        false => Ok(path),
    }
}

/// The name of the mailbox that a directory is, by its path below the root; `None`: none can have it.
pub(crate) fn name_of(layout: MaildirLayout, path: &Path) -> Option<MailboxName> {
    let levels: Vec<&str> = match layout {
        MaildirLayout::MaildirPlusPlus => path.to_str()?.strip_prefix('.')?.split('.').collect(),
        MaildirLayout::Fs => path.iter().map(|level| level.to_str()).collect::<Option<_>>()?,
    };
    let is_level = |level: &&str| !level.is_empty() && !level.contains('/') && is_mailbox_level(layout, level);
    if !levels.iter().all(is_level) {
        return None;
    }
    let levels: Vec<String> = levels.into_iter().map(unescape).collect();
    // A delimiter that was escaped stays apart from a real one.
    if levels.iter().any(|level| level.contains(HIERARCHY_DELIMITER)) {
        return None;
    }
    let name = MailboxName::new(&levels.join("/")).ok()?;
    // What is called INBOX below the root is not the inbox.
    (!name.is_inbox()).then_some(name)
}

/// Whether a directory of this name may be a mailbox, or have mailboxes below it.
pub(super) fn is_mailbox_level(layout: MaildirLayout, level: &str) -> bool {
    match layout {
        MaildirLayout::MaildirPlusPlus => true,
        MaildirLayout::Fs => !level.starts_with('.') && !SUBDIRS.contains(&level),
    }
}

fn escape(layout: MaildirLayout, level: &str) -> String {
    let is_reserved = layout == MaildirLayout::Fs && SUBDIRS.contains(&level);
    let mut text = String::new();
    for (at, c) in level.char_indices() {
        let rest = level.get(at + c.len_utf8()..).unwrap_or_default();
        let is_special = match c {
            '.' => layout == MaildirLayout::MaildirPlusPlus || at == 0,
            '~' => at == 0,
            '\\' => hex(rest).is_some(),
            _ => at == 0 && is_reserved,
        };
        match is_special {
            true => text.push_str(&format!("\\{:02x}", u32::from(c))),
            false => text.push(c),
        }
    }
    encode_mailbox_utf7(&text)
}

/// The level that a directory's name stands for; one that is no modified UTF-7 is taken as it is.
fn unescape(file: &str) -> String {
    let text = decode_mailbox_utf7(file).unwrap_or_else(|| file.to_owned());
    let mut pieces = text.split('\\');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match hex(piece) {
            Some((c, rest)) => {
                out.push(c);
                out.push_str(rest);
            }
            None => {
                out.push('\\');
                out.push_str(piece);
            }
        }
    }
    out
}

/// The ASCII character that two hexadecimal digits at the start stand for, and what follows.
fn hex(text: &str) -> Option<(char, &str)> {
    let (digits, rest) = text.split_at_checked(2)?;
    let is_code = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = u8::from_str_radix(digits, 16).ok().filter(|byte| is_code && byte.is_ascii())?;
    Some((char::from(byte), rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PLUS: MaildirLayout = MaildirLayout::MaildirPlusPlus;
    const FS: MaildirLayout = MaildirLayout::Fs;

    fn name(text: &str) -> MailboxName {
        MailboxName::new(text).unwrap()
    }

    #[test]
    fn known_answers() {
        for (text, plus, fs) in [
            ("INBOX", "", ""),
            ("INBOX/a", ".INBOX.a", "INBOX/a"),
            ("a", ".a", "a"),
            ("a/b/c", ".a.b.c", "a/b/c"),
            ("Entwürfe & mehr", ".Entw&APw-rfe &- mehr", "Entw&APw-rfe &- mehr"),
            ("a.b", ".a\\2eb", "a.b"),
            (".x/cur", ".\\2ex.cur", "\\2ex/\\63ur"),
            ("~a", ".\\7ea", "\\7ea"),
            ("a\\b\\2e", ".a\\b\\5c2e", "a\\b\\5c2e"),
        ] {
            for (layout, path) in [(PLUS, plus), (FS, fs)] {
                assert_eq!(path_of(layout, &name(text)).unwrap(), Path::new(path), "{text}");
                assert_eq!(name_of(layout, Path::new(path)), (text != "INBOX").then(|| name(text)), "{path}");
            }
        }
        for path in ["a", ".a..b", ".", "..x", ".inbox", ".a\\2fb"] {
            assert_eq!(name_of(PLUS, Path::new(path)), None, "{path}");
        }
        for path in [".a", "cur", "a/new", "INBOX", "a\\2fb"] {
            assert_eq!(name_of(FS, Path::new(path)), None, "{path}");
        }
        // As others may call their directories.
        assert_eq!(name_of(PLUS, Path::new(".Entwürfe")), Some(name("Entwürfe")));
    }

    #[test]
    fn long_names() {
        let long = |count| name(&"x".repeat(count));
        assert!(path_of(PLUS, &long(254)).is_ok() && path_of(FS, &long(255)).is_ok());
        for (layout, count) in [(PLUS, 255), (FS, 256)] {
            assert_eq!(path_of(layout, &long(count)).unwrap_err().limit(), Some("file_name_bytes_max"));
        }
    }

    proptest::proptest! {
        #[test]
        fn there_and_back(text in "[a.~&/\\\\2ecurnw \u{e4}]{1,12}") {
            for layout in MaildirLayout::ALL {
                if let Ok(name) = MailboxName::new(&text)
                    && let Ok(path) = path_of(layout, &name)
                    && !name.is_inbox()
                {
                    proptest::prop_assert_eq!(name_of(layout, &path), Some(name));
                }
            }
        }
    }
}
