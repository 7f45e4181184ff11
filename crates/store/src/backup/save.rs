//! Making a snapshot: what is not there yet is copied, then the manifest says so.

use index::LogFile;
use model::{AccountName, Error, ErrorKind, Result};
use platform::OpenMode;
use sha2::{Digest, Sha256};

use super::octets;
use super::{Listener, PIECE_BYTES, Repository, Snapshot, SnapshotFile, UNFINISHED, hex, list};
use crate::{Account, AccountFormat, convert};

/// At the end of a segment stands what it is made of, with checksums: that much is compared before a copy is believed to be one.
const COMPARED_BYTES: u64 = 4096;

/// What [`Repository::save`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveReport {
    /// What there is now.
    pub snapshot: Snapshot,
    /// Files that were copied; the others were there.
    pub copied_files: u64,
    /// Their octets.
    pub copied_bytes: u64,
}

/// What [`Repository::save_octets`] did.
#[derive(Default)]
struct SavedOctets {
    packs: Vec<SnapshotFile>,
    copied_files: u64,
    copied_bytes: u64,
}

/// Takes in what other programs did; what is locked just now is taken as it was known.
fn refresh(account: &Account) -> Result<()> {
    for id in account.mailboxes().into_iter().filter_map(|info| info.id) {
        match account.refresh(id) {
            Err(error) if !matches!(error.kind(), ErrorKind::InUse | ErrorKind::NotFound) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

impl Repository {
    /// Adds a snapshot of an account as it is durably at this moment. Sessions go on meanwhile. [`ErrorKind::InUse`] while another process
    /// writes to the directory; `None` when the listener has ended it. Of an account in a database a log is kept beside what this
    /// node knows of it, which follows it; that is what is saved.
    pub fn save(&self, account: &Account, listener: Listener<'_>) -> Result<Option<SaveReport>> {
        let _alone = self.writing()?;
        let (name, disk) = (account.name(), &self.env.disk);
        disk.create_dir_all_durable(&self.files_dir(name))?;
        disk.create_dir_all_durable(&self.snapshots_dir(name))?;
        let known = self.clear_away(name)?;
        let shadow = if account.format()? == AccountFormat::Sql {
            let Some(shadow) = convert::shadow(account, listener)? else { return Ok(None) };
            shadow
        } else {
            refresh(account)?;
            account.inner.log()
        };
        let log = shadow.files()?;
        // Not older than the files: what is in it and not in them is copied in vain.
        let outside = octets::needed(&account.inner.state());
        let total = log.files.iter().map(|file| file.len).sum();
        let mut done = 0;
        let mut files = Vec::with_capacity(log.files.len());
        let (mut copied_files, mut copied_bytes) = (0, 0);
        for file in &log.files {
            let copy = match self.copy_of(name, file, &known)? {
                Some(copy) => copy,
                None => match self.copy(name, file, &mut |bytes| listener(done + bytes, total))? {
                    Some(copy) => {
                        (copied_files, copied_bytes) = (copied_files + 1, copied_bytes + copy.len);
                        copy
                    }
                    None => return Ok(None),
                },
            };
            files.push(copy);
            done += file.len;
            if listener(done, total).is_break() {
                return Ok(None);
            }
        }
        let Some(octets) = self.save_octets(account, &outside, &known, listener)? else { return Ok(None) };
        copied_files += octets.copied_files;
        copied_bytes += octets.copied_bytes;
        // The names of files that an interrupted backup has left may not be durable either.
        disk.sync_dir(&self.files_dir(name))?;
        let time = self.env.clock.now().seconds;
        let ids = self.ids(name)?;
        let id = (0..).map(|nth| Snapshot::id_of(time, nth)).find(|id| !ids.contains(id)).unwrap_or_default();
        let snapshot = Snapshot { id, account: name.clone(), time, frame: log.frame, files, octets: octets.packs };
        let dir = self.snapshots_dir(name);
        disk.replace_file(&dir.join(&snapshot.id), &dir.join(format!("{UNFINISHED}snapshot")), &snapshot.write())?;
        Ok(Some(SaveReport { snapshot, copied_files, copied_bytes }))
    }

    /// Sees to it that every message of `outside` is in a pack. `None`: the listener has ended it; packs that are whole stay.
    fn save_octets(
        &self,
        account: &Account,
        outside: &octets::Messages,
        known: &[String],
        listener: Listener<'_>,
    ) -> Result<Option<SavedOctets>> {
        let (name, disk) = (account.name(), &*self.env.disk);
        let mut saved = SavedOctets::default();
        if outside.is_empty() {
            return Ok(Some(saved));
        }
        let mut packs = Vec::new();
        for stored in known.iter().filter(|name| name.starts_with(octets::PREFIX)) {
            let Some((stem, sha256)) = stored.rsplit_once('.') else { continue };
            let path = self.files_dir(name).join(stored);
            // One that is damaged counts for nothing; `verify` says so.
            let Ok(pack) = octets::Pack::open(disk, &path) else { continue };
            let len = disk.metadata(&path)?.len;
            packs.push((SnapshotFile { name: stem.to_owned(), len, sha256: sha256.to_owned() }, pack));
        }
        let (used, missing) = octets::covering(packs.iter().map(|(file, pack)| (file, pack)), outside);
        saved.packs = used;
        let total: u64 = missing.values().map(|known| u64::from(known.octets)).sum();
        let (mut done, mut missing) = (0, missing.into_iter().peekable());
        let mut reader = account.inner.log().reader();
        while let Some((first, _)) = missing.peek() {
            let stem = format!("{}{:016x}-{:016x}", octets::PREFIX, first.0, self.env.random.u64());
            let unfinished = self.files_dir(name).join(format!("{UNFINISHED}{stem}"));
            let out = disk.open(&unfinished, OpenMode::CreateNew)?;
            let mut writer = octets::PackWriter::new(&*out);
            while writer.octets < octets::PACK_BYTES
                && let Some((id, known)) = missing.next()
            {
                writer.push(&mut reader, id, &known)?;
                done += u64::from(known.octets);
                if listener(done, total).is_break() {
                    return Ok(None);
                }
            }
            if writer.messages == 0 {
                drop(out);
                disk.remove(&unfinished)?;
                continue;
            }
            let len = writer.finish()?;
            out.sync_data()?;
            let (_, sha256) = super::read_through(disk, &unfinished, &mut |_, _| Ok(()))?;
            let pack = SnapshotFile { name: stem, len, sha256 };
            disk.rename(&unfinished, &self.path_of(name, &pack))?;
            saved.copied_files += 1;
            saved.copied_bytes += len;
            saved.packs.push(pack);
        }
        Ok(Some(saved))
    }

    /// The files that are there, without those that were never finished.
    fn clear_away(&self, account: &AccountName) -> Result<Vec<String>> {
        let (dir, disk) = (self.files_dir(account), &*self.env.disk);
        let mut names = list(disk, &dir)?;
        for name in names.extract_if(.., |name| name.starts_with(UNFINISHED)) {
            disk.remove(&dir.join(name))?;
        }
        Ok(names)
    }

    /// The copy of a sealed file that an earlier backup has made, also one that never came to its manifest.
    fn copy_of(&self, account: &AccountName, file: &LogFile, known: &[String]) -> Result<Option<SnapshotFile>> {
        if !file.is_sealed {
            return Ok(None);
        }
        let prefix = format!("{}.", file.name);
        for sha256 in known.iter().filter_map(|name| name.strip_prefix(&prefix)) {
            let copy = SnapshotFile { name: file.name.clone(), len: file.len, sha256: sha256.to_owned() };
            let stored = self.env.disk.open(&self.path_of(account, &copy), OpenMode::Read)?;
            if stored.len()? != file.len {
                continue;
            }
            // An account that was deleted and made anew may have used the same name for something else.
            let at = file.len.saturating_sub(COMPARED_BYTES);
            let (mut ours, mut theirs) = (vec![0; (file.len - at) as usize], vec![0; (file.len - at) as usize]);
            file.read_exact_at(&mut ours, at)?;
            stored.read_exact_at(&mut theirs, at)?;
            if ours == theirs {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    /// Copies a file; the octets are durable then, the name not yet. `None`: the listener has ended it.
    fn copy(
        &self,
        account: &AccountName,
        file: &LogFile,
        listener: &mut dyn FnMut(u64) -> std::ops::ControlFlow<()>,
    ) -> Result<Option<SnapshotFile>> {
        let disk = &self.env.disk;
        let unfinished = self.files_dir(account).join(format!("{UNFINISHED}{}", file.name));
        let out = disk.open(&unfinished, OpenMode::CreateNew)?;
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE_BYTES.min(file.len) as usize];
        let mut at = 0;
        while at < file.len {
            piece.resize(PIECE_BYTES.min(file.len - at) as usize, 0);
            file.read_exact_at(&mut piece, at)
                .map_err(|error| error.context(format!("reading {} of {account}", file.name)))?;
            hash.update(&piece);
            out.write_at(&piece, at)?;
            at += piece.len() as u64;
            if listener(at).is_break() {
                return Ok(None);
            }
        }
        out.sync_data()
            .map_err(|error| Error::new(ErrorKind::Io, format!("{} was not written: {error}", unfinished.display())))?;
        let copy = SnapshotFile { name: file.name.clone(), len: file.len, sha256: hex(hash) };
        disk.rename(&unfinished, &self.path_of(account, &copy))?;
        Ok(Some(copy))
    }
}
