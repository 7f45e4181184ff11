//! Keeping `maildirsize` true, for delivery agents and servers that refuse mail by it (Maildir++ page of Courier): maildrop, Courier, Exim.
//!
//! What our server allows is decided by the log, exactly (`crate::quota`). The file is there for the others: each of our changes adds a line, as
//! each of theirs does, and now and then it is made anew from the names of all files. What counts is what counts for them: messages
//! without the flag `T`, in all mailboxes but Trash, with the octets of their files.
//!
//! Invariants:
//! - It is made where the account has limits, with these; elsewhere it is kept up if somebody has made it, with its own first line.
//! - It is replaced as a whole or grows by whole lines; when it is lost, the next who looks makes it anew.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{Error, Result};

use super::account::{MaildirAccount, Turn, lock};
use super::listing::{self, Listed, Look, Stamp};
use super::name::{Letters, Name};
use super::size_file::{self, Usage};
use crate::format::MaildirLayout;
use crate::format::adoption::found_if_there;
use crate::format::mbox::identity::Identity;
use crate::quota::{self, STORAGE_UNIT_BYTES};

const FILE: &str = "maildirsize";
const TEMPORARY: &str = "maildirsize.tmp";
/// The mailbox that does not count, as a directory.
const TRASH: &str = ".Trash";
/// The flag of messages that do not count.
const DELETED: u8 = b'T';
/// So long a file may have been left alone before it is doubted.
const OLD_AFTER: Duration = Duration::from_secs(15 * 60);
/// How often it is tried to look at all files while nobody changes them.
const TRIES: usize = 3;

/// What is known of the file.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// Held by who adds a line, and by who replaces the file.
    writing: Mutex<()>,
    /// Nobody else has changed files since it was made, perhaps without a line.
    is_certain: AtomicBool,
    /// The file that was last found to be all right, and the first line that it should have.
    seen: Mutex<Option<(Identity, Option<String>)>>,
}

/// What all files hold, and the directories that were looked at.
#[derive(Debug, Default)]
struct Counted {
    used: Usage,
    stamps: Vec<(PathBuf, Stamp)>,
}

impl MaildirAccount {
    /// What a file holds, if its mailbox counts. Only a size that its name does not say is asked for.
    fn held_by(&self, maildir: &Path, file: &Listed) -> Usage {
        if maildir.ends_with(TRASH) {
            return Usage::default();
        }
        let said = Name::parse(&file.name).and_then(|name| name.size());
        let asked =
            || self.env.disk.metadata(&listing::path(maildir, file.subdir, &file.name)).ok().map(|found| found.len);
        said.or_else(asked)
            .map_or(Usage::default(), |bytes| Usage { bytes: i64::try_from(bytes).unwrap_or(i64::MAX), messages: 1 })
    }

    /// What a file counts.
    fn usage_of(&self, maildir: &Path, file: &Listed) -> Usage {
        if file.letters().has(DELETED) { Usage::default() } else { self.held_by(maildir, file) }
    }

    /// A file has come.
    pub(super) fn count_in(&self, turn: &mut Turn, maildir: &Path, file: &Listed) {
        turn.untold = turn.untold.plus(self.usage_of(maildir, file));
    }

    /// A file is about to go.
    pub(super) fn count_out(&self, turn: &mut Turn, maildir: &Path, file: &Listed) {
        turn.untold = turn.untold.plus(self.usage_of(maildir, file).negated());
    }

    /// A file whose flags were these has its name now.
    pub(super) fn count_renamed(&self, turn: &mut Turn, maildir: &Path, was: Letters, file: &Listed) {
        let held = match (was.has(DELETED), file.letters().has(DELETED)) {
            (true, false) => self.held_by(maildir, file),
            (false, true) => self.held_by(maildir, file).negated(),
            _ => return,
        };
        turn.untold = turn.untold.plus(held);
    }

    /// Adds a line for what was changed since the last one.
    pub(super) fn tell_sizes(&self, turn: &mut Turn) {
        let untold = std::mem::take(&mut turn.untold);
        if untold == Usage::default() || self.layout != MaildirLayout::MaildirPlusPlus {
            return;
        }
        let _alone = lock(&self.sizes.writing);
        match self.env.disk.append(&self.root.join(FILE), untold.line().as_bytes()) {
            Ok(()) => {}
            // There is none, for most.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // Half a line may be there.
            Err(_) => self.doubt_sizes(),
        }
    }

    /// Files have changed of which nobody may have told.
    pub(super) fn doubt_sizes(&self) {
        self.sizes.is_certain.store(false, Ordering::Relaxed);
    }

    /// Makes the file anew where that is due.
    pub(super) fn maintain_sizes(&self) -> Result<()> {
        if self.layout != MaildirLayout::MaildirPlusPlus {
            return Ok(());
        }
        let limits = quota::limits_of(&self.state(), self.quota_defaults);
        let has_limits = limits.storage_kib.is_some() || limits.messages.is_some();
        let bytes_max = limits.storage_kib.map(|kib| kib.saturating_mul(STORAGE_UNIT_BYTES));
        let ours = has_limits.then(|| size_file::quota_line(bytes_max, limits.messages));
        let path = self.root.join(FILE);
        let found = found_if_there(&*self.env.disk, &path)?;
        let Some(found) = found else {
            return ours.map_or(Ok(()), |quota| self.make_sizes(&quota));
        };
        let is_old = found.modified.saturating_add(OLD_AFTER) < self.env.clock.now();
        let is_certain = self.sizes.is_certain.load(Ordering::Relaxed);
        let seen = (Identity::of(&found), ours.clone());
        if !is_old && lock(&self.sizes.seen).as_ref() == Some(&seen) {
            return Ok(());
        }
        let bytes = self.env.disk.read(&path)?;
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let quota = ours.unwrap_or_else(|| String::from_utf8_lossy(first).into_owned());
        let known = size_file::parse(&bytes).filter(|known| known.quota == quota);
        match known {
            Some(known) if !is_old || is_certain && !known.has_grown => {
                *lock(&self.sizes.seen) = Some(seen);
                Ok(())
            }
            _ => self.make_sizes(&quota),
        }
    }

    /// Makes the file anew, unless files come and go all the time: then the next who looks does it.
    fn make_sizes(&self, quota: &str) -> Result<()> {
        let disk = &*self.env.disk;
        for _ in 0..TRIES {
            self.sizes.is_certain.store(true, Ordering::Relaxed);
            let Some(Counted { used, stamps }) = self.count_all()? else { continue };
            let _alone = lock(&self.sizes.writing);
            let is_still =
                |(maildir, stamp): &(PathBuf, Stamp)| Stamp::take(disk, maildir).is_ok_and(|now| now == *stamp);
            if stamps.iter().all(is_still) {
                let text = size_file::write(quota, used);
                return Ok(disk.replace_file(&self.root.join(FILE), &self.root.join(TEMPORARY), text.as_bytes())?);
            }
        }
        self.doubt_sizes();
        Ok(())
    }

    /// Looks at all files; `None`: somebody has changed something meanwhile.
    fn count_all(&self) -> Result<Option<Counted>> {
        let maildirs: Vec<_> = lock(&self.names).iter().map(|(_, path)| self.full_path(path)).collect();
        let mut counted = Counted::default();
        for maildir in maildirs.into_iter().filter(|maildir| !maildir.ends_with(TRASH)) {
            let look = match Look::take(&*self.env.disk, &*self.env.clock, &maildir, None) {
                Ok(look) => look,
                // A mailbox of which somebody has taken the Maildir away is empty.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && maildir != self.root => continue,
                Err(error) => return Err(Error::from(error).context(maildir.display())),
            };
            if !look.is_stable {
                return Ok(None);
            }
            let of_files = look.files.iter().map(|file| self.usage_of(&maildir, file));
            counted.used = of_files.fold(counted.used, Usage::plus);
            counted.stamps.push((maildir, look.stamp));
        }
        Ok(Some(counted))
    }
}
