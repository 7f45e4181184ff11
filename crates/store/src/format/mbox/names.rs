//! Which mailbox has which file: names as file names, and the record of them.
//!
//! INBOX is the account's inbox file; `a` is the file `a` below the root, `a/b` is `a.sbd/b` (Thunderbird's way, so that every mailbox may have
//! both messages and children). What a file name cannot have, or what would mean something else, is written as `=XX`. Of files that others have made,
//! a directory `a` is a level as `a.sbd` is, and names in modified UTF-7 (RFC 3501 §5.1.3) are what they stand for: so Dovecot and c-client keep mailboxes.
//! Where such a directory has the name that the file of a mailbox should have, the file is called `a=2F`: the mailbox that `a/` itself is.

use std::path::{Path, PathBuf};

use model::{Error, HIERARCHY_DELIMITER, MailboxName, Result, decode_mailbox_utf7};

pub(crate) use crate::format::names::{Names, Since};

/// The ending of the directory beside a mailbox that has its children.
const CHILDREN: &str = ".sbd";
/// Endings that other programs give to files that are no mailboxes.
const NOT_MAILBOXES: [&str; 3] = [CHILDREN, ".lock", ".msf"];
/// What ends the name of a file beside a directory that has the name which the file should have: the delimiter, escaped.
const BESIDE: &str = "=2F";
/// Longest level of a name as a file name, octets: with an ending it stays below the 255 of most file systems.
const LEVEL_BYTES_MAX: usize = 240;
/// The first line of the record of which mailbox has which file.
pub(crate) const HEADER: &str = "mailyard mbox names 1";

/// The file that a mailbox of this name should have. [`ErrorKind::Limit`]: a level is too long for a file name.
pub(crate) fn path_of(name: &MailboxName) -> Result<PathBuf> {
    let mut path = PathBuf::new();
    if name.is_inbox() {
        return Ok(path);
    }
    let mut levels = name.as_str().split(HIERARCHY_DELIMITER).peekable();
    while let Some(level) = levels.next() {
        let mut file = escape(level);
        if file.len() > LEVEL_BYTES_MAX {
            return Err(Error::over_limit("file_name_bytes_max", "the mailbox's name is too long for a file name"));
        }
        if levels.peek().is_some() {
            file.push_str(CHILDREN);
        }
        path.push(file);
    }
    Ok(path)
}

/// Where the file of a mailbox is when there is a directory in the place that [`path_of`] gives.
pub(super) fn beside(path: &Path) -> PathBuf {
    let mut beside = path.to_owned();
    beside.as_mut_os_string().push(BESIDE);
    beside
}

/// The name of the mailbox that a file is, by its path below the root; `None`: none can have it.
pub(super) fn name_of(path: &Path) -> Option<MailboxName> {
    let mut levels = Vec::new();
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        let file = component.as_os_str().to_str()?;
        let is_last = components.peek().is_none();
        let level = if is_last { file } else { file.strip_suffix(CHILDREN).unwrap_or(file) };
        let level = if is_last { level.strip_suffix(BESIDE).unwrap_or(level) } else { level };
        if level.is_empty() || level.starts_with('.') || is_last && has_other_ending(level) {
            return None;
        }
        levels.push(of_another(level).unwrap_or_else(|| unescape(level)));
    }
    // A delimiter that was escaped stays apart from a real one.
    if levels.iter().any(|level| level.contains(HIERARCHY_DELIMITER)) {
        return None;
    }
    let name = MailboxName::new(&levels.join("/")).ok()?;
    // A file called INBOX below the root is not the inbox.
    (!name.is_inbox()).then_some(name)
}

/// What others call the directory in which the mailboxes below a name are, by what it is called here.
pub(super) fn of_level(dir: &std::ffi::OsStr) -> Option<&str> {
    dir.to_str()?.strip_suffix(CHILDREN)
}

/// Whether a directory may have mailboxes in it.
pub(super) fn is_children_dir(file: &str) -> bool {
    file.strip_suffix(CHILDREN).is_some_and(|level| !level.is_empty() && !level.starts_with('.'))
}

/// Whether a directory may be a level of names that others have made.
pub(super) fn is_level(file: &str) -> bool {
    !file.is_empty() && !file.starts_with('.')
}

/// The level that a file name in modified UTF-7 stands for; `None`: it is plain.
fn of_another(file: &str) -> Option<String> {
    decode_mailbox_utf7(file).filter(|level| level != file)
}

fn has_other_ending(level: &str) -> bool {
    NOT_MAILBOXES.iter().any(|ending| level.ends_with(ending))
}

fn escape(level: &str) -> String {
    let mut out = String::new();
    let is_like_utf7 = of_another(level).is_some();
    // The endings begin with a dot, and the first octet of that is enough.
    let ending = NOT_MAILBOXES.iter().find(|ending| level.ends_with(*ending)).map(|ending| level.len() - ending.len());
    for (at, c) in level.char_indices() {
        let is_special = matches!(c, '=' | '/' | '\0'..='\x1f' | '\x7f')
            || c == '.' && (at == 0 || Some(at) == ending)
            || c == '&' && is_like_utf7;
        if is_special { out.push_str(&format!("={:02X}", u32::from(c))) } else { out.push(c) }
    }
    out
}

/// The level that a file name stands for; `=` is itself where no two digits follow, as others may have named the file.
fn unescape(file: &str) -> String {
    let mut pieces = file.split('=');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece.split_at_checked(2).and_then(|(code, rest)| {
            let is_code = code.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
            let byte = u8::from_str_radix(code, 16).ok().filter(|byte| is_code && byte.is_ascii())?;
            Some((char::from(byte), rest))
        });
        match code {
            Some((c, rest)) => {
                out.push(c);
                out.push_str(rest);
            }
            None => {
                out.push('=');
                out.push_str(piece);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn name(text: &str) -> MailboxName {
        MailboxName::new(text).unwrap()
    }

    #[test]
    fn known_answers() {
        for (text, path) in [
            ("INBOX", ""),
            ("INBOX/a", "INBOX.sbd/a"),
            ("a", "a"),
            ("a/b/c", "a.sbd/b.sbd/c"),
            ("Entwürfe 2024", "Entwürfe 2024"),
            ("a=b", "a=3Db"),
            (".hidden", "=2Ehidden"),
            ("..", "=2E."),
            ("a.sbd", "a=2Esbd"),
            ("x.lock/y.msf", "x=2Elock.sbd/y=2Emsf"),
            ("R&D", "R&D"),
            ("A&-B", "A=26-B"),
        ] {
            assert_eq!(path_of(&name(text)).unwrap(), Path::new(path), "{text}");
            assert_eq!(name_of(Path::new(path)), (text != "INBOX").then(|| name(text)), "{path}");
        }
        for path in [".x", "a.lock", "a.msf", ".a/b", "a/inbox.lock", "a=2Fb", "inbox", "a.sbd", "x.sbd/.y", "=0A"] {
            assert_eq!(name_of(Path::new(path)), None, "{path}");
        }
        // Beside a directory.
        for (text, path) in [("a", "a=2F"), ("a/b", "a.sbd/b=2F"), ("a/b", "a/b=2F"), (".x", "=2Ex=2F")] {
            assert_eq!(name_of(Path::new(path)), Some(name(text)), "{path}");
        }
        assert_eq!(beside(&path_of(&name("a/b")).unwrap()), Path::new("a.sbd/b=2F"));
        for path in ["=2F", "a=2F/b", "a=2F=2F", "a.msf=2F", "inbox=2F"] {
            assert_eq!(name_of(Path::new(path)), None, "{path}");
        }
        // As others may call their files.
        assert_eq!(name_of(Path::new("a=b")), Some(name("a=b")));
        assert_eq!(name_of(Path::new("a=2")), Some(name("a=2")));
        assert_eq!(name_of(Path::new("a/b")), Some(name("a/b")));
        assert_eq!(name_of(Path::new("Entw&APw-rfe/A&-B")), Some(name("Entwürfe/A&B")));
        let long = "x".repeat(LEVEL_BYTES_MAX);
        assert!(path_of(&name(&long)).is_ok());
        assert_eq!(path_of(&name(&format!("{long}x"))).unwrap_err().limit(), Some("file_name_bytes_max"));
    }

    proptest::proptest! {
        #[test]
        fn there_and_back(text in "[a.=/& sbdlockmfAPw\u{e4}-]{1,12}") {
            if let Ok(name) = MailboxName::new(&text)
                && let Ok(path) = path_of(&name)
                && !name.is_inbox()
            {
                proptest::prop_assert_eq!(name_of(&path), Some(name.clone()));
                proptest::prop_assert_eq!(name_of(&beside(&path)), Some(name));
            }
        }
    }
}
