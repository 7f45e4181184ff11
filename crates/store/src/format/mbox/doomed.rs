//! The files that are to go: what the log says of a mailbox's file in the very change that deletes the mailbox.
//!
//! The file is removed after that, and perhaps much later: when another program has it, or when other mailboxes still need what is in it. What the log
//! says tells then, after a power cut as well, whether it is the file that was deleted or one that somebody has written to since, which stays.
//!
//! Invariants:
//! - A mailbox that a client deletes has such a note from its last moment on, and until its file is gone or is nothing to us any more.
//! - A file is removed only if it is as the note says, or if this process knows that only it has changed it.

use index::{State, Transaction};
use model::{ErrorKind, MailboxId, Result};
use platform::Timestamp;

use super::account::{MboxAccount, lock};
use super::identity::Identity;

/// The beginning of the names of the account's annotations that are such notes; the mailbox's id follows.
const PREFIX: &str = "/private/vendor/mailyard/mbox/gone/";

/// What a file was when its mailbox was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doomed {
    /// There was none: whatever stands there is somebody else's.
    Nothing,
    /// A file.
    File { inode: u64, len: u64, modified: Timestamp },
}

impl Doomed {
    fn of(identity: &Identity) -> Self {
        Doomed::File { inode: identity.inode, len: identity.len, modified: identity.modified }
    }

    /// What the log says of the file of a mailbox; `None`: the mailbox was not deleted by a client.
    pub(super) fn noted(state: &State, id: MailboxId) -> Option<Self> {
        Doomed::parse(state.annotation(&format!("{PREFIX}{}", id.0))?)
    }

    /// Whether nobody has added to the file since. What was not durable when the power went is missing: then it is shorter, or its times are older.
    ///
    /// Not asked for are the number of its file system, since that may be another one after each start of the machine, and its `changed` time, since that is
    /// another one when its name was removed and a power cut brought it back.
    pub(super) fn is_still(&self, found: &Identity) -> bool {
        // The last bit is our own, see `bear_own_time`.
        let time = |time: &Timestamp| (time.seconds, time.nanoseconds | 1);
        match self {
            Doomed::Nothing => false,
            Doomed::File { inode, len, modified } => {
                *inode == found.inode && found.len <= *len && time(&found.modified) <= time(modified)
            }
        }
    }

    fn to_text(self) -> String {
        match self {
            Doomed::Nothing => "nothing".to_owned(),
            Doomed::File { inode, len, modified } => {
                format!("{inode} {len} {} {}", modified.seconds, modified.nanoseconds)
            }
        }
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        if text == "nothing" {
            return Some(Doomed::Nothing);
        }
        let mut fields = text.split(' ');
        let (inode, len) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let modified = Timestamp { seconds: fields.next()?.parse().ok()?, nanoseconds: fields.next()?.parse().ok()? };
        fields.next().is_none().then_some(Doomed::File { inode, len, modified })
    }

    fn note(self, transaction: &mut Transaction, id: MailboxId) -> Result<()> {
        transaction.annotate_account(&format!("{PREFIX}{}", id.0), Some(self.to_text().as_bytes()))
    }
}

impl MboxAccount {
    /// The mailbox is being deleted: notes in the same change which file goes with it. [`ErrorKind::NotPermitted`]: it could not be removed.
    pub(super) fn doom(&self, transaction: &mut Transaction, id: MailboxId) -> Result<()> {
        let Some(path) = self.path_of(id) else { return Doomed::Nothing.note(transaction, id) };
        let doomed = match self.env.disk.metadata(&path) {
            Ok(found) if found.is_file => Doomed::of(&Identity::of(&found)),
            Ok(_) => Doomed::Nothing,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Doomed::Nothing,
            Err(error) => return Err(model::Error::from(error).context(path.display())),
        };
        doomed.note(transaction, id)
    }

    /// We have changed the file ourselves since: it is doomed as it is now.
    pub(super) fn doom_again(&self, state: &State, id: MailboxId, now: &Identity) -> Result<()> {
        if Doomed::noted(state, id).is_none_or(|doomed| doomed.is_still(now)) {
            return Ok(());
        }
        self.log.commit(|transaction| match transaction.state().mailbox(id) {
            None => Doomed::of(now).note(transaction, id),
            Some(_restored) => Ok(()),
        })
    }

    /// Takes back the notes on files that are gone, or whose mailboxes are back. Need not be durable: it can be done again.
    pub(super) fn forget_doomed(&self, state: &State) -> Result<()> {
        let done: Vec<String> = {
            let names = lock(&self.names);
            let noted = state.annotations().range(PREFIX.to_owned()..).map(|(key, _)| key);
            let noted = noted.take_while(|key| key.starts_with(PREFIX));
            let is_done = |key: &&String| {
                let id = key.get(PREFIX.len()..).and_then(|id| id.parse().ok());
                id.map(MailboxId).is_none_or(|id| names.path(id).is_none() || state.mailbox(id).is_some())
            };
            noted.filter(is_done).cloned().collect()
        };
        if done.is_empty() {
            return Ok(());
        }
        let change =
            |transaction: &mut Transaction| done.iter().try_for_each(|key| transaction.annotate_account(key, None));
        match self.log.transact_if_free(change) {
            Err(error) if error.kind() == ErrorKind::InUse => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let file = Doomed::File { inode: 7, len: 1 << 40, modified: Timestamp { seconds: -1, nanoseconds: 999 } };
        for doomed in [Doomed::Nothing, file] {
            assert_eq!(Doomed::parse(doomed.to_text().as_bytes()), Some(doomed));
        }
        for text in ["", "1 2 3", "1 2 3 4 5", "x", "1 -2 3 4"] {
            assert_eq!(Doomed::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_is_still_the_same() {
        let time = |seconds| Timestamp { seconds, nanoseconds: 5 };
        let was = Identity { device: 1, inode: 7, len: 100, modified: time(10), changed: time(10) };
        let doomed = Doomed::of(&was);
        assert!(doomed.is_still(&was));
        assert!(doomed.is_still(&Identity { len: 90, modified: time(9), device: 2, ..was }));
        assert!(!doomed.is_still(&Identity { len: 101, ..was }));
        assert!(!doomed.is_still(&Identity { modified: time(11), ..was }));
        assert!(doomed.is_still(&Identity { changed: time(11), ..was }));
        assert!(!doomed.is_still(&Identity { inode: 8, ..was }));
        assert!(!Doomed::Nothing.is_still(&was));
    }
}
