//! Identifiers: what they count, and how they are written where a standard says so.

use std::fmt;
use std::num::NonZeroU32;

use crate::{Error, ErrorKind, Result, limits};

/// A message's number in its mailbox (RFC 9051 §2.3.1.1): rises strictly, is never reused, never moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(NonZeroU32);

/// A message's position in a view, from 1 (RFC 9051 §2.3.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNum(NonZeroU32);

/// The value that tells one life of a mailbox name from another (RFC 9051 §2.3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UidValidity(NonZeroU32);

macro_rules! nz_number {
    ($name:ident) => {
        impl $name {
            /// `None` for zero: an nz-number is never zero.
            pub const fn new(value: u32) -> Option<Self> {
                match NonZeroU32::new(value) {
                    Some(value) => Some($name(value)),
                    None => None,
                }
            }

            /// The number itself.
            pub const fn get(self) -> u32 {
                self.0.get()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
nz_number!(Uid);
nz_number!(SeqNum);
nz_number!(UidValidity);

impl Uid {
    /// The first UID of every mailbox.
    pub const FIRST: Uid = Uid(NonZeroU32::MIN);
    /// The last UID there can be.
    pub const LAST: Uid = Uid(NonZeroU32::MAX);

    /// The next UID; `None` when the mailbox has used them all.
    pub fn next(self) -> Option<Uid> {
        self.0.checked_add(1).map(Uid)
    }
}

/// A modification sequence (RFC 7162 §3.1): rises with every change in the account. Positive 63-bit on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModSeq(pub u64);

impl ModSeq {
    /// The largest that the wire can carry (mod-sequence-value is 63 bits).
    pub const LAST: ModSeq = ModSeq(i64::MAX as u64);

    /// The next one.
    pub fn next(self) -> ModSeq {
        ModSeq(self.0 + 1)
    }
}

impl fmt::Display for ModSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! object_id {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        /// As an objectid (RFC 8474 §7): a letter and hexadecimal digits.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{:x}"), self.0)
            }
        }

        impl $name {
            /// Reads what `Display` wrote; `None` for anything else.
            pub fn parse(text: &str) -> Option<Self> {
                let digits = text.strip_prefix($letter)?;
                let value = u64::from_str_radix(digits, 16).ok()?;
                let id = $name(value);
                (id.to_string() == text).then_some(id)
            }
        }
    };
}
object_id!(
    /// A message's identity within its account (RFC 8474 §5.1): all entries of one message share it.
    EmailId,
    "M"
);
object_id!(
    /// A mailbox's identity within its account (RFC 8474 §4): survives a rename, is never reused.
    MailboxId,
    "F"
);
object_id!(
    /// A thread's identity within its account (RFC 8474 §5.2).
    ThreadId,
    "T"
);

/// The name of an account: what a user logs in with, and its directory's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName(String);

impl AccountName {
    /// Checks and lower-cases `name`. Allowed: letters and digits of any script, and `. _ - + @ =`; the first character
    /// is a letter or a digit, so that no name is a path.
    pub fn new(name: &str) -> Result<Self> {
        if name.len() > limits::ACCOUNT_NAME_BYTES_MAX {
            return Err(Error::over_limit("account_name_bytes_max", "the account name is too long"));
        }
        let first_is_fine = name.chars().next().is_some_and(char::is_alphanumeric);
        let all_are_fine = name.chars().all(|c| c.is_alphanumeric() || "._-+@=".contains(c));
        if !first_is_fine || !all_are_fine {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("{name:?} is no account name: letters, digits and . _ - + @ = only, a letter or digit first"),
            ));
        }
        Ok(AccountName(name.to_lowercase()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_ids_read_what_they_write() {
        assert_eq!(EmailId(0x1f).to_string(), "M1f");
        assert_eq!(EmailId::parse("M1f"), Some(EmailId(0x1f)));
        for bad in ["", "M", "F1f", "M01f", "M1F", "M+1", "M11111111111111111"] {
            assert_eq!(EmailId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn account_names_are_never_paths() {
        for bad in ["", ".", "..", ".a", "a/b", "a\0", "-x", "a b", "a*"] {
            assert!(AccountName::new(bad).is_err(), "{bad:?}");
        }
        let long = "x".repeat(limits::ACCOUNT_NAME_BYTES_MAX);
        assert!(AccountName::new(&long).is_ok());
        let over = AccountName::new(&(long + "x")).err().and_then(|error| error.limit());
        assert_eq!(over, Some("account_name_bytes_max"));
        assert_eq!(AccountName::new("Ann@Example.org").map(|n| n.0).ok().as_deref(), Some("ann@example.org"));
    }

    #[test]
    fn uids_end() {
        assert_eq!(Uid::new(0), None);
        assert_eq!(Uid::LAST.next(), None);
    }
}
