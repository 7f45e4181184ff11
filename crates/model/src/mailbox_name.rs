//! Mailbox names: checked and normalised once.

use std::fmt;

use unicode_normalization::UnicodeNormalization;

use crate::{Error, ErrorKind, MailboxId, Result, limits};

/// What stands between the levels of a mailbox name, in every account.
pub const HIERARCHY_DELIMITER: char = '/';

/// What the names of hidden mailboxes begin with; no other name can.
const HIDDEN: &str = "\u{1}";

/// A mailbox name: UTF-8 in Normalization Form C (RFC 9051 §5.1), no empty level, no control characters, `INBOX` in upper case
/// wherever it is the first level. `*` and `%` are allowed: RFC 9051 §5.1 discourages them, but mail that is moved here has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailboxName(String);

impl MailboxName {
    /// Checks and normalises `name`, which is UTF-8 (not modified UTF-7).
    pub fn new(name: &str) -> Result<Self> {
        let invalid = |why: &str| Err(Error::new(ErrorKind::Invalid, format!("mailbox name {name:?}: {why}")));
        let mut normal: String = name.nfc().collect();
        if normal.len() > limits::MAILBOX_NAME_BYTES_MAX {
            return Err(Error::over_limit("mailbox_name_bytes_max", "the mailbox name is too long"));
        }
        if normal.split(HIERARCHY_DELIMITER).count() > limits::MAILBOX_LEVELS_MAX {
            return Err(Error::over_limit("mailbox_levels_max", "the mailbox name has too many levels"));
        }
        if normal.is_empty() || normal.split(HIERARCHY_DELIMITER).any(str::is_empty) {
            return invalid("a level is empty");
        }
        // RFC 9051 §5.1 and RFC 5198 §2: no control characters, no line or paragraph separators.
        if normal.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
            return invalid("it has control characters");
        }
        let first = normal.split(HIERARCHY_DELIMITER).next().map_or(0, str::len);
        if normal.get(..first).is_some_and(|level| level.eq_ignore_ascii_case("INBOX")) {
            normal.replace_range(..first, "INBOX");
        }
        Ok(MailboxName(normal))
    }

    /// A name as a log has it: hidden ones as well ([`MailboxName::hidden`]).
    pub fn stored(name: &str) -> Result<Self> {
        let number = name.strip_prefix(HIDDEN).and_then(|number| number.parse().ok().map(MailboxId));
        match number.map(MailboxName::hidden).filter(|hidden| hidden.0 == name) {
            Some(hidden) => Ok(hidden),
            None => MailboxName::new(name),
        }
    }

    /// The name of the mailbox that a store keeps beside the mailbox `of` for its own purposes. Nobody else can name it, and it sorts before
    /// every other name.
    pub fn hidden(of: MailboxId) -> Self {
        MailboxName(format!("{HIDDEN}{}", of.0))
    }

    /// Whether this is one of [`MailboxName::hidden`].
    pub fn is_hidden(&self) -> bool {
        self.0.starts_with(HIDDEN)
    }

    /// The mailbox that this one is kept beside; `None`: it is not hidden.
    pub fn hidden_of(&self) -> Option<MailboxId> {
        self.0.strip_prefix(HIDDEN)?.parse().ok().map(MailboxId)
    }

    /// The user's primary mailbox.
    pub fn inbox() -> Self {
        MailboxName("INBOX".to_owned())
    }

    /// Whether this is INBOX itself.
    pub fn is_inbox(&self) -> bool {
        self.0 == "INBOX"
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name one level up; `None` at the top.
    pub fn parent(&self) -> Option<MailboxName> {
        self.0.rsplit_once(HIERARCHY_DELIMITER).map(|(parent, _)| MailboxName(parent.to_owned()))
    }

    /// Whether this lies below `ancestor`, at any depth.
    pub fn is_below(&self, ancestor: &MailboxName) -> bool {
        self.0.strip_prefix(&ancestor.0).is_some_and(|rest| rest.starts_with(HIERARCHY_DELIMITER))
    }

    /// This name with the leading `from` replaced by `to`; `None` when it is neither `from` nor below it.
    pub fn rebased(&self, from: &MailboxName, to: &MailboxName) -> Option<Result<MailboxName>> {
        if self != from && !self.is_below(from) {
            return None;
        }
        let rest = self.0.get(from.0.len()..)?;
        Some(MailboxName::new(&format!("{}{rest}", to.0)))
    }
}

impl fmt::Display for MailboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inbox_is_case_insensitive_as_a_first_level_only() {
        assert_eq!(MailboxName::new("inBox").unwrap(), MailboxName::inbox());
        assert_eq!(MailboxName::new("inbox/a").unwrap().as_str(), "INBOX/a");
        assert_eq!(MailboxName::new("a/inbox").unwrap().as_str(), "a/inbox");
        assert_eq!(MailboxName::new("inboxes").unwrap().as_str(), "inboxes");
    }

    #[test]
    fn names_are_normalised_and_checked() {
        assert_eq!(MailboxName::new("u\u{308}").unwrap().as_str(), "\u{fc}");
        for bad in ["", "/", "a/", "/a", "a//b", "a\nb", "a\0", "\u{2028}"] {
            assert_eq!(MailboxName::new(bad).unwrap_err().kind(), ErrorKind::Invalid, "{bad:?}");
        }
    }

    #[test]
    fn limits_hold_at_and_over() {
        assert!(MailboxName::new(&"a".repeat(limits::MAILBOX_NAME_BYTES_MAX)).is_ok());
        let error = MailboxName::new(&"a".repeat(limits::MAILBOX_NAME_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(error.limit(), Some("mailbox_name_bytes_max"));
        assert!(MailboxName::new(&vec!["a"; limits::MAILBOX_LEVELS_MAX].join("/")).is_ok());
        let error = MailboxName::new(&vec!["a"; limits::MAILBOX_LEVELS_MAX + 1].join("/")).unwrap_err();
        assert_eq!(error.limit(), Some("mailbox_levels_max"));
    }

    #[test]
    fn hidden_names_come_from_the_log_only() {
        let hidden = MailboxName::hidden(MailboxId(12));
        assert_eq!((hidden.hidden_of(), MailboxName::inbox().hidden_of()), (Some(MailboxId(12)), None));
        assert!(hidden.is_hidden() && hidden < MailboxName::new(" ").unwrap());
        assert_eq!(MailboxName::stored(hidden.as_str()).unwrap(), hidden);
        assert_eq!(MailboxName::new(hidden.as_str()).unwrap_err().kind(), ErrorKind::Invalid);
        for bad in ["\u{1}", "\u{1}a", "\u{1}012", "\u{1}12/a", "a/\u{1}12"] {
            assert_eq!(MailboxName::stored(bad).unwrap_err().kind(), ErrorKind::Invalid, "{bad:?}");
        }
        assert_eq!(MailboxName::stored("inbox").unwrap(), MailboxName::inbox());
    }

    #[test]
    fn hierarchy() {
        let (a, ab, x) =
            (MailboxName::new("a").unwrap(), MailboxName::new("a/b").unwrap(), MailboxName::new("x").unwrap());
        assert_eq!(ab.parent(), Some(a.clone()));
        assert!(ab.is_below(&a) && !a.is_below(&a) && !MailboxName::new("ab").unwrap().is_below(&a));
        assert_eq!(ab.rebased(&a, &x).unwrap().unwrap().as_str(), "x/b");
        assert!(x.rebased(&a, &x).is_none());
    }
}
