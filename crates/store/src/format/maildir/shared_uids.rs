//! UIDs shared with Dovecot: what `dovecot-uidlist` says is read as it grows, and what the log says is written into it, so that both servers,
//! beside each other or one after the other, tell their clients the same (`docs/maildir.md`).
//!
//! Dovecot gives a UID to a file while it has `dovecot-uidlist.lock`; so do we for files that others have delivered. A message that came
//! through us has its UID before it has a file: first what the list has more than we know is taken in, then it gets a UID that the list does not
//! have, and its line as soon as the file is there.
//!
//! Invariants:
//! - A UID that either server has given stays: a line for a file whose UID here is another one is left alone, and so is the entry.
//! - A list with another UIDVALIDITY is another server's own business: it is neither believed nor touched.
//! - Lines are added, or the file is replaced, under the lock only. What a power cut takes of it is written again: the log does not need it.
//! - While [`SharedUids`] is locked nothing is waited for but the disk: transactions ask it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use index::{Mailbox, State};
use model::{Error, MailboxId, Result, Uid};
use platform::{Disk, OpenMode};

use super::account::{DirBox, MaildirAccount, lock};
use super::keyword_file::ListLock;
use super::uidlist::{Record, UidList, write_record};
use crate::format::adoption::{found_if_there, read_if_there};
use crate::format::mbox::identity::Identity;

/// Dovecot's list.
const FILE: &str = "dovecot-uidlist";
/// Courier's: it is read when there is no other.
const COURIERS_FILE: &str = "courierimapuiddb";

/// Whether Dovecot's lists of UIDs are kept up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UidLists {
    /// Where Dovecot has made one, and in new mailboxes of a tree whose INBOX has one.
    #[default]
    Auto,
    /// Always: each mailbox gets one.
    Always,
    /// Never: they are read only.
    Never,
}

/// What is known of the list of a mailbox.
#[derive(Debug, Default)]
pub(super) struct SharedUids {
    seen: Option<Seen>,
    /// UIDs that the list gives to files which had none here when it was read.
    theirs: HashMap<Vec<u8>, u32>,
    /// Entries that the list may not have: their names.
    unlisted: BTreeMap<u32, Vec<u8>>,
    /// All entries were held against the list since it was last read as a whole.
    is_compared: bool,
}

/// A list as it was read or written last.
#[derive(Clone, Debug)]
struct Seen {
    path: PathBuf,
    identity: Identity,
    /// Of another UIDVALIDITY: nothing else is known of it.
    is_other: bool,
    /// Octets that were read.
    len: u64,
    last_uid: u32,
    /// Above all that were given.
    next_uid: u32,
    can_grow: bool,
}

impl Seen {
    /// Whether it is a list of ours and Dovecot's to which lines may be added.
    fn is_dovecots(&self) -> bool {
        !self.is_other && self.can_grow && self.path.ends_with(FILE)
    }
}

impl SharedUids {
    /// Brings this up to date with the file, of a mailbox with this UIDVALIDITY and UID of its next message.
    fn read(&mut self, disk: &dyn Disk, maildir: &Path, validity: u32, uidnext: u32) -> Result<()> {
        for name in [FILE, COURIERS_FILE] {
            let path = maildir.join(name);
            let Some(found) = found_if_there(disk, &path)? else { continue };
            let found = Identity::of(&found);
            let is_known = self.seen.as_ref().is_some_and(|seen| seen.path == path);
            if is_known && self.seen.as_ref().is_some_and(|seen| seen.identity == found && seen.len == found.len) {
                return Ok(());
            }
            let grown = self.seen.as_ref().filter(|seen| {
                let same = (seen.identity.device, seen.identity.inode) == (found.device, found.inode);
                is_known && same && seen.can_grow && !seen.is_other && found.len >= seen.len
            });
            if let Some(seen) = grown.cloned()
                && self.read_added(disk, seen)?
            {
                return Ok(());
            }
            if self.read_whole(disk, &path, validity, uidnext)? {
                return Ok(());
            }
        }
        *self = SharedUids { unlisted: std::mem::take(&mut self.unlisted), ..SharedUids::default() };
        Ok(())
    }

    /// Reads what was added; false: it is something else.
    fn read_added(&mut self, disk: &dyn Disk, seen: Seen) -> Result<bool> {
        let wrong = |error: std::io::Error| Error::from(error).context(seen.path.display());
        let file = disk.open(&seen.path, OpenMode::Read).map_err(wrong)?;
        let identity = Identity::of(&file.metadata().map_err(wrong)?);
        let Some(added) = identity.len.checked_sub(seen.len).and_then(|len| usize::try_from(len).ok()) else {
            return Ok(false);
        };
        let mut bytes = vec![0; added];
        match file.read_exact_at(&mut bytes, seen.len) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            result => result.map_err(wrong)?,
        }
        let Some(records) = UidList::parse_added(&bytes, seen.last_uid) else { return Ok(false) };
        let last_uid = records.last().map_or(seen.last_uid, |record| record.uid);
        self.theirs.extend(records.iter().map(|record| (record.base().to_vec(), record.uid)));
        let next_uid = seen.next_uid.max(last_uid.saturating_add(1));
        self.seen = Some(Seen { identity, len: identity.len, last_uid, next_uid, ..seen });
        Ok(true)
    }

    /// Reads a list; false: it is none.
    fn read_whole(&mut self, disk: &dyn Disk, path: &Path, validity: u32, uidnext: u32) -> Result<bool> {
        let Some(found) = found_if_there(disk, path)? else { return Ok(false) };
        let Some(bytes) = read_if_there(disk, path)? else { return Ok(false) };
        let Some(list) = UidList::parse(&bytes) else { return Ok(false) };
        self.theirs.clear();
        self.is_compared = false;
        let is_other = list.uid_validity != validity;
        if !is_other {
            // Those below the UID of the next message are held against the entries.
            let news = list.records.iter().filter(|record| record.uid >= uidnext);
            self.theirs.extend(news.map(|record| (record.base().to_vec(), record.uid)));
        }
        self.seen = Some(Seen {
            path: path.to_owned(),
            identity: Identity::of(&found),
            is_other,
            len: bytes.len() as u64,
            last_uid: list.records.last().map_or(0, |record| record.uid),
            next_uid: list.next_uid,
            can_grow: list.can_grow(),
        });
        Ok(true)
    }

    /// The list, unless it is another server's own.
    fn shared(&self) -> Option<&Seen> {
        self.seen.as_ref().filter(|seen| !seen.is_other)
    }

    /// The UID that the list gives to a file which has none here.
    pub(super) fn of(&self, base: &[u8]) -> Option<u32> {
        self.theirs.get(base).copied()
    }

    /// The highest UID that the other server may have given; 0: none.
    pub(super) fn last_uid(&self) -> u32 {
        self.shared().map_or(0, |seen| seen.next_uid.saturating_sub(1))
    }

    /// An entry has got its file.
    pub(super) fn add(&mut self, uid: u32, base: &[u8], name: &[u8]) {
        // What the list says of a file stays, whatever it is.
        if self.theirs.remove(base).is_none() {
            self.unlisted.insert(uid, name.to_vec());
        }
    }

    /// Nothing that was read is believed any more.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }

    /// There is no list to be kept up, as long as no other one is read.
    fn nothing_to_do(&mut self) {
        self.unlisted.clear();
        self.is_compared = true;
    }

    /// Adds the lines of entries that the list does not have. Those that would not be its last ones are left to [`UidList::with_entries`].
    fn write_unlisted(&mut self, disk: &dyn Disk) -> Result<()> {
        let Some(seen) = self.shared().cloned() else { return Ok(()) };
        let mut lines = Vec::new();
        let mut last_uid = seen.last_uid;
        for (uid, name) in self.unlisted.range(seen.next_uid..) {
            write_record(&mut lines, &Record { uid: *uid, fields: b"", name });
            last_uid = *uid;
        }
        if !lines.is_empty() {
            disk.append(&seen.path, &lines).map_err(|error| Error::from(error).context(seen.path.display()))?;
            let identity = Identity::of(&disk.metadata(&seen.path)?);
            let len = seen.len + lines.len() as u64;
            self.seen = Some(Seen { identity, len, last_uid, next_uid: last_uid.saturating_add(1), ..seen.clone() });
        }
        self.unlisted.retain(|uid, _| *uid < seen.next_uid);
        self.is_compared = self.unlisted.is_empty();
        Ok(())
    }
}

/// What a mailbox's UIDs are, for its list.
fn counters(mailbox: &Mailbox) -> (u32, u32) {
    (mailbox.uidvalidity().get(), mailbox.uidnext().map_or(u32::MAX, Uid::get))
}

impl MaildirAccount {
    /// Whether the list of a Maildir is to be kept up.
    fn keeps_uids(&self, maildir: &Path) -> Result<bool> {
        let is_there = |dir: &Path| {
            let path = dir.join(FILE);
            self.env.disk.exists(&path).map_err(|error| Error::from(error).context(path.display()))
        };
        match self.options.uid_lists {
            UidLists::Never => Ok(false),
            UidLists::Always => Ok(true),
            UidLists::Auto => Ok(is_there(maildir)? || is_there(&self.root)?),
        }
    }

    /// The lock for giving UIDs to files of others, where the list is kept up. `None` also when somebody holds it for long: then both
    /// servers may give different ones.
    pub(super) fn lock_uids(&self, maildir: &Path) -> Result<Option<ListLock<'_>>> {
        if self.keeps_uids(maildir)? { ListLock::take(&self.env, maildir) } else { Ok(None) }
    }

    /// Brings what is known of a mailbox's list up to date.
    pub(super) fn read_uids(&self, state: &State, dir_box: &DirBox, maildir: &Path) -> Result<()> {
        let Some(mailbox) = state.mailbox(dir_box.id) else { return Ok(()) };
        let (validity, uidnext) = counters(mailbox);
        lock(&dir_box.uids).read(&*self.env.disk, maildir, validity, uidnext)
    }

    /// Takes in what another server has numbered since we looked last: a message of ours would take the UIDs of these.
    pub(super) fn before_adding(&self, id: MailboxId) {
        let (Ok(dir_box), Some(maildir)) = (self.dir_box(id), self.path_of(id)) else { return };
        if self.options.uid_lists == UidLists::Never {
            return;
        }
        let found = self.env.disk.metadata(&maildir.join(FILE)).ok().map(|found| Identity::of(&found));
        let known = lock(&dir_box.uids).seen.as_ref().map(|seen| seen.identity);
        if found.is_some() && found != known {
            // What cannot be looked at now gets UIDs of its own later.
            let _later = self.sync(&dir_box, &mut lock(&dir_box.turn));
        }
    }

    /// The UID that a message which comes into a mailbox must have at least, so that no other server has given it.
    pub(super) fn uid_floor(&self, mailbox: &Mailbox) -> Result<u32> {
        if self.options.uid_lists == UidLists::Never {
            return Ok(0);
        }
        let (Ok(dir_box), Some(maildir)) = (self.dir_box(mailbox.id()), self.path_of(mailbox.id())) else {
            return Ok(0);
        };
        let (validity, uidnext) = counters(mailbox);
        let mut uids = lock(&dir_box.uids);
        uids.read(&*self.env.disk, &maildir, validity, uidnext)?;
        Ok(uids.last_uid().saturating_add(1))
    }

    /// Adds lines for entries that are on their way into the log, for who has the lock of the list.
    pub(super) fn add_uids(&self, dir_box: &DirBox) -> Result<()> {
        let mut uids = lock(&dir_box.uids);
        let is_ready = uids.is_compared && uids.shared().is_some_and(Seen::is_dovecots);
        if is_ready { uids.write_unlisted(&*self.env.disk) } else { Ok(()) }
    }

    /// Writes into the list what it lacks, for who has the lock of it.
    pub(super) fn write_uids(&self, state: &State, dir_box: &DirBox, maildir: &Path) -> Result<()> {
        let Some(mailbox) = state.mailbox(dir_box.id) else { return Ok(()) };
        let (validity, uidnext) = counters(mailbox);
        let mut uids = lock(&dir_box.uids);
        uids.read(&*self.env.disk, maildir, validity, uidnext)?;
        match &uids.seen {
            // Lists of others are left alone.
            Some(seen) if seen.is_other && seen.path.ends_with(FILE) => {
                uids.nothing_to_do();
                Ok(())
            }
            Some(seen) if seen.is_dovecots() && uids.is_compared => {
                uids.write_unlisted(&*self.env.disk)?;
                match uids.is_compared {
                    true => Ok(()),
                    false => self.compare_uids(&mut uids, dir_box, maildir, (validity, uidnext)),
                }
            }
            _ => self.compare_uids(&mut uids, dir_box, maildir, (validity, uidnext)),
        }
    }

    /// Holds all entries against the list, and replaces it when it lacks something.
    fn compare_uids(
        &self,
        uids: &mut SharedUids,
        dir_box: &DirBox,
        maildir: &Path,
        (validity, uidnext): (u32, u32),
    ) -> Result<()> {
        let (disk, path) = (&*self.env.disk, maildir.join(FILE));
        let bytes = read_if_there(disk, &path)?;
        let is_new = bytes.is_none();
        let bytes = bytes.unwrap_or_default();
        // What a power cut leaves of lines that were on their way.
        let is_torn = !is_new && (!bytes.ends_with(b"\n") || bytes.contains(&0));
        let list = UidList::parse(&bytes).unwrap_or_else(|| UidList::empty(validity, uidnext));
        let written = dir_box.with_map(|map| {
            uids.unlisted.retain(|uid, _| map.find(*uid).is_none());
            let names = map.records().iter().map(|record| (record.uid, map.name(record)));
            let list = list.with_entries(&names.collect::<Vec<_>>(), uidnext);
            list.map(|list| list.write())
        });
        // Without a map nobody knows which files there are.
        let Some(written) = written else { return Ok(()) };
        if let Some(written) = written.or_else(|| (is_new || is_torn).then(|| list.write())) {
            let temporary = maildir.join(format!("{FILE}.tmp"));
            disk.replace_file(&path, &temporary, &written)
                .map_err(|error| Error::from(error).context(path.display()))?;
        }
        uids.read_whole(disk, &path, validity, uidnext)?;
        uids.is_compared = true;
        Ok(())
    }

    /// Writes what is left to be written, when nobody keeps the list locked.
    pub(super) fn share_uids(&self, dir_box: &DirBox, maildir: &Path) -> Result<()> {
        if !self.keeps_uids(maildir)? {
            lock(&dir_box.uids).nothing_to_do();
            return Ok(());
        }
        match ListLock::take(&self.env, maildir)? {
            Some(_lock) => self.write_uids(&self.state(), dir_box, maildir),
            None => Ok(()),
        }
    }

    /// Whether the list should be held against all entries, or has lines to come.
    pub(super) fn is_sharing_due(&self, dir_box: &DirBox) -> bool {
        let uids = lock(&dir_box.uids);
        self.options.uid_lists != UidLists::Never && (!uids.is_compared || !uids.unlisted.is_empty())
    }

    /// A mailbox that is new here and has no list: before Dovecot gives it a UIDVALIDITY.
    pub(super) fn begin_uids(&self, maildir: &Path, mailbox: &Mailbox) -> Result<()> {
        let (disk, path) = (&*self.env.disk, maildir.join(FILE));
        let has_list = disk.exists(&path)? || disk.exists(&maildir.join(COURIERS_FILE))?;
        if has_list || !self.keeps_uids(maildir)? {
            return Ok(());
        }
        let Some(_lock) = ListLock::take(&self.env, maildir)? else { return Ok(()) };
        let (validity, uidnext) = counters(mailbox);
        let list = UidList::empty(validity, uidnext).write();
        Ok(disk.replace_file(&path, &maildir.join(format!("{FILE}.tmp")), &list)?)
    }
}
