//! Bringing a snapshot back: as an account that is not there, file by file; into one that is there, message by message, of which only what is
//! wanted is read.
//!
//! Invariant: no client ever sees a UID or a modseq stand for something else than before. What came after the snapshot may be lost, but clients
//! may know it. So an account or a mailbox that is set back goes on with numbers that are far above those of the snapshot.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use index::{Log, LogFile};
use model::{AccountName, EmailId, Error, ErrorKind, MailboxName, Result, Uid, UidSet};
use platform::{Env, File, OpenMode};

use super::lent::LendingDisk;
use super::merge::{Merge, Target};
use super::{Listener, Repository, Snapshot, SnapshotFile, octets, parallel, stored};
use crate::format::files::ForeignSlot;
use crate::store::remove_tree;
use crate::{Account, Store, View};

/// UIDs that are left out: so many messages a mailbox may have got since the snapshot.
pub(super) const UIDS_SKIPPED: u32 = 1_000_000;
/// Modseqs that are left out likewise.
pub(super) const MODSEQS_SKIPPED: u64 = 1 << 32;
/// The log of an account; see `docs/format-log.md`.
const LOG_DIR: &str = "log";

/// What is to be brought back, and where to.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// The account that gets it; made when it is not there.
    pub account: AccountName,
    /// One mailbox of the snapshot only.
    pub mailbox: Option<MailboxName>,
    /// The mailbox that gets its messages, instead of the one of the same name.
    pub into: Option<MailboxName>,
}

/// Says which messages of a mailbox of a snapshot are wanted, by their UIDs there.
pub type Choice<'c> = dyn Fn(&Account, &View) -> Result<UidSet> + 'c;

/// What [`Store::restore_backup`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// There was no such account before.
    pub account_is_new: bool,
    /// Mailboxes that were looked at.
    pub mailboxes: u64,
    /// Messages that are back.
    pub restored: u64,
    /// Messages that were there.
    pub already_there: u64,
    /// Of those that are back, in a mailbox that keeps its UIDs: those with another UID, since theirs was given already.
    pub other_uids: u64,
    /// Messages that lost a keyword: the mailbox has all that it can have.
    pub lost_keywords: u64,
    /// What is damaged and was left out.
    pub damaged: Vec<String>,
    /// The listener has ended it; what is back stays, and a second run goes on.
    pub was_stopped: bool,
}

impl Repository {
    /// Writes to `out` what a file of a snapshot was made from, as far as it can be read; says what is wrong with it.
    fn unpack_file(&self, account: &AccountName, file: &SnapshotFile, out: &dyn File) -> Result<Option<String>> {
        let (disk, path, key) = (&*self.env.disk, self.path_of(account, file), self.key()?);
        let mut put = |bytes: &[u8], at| Ok(out.write_at(bytes, at)?);
        let damage = stored::read(disk, &path, key, &mut put)?.damage(file.len, &file.sha256, &path)?;
        if let (Some(_), Some(identities)) = (&damage, key) {
            stored::salvage(disk, &path, identities, &mut put)?;
        }
        Ok(damage.map(|what| format!("{}: {what}", path.display())))
    }
}

impl Store {
    /// Brings back a snapshot or a mailbox of it. What is there stays; messages of the snapshot that are there are not added again, so that
    /// it can be repeated. Damage to the backup costs the messages that it hits: the others come back. [`ErrorKind::Invalid`] when the backup
    /// is encrypted and none of its identities fits.
    pub fn restore_backup(
        &self,
        from: &Repository,
        snapshot: &Snapshot,
        options: &RestoreOptions,
        listener: Listener<'_>,
    ) -> Result<RestoreReport> {
        self.restore_chosen(from, snapshot, options, None, listener)
    }

    /// The same of messages that `choice` names; all without one. What a mailbox of a snapshot has is searched as any mailbox is.
    pub fn restore_chosen(
        &self,
        from: &Repository,
        snapshot: &Snapshot,
        options: &RestoreOptions,
        choice: Option<&Choice<'_>>,
        listener: Listener<'_>,
    ) -> Result<RestoreReport> {
        from.key()?;
        let account_is_new = !self.accounts()?.contains(&options.account);
        let mut report = RestoreReport { account_is_new, ..RestoreReport::default() };
        let dir = self.temporary("restore");
        let becomes_account = options.mailbox.is_none() && account_is_new && choice.is_none();
        let result = self.unpack(from, snapshot, &dir, becomes_account, listener, &mut report).and_then(|env| {
            let Some(env) = env else { return Ok(()) };
            let (log, slot) = self.open_log_on(&env, &dir)?;
            self.take_in_octets(from, snapshot, (&dir, &log), options.mailbox.as_ref(), &mut report)?;
            note_damage(&log, &mut report);
            match becomes_account {
                true => self.take_over(&dir, log, &options.account, &mut report),
                false => self.merge((log, slot), options, choice, listener, &mut report),
            }
        });
        if self.env().disk.exists(&dir)? {
            remove_tree(&*self.env().disk, &dir)?;
        }
        result.map(|()| report)
    }

    /// Puts the files of a snapshot into `dir` as an account has them: durably, when it is to be one. Otherwise the log is read once, and its
    /// segments are left where they are, if they lie there as they were. Gives what shows them all in `dir`; `None`: the listener has ended it.
    fn unpack(
        &self,
        from: &Repository,
        snapshot: &Snapshot,
        dir: &Path,
        becomes_account: bool,
        listener: Listener<'_>,
        report: &mut RestoreReport,
    ) -> Result<Option<Env>> {
        let disk = &*self.env().disk;
        let log_dir = dir.join(LOG_DIR);
        disk.create_dir_all_durable(&log_dir)?;
        let is_lent =
            |file: &SnapshotFile| !becomes_account && !file.is_encrypted() && LogFile::is_sealed_name(&file.name);
        let (lent, copied): (Vec<_>, Vec<_>) = snapshot.files.iter().partition(|file| is_lent(file));
        let total = copied.iter().fold(0u64, |sum, file| sum.saturating_add(file.len));
        let damages = parallel::for_each(&copied, total, listener, |file, progress| {
            let path = from.path_of(&snapshot.account, file);
            let out = disk.open(&log_dir.join(&file.name), OpenMode::CreateNew)?;
            let damage = match from.unpack_file(&snapshot.account, file, &*out) {
                // Without its file the log still has what is in the others.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    disk.remove(&log_dir.join(&file.name))?;
                    Some(missing(&path))
                }
                unpacked => unpacked.map_err(|error| error.context(path.display()))?,
            };
            if becomes_account {
                out.sync_data()?;
            }
            Ok(progress(file.len).is_continue().then_some(damage))
        })?;
        let Some(damages) = damages else {
            report.was_stopped = true;
            return Ok(None);
        };
        report.damaged.extend(damages.into_iter().flatten());
        if becomes_account {
            disk.sync_dir(&log_dir)?;
            disk.sync_dir(dir)?;
            return Ok(Some(self.env().clone()));
        }
        let mut loans = BTreeMap::new();
        for file in lent {
            let path = from.path_of(&snapshot.account, file);
            match disk.exists(&path)? {
                true => drop(loans.insert(log_dir.join(&file.name), path)),
                false => report.damaged.push(missing(&path)),
            }
        }
        let lending = LendingDisk::new(Arc::clone(&self.env().disk), loans);
        Ok(Some(Env { disk: Arc::new(lending), ..self.env().clone() }))
    }

    /// Makes what was unpacked an account of the store's own format: the octets that were in files come into its log, or those of one mailbox if
    /// nothing else is wanted.
    fn take_in_octets(
        &self,
        from: &Repository,
        snapshot: &Snapshot,
        (dir, log): (&Path, &Arc<Log>),
        only: Option<&MailboxName>,
        report: &mut RestoreReport,
    ) -> Result<()> {
        let state = log.state();
        let is_wanted = |mailbox: &index::Mailbox| only.is_none_or(|only| mailbox.name() == only);
        let wanted = state.mailboxes().filter(|mailbox| is_wanted(mailbox));
        let wanted: HashSet<EmailId> =
            wanted.flat_map(|mailbox| mailbox.foreign(&state)).map(|(row, _)| row.email_id).collect();
        for file in snapshot.octets.iter().filter(|_| !wanted.is_empty()) {
            let path = from.path_of(&snapshot.account, file);
            let pack = match file.is_encrypted() {
                true => self.decrypted_pack(from, &snapshot.account, file, dir, report),
                false => octets::Pack::open(&*self.env().disk, &path),
            };
            match pack.and_then(|pack| octets::take_in(log, &pack, &wanted)) {
                Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => {
                    report.damaged.push(format!("{}: {error}", path.display()));
                }
                taken => taken?,
            }
        }
        let state = log.state();
        let mut lost = 0u64;
        log.commit(|transaction| {
            for mailbox in state.mailboxes() {
                let gone: UidSet = mailbox.foreign(&state).map(|(row, _)| row.uid.get()).collect();
                if is_wanted(mailbox) {
                    lost += gone.iter().count() as u64;
                }
                transaction.expunge(mailbox.id(), &gone)?;
            }
            crate::convert::forget_files(transaction)
        })?;
        if lost > 0 {
            report.damaged.push(format!("{lost} messages had left their files before they could be saved"));
        }
        Ok(())
    }

    /// A pack of an encrypted backup, from a file in `dir` that has no name any more.
    fn decrypted_pack(
        &self,
        from: &Repository,
        account: &AccountName,
        file: &SnapshotFile,
        dir: &Path,
        report: &mut RestoreReport,
    ) -> Result<octets::Pack> {
        let (disk, path) = (&*self.env().disk, dir.join(&file.name));
        let out = disk.open(&path, OpenMode::CreateNew)?;
        report.damaged.extend(from.unpack_file(account, file, &*out)?);
        let pack = octets::Pack::open(disk, &path);
        disk.remove(&path)?;
        pack
    }

    /// Makes what was unpacked the account, with everything that it had.
    fn take_over(&self, dir: &Path, log: Arc<Log>, name: &AccountName, report: &mut RestoreReport) -> Result<()> {
        log.commit(|transaction| {
            transaction.skip_modseqs(MODSEQS_SKIPPED);
            let mailboxes: Vec<_> = transaction.state().mailboxes().cloned().collect();
            for mailbox in mailboxes {
                report.mailboxes += 1;
                report.restored += u64::from(mailbox.exists());
                if let Some(next) = mailbox.uidnext().and_then(after_skipped) {
                    transaction.skip_uids(mailbox.id(), next)?;
                }
            }
            Ok(())
        })?;
        log.close()?;
        drop(log);
        self.adopt_directory(dir, name)
    }

    /// Brings messages from what was unpacked into an account.
    fn merge(
        &self,
        (log, slot): (Arc<Log>, Arc<ForeignSlot>),
        options: &RestoreOptions,
        choice: Option<&Choice<'_>>,
        listener: Listener<'_>,
        report: &mut RestoreReport,
    ) -> Result<()> {
        let state = log.state();
        let source = choice.map(|_| self.account_on(&options.account, Arc::clone(&log), slot)).transpose()?;
        let mailboxes: Vec<Arc<index::Mailbox>> = match &options.mailbox {
            None => state.mailboxes().cloned().collect(),
            Some(name) => {
                let no_such = || Error::new(ErrorKind::NotFound, format!("the snapshot has no mailbox {name}"));
                vec![Arc::clone(state.mailbox_named(name).ok_or_else(no_such)?)]
            }
        };
        if report.account_is_new {
            self.create_account(&options.account)?;
        }
        let account = self.account(&options.account)?;
        for mailbox in mailboxes {
            let mut wanted = None;
            if let (Some(choice), Some(source)) = (choice, &source) {
                let uids = choice(source, &source.view(mailbox.id(), false)?)?;
                if uids.is_empty() {
                    continue;
                }
                wanted = Some(uids);
            }
            let target = match &options.into {
                Some(name) => Target::Beside(name.clone()),
                None => Target::Same,
            };
            Merge { from: &log, account: &account, report: &mut *report }.mailbox(
                &mailbox,
                wanted.as_ref(),
                &target,
                listener,
            )?;
            report.mailboxes += 1;
            if report.was_stopped {
                break;
            }
        }
        Ok(())
    }
}

/// The UID that comes first when so many are left out. `None` near the end, where none can be spared.
pub(super) fn after_skipped(next: Uid) -> Option<Uid> {
    next.get().checked_add(UIDS_SKIPPED).and_then(Uid::new)
}

fn missing(path: &Path) -> String {
    format!("{}: missing", path.display())
}

fn note_damage(log: &Log, report: &mut RestoreReport) {
    let describe = |finding: index::Finding| {
        let file = PathBuf::from(finding.file.file_name().unwrap_or_default());
        format!("{} at {}: {}", file.display(), finding.offset, finding.what)
    };
    report.damaged.extend(log.damage().into_iter().map(describe));
}
