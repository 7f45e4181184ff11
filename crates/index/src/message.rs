//! A message on its way in: small ones wait in memory, large ones in a spool file that is never synced. Nothing of it is
//! left when it is abandoned.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Error, Result, limits};
use platform::{Disk, File, OpenMode, parent_of};

/// Takes a message in pieces; see [`crate::Log::message_writer`].
#[derive(Debug)]
pub struct MessageWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    spool_above: usize,
    memory: Vec<u8>,
    spool: Option<Spool>,
    /// Bytes that are in the spool file already; `memory` comes after them.
    spooled: u64,
    crc: u32,
}

/// A spool file, removed when it is dropped.
#[derive(Debug)]
struct Spool {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn File>,
}

impl Drop for Spool {
    fn drop(&mut self) {
        // What stays behind here is removed when the log is opened.
        let _ = self.disk.remove(&self.path);
    }
}

/// A whole message that is not stored yet. Dropping it leaves nothing.
#[derive(Debug)]
pub struct PendingMessage {
    memory: Vec<u8>,
    spool: Option<Spool>,
    len: u32,
    header_len: u32,
    crc: u32,
}

impl MessageWriter {
    pub(crate) fn new(disk: Arc<dyn Disk>, path: PathBuf, spool_above: usize) -> Self {
        MessageWriter { disk, path, spool_above, memory: Vec::new(), spool: None, spooled: 0, crc: 0 }
    }

    /// Adds bytes. Memory stays bounded however many come.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.len() + bytes.len() as u64 > limits::MESSAGE_BYTES_MAX {
            return Err(Error::over_limit("message_bytes_max", "the message is too large"));
        }
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        if self.memory.len() + bytes.len() <= self.spool_above {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let spool = match &mut self.spool {
            Some(spool) => spool,
            None => {
                let file = create(&*self.disk, &self.path)?;
                self.spool.insert(Spool { disk: Arc::clone(&self.disk), path: self.path.clone(), file })
            }
        };
        for piece in [self.memory.as_slice(), bytes] {
            spool.file.write_at(piece, self.spooled)?;
            self.spooled += piece.len() as u64;
        }
        self.memory.clear();
        Ok(())
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        self.spooled + self.memory.len() as u64
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The message is whole. `header_len`: octets of the header, the empty line included.
    pub fn finish(mut self, header_len: u32) -> Result<PendingMessage> {
        let len = u32::try_from(self.len()).map_err(|_| Error::over_limit("message_bytes_max", "too large"))?;
        if let Some(spool) = &self.spool {
            spool.file.write_at(&self.memory, self.spooled)?;
            self.memory = Vec::new();
        }
        let header_len = header_len.min(len);
        Ok(PendingMessage { memory: self.memory, spool: self.spool, len, header_len, crc: self.crc })
    }
}

/// Creates the spool file, and its directory when it is missing.
fn create(disk: &dyn Disk, path: &Path) -> Result<Arc<dyn File>> {
    match disk.open(path, OpenMode::CreateNew) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            disk.create_dir_all(parent_of(path))?;
            Ok(disk.open(path, OpenMode::CreateNew)?)
        }
        result => Ok(result?),
    }
}

impl PendingMessage {
    /// Octets.
    #[expect(clippy::len_without_is_empty, reason = "an empty message is no special case to anybody")]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Octets of the header, the empty line included.
    pub fn header_len(&self) -> u32 {
        self.header_len
    }

    /// CRC32C of its octets.
    pub fn crc(&self) -> u32 {
        self.crc
    }

    /// The bytes, when they are in memory.
    pub(crate) fn memory(&self) -> Option<&[u8]> {
        self.spool.is_none().then_some(&self.memory)
    }

    /// Fills `buf` with the bytes from `offset` on.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match &self.spool {
            Some(spool) => Ok(spool.file.read_exact_at(buf, offset)?),
            None => {
                let range = usize::try_from(offset).ok().and_then(|at| self.memory.get(at..at.checked_add(buf.len())?));
                buf.copy_from_slice(range.ok_or_else(|| Error::new(model::ErrorKind::Invalid, "beyond the message"))?);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use platform::sim::SimEnv;

    use super::*;

    #[test]
    fn a_message_has_so_many_octets_and_no_more() {
        let sim = SimEnv::new(1);
        let disk: Arc<dyn Disk> = sim.env().disk;
        let almost = || {
            let mut writer = MessageWriter::new(Arc::clone(&disk), PathBuf::from("/spool/message-1"), 100);
            // As if all but one octet were in the spool file.
            writer.spooled = limits::MESSAGE_BYTES_MAX - 1;
            writer
        };
        let mut writer = almost();
        writer.write(b"x").unwrap();
        assert_eq!(writer.write(b"x").unwrap_err().limit(), Some("message_bytes_max"));
        assert_eq!(u64::from(writer.finish(0).unwrap().len()), limits::MESSAGE_BYTES_MAX);
        assert_eq!(almost().write(b"xx").unwrap_err().limit(), Some("message_bytes_max"));
    }
}
