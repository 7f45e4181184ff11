//! Notes that clients keep with a mailbox or with the account (RFC 5464): entries by name, kept in the log as annotations.
//!
//! Names are lower case and begin with `/private/` or `/shared/`; an account has one user, so that the two are alike. What the store
//! itself keeps among the annotations is below [`OURS`] or has another beginning, and is neither shown nor changed here.
//!
//! `/private/specialuse` of a mailbox is what the mailbox is for, not a note (RFC 6154 §4).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use index::{Mailbox, State};
use model::{Error, ErrorKind, MailboxId, Result, SpecialUse};

use crate::account::{Account, no_mailbox};
use crate::edit::Edit;

/// Longest value, octets.
pub const METADATA_VALUE_BYTES_MAX: usize = 32 << 10;
/// Entries of a mailbox, and of an account.
pub const METADATA_ENTRIES_MAX: usize = 1000;
/// Octets of the names and values of a mailbox, and of an account: all of them are in memory while it is open.
pub const METADATA_BYTES_MAX: usize = 1 << 20;

/// Entries below this name are the store's.
const OURS: &str = "/private/vendor/mailyard/";
/// The entry that says what a mailbox is for.
const SPECIAL_USE: &str = "/private/specialuse";
/// The address of who looks after the server; nobody sets it by a command (RFC 5464 §3.2.1.1).
const ADMIN: &str = "/shared/admin";

fn is_visible(name: &str) -> bool {
    (name.starts_with("/private/") || name.starts_with("/shared/")) && !name.starts_with(OURS)
}

/// The entries of a mailbox or of an account, as of one moment.
#[derive(Clone, Debug)]
pub struct Metadata {
    entries: Arc<BTreeMap<String, Vec<u8>>>,
    /// The value of [`SPECIAL_USE`].
    special_use: Option<String>,
}

impl Metadata {
    /// The value of an entry, if there is one.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        match &self.special_use {
            Some(special_use) if name == SPECIAL_USE => Some(special_use.as_bytes()),
            _ if is_visible(name) => self.entries.get(name).map(Vec::as_slice),
            _ => None,
        }
    }

    /// The names of the entries that are not as they were, in order; those that are gone, too.
    pub(crate) fn changed_since(&self, before: &Metadata) -> Vec<String> {
        let special_use = (self.special_use != before.special_use).then(|| SPECIAL_USE.to_owned());
        if Arc::ptr_eq(&self.entries, &before.entries) {
            return special_use.into_iter().collect();
        }
        let names: BTreeSet<&String> = self.entries.keys().chain(before.entries.keys()).collect();
        let changed = names.into_iter().filter(|name| self.entries.get(*name) != before.entries.get(*name));
        changed.filter(|name| is_visible(name)).cloned().chain(special_use).collect()
    }

    /// The names of the entries below `name`, at most `depth` components further down.
    pub fn below<'m>(&'m self, name: &str, depth: usize) -> impl Iterator<Item = &'m str> + use<'m> {
        let start = format!("{name}/");
        let kept = self.entries.range::<str, _>((Bound::Included(start.as_str()), Bound::Unbounded));
        let kept = kept.map(|(name, _)| name.as_str());
        let special_use = self.special_use.iter().map(|_| SPECIAL_USE).filter({
            let start = start.clone();
            move |name| name.starts_with(&start)
        });
        let kept = kept.take_while({
            let start = start.clone();
            move |name| name.starts_with(&start)
        });
        kept.filter(|name| is_visible(name)).chain(special_use).filter(move |name| {
            let rest = name.get(start.len()..).unwrap_or_default();
            rest.split('/').count() <= depth
        })
    }
}

impl Account {
    /// The entries of a mailbox; without one, of the account. [`ErrorKind::NotFound`].
    pub fn metadata(&self, mailbox: Option<MailboxId>) -> Result<Metadata> {
        let state = self.inner.state();
        match mailbox {
            None => Ok(Metadata::of_account(&state)),
            Some(id) => state.mailbox(id).map(|mailbox| Metadata::of_mailbox(mailbox)).ok_or_else(no_mailbox),
        }
    }
}

impl Metadata {
    pub(crate) fn of_account(state: &State) -> Self {
        Metadata { entries: Arc::clone(state.annotations()), special_use: None }
    }

    pub(crate) fn of_mailbox(mailbox: &Mailbox) -> Self {
        let uses: Vec<&str> = mailbox.special_uses().map(SpecialUse::as_str).collect();
        let special_use = (!uses.is_empty()).then(|| uses.join(" "));
        Metadata { entries: Arc::clone(mailbox.annotations()), special_use }
    }
}

impl Edit<'_> {
    /// Sets entries of a mailbox, or of the account: `None` takes one away. All or none.
    ///
    /// [`ErrorKind::NotPermitted`] for entries that only the server sets; a limit is `metadata_value_bytes_max`, `metadata_entries_max`
    /// or `metadata_bytes_max`.
    pub fn set_metadata(&mut self, mailbox: Option<MailboxId>, values: &[(&str, Option<&[u8]>)]) -> Result<()> {
        for (name, value) in values {
            if !is_visible(name) || *name == ADMIN {
                return Err(Error::new(ErrorKind::NotPermitted, format!("{name} is the server's")));
            }
            if value.is_some_and(|value| value.len() > METADATA_VALUE_BYTES_MAX) {
                return Err(Error::over_limit("metadata_value_bytes_max", "the value of an entry is too long"));
            }
            match mailbox {
                Some(mailbox) if *name == SPECIAL_USE => self.set_special_use(mailbox, *value)?,
                Some(mailbox) => self.transaction.annotate_mailbox(mailbox, name, *value)?,
                None => self.transaction.annotate_account(name, *value)?,
            }
        }
        if values.iter().any(|(_, value)| value.is_some()) {
            let state = self.transaction.state();
            let entries = match mailbox {
                Some(id) => state.mailbox(id).ok_or_else(no_mailbox)?.annotations(),
                None => state.annotations(),
            };
            check_room(entries)?;
        }
        Ok(())
    }

    /// RFC 6154 §5.4: the attributes with a space between.
    fn set_special_use(&mut self, mailbox: MailboxId, value: Option<&[u8]>) -> Result<()> {
        let text = String::from_utf8_lossy(value.unwrap_or_default());
        let parse = |name| {
            SpecialUse::parse(name).ok_or_else(|| Error::new(ErrorKind::Invalid, format!("{name} is no special use")))
        };
        let uses: Vec<SpecialUse> = text.split_ascii_whitespace().map(parse).collect::<Result<_>>()?;
        self.transaction.set_special_uses(mailbox, &uses)
    }

    /// RFC 5464 §4.1: the notes on INBOX are copied to what its messages are moved to, and stay.
    pub(crate) fn copy_metadata(&mut self, from: MailboxId, to: MailboxId) -> Result<()> {
        let entries = Arc::clone(self.transaction.mailbox(from)?.annotations());
        let visible = entries.iter().filter(|(name, _)| is_visible(name));
        visible.into_iter().try_for_each(|(name, value)| self.transaction.annotate_mailbox(to, name, Some(value)))
    }
}

fn check_room(entries: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let visible = || entries.iter().filter(|(name, _)| is_visible(name));
    if visible().count() > METADATA_ENTRIES_MAX {
        return Err(Error::over_limit("metadata_entries_max", "there are as many entries as there may be"));
    }
    if visible().map(|(name, value)| name.len() + value.len()).sum::<usize>() > METADATA_BYTES_MAX {
        return Err(Error::over_limit("metadata_bytes_max", "the entries take as much room as they may"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below() {
        let names = [
            "/private/a",
            "/private/a/b",
            "/private/a/b/c",
            "/private/ab",
            "/private/vendor/mailyard/format",
            "import/x",
        ];
        let entries = names.iter().map(|name| ((*name).to_owned(), b"x".to_vec())).collect();
        let metadata = Metadata { entries: Arc::new(entries), special_use: Some("\\Sent".to_owned()) };
        let below = |name, depth| metadata.below(name, depth).collect::<Vec<_>>();
        assert_eq!(below("/private/a", 1), ["/private/a/b"]);
        assert_eq!(below("/private/a", usize::MAX), ["/private/a/b", "/private/a/b/c"]);
        assert_eq!(below("/private/a/b/c", 1), [""; 0]);
        assert_eq!(below("/private", 1), ["/private/a", "/private/ab", SPECIAL_USE]);
        assert_eq!(below("/private/vendor", usize::MAX), [""; 0]);
        assert_eq!(metadata.value("/private/specialuse"), Some(&b"\\Sent"[..]));
        assert_eq!(metadata.value("/private/vendor/mailyard/format"), None);
        assert_eq!(metadata.value("import/x"), None);
        assert_eq!(metadata.changed_since(&metadata.clone()), [""; 0]);
        let mut later = BTreeMap::clone(&metadata.entries);
        for (name, value) in
            [("/private/a", "y"), ("/shared/new", ""), ("import/x", "y"), ("/private/vendor/mailyard/format", "y")]
        {
            later.insert(name.to_owned(), value.into());
        }
        later.remove("/private/ab");
        let later = Metadata { entries: Arc::new(later), special_use: None };
        assert_eq!(later.changed_since(&metadata), ["/private/a", "/private/ab", "/shared/new", SPECIAL_USE]);
    }
}
