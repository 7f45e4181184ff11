//! Where the messages of an account lie, and how the account's log says it.
//!
//! The log keeps one line under [`KEY`]: `mbox inbox=PATH root=PATH` or `maildir root=PATH layout=maildir++`; without it the format is the
//! store's own. In the paths a `%`, a space
//! and a control character are written as `%XX`, so that the line can be read by a person and by [`AccountFormat::parse`].

use std::path::{Path, PathBuf};

use model::{Error, ErrorKind, Result};

/// The account's annotation that names its format.
pub(crate) const KEY: &str = "/private/vendor/mailyard/format";

/// Where the messages of an account lie. It is chosen when the account is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccountFormat {
    /// In the log itself.
    #[default]
    Native,
    /// In mbox files that other programs read and write as well.
    Mbox {
        /// The file of INBOX, an absolute path.
        inbox: PathBuf,
        /// The directory of the others, an absolute path: `a` is the file `a` in it, `a/b` is `a.sbd/b`.
        root: PathBuf,
    },
    /// In a database that several nodes share (see [`crate::Cluster`]).
    Sql,
    /// In a tree of Maildirs that other programs read and write as well.
    Maildir {
        /// The Maildir of INBOX, an absolute path; the others are below it.
        root: PathBuf,
        /// How their names become those of directories.
        layout: MaildirLayout,
    },
}

/// How the names of mailboxes become names of directories below the Maildir of INBOX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaildirLayout {
    /// `a/b` is `.a.b` (Maildir++).
    #[default]
    MaildirPlusPlus,
    /// `a/b` is `a/b`.
    Fs,
}

impl MaildirLayout {
    /// All of them.
    pub const ALL: [Self; 2] = [MaildirLayout::MaildirPlusPlus, MaildirLayout::Fs];

    /// The name, as the log and the administrator write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            MaildirLayout::MaildirPlusPlus => "maildir++",
            MaildirLayout::Fs => "fs",
        }
    }

    /// The layout of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.as_str() == name)
    }
}

impl AccountFormat {
    /// What the log keeps; `None` for the native format. [`ErrorKind::Invalid`]: a path that is not absolute, or not UTF-8.
    pub(crate) fn to_line(&self) -> Result<Option<String>> {
        match self {
            // What lies in a database has no log that could say so.
            AccountFormat::Native | AccountFormat::Sql => Ok(None),
            AccountFormat::Mbox { inbox, root } => {
                Ok(Some(format!("mbox inbox={} root={}", escape(inbox)?, escape(root)?)))
            }
            AccountFormat::Maildir { root, layout } => {
                Ok(Some(format!("maildir root={} layout={}", escape(root)?, layout.as_str())))
            }
        }
    }

    /// The format that the log names. [`ErrorKind::Corrupt`]: one that is not known here.
    pub(crate) fn parse(line: Option<&[u8]>) -> Result<Self> {
        let Some(line) = line else { return Ok(AccountFormat::Native) };
        let unknown = || {
            let text = String::from_utf8_lossy(line);
            Error::new(ErrorKind::Corrupt, format!("the account has a format that is not known: {text}"))
        };
        let words: Vec<&str> = std::str::from_utf8(line).map_err(|_| unknown())?.split(' ').collect();
        let path = |word: &str, key: &str| word.strip_prefix(key).and_then(unescape).ok_or_else(unknown);
        match words.as_slice() {
            ["mbox", inbox, root] => {
                Ok(AccountFormat::Mbox { inbox: path(inbox, "inbox=")?, root: path(root, "root=")? })
            }
            ["maildir", root, layout] => {
                let layout = layout.strip_prefix("layout=").and_then(MaildirLayout::parse).ok_or_else(unknown)?;
                Ok(AccountFormat::Maildir { root: path(root, "root=")?, layout })
            }
            _ => Err(unknown()),
        }
    }
}

fn escape(path: &Path) -> Result<String> {
    let invalid = |why: &str| Error::new(ErrorKind::Invalid, format!("the path {} {why}", path.display()));
    if !path.is_absolute() {
        return Err(invalid("is not absolute"));
    }
    let text = path.to_str().ok_or_else(|| invalid("is not UTF-8"))?;
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '%' | ' ' | '\0'..='\x1f' | '\x7f' => out.push_str(&format!("%{:02X}", u32::from(c))),
            c => out.push(c),
        }
    }
    Ok(out)
}

fn unescape(text: &str) -> Option<PathBuf> {
    let mut pieces = text.split('%');
    let mut out = pieces.next()?.to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        out.push(char::from(u8::from_str_radix(code, 16).ok().filter(u8::is_ascii)?));
        out.push_str(rest);
    }
    Some(PathBuf::from(out)).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn known_answers() {
        let mbox = |inbox: &str, root: &str| AccountFormat::Mbox { inbox: inbox.into(), root: root.into() };
        let maildir = |root: &str, layout| AccountFormat::Maildir { root: root.into(), layout };
        for (format, line) in [
            (mbox("/var/mail/ann", "/home/ann/mail"), "mbox inbox=/var/mail/ann root=/home/ann/mail"),
            (mbox("/a b%\n", "/ü root=/x"), "mbox inbox=/a%20b%25%0A root=/ü%20root=/x"),
            (
                maildir("/home/ann/Maildir", MaildirLayout::MaildirPlusPlus),
                "maildir root=/home/ann/Maildir layout=maildir++",
            ),
            (maildir("/a b", MaildirLayout::Fs), "maildir root=/a%20b layout=fs"),
        ] {
            assert_eq!(format.to_line().unwrap().as_deref(), Some(line));
            assert_eq!(AccountFormat::parse(Some(line.as_bytes())).unwrap(), format);
        }
        assert_eq!(AccountFormat::Native.to_line().unwrap(), None);
        assert_eq!(AccountFormat::parse(None).unwrap(), AccountFormat::Native);
        assert_eq!(mbox("a", "/b").to_line().unwrap_err().kind(), ErrorKind::Invalid);
        for bad in [
            "",
            "mbox",
            "mbox inbox=/a",
            "mbox inbox=/a root=b",
            "mbox inbox=/a root=/%4",
            "maildir /a",
            "maildir root=/a layout=x",
        ] {
            assert_eq!(AccountFormat::parse(Some(bad.as_bytes())).unwrap_err().kind(), ErrorKind::Corrupt, "{bad}");
        }
    }
}
