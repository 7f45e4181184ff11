//! What is kept in a few octets beside the log: the intent of an append, the amount of filler. Byte tables: `docs/format-mbox.md`.

use std::path::Path;

use model::Result;
use platform::{Disk, File, Metadata, OpenMode, SECTOR_BYTES, parent_of};

use crate::format::mbox::from_line::PREFIX;

const INTENT_MAGIC: [u8; 8] = *b"MYAPPN\x01\n";
const FILLER_MAGIC: [u8; 8] = *b"MYFILL\x01\n";
const INTENT_BYTES: usize = 52;
const AT_ONCE_MAGIC: [u8; 8] = *b"MYAPPO\x01\n";
const AT_ONCE_HEAD_BYTES: usize = 40;
/// So many octets at most are in an intent themselves: writing them twice costs less than the two syncs that it saves.
pub(super) const AT_ONCE_BYTES_MAX: usize = 64 << 10;
/// How much before the end of the file says that it is the one of the intent, octets.
pub(super) const BEFORE_BYTES: u64 = 4096;

/// Numbers behind a magic, and their checksum.
fn encode(magic: [u8; 8], numbers: &[u64]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

/// The numbers, when everything is right.
fn decode<const N: usize>(magic: [u8; 8], bytes: &[u8]) -> Option<[u64; N]> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    let cells = body.strip_prefix(magic.as_slice())?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*crc) || cells.len() != N * 8 {
        return None;
    }
    let mut numbers = [0; N];
    for (number, cell) in numbers.iter_mut().zip(cells.chunks_exact(8)) {
        *number = u64::from_le_bytes(cell.try_into().ok()?);
    }
    Some(numbers)
}

/// What is being added to a file.
///
/// It is saved twice: before the file grows, and before it is written to. Until the second everything that the file has grown by is zeros, so
/// that what others add is told from it; from then on all of it is ours, up to where it was to grow. Or once, with the octets: then what is
/// ours is told by these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intent {
    /// The file.
    device: u64,
    inode: u64,
    /// Its length before.
    pub(super) from: u64,
    /// And after.
    pub(super) to: u64,
    /// Checksum of the [`BEFORE_BYTES`] before `from`: another program that changed the file would have moved them.
    before: u32,
}

/// How far it is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The file may have grown, or not.
    Grow,
    /// It has.
    Write,
    /// It may have grown, or not, and these octets may have been written there, or any part of them.
    AtOnce(Vec<u8>),
}

impl Stage {
    /// The first two have a sector of their own each, so that neither is torn by the other.
    fn place(&self) -> u64 {
        match self {
            Stage::Grow | Stage::AtOnce(_) => 0,
            Stage::Write => SECTOR_BYTES,
        }
    }
}

impl Intent {
    pub(super) fn new(file: &dyn File, from: u64, to: u64) -> Result<Intent> {
        let Metadata { device, inode, .. } = file.metadata()?;
        Ok(Intent { device, inode, from, to, before: before(file, from)? })
    }

    /// Whether it speaks of this file, and the file reaches to where it was to grow.
    pub(super) fn is_of(&self, file: &dyn File) -> Result<bool> {
        let Metadata { device, inode, len, .. } = file.metadata()?;
        Ok((device, inode) == (self.device, self.inode) && len >= self.from)
    }

    /// Whether such a file is as it was up to where it was to grow.
    pub(super) fn fits(&self, file: &dyn File) -> Result<bool> {
        Ok(before(file, self.from)? == self.before)
    }

    /// Up to where the file has what is ours, or has grown by, in [`Stage::AtOnce`]: octets of the intent, and zeros.
    ///
    /// Others may have added mail since. It stands where the file ended then: where it ended before, at a border of sectors, or behind all that
    /// is ours; and it may begin as what is ours does. What others have changed in it is theirs, as they have seen it as a whole.
    pub(super) fn reach(&self, file: &dyn File, octets: &[u8]) -> Result<u64> {
        let end = self.to.min(file.len()?);
        let len = usize::try_from(end.saturating_sub(self.from)).unwrap_or(usize::MAX).min(octets.len());
        let mut found = vec![0; len];
        file.read_exact_at(&mut found, self.from)?;
        let Some(other) = found.iter().zip(octets).position(|(found, ours)| *found != 0 && found != ours) else {
            return Ok(self.from + len as u64);
        };
        let border = ((self.from + other as u64) / SECTOR_BYTES * SECTOR_BYTES).max(self.from);
        let mut theirs = [0; 16];
        let len = file.read_at(&mut theirs, border)?;
        let theirs = theirs.get(..len).unwrap_or_default();
        let line_ends = theirs.iter().take_while(|octet| matches!(octet, b'\r' | b'\n')).count();
        let is_mail = theirs.get(line_ends..).is_some_and(|theirs| theirs.starts_with(PREFIX));
        Ok(if is_mail { border } else { self.from })
    }

    /// Makes it durable: the file is going to grow, or it is going to be written to. `is_named`: so is the name of the file of intents, if it
    /// is there.
    pub(super) fn save(&self, disk: &dyn Disk, path: &Path, stage: &Stage, is_named: bool) -> Result<()> {
        let is_named = is_named && disk.exists(path)?;
        let file = disk.open(path, OpenMode::Create)?;
        file.write_at(&self.encode(stage), stage.place())?;
        file.sync_data()?;
        if is_named { Ok(()) } else { Ok(disk.sync_dir(parent_of(path))?) }
    }

    fn encode(&self, stage: &Stage) -> Vec<u8> {
        let numbers = [self.device, self.inode, self.from, self.to, u64::from(self.before)];
        match stage {
            Stage::Grow | Stage::Write => encode(INTENT_MAGIC, &numbers),
            Stage::AtOnce(octets) => {
                let mut bytes = AT_ONCE_MAGIC.to_vec();
                numbers.iter().take(4).for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
                bytes.extend_from_slice(octets);
                let crc = crc32c::crc32c(&bytes);
                bytes.extend_from_slice(&crc.to_le_bytes());
                bytes
            }
        }
    }

    /// The one that is there. A torn one was never followed by anything.
    pub(super) fn load(disk: &dyn Disk, path: &Path) -> Result<Option<(Intent, Stage)>> {
        let Some(bytes) = read(disk, path)? else { return Ok(None) };
        let at = |stage: Stage| {
            let place = stage.place() as usize;
            let record = bytes.get(place..place + INTENT_BYTES)?;
            let [device, inode, from, to, before] = decode(INTENT_MAGIC, record)?;
            Some((Intent { device, inode, from, to, before: u32::try_from(before).ok()? }, stage))
        };
        Ok(at(Stage::Write).or_else(|| at(Stage::Grow)).or_else(|| Intent::at_once(&bytes)))
    }

    /// One that has the octets themselves.
    fn at_once(bytes: &[u8]) -> Option<(Intent, Stage)> {
        let (head, _) = bytes.split_at_checked(AT_ONCE_HEAD_BYTES)?;
        let mut cells = head.strip_prefix(AT_ONCE_MAGIC.as_slice())?.chunks_exact(8);
        let mut number = || cells.next()?.try_into().ok().map(u64::from_le_bytes);
        let (device, inode, from, to) = (number()?, number()?, number()?, number()?);
        let len = usize::try_from(to.checked_sub(from)?).ok().filter(|len| *len <= AT_ONCE_BYTES_MAX)?;
        let (body, crc) = bytes.get(..AT_ONCE_HEAD_BYTES + len + 4)?.split_last_chunk::<4>()?;
        let octets = body.get(AT_ONCE_HEAD_BYTES..)?.to_vec();
        let is_whole = crc32c::crc32c(body) == u32::from_le_bytes(*crc);
        is_whole.then_some((Intent { device, inode, from, to, before: 0 }, Stage::AtOnce(octets)))
    }

    /// It is fulfilled or given up, durably. The file stays, so that the next one costs no sync of the directory.
    pub(super) fn clear(disk: &dyn Disk, path: &Path) -> Result<()> {
        let file = match disk.open(path, OpenMode::ReadWrite) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if file.len()? > 0 {
            file.set_len(0)?;
            if let Err(error) = file.sync_data() {
                // It may come back; with an octet, which is no intent, whoever clears it next does not take it for cleared.
                let _ = file.set_len(1);
                return Err(error.into());
            }
        }
        Ok(())
    }
}

fn before(file: &dyn File, at: u64) -> Result<u32> {
    let start = at.saturating_sub(BEFORE_BYTES);
    let mut bytes = vec![0; (at - start) as usize];
    file.read_exact_at(&mut bytes, start)?;
    Ok(crc32c::crc32c(&bytes))
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>> {
    match disk.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How much filler a file has, octets, as far as it is known. Only a hint: others may take some out, or add some.
pub(super) fn load_filler(disk: &dyn Disk, path: &Path) -> Result<u64> {
    let bytes = read(disk, path)?;
    Ok(bytes.and_then(|bytes| decode::<1>(FILLER_MAGIC, &bytes)).map_or(0, |[filler]| filler))
}

/// Remembers that. Not durable: it is a hint.
pub(super) fn save_filler(disk: &dyn Disk, path: &Path, filler: u64) -> Result<()> {
    Ok(disk.open(path, OpenMode::Create)?.write_at(&encode(FILLER_MAGIC, &[filler]), 0)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::format::format_doc::hold;

    #[test]
    fn as_documented() {
        let intent = Intent { device: 11, inode: 12, from: 13, to: 14, before: 15 };
        let magic = u64::from_le_bytes(INTENT_MAGIC);
        let fields = [("magic", magic), ("device", 11), ("inode", 12), ("from", 13), ("to", 14), ("before", 15)];
        hold("format-mbox.md", "### Intent of an append", &intent.encode(&Stage::Grow), &fields);
        assert_eq!(intent.encode(&Stage::Write).len(), INTENT_BYTES);
        let magic = u64::from_le_bytes(AT_ONCE_MAGIC);
        let fields = [("magic", magic), ("device", 11), ("inode", 12), ("from", 13), ("to", 14)];
        let bytes = intent.encode(&Stage::AtOnce(vec![b'x']));
        hold("format-mbox.md", "### Intent of an append at once", &bytes[..AT_ONCE_HEAD_BYTES], &fields);
        let fields = [("magic", u64::from_le_bytes(FILLER_MAGIC)), ("filler", 16)];
        hold("format-mbox.md", "### Amount of filler", &encode(FILLER_MAGIC, &[16]), &fields);
    }

    #[test]
    fn damage_is_no_record() {
        let good = Intent { device: 11, inode: 12, from: 13, to: 14, before: 15 }.encode(&Stage::Grow);
        assert!(decode::<5>(INTENT_MAGIC, &good).is_some());
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(decode::<5>(INTENT_MAGIC, &bad).is_none() && decode::<5>(INTENT_MAGIC, &good[..at]).is_none());
        }
        let intent = Intent { device: 11, inode: 12, from: 13, to: 16, before: 0 };
        let stage = Stage::AtOnce(b"abc".to_vec());
        let good = intent.encode(&stage);
        assert_eq!(Intent::at_once(&good), Some((intent, stage)));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(Intent::at_once(&bad).is_none() && Intent::at_once(&good[..at]).is_none());
        }
    }

    #[test]
    fn what_is_ours_is_told_by_its_octets() {
        let disk = platform::sim::SimEnv::new(1).env().disk;
        let ours = [b"From a".as_slice(), &[b'x'; 1200], b"y\n"].concat();
        let to = 300 + ours.len() as u64;
        let intent = Intent { device: 0, inode: 0, from: 300, to, before: 0 };
        let reach = |path: &str, behind: &[u8]| {
            let file = disk.open(Path::new(path), OpenMode::Create).unwrap();
            file.write_at(&[b"o".repeat(300).as_slice(), behind].concat(), 0).unwrap();
            intent.reach(&*file, &ours).unwrap()
        };
        assert_eq!(reach("/1", b""), 300);
        assert_eq!(reach("/2", &ours), to);
        assert_eq!(reach("/3", &[&ours[..], b"From b"].concat()), to);
        assert_eq!(reach("/4", &[0; 700]), 1000);
        // Sectors that arrived, one that did not, and mail of others where the file ended then.
        let torn = [&ours[..212], &[0; 512]].concat();
        assert_eq!(reach("/5", &torn), 1024);
        assert_eq!(reach("/6", &[&torn[..], b"From b"].concat()), 1024);
        // Others add what begins as ours does.
        assert_eq!(reach("/7", b"From b"), 300);
        // Others change what they have found.
        let changed = [&ours[..1000], b"yyy", &ours[1003..]].concat();
        assert_eq!(reach("/8", &changed), 300);
    }
}
