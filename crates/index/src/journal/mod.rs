//! An account whose truth is not a log on this machine but rows in a database that several nodes share.
//!
//! The same [`crate::Transaction`]s, [`crate::State`]s and [`crate::Reader`]s stand in front of it; what is exchanged is what stands
//! behind a commit: a [`Journal`] makes batches of transactions durable, says what other nodes did ([`News`]), and gives the bytes of
//! messages. What lies in the account's directory (`index/`, `spool/`) is this node's own, derived, and can be deleted.
//!
//! Invariants:
//! - A transaction is made only by the writer, on a state that has everything that was ever committed. So its UIDs and modseqs
//!   are right, and nothing has to be decided twice.
//! - That the database still agrees is part of every commit ([`Journal::commit`] fails when another node has become the writer meanwhile),
//!   so what a node believes of its right to write decides how long something takes and never whether it is right.

mod follow;
mod transcribe;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};

use model::{EmailId, Keyword, MailboxId, MailboxName, ModSeq, Result, UidValidity};

use crate::foreign::{Foreign, ForeignMessage};
use crate::log::Log;
use crate::message::PendingMessage;
use crate::record::Event;
use crate::state::{Row, State};

/// Stands behind one account; shared by threads. All functions but [`Journal::is_writer`] and [`Journal::incarnation`] wait for the
/// database. [`model::ErrorKind::Io`]: it could not be reached, or did not do it; nothing was done, or it is found out by the next
/// call.
///
/// The bytes of a message come through [`Foreign`].
pub trait Journal: Foreign {
    /// Tells this history of the account from another one with the same numbers (a database that was put back): what is kept locally
    /// belongs to one.
    fn incarnation(&self) -> u32;

    /// Whether this node may write now, as far as it knows. Costs nothing.
    fn is_writer(&self) -> bool;

    /// Makes this node the writer. What was committed after `since` is given to `install` first: not before that has succeeded does
    /// [`Journal::is_writer`] say so. [`Wait::Never`]: [`model::ErrorKind::InUse`] at once when another node is.
    fn take(&self, since: ModSeq, wait: Wait, install: &mut dyn FnMut(&News) -> Result<()>) -> Result<()>;

    /// From now on this node is not the writer, but for what was begun: [`Journal::commit`] still does it. Costs nothing.
    fn stop(&self);

    /// Gives the right to write to who waits for it, or to whoever comes. Nothing is being committed meanwhile.
    fn give(&self) -> Result<()>;

    /// What was committed after `since`; `None`: nothing.
    fn news(&self, since: ModSeq) -> Result<Option<News>>;

    /// Makes a batch durable, all of it or nothing. `state` is that after it. [`model::ErrorKind::TakenOver`]: nothing of it was done,
    /// another node writes. Any other error: nothing was done, or it is not known. After an error this node is no longer the writer, and
    /// [`Journal::take`] will say.
    fn commit(&self, state: &State, batch: &[Transacted<'_>]) -> Result<()>;

    /// A message that is kept, if there is one with this id.
    fn message(&self, id: EmailId) -> Result<Option<ForeignMessage>>;

    /// The messages with these ids that are kept, rising.
    fn messages(&self, ids: Range<u64>) -> Result<Vec<(EmailId, ForeignMessage)>>;

    /// Background work of the writer: removes what nobody can ask for any more. `state` is the newest; what was expunged before `time`
    /// (seconds since 1970) cannot be brought back. Whether there is more.
    fn sweep(&self, state: &State, time: i64) -> Result<bool>;

    /// The log that was opened on it, to be told of news that come by themselves ([`Log::catch_up`]) and of nodes that wait
    /// ([`Log::give_way`]).
    fn attach(&self, log: Weak<Log>);
}

/// How long to wait for another node that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until it gives way or is taken for dead.
    Long,
    /// Not at all.
    Never,
}

/// One transaction of a batch.
pub struct Transacted<'a> {
    /// The modseq of the state that it changed.
    pub before: ModSeq,
    /// The modseq of everything that it changed.
    pub modseq: ModSeq,
    /// When, seconds since 1970 UTC.
    pub time: i64,
    /// What it did, in its order.
    pub events: Vec<Event>,
    /// The messages that it brought, rising by id.
    pub messages: &'a [(EmailId, Arc<PendingMessage>)],
}

impl fmt::Debug for Transacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transacted({:?}, {} events, {} messages)", self.modseq, self.events.len(), self.messages.len())
    }
}

/// What an account's rows say, as of one moment: those that were changed after a modseq.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// Everything is in it: what was known before does not count.
    pub is_whole: bool,
    /// The modseq of the last transaction.
    pub modseq: ModSeq,
    /// Every message has an id below this one.
    pub email_id_next: u64,
    /// Every mailbox has an id below this one.
    pub mailbox_id_next: u64,
    /// The largest UIDVALIDITY ever given.
    pub uidvalidity_last: u32,
    /// Mailboxes, deleted ones that are still kept included.
    pub mailboxes: Vec<MailboxNews>,
    /// Keywords, each with its number in its mailbox; rising.
    pub keywords: Vec<(MailboxId, usize, Keyword)>,
    /// Annotations, of mailboxes and of the account. Without a value: it was removed.
    pub annotations: Vec<(Option<MailboxId>, String, Option<Vec<u8>>)>,
    /// Names that are subscribed, or no longer.
    pub subscriptions: Vec<(MailboxName, bool)>,
    /// Entries that are new or have other flags, by mailbox and UID.
    pub entries: Vec<(MailboxId, Row)>,
    /// Entries that are gone.
    pub expunged: Vec<ExpungedNews>,
}

/// What a mailbox is, but for its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxNews {
    /// Its identity.
    pub id: MailboxId,
    /// Its name.
    pub name: MailboxName,
    /// RFC 9051 §2.3.1.1.
    pub uidvalidity: UidValidity,
    /// One more than the largest UID ever given; 2³² when they are used up.
    pub uidnext: u64,
    /// Of the last change of any entry.
    pub highest_modseq: ModSeq,
    /// Seconds since 1970 UTC.
    pub created: i64,
    /// Bit n: the special use with code n.
    pub special_use: u16,
    /// See [`crate::Mailbox::recent_floor`].
    pub recent_floor: u32,
    /// Expunges up to this modseq are forgotten.
    pub vanished_floor: ModSeq,
    /// When it was deleted, if it was; seconds since 1970 UTC.
    pub deleted_at: Option<i64>,
}

/// An entry that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpungedNews {
    /// Where it was.
    pub mailbox: MailboxId,
    /// The entry as it was; its modseq is that of its last change before.
    pub row: Row,
    /// The modseq of the expunge.
    pub modseq: ModSeq,
    /// When, seconds since 1970 UTC.
    pub time: i64,
    /// Whether it can be brought back.
    pub is_kept: bool,
}

/// The journal as who gives the bytes of messages.
pub(crate) fn as_foreign(journal: &Arc<dyn Journal>) -> Arc<dyn Foreign> {
    Arc::clone(journal) as Arc<dyn Foreign>
}
