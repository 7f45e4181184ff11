//! A file of a backup as it lies on the disk: as it is, or encrypted. Its length and its digest are those of what lies there, so that
//! whoever has no key can verify it too.
//!
//! Invariant: what an encrypted file gives is what was written, or it is said to be damaged: each 64 KiB of it are authenticated.

use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use age::stream::StreamWriter;
use model::{Error, ErrorKind, Result};
use platform::{Disk, File, OpenMode};
use sha2::{Digest, Sha256};

use super::keys::{Identities, Recipients};
use super::{PIECE_BYTES, hex};

/// What age encrypts at a time.
const CHUNK_BYTES: u64 = 64 << 10;

/// Writes a file, the octets one after another.
pub(super) struct Writer<'a>(Output<'a>);

enum Output<'a> {
    Plain(BufWriter<Hashing<'a>>),
    Encrypted(Box<StreamWriter<BufWriter<Hashing<'a>>>>),
}

/// Writes to the disk, and knows the digest.
struct Hashing<'a> {
    file: &'a dyn File,
    at: u64,
    hash: Sha256,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, self.at)?;
        self.hash.update(bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> Writer<'a> {
    /// Of a file that is empty.
    pub(super) fn new(file: &'a dyn File, recipients: Option<&Recipients>) -> Result<Self> {
        let hashing = Hashing { file, at: 0, hash: Sha256::new() };
        let plain = BufWriter::with_capacity(PIECE_BYTES as usize, hashing);
        Ok(Writer(match recipients {
            None => Output::Plain(plain),
            Some(recipients) => Output::Encrypted(Box::new(recipients.encryptor()?.wrap_output(plain)?)),
        }))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.0 {
            Output::Plain(out) => out.write_all(bytes)?,
            Output::Encrypted(out) => out.write_all(bytes)?,
        }
        Ok(())
    }

    /// Makes it durable, but for its name. The length and the digest of what lies there.
    pub(super) fn finish(self) -> Result<(u64, String)> {
        let buffered = match self.0 {
            Output::Plain(out) => out,
            Output::Encrypted(out) => out.finish()?,
        };
        let Hashing { file, at, hash } = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        Ok((at, hex(&hash.finalize())))
    }
}

/// What was found when a file was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Octets that lie there.
    pub(super) len: u64,
    /// Their SHA-256.
    pub(super) sha256: String,
    /// Whether they could be decrypted; also when they need not be.
    pub(super) opened: Opened,
}

/// What came of decrypting a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// All of it.
    Whole,
    /// Not all of it.
    Damaged,
    /// No identity fits; or what says to whom it is encrypted is damaged.
    NoKeyFits,
}

/// Reads the disk, and knows the digest of what it has read in order.
struct Source {
    file: Arc<dyn File>,
    at: u64,
    hash: Sha256,
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.hash.update(out.get(..read).unwrap_or_default());
        self.at += read as u64;
        Ok(read)
    }
}

/// For [`salvage`], which needs no digest.
impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.len()?.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

fn open(disk: &dyn Disk, path: &Path) -> Result<BufReader<Source>> {
    let file = disk.open(path, OpenMode::Read)?;
    Ok(BufReader::with_capacity(PIECE_BYTES as usize, Source { file, at: 0, hash: Sha256::new() }))
}

/// Whether an error is about the octets, and not about the disk.
fn is_about_octets(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Reads all of a file, and gives `take` what was written to it, in pieces with their offsets: decrypted, or without `identities` as it
/// lies there.
pub(super) fn read(
    disk: &dyn Disk,
    path: &Path,
    identities: Option<&Identities>,
    take: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<Found> {
    let mut source = open(disk, path)?;
    let opened = match identities {
        None => copy(&mut source, take)?,
        Some(identities) => match age::Decryptor::new_buffered(&mut source) {
            Err(age::DecryptError::Io(error)) if !is_about_octets(&error) => return Err(error.into()),
            Err(_) => Opened::Damaged,
            Ok(decryptor) => match decryptor.decrypt(identities.iter()) {
                Err(age::DecryptError::NoMatchingKeys) => Opened::NoKeyFits,
                Err(_) => Opened::Damaged,
                Ok(mut stream) => copy(&mut stream, take)?,
            },
        },
    };
    // What is behind the damage belongs to the digest.
    copy(&mut source, &mut |_, _| Ok(()))?;
    let Source { at, hash, .. } = source.into_inner();
    Ok(Found { len: at, sha256: hex(&hash.finalize()), opened })
}

fn copy(from: &mut dyn Read, take: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<Opened> {
    let (mut piece, mut at) = (vec![0; PIECE_BYTES as usize], 0);
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(Opened::Whole),
            Ok(read) => {
                take(piece.get(..read).unwrap_or_default(), at)?;
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_about_octets(&error) => return Ok(Opened::Damaged),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Gives `take` what can still be read of an encrypted file that is damaged: everything but the pieces of 64 KiB that it hit.
pub(super) fn salvage(
    disk: &dyn Disk,
    path: &Path,
    identities: &Identities,
    take: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    // Its end is authenticated as such: without it nothing is known of the others.
    let (mut stream, len) = match begin_salvage(disk, path, identities)? {
        Some(begun) => begun,
        None => return Ok(()),
    };
    for chunk_at in (0..len).step_by(CHUNK_BYTES as usize) {
        let mut chunk = vec![0; CHUNK_BYTES.min(len - chunk_at) as usize];
        match stream.seek(SeekFrom::Start(chunk_at)).and_then(|_| stream.read_exact(&mut chunk)) {
            Ok(()) => take(&chunk, chunk_at)?,
            Err(error) if is_about_octets(&error) => {
                // The stream keeps what it could not decrypt and would stumble over it again.
                let Some((anew, _)) = begin_salvage(disk, path, identities)? else { return Ok(()) };
                stream = anew;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

type Stream = age::stream::StreamReader<BufReader<Source>>;

/// A stream of what was encrypted, and its length. `None` when its beginning or its end is damaged.
fn begin_salvage(disk: &dyn Disk, path: &Path, identities: &Identities) -> Result<Option<(Stream, u64)>> {
    let Ok(decryptor) = age::Decryptor::new_buffered(open(disk, path)?) else { return Ok(None) };
    let Ok(mut stream) = decryptor.decrypt(identities.iter()) else { return Ok(None) };
    match stream.seek(SeekFrom::End(0)) {
        Ok(len) => Ok(Some((stream, len))),
        Err(error) if is_about_octets(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Found {
    /// What is wrong with the file at `path`, of which `len` octets with this digest were saved. [`ErrorKind::Invalid`] when nothing is, but
    /// it is encrypted to others.
    pub(super) fn damage(&self, len: u64, sha256: &str, path: &Path) -> Result<Option<String>> {
        let no_key_fits = "none of the identities opens it: it is encrypted to others";
        Ok(match (self.len == len, self.sha256 == sha256, self.opened) {
            (true, true, Opened::Whole) => None,
            (true, true, Opened::NoKeyFits) => {
                return Err(Error::new(ErrorKind::Invalid, no_key_fits).context(path.display()));
            }
            (false, ..) => Some(format!("it has {} octets instead of {len}", self.len)),
            (_, false, _) => Some("its octets are not those that were saved".to_owned()),
            (_, _, Opened::Damaged) => Some("it cannot be decrypted".to_owned()),
        })
    }
}
