//! Making a snapshot: what is not there yet is copied, then the manifest says so.

use index::LogFile;
use model::{AccountName, Error, ErrorKind, Result};
use platform::OpenMode;

use super::keys::Marker;
use super::manifest::ENCRYPTED;
use super::parallel::{self, Progress};
use super::{Listener, PIECE_BYTES, Repository, Snapshot, SnapshotFile, UNFINISHED, list, octets, stored};
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
        let marker =
            self.recipients.as_ref().map(|recipients| Marker::of(account, &self.env, recipients)).transpose()?;
        let marker = marker.as_ref();
        let log = if account.format()? == AccountFormat::Sql {
            let Some(shadow) = convert::shadow(account, listener)? else { return Ok(None) };
            shadow
        } else {
            refresh(account)?;
            account.inner.log()
        };
        let log = log.files()?;
        // Not older than the files: what is in it and not in them is copied in vain.
        let outside = octets::needed(&account.inner.state());
        let total = log.files.iter().map(|file| file.len).sum();
        let copies = parallel::for_each(&log.files, total, listener, |file, progress| {
            let ending = ending_of(file, marker)?;
            if let Some(copy) = self.copy_of(name, file, &ending, &known)? {
                return Ok(progress(file.len).is_continue().then_some((copy, false)));
            }
            Ok(self.copy(name, file, ending, progress)?.map(|copy| (copy, true)))
        })?;
        let Some(copies) = copies else { return Ok(None) };
        let new = copies.iter().filter(|(_, is_new)| *is_new).map(|(copy, _)| copy.len);
        let (mut copied_files, mut copied_bytes) = (new.clone().count() as u64, new.sum());
        let files = copies.into_iter().map(|(copy, _)| copy).collect();
        let Some(octets) = self.save_octets(account, &outside, &known, marker, listener)? else { return Ok(None) };
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
        marker: Option<&Marker>,
        listener: Listener<'_>,
    ) -> Result<Option<SavedOctets>> {
        let (name, disk) = (account.name(), &*self.env.disk);
        let mut saved = SavedOctets::default();
        if outside.is_empty() {
            return Ok(Some(saved));
        }
        let (used, missing) = octets::covering(self.packs(name, known, marker.is_some())?, outside, marker);
        saved.packs = used;
        let total: u64 = missing.values().map(|known| u64::from(known.octets)).sum();
        let (mut done, mut missing) = (0, missing.into_iter().peekable());
        let mut reader = account.inner.log().reader();
        while let Some((first, _)) = missing.peek() {
            let stem = format!("{}{:016x}-{:016x}", octets::PREFIX, first.0, self.env.random.u64());
            let unfinished = self.files_dir(name).join(format!("{UNFINISHED}{stem}"));
            let out = disk.open(&unfinished, OpenMode::CreateNew)?;
            let mut writer = octets::PackWriter::new(stored::Writer::new(&*out, self.recipients.as_ref())?);
            while writer.octets < octets::PACK_BYTES
                && let Some((id, known)) = missing.next()
            {
                writer.push(&mut reader, id, &known)?;
                done += u64::from(known.octets);
                if listener(done, total).is_break() {
                    return Ok(None);
                }
            }
            if writer.table.is_empty() {
                disk.remove(&unfinished)?;
                continue;
            }
            let (table, len, sha256) = writer.finish()?;
            let ending = if marker.is_some() { ENCRYPTED.to_owned() } else { String::new() };
            let pack = SnapshotFile { name: stem, len, sha256, ending };
            let path = self.path_of(name, &pack);
            if let Some(marker) = marker {
                // Before the pack has its name: one without a list would be written again.
                let temporary = self.files_dir(name).join(format!("{UNFINISHED}list"));
                disk.replace_file(&octets::list_path(&path), &temporary, &octets::list_of(&table, marker))?;
            }
            disk.rename(&unfinished, &path)?;
            saved.copied_files += 1;
            saved.copied_bytes += len;
            saved.packs.push(pack);
        }
        Ok(Some(saved))
    }

    /// The packs that are there and what they have. One that is damaged counts for nothing; `verify` says so.
    fn packs(
        &self,
        account: &AccountName,
        known: &[String],
        is_encrypted: bool,
    ) -> Result<Vec<(SnapshotFile, octets::Contents)>> {
        let disk = &*self.env.disk;
        let mut packs = Vec::new();
        for stored in known.iter().filter(|name| name.starts_with(octets::PREFIX)) {
            let ending = if is_encrypted { ENCRYPTED } else { "" };
            let Some((stem, sha256)) = stored.strip_suffix(ending).and_then(|name| name.rsplit_once('.')) else {
                continue;
            };
            let path = self.files_dir(account).join(stored);
            let contents = match is_encrypted {
                true => octets::read_list(disk, &path).map(octets::Contents::Marks),
                false => octets::Pack::open(disk, &path).map(|pack| octets::Contents::Table(pack.table)),
            };
            let Ok(contents) = contents else { continue };
            let [name, sha256, ending] = [stem, sha256, ending].map(str::to_owned);
            packs.push((SnapshotFile { name, len: disk.metadata(&path)?.len, sha256, ending }, contents));
        }
        Ok(packs)
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
    fn copy_of(
        &self,
        account: &AccountName,
        file: &LogFile,
        ending: &str,
        known: &[String],
    ) -> Result<Option<SnapshotFile>> {
        if !file.is_sealed {
            return Ok(None);
        }
        let prefix = format!("{}.", file.name);
        for name in known {
            let Some(sha256) = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(ending)) else { continue };
            let mut copy =
                SnapshotFile { name: file.name.clone(), len: 0, sha256: sha256.to_owned(), ending: ending.to_owned() };
            let stored = self.env.disk.open(&self.path_of(account, &copy), OpenMode::Read)?;
            copy.len = stored.len()?;
            // The mark says that it is the same; without one the ends are compared.
            if copy.is_encrypted() || (copy.len == file.len && last_bytes(file)? == last_bytes_of(&*stored)?) {
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
        ending: String,
        progress: Progress<'_>,
    ) -> Result<Option<SnapshotFile>> {
        let disk = &self.env.disk;
        let unfinished = self.files_dir(account).join(format!("{UNFINISHED}{}", file.name));
        let out = disk.open(&unfinished, OpenMode::CreateNew)?;
        let mut writer = stored::Writer::new(&*out, self.recipients.as_ref())?;
        let mut piece = vec![0; PIECE_BYTES.min(file.len) as usize];
        let mut at = 0;
        while at < file.len {
            piece.resize(PIECE_BYTES.min(file.len - at) as usize, 0);
            file.read_exact_at(&mut piece, at)
                .map_err(|error| error.context(format!("reading {} of {account}", file.name)))?;
            writer.write(&piece)?;
            at += piece.len() as u64;
            if progress(piece.len() as u64).is_break() {
                return Ok(None);
            }
        }
        let (len, sha256) = writer
            .finish()
            .map_err(|error| Error::new(ErrorKind::Io, format!("{} was not written: {error}", unfinished.display())))?;
        let copy = SnapshotFile { name: file.name.clone(), len, sha256, ending };
        disk.rename(&unfinished, &self.path_of(account, &copy))?;
        Ok(Some(copy))
    }
}

/// What the name of a file's copy ends with: the mark of a sealed file is over its name, its length and its end, which has the checksums of
/// everything else.
fn ending_of(file: &LogFile, marker: Option<&Marker>) -> Result<String> {
    let Some(marker) = marker else { return Ok(String::new()) };
    if !file.is_sealed {
        return Ok(ENCRYPTED.to_owned());
    }
    let mark = marker.mark(&[file.name.as_bytes(), b"\n", &file.len.to_le_bytes(), &last_bytes(file)?]);
    Ok(format!(".{}{ENCRYPTED}", super::hex(&mark)))
}

fn last_bytes(file: &LogFile) -> Result<Vec<u8>> {
    let at = file.len.saturating_sub(COMPARED_BYTES);
    let mut bytes = vec![0; (file.len - at) as usize];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

fn last_bytes_of(file: &dyn platform::File) -> Result<Vec<u8>> {
    let len = file.len()?;
    let at = len.saturating_sub(COMPARED_BYTES);
    let mut bytes = vec![0; (len - at) as usize];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}
