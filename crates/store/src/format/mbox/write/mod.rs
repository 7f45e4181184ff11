//! From the log to the file: messages that came leave their bytes in it, expunged ones leave it, UIDs and flags go into the header fields
//! that other programs read.
//!
//! [`write_back`] goes over the messages of a file once, asks for each what is to become of it, and does it in the cheapest safe way
//! (`docs/format-mbox.md`, "What is written"):
//! - values change in place where the header has room;
//! - what is removed at the end is cut off;
//! - a little that is removed elsewhere becomes filler in the header of the next message, so that nothing else moves;
//! - otherwise the rest of the file moves, by a [`super::rewrite`], and whatever moves gets its fields and padding on the way;
//! - messages are added at the end.
//!
//! Invariants:
//! - A power cut at any operation leaves a file that [`recover`] makes one that has every message that it had and was not to be removed, once,
//!   and of the others, as of those that were to be added, each whole or not at all.
//! - Fields that a power cut may have torn are never believed, nor is a map that does not know what was removed or moved: while [`Unsettled`] is
//!   not settled there is a marker. Only what is added at the end needs none.
//! - A disk without room says so before anything moved.
//! - Memory is a few MiB, whatever the file's size and whatever the size of its messages.

mod append;
mod block;
mod fields;
mod files;
mod head;
mod pass;
mod record;
mod recover;
mod render;
#[cfg(test)]
mod tests;
mod window;

use std::path::Path;

use model::{DateTime, EmailId, MailboxId, Result};
use platform::Env;

pub use self::fields::{Wanted, keywords_hash};
pub use self::files::{Unsettled, forget};
pub use self::recover::{Recovered, recover, recover_locked};
use super::lock::MailboxLock;
use super::place::{ImapBase, Place};
use super::rewrite;

/// Sizes, in octets.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Room that is left behind the keywords of a message, so that they can grow without moving anything.
    pub padding_bytes: usize,
    /// Filler that one message takes at most: its header is read by everybody.
    pub filler_bytes_message_max: u64,
    /// Messages that are added together: they are held in memory, and synced once.
    pub batch_bytes: usize,
    /// How a file is moved.
    pub rewrite: rewrite::Limits,
}

impl Default for Settings {
    /// The padding is that of Dovecot.
    fn default() -> Self {
        Settings {
            padding_bytes: 50,
            filler_bytes_message_max: 64 << 10,
            batch_bytes: 4 << 20,
            rewrite: rewrite::Limits::default(),
        }
    }
}

/// A mailbox file that is written to.
#[derive(Clone, Copy)]
pub struct Target<'t> {
    /// The machine.
    pub env: &'t Env,
    /// The file.
    pub path: &'t Path,
    /// Its lock, for writing.
    pub lock: &'t MailboxLock,
    /// Where journals, intents and markers are kept: on a disk that survives as long as the file's. It exists.
    pub dir: &'t Path,
    /// Whose.
    pub mailbox: MailboxId,
    /// What is read from the file may not be what is on the disk: a sync of it has failed, or may have failed, since it was written. It has
    /// been read all the same, and what goes by it has to be written again first.
    pub is_doubtful: bool,
    /// Something was added to the file before, in this process: the name of what is kept for that is durable.
    pub has_intents: bool,
}

/// What becomes of a message of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stays as it is; if it is moved, its fields are kept.
    Keep,
    /// Its fields say this.
    Update(Wanted),
    /// It goes.
    Remove,
}

/// Gives the octets of a message as served, from the first to the last, each time that it is called.
pub type ReadMessage<'a> = Box<dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a>;

/// A message that is added.
pub struct Outgoing<'a> {
    /// Which.
    pub email_id: EmailId,
    /// What its fields say.
    pub wanted: Wanted,
    /// For its `From ` line.
    pub internal_date: DateTime,
    /// Octets, as served.
    pub size: u64,
    /// Its octets. It is called once for a message of at most 2 MiB, otherwise twice.
    pub read: ReadMessage<'a>,
}

/// What is to be done.
pub struct Job<'j> {
    /// Every message of the file as it is, in order. Who only adds messages may give the last one alone.
    pub places: &'j mut dyn Iterator<Item = Place>,
    /// Asked once for each, with its number (from 0). The flag says that its header is written in any case, so that
    /// [`Fate::Update`] costs nothing more.
    pub fate: &'j mut dyn FnMut(usize, &Place, bool) -> Result<Fate>,
    /// Octets (`next - start`) that will be removed, all together: decides whether the rest moves. Wrong is slow, not unsafe.
    pub removed_bytes: u64,
    /// What the first message says of the file, if its fields are written or if it says something already.
    pub base: &'j ImapBase,
    /// What is added, in order.
    pub append: &'j mut dyn Iterator<Item = Outgoing<'j>>,
    /// Is given every message that there is then, in order: where it stands, what its fields say. It holds when all is done; after an error
    /// nothing of it does.
    pub placed: &'j mut dyn FnMut(Place) -> Result<()>,
}

/// What was done.
#[derive(Debug)]
#[must_use = "the fields of the file count again when it is settled"]
pub struct Written {
    /// Octets of the file now.
    pub file_bytes: u64,
    /// Octets that were written over others in place, and filler.
    pub in_place_bytes: u64,
    /// Octets that moved, with what was inserted among them.
    pub moved_bytes: u64,
    /// Octets added at the end.
    pub appended_bytes: u64,
    /// Messages that were removed.
    pub removed: u64,
    /// Messages that were added.
    pub appended: u64,
    /// To be settled when the caller remembers durably what it was told by [`Job::placed`].
    pub unsettled: Unsettled,
}

impl Written {
    /// Whether the file is as it was.
    pub fn is_nothing(&self) -> bool {
        self.in_place_bytes == 0 && self.moved_bytes == 0 && self.appended_bytes == 0 && self.removed == 0
    }
}

/// Makes the file say what the log says. Before, [`recover`] was called, and `job.places` are those of the file as it is now. When it
/// is done everything is durable.
///
/// After an error [`recover`] has to be called before anything else is done with the file, and the file is to be read anew.
/// [`ErrorKind::Corrupt`](model::ErrorKind::Corrupt): the places are not those of this file; it has all its messages.
/// [`ErrorKind::DiskFull`](model::ErrorKind::DiskFull): so it has, too; messages that were appended before stay.
pub fn write_back(target: Target<'_>, settings: &Settings, job: Job<'_>) -> Result<Written> {
    let Job { places, fate, removed_bytes, base, append, placed } = job;
    let mut pass = pass::Pass::new(target, settings, base, removed_bytes, placed)?;
    for (number, place) in places.enumerate() {
        if let Err(error) = pass.place(number, place, fate) {
            return Err(pass.abandon(error));
        }
    }
    pass.finish(append)
}
