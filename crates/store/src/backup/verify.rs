//! Reading everything back, and forgetting what is old.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use model::{AccountName, ErrorKind, Result};

use super::{Listener, Repository, Snapshot, SnapshotFile, list, read_through};

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
    /// Reads every file that the snapshots of an account need and compares it with its length and its digest. Changes nothing.
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
        for (path, (file, snapshots)) in needed {
            report.files += 1;
            let what = match read_through(&*self.env.disk, &path, &mut |_, _| Ok(())) {
                Ok((len, digest)) => {
                    report.bytes += len;
                    match (len == file.len, digest == file.sha256) {
                        (true, true) => None,
                        (false, _) => Some(format!("it has {len} octets instead of {}", file.len)),
                        (_, false) => Some("its octets are not those that were saved".to_owned()),
                    }
                }
                Err(error) => Some(format!("it cannot be read: {error}")),
            };
            if let Some(what) = what {
                report.findings.push(BackupFinding { file: path, snapshots, what });
            }
            if listener(report.bytes, total).is_break() {
                report.was_stopped = true;
                break;
            }
        }
        Ok(report)
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
        let needed: BTreeSet<PathBuf> =
            kept.iter().flat_map(Snapshot::all_files).map(|file| self.path_of(account, file)).collect();
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
