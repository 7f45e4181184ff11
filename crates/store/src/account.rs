//! One user's mail: its mailboxes, and every change to them.

use std::sync::Arc;

use model::{
    AccountName, DateTime, EmailId, Keyword, MailboxId, MailboxName, ModSeq, Result, SpecialUse, SystemFlag, Uid,
    UidSet, UidValidity,
};

use crate::{MessageWriter, PendingMessage, Reader, View};

/// One user's mail.
pub struct Account {}

/// A mailbox, as LIST wants it.
#[derive(Clone, Debug)]
pub struct MailboxInfo {
    /// Its identity (RFC 8474); `None` for a name that is only subscribed, or only a parent of others.
    pub id: Option<MailboxId>,
    /// Its name.
    pub name: MailboxName,
    /// What it is for.
    pub special_use: Vec<SpecialUse>,
    /// Whether the name is subscribed.
    pub subscribed: bool,
    /// Whether mailboxes lie below it.
    pub has_children: bool,
}

/// A mailbox in numbers (RFC 9051 §6.3.11). Costs no reading of entries.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its identity.
    pub id: MailboxId,
    /// Entries.
    pub messages: u32,
    /// Entries without `\Seen`.
    pub unseen: u32,
    /// Entries with `\Deleted`.
    pub deleted: u32,
    /// Octets of all entries.
    pub size: u64,
    /// The UID that the next entry gets at least; `None` when they are used up.
    pub uid_next: Option<Uid>,
    /// RFC 9051 §2.3.1.1.
    pub uid_validity: UidValidity,
    /// The highest modseq of the mailbox (RFC 7162 §3.1.2).
    pub highest_modseq: ModSeq,
    /// Entries that no read-write view was given before (RFC 3501 \Recent).
    pub recent: u32,
}

/// Flags by name, as clients send them: system flags and keywords that may be new to the mailbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlagNames {
    /// System flags.
    pub system: Vec<SystemFlag>,
    /// Keywords.
    pub keywords: Vec<Keyword>,
}

/// A message for [`Account::append`].
pub struct NewMessage {
    /// Its bytes.
    pub message: PendingMessage,
    /// The flags of its entry.
    pub flags: FlagNames,
    /// The internal date; `None`: now.
    pub internal_date: Option<DateTime>,
}

/// What became of an append.
#[derive(Clone, Debug)]
pub struct Appended {
    /// Of the mailbox.
    pub uid_validity: UidValidity,
    /// In the order of the messages: UID and identity.
    pub entries: Vec<(Uid, EmailId)>,
}

/// What became of a copy or a move, pair by pair in the order of the source UIDs.
#[derive(Clone, Debug)]
pub struct Copied {
    /// Of the destination.
    pub uid_validity: UidValidity,
    /// Source UID, destination UID.
    pub uids: Vec<(Uid, Uid)>,
    /// The modseq of the expunge in the source, for a move.
    pub expunged_modseq: Option<ModSeq>,
}

/// Which way STORE changes flags (RFC 9051 §6.4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// `FLAGS`
    Replace,
    /// `+FLAGS`
    Add,
    /// `-FLAGS`
    Remove,
}

/// How STORE asks for flags (RFC 9051 §6.4.6, RFC 7162 §3.1.3).
#[derive(Clone, Debug)]
pub struct StoreFlags {
    /// Replace, add or remove.
    pub mode: StoreMode,
    /// The flags.
    pub flags: FlagNames,
    /// Entries with a higher modseq stay as they are.
    pub unchanged_since: Option<ModSeq>,
}

/// What became of a STORE.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Entries that now have a new modseq.
    pub changed: UidSet,
    /// Entries left alone because of `unchanged_since` (the MODIFIED response code).
    pub modified: UidSet,
    /// The modseq of the change; `None` when nothing changed.
    pub modseq: Option<ModSeq>,
}

/// What became of an expunge.
#[derive(Clone, Debug)]
pub struct Expunged {
    /// The entries that are gone.
    pub uids: UidSet,
    /// The mailbox's highest modseq afterwards.
    pub highest_modseq: ModSeq,
}

/// Called after every published change of the account, from whichever thread made it; must be quick and must not call back.
pub type Listener = Arc<dyn Fn() + Send + Sync>;

impl Account {
    /// Its name.
    pub fn name(&self) -> &AccountName {
        todo!()
    }

    /// Every mailbox and every subscribed name, sorted by name, as of one moment.
    pub fn mailboxes(&self) -> Vec<MailboxInfo> {
        todo!()
    }

    /// The mailbox of this name; [`model::ErrorKind::NotFound`].
    pub fn mailbox(&self, _name: &MailboxName) -> Result<MailboxId> {
        todo!()
    }

    /// The present name of a mailbox; `None` once it is deleted.
    pub fn mailbox_name(&self, _id: MailboxId) -> Option<MailboxName> {
        todo!()
    }

    /// Makes a mailbox, and its missing parents (RFC 9051 §6.3.4). A special use that another mailbox has is allowed (RFC 6154 §3).
    pub fn create_mailbox(&self, _name: &MailboxName, _special_use: &[SpecialUse]) -> Result<MailboxId> {
        todo!()
    }

    /// Removes a mailbox and its entries; its children stay (RFC 9051 §6.3.5). Not INBOX.
    pub fn delete_mailbox(&self, _name: &MailboxName) -> Result<()> {
        todo!()
    }

    /// Renames a mailbox and those below it; of INBOX, moves the entries and leaves it empty (RFC 9051 §6.3.6).
    pub fn rename_mailbox(&self, _from: &MailboxName, _to: &MailboxName) -> Result<()> {
        todo!()
    }

    /// Subscribes or unsubscribes a name, which need not exist (RFC 9051 §6.3.7).
    pub fn set_subscribed(&self, _name: &MailboxName, _subscribed: bool) -> Result<()> {
        todo!()
    }

    /// A mailbox in numbers.
    pub fn status(&self, _id: MailboxId) -> Result<Status> {
        todo!()
    }

    /// A stable reading of the mailbox as it is now. `read_write` claims the \Recent entries (RFC 3501 §2.3.2) for this view.
    pub fn view(&self, _id: MailboxId, _read_write: bool) -> Result<View> {
        todo!()
    }

    /// A writer for one message: bytes go in as they arrive, a few KiB at a time are held.
    pub fn message_writer(&self) -> Result<MessageWriter> {
        todo!()
    }

    /// Adds messages to a mailbox: all of them or none (RFC 3502).
    pub fn append(&self, _mailbox: MailboxId, _messages: Vec<NewMessage>) -> Result<Appended> {
        todo!()
    }

    /// Copies entries of `from` that are still there to the end of `to`, with flags, keywords and internal dates; all or none.
    pub fn copy(&self, _from: MailboxId, _uids: &UidSet, _to: MailboxId) -> Result<Copied> {
        todo!()
    }

    /// Copies, and expunges what was copied, as one change (RFC 6851).
    pub fn move_entries(&self, _from: MailboxId, _uids: &UidSet, _to: MailboxId) -> Result<Copied> {
        todo!()
    }

    /// Appends to `to` and expunges `uid` of `from`, as one change (RFC 8508).
    pub fn replace(&self, _from: MailboxId, _uid: Uid, _to: MailboxId, _message: NewMessage) -> Result<Appended> {
        todo!()
    }

    /// Changes flags of the entries that are still there.
    pub fn store_flags(&self, _mailbox: MailboxId, _uids: &UidSet, _request: &StoreFlags) -> Result<Stored> {
        todo!()
    }

    /// Expunges the entries with `\Deleted`, of all or of `uids` only.
    pub fn expunge(&self, _mailbox: MailboxId, _uids: Option<&UidSet>) -> Result<Expunged> {
        todo!()
    }

    /// UIDs that were expunged after `since` and are within `known` (RFC 7162 §3.2.5); may name more that are absent, never fewer.
    pub fn vanished_since(&self, _mailbox: MailboxId, _since: ModSeq, _known: &UidSet) -> Result<UidSet> {
        todo!()
    }

    /// A reader of message bytes and of what was derived from them.
    pub fn reader(&self) -> Reader {
        todo!()
    }

    /// Calls `listener` after every change until the returned guard is dropped.
    pub fn listen(&self, _listener: Listener) -> ListenerGuard {
        todo!()
    }
}

/// Keeps a [`Listener`] registered while it lives.
pub struct ListenerGuard {}
