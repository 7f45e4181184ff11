//! Reading everything back, and forgetting what is old.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use model::{AccountName, ErrorKind, Result};

use super::parallel;
use super::{Listener, Repository, Snapshot, SnapshotFile, list, octets, stored};

/// Something that is wrong with a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFinding {
    /// The file.
    pub file: PathBuf,
    /// The snapshots that need it, or that it is.
    pub snapshots: Vec<String>,
    /// What is wrong.
    pub what: String,
}

/// What [`Repository::verify`] looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Manifests.
    pub snapshots: u64,
    /// Files that they need.
    pub files: u64,
    /// Octets that were read.
    pub bytes: u64,
    /// What is wrong; empty when all is well.
    pub findings: Vec<BackupFinding>,
    /// The listener has ended it.
    pub was_stopped: bool,
}

impl Repository {
    /// Reads every file that the snapshots of an account need and compares it with its length and its digest; with identities it decrypts them
    /// as well. Changes nothing. [`ErrorKind::Invalid`] when no identity fits.
    pub fn verify(&self, account: &AccountName, listener: Listener<'_>) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let mut needed: BTreeMap<PathBuf, (SnapshotFile, Vec<String>)> = BTreeMap::new();
        for id in self.ids(account)? {
            report.snapshots += 1;
            match self.snapshot(account, &id) {
                Ok(snapshot) => {
                    for file in snapshot.files.into_iter().chain(snapshot.octets) {
                        let entry = needed.entry(self.path_of(account, &file));
                        entry.or_insert_with(|| (file, Vec::new())).1.push(id.clone());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    let (file, what) = (self.snapshots_dir(account).join(&id), error.details().to_owned());
                    report.findings.push(BackupFinding { file, snapshots: vec![id], what });
                }
                Err(error) => return Err(error),
            }
        }
        let total = needed.values().fold(0u64, |sum, (file, _)| sum.saturating_add(file.len));
        let needed: Vec<(PathBuf, (SnapshotFile, Vec<String>))> = needed.into_iter().collect();
        let identities = self.identities.as_ref().filter(|_| self.is_encrypted);
        // What was read by then is told also when it is ended.
        let read = Mutex::new(BTreeMap::new());
        let whole = parallel::for_each(&needed, total, listener, |(path, (file, _)), progress| {
            let mut has_ended = false;
            let found = stored::read(&*self.env.disk, path, identities, &mut |piece, _| {
                has_ended |= progress(piece.len() as u64).is_break();
                Ok(())
            });
            let what = match &found {
                Ok(found) => found.damage(file.len, &file.sha256, path)?.or_else(|| self.damage_of_list(file, path)),
                Err(error) => Some(format!("it cannot be read: {error}")),
            };
            let bytes = found.map_or(0, |found| found.len);
            read.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), (bytes, what));
            Ok((!has_ended).then_some(()))
        })?;
        report.was_stopped = whole.is_none();
        let mut read = read.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (path, (_, snapshots)) in &needed {
            let Some((bytes, what)) = read.remove(path) else { continue };
            report.files += 1;
            report.bytes += bytes;
            let finding = |what| BackupFinding { file: path.clone(), snapshots: snapshots.clone(), what };
            report.findings.extend(what.map(finding));
        }
        Ok(report)
    }

    /// What is wrong with the list of an encrypted pack.
    fn damage_of_list(&self, file: &SnapshotFile, path: &Path) -> Option<String> {
        if !file.is_encrypted() || !file.name.starts_with(octets::PREFIX) {
            return None;
        }
        let list = octets::read_list(&*self.env.disk, path);
        list.err().map(|error| format!("its list is damaged or missing, and its messages will be saved again: {error}"))
    }

    /// Removes all snapshots of an account but the newest `keep` (at least one), and the files that only they needed. Gives those that are
    /// gone. Nothing is removed while a manifest is damaged: it is not known then what it needs.
    pub fn forget(&self, account: &AccountName, keep: usize) -> Result<Vec<Snapshot>> {
        let _alone = self.writing()?;
        let disk = &*self.env.disk;
        let mut gone = self.snapshots(account)?;
        let kept = gone.split_off(gone.len().saturating_sub(keep.max(1)));
        for snapshot in &gone {
            disk.remove(&self.snapshots_dir(account).join(&snapshot.id))?;
        }
        // A manifest that a power cut brings back must find its files.
        disk.sync_dir(&self.snapshots_dir(account))?;
        let mut needed: BTreeSet<PathBuf> =
            kept.iter().flat_map(Snapshot::all_files).map(|file| self.path_of(account, file)).collect();
        needed.extend(
            kept.iter()
                .flat_map(|snapshot| &snapshot.octets)
                .filter(|pack| pack.is_encrypted())
                .map(|pack| octets::list_path(&self.path_of(account, pack))),
        );
        let dir = self.files_dir(account);
        for name in list(disk, &dir)? {
            let path = dir.join(name);
            if !needed.contains(&path) {
                disk.remove(&path)?;
            }
        }
        disk.sync_dir(&dir)?;
        Ok(gone)
    }
}
