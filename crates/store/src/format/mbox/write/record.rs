//! What is kept in a few octets beside the log: the intent of an append, the amount of filler. Byte tables: `docs/format-mbox.md`.

use std::path::Path;

use model::Result;
use platform::{Disk, File, Metadata, OpenMode, SECTOR_BYTES, parent_of};

const INTENT_MAGIC: [u8; 8] = *b"MYAPPN\x01\n";
const FILLER_MAGIC: [u8; 8] = *b"MYFILL\x01\n";
const INTENT_BYTES: usize = 52;
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
/// that what others add is told from it; from then on all of it is ours, up to where it was to grow.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The file may have grown, or not.
    Grow,
    /// It has.
    Write,
}

impl Stage {
    /// Each has a sector of its own, so that neither is torn by the other.
    fn place(self) -> u64 {
        match self {
            Stage::Grow => 0,
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

    /// Makes it durable: the file is going to grow, or it is going to be written to.
    pub(super) fn save(&self, disk: &dyn Disk, path: &Path, stage: Stage) -> Result<()> {
        let file = disk.open(path, OpenMode::Create)?;
        file.write_at(&self.encode(), stage.place())?;
        file.sync_data()?;
        match stage {
            // The file is there, as a rule, and its name durable: then this costs nothing.
            Stage::Grow => Ok(disk.sync_dir(parent_of(path))?),
            Stage::Write => Ok(()),
        }
    }

    fn encode(&self) -> Vec<u8> {
        encode(INTENT_MAGIC, &[self.device, self.inode, self.from, self.to, u64::from(self.before)])
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
        Ok(at(Stage::Write).or_else(|| at(Stage::Grow)))
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
            file.sync_data()?;
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
        hold("format-mbox.md", "### Intent of an append", &intent.encode(), &fields);
        assert_eq!(intent.encode().len(), INTENT_BYTES);
        let fields = [("magic", u64::from_le_bytes(FILLER_MAGIC)), ("filler", 16)];
        hold("format-mbox.md", "### Amount of filler", &encode(FILLER_MAGIC, &[16]), &fields);
    }

    #[test]
    fn damage_is_no_record() {
        let good = Intent { device: 11, inode: 12, from: 13, to: 14, before: 15 }.encode();
        assert!(decode::<5>(INTENT_MAGIC, &good).is_some());
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(decode::<5>(INTENT_MAGIC, &bad).is_none() && decode::<5>(INTENT_MAGIC, &good[..at]).is_none());
        }
    }
}
