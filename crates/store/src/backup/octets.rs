//! The octets of messages that are not in the log but in files that others write too: kept in packs, each message once.
//!
//! A pack is written once. A later snapshot writes only what no pack has: by id, digest and sizes, which the log knows. So a backup is
//! incremental for every format, and a snapshot is a consistent point: its log says which messages there are, the packs have them.
//! Where a backup is encrypted a list beside each pack has the marks of its messages instead (see [`Marker`]), since the server that makes
//! backups cannot read the pack.
//!
//! Byte tables: `docs/format-backup.md`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use index::{ForeignMessage, Log, State};
use model::{EmailId, Error, ErrorKind, Result};
use platform::{Disk, File, OpenMode};

use super::keys::{MARK_BYTES, Marker};
use super::{PIECE_BYTES, SnapshotFile, stored};

/// The messages of a pack, in its order.
pub(super) type PackTable = Vec<(EmailId, ForeignMessage)>;

/// The last bytes of a pack.
const MAGIC: &[u8; 8] = b"MYOCTS\x01\n";
/// Octets of messages in a pack, about: what an interrupted backup has done is kept pack by pack.
pub(super) const PACK_BYTES: u64 = 128 << 20;
/// Octets of messages that are compressed together, but for a larger message.
const BLOCK_BYTES: usize = 1 << 20;
/// Bytes before a block: its raw and its stored length.
const BLOCK_HEADER_BYTES: usize = 8;
/// Bytes of an entry of the table.
const ENTRY_BYTES: usize = 24;
/// Bytes of the trailer: where the table is, entries, CRC32C of the table, magic.
const TRAILER_BYTES: usize = 24;
/// Begins the name of a pack.
pub(super) const PREFIX: &str = "octets-";
/// The last bytes of a list.
const LIST_MAGIC: &[u8; 8] = b"MYLIST\x01\n";
/// As bodies in segments.
const LEVEL: i32 = 3;
/// The largest message: a larger block is damaged.
const BLOCK_RAW_BYTES_MAX: usize = 1 << 30;

/// Messages by id.
pub(super) type Messages = BTreeMap<EmailId, ForeignMessage>;

/// The messages of clients' mailboxes whose octets the log has not.
pub(super) fn needed(state: &State) -> Messages {
    state.mailboxes().flat_map(|mailbox| mailbox.foreign(state)).map(|(row, known)| (row.email_id, known)).collect()
}

/// Writes a pack.
pub(super) struct PackWriter<'a> {
    out: stored::Writer<'a>,
    at: u64,
    block: Vec<u8>,
    /// Its messages.
    pub(super) table: PackTable,
    pub(super) octets: u64,
}

impl<'a> PackWriter<'a> {
    pub(super) fn new(out: stored::Writer<'a>) -> Self {
        PackWriter { out, at: 0, block: Vec::new(), table: Vec::new(), octets: 0 }
    }

    /// Adds a message. One that has left its file is left out.
    pub(super) fn push(&mut self, reader: &mut index::Reader, id: EmailId, known: &ForeignMessage) -> Result<()> {
        let before = self.block.len();
        let block = &mut self.block;
        let read = reader.range(id, 0..u64::MAX, &mut |piece| {
            block.extend_from_slice(piece);
            Ok(())
        });
        match read {
            Err(error) if error.kind() == ErrorKind::Expunged => {
                self.block.truncate(before);
                return Ok(());
            }
            read => read.map_err(|error| error.context(format!("the message {id}")))?,
        }
        self.table.push((id, *known));
        self.octets += u64::from(known.octets);
        if self.block.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let raw = std::mem::take(&mut self.block);
        let packed = zstd::bulk::compress(&raw, LEVEL)?;
        let lengths = [(raw.len() as u32).to_le_bytes(), (packed.len() as u32).to_le_bytes()].concat();
        self.put(&lengths)?;
        self.put(&packed)
    }

    /// Ends it and makes it durable: what it has, its length and its digest.
    pub(super) fn finish(mut self) -> Result<(PackTable, u64, String)> {
        self.flush()?;
        let table = self.table.iter().map(|(id, known)| entry(*id, known)).collect::<Vec<_>>().concat();
        let mut trailer = self.at.to_le_bytes().to_vec();
        trailer.extend_from_slice(&(self.table.len() as u32).to_le_bytes());
        trailer.extend_from_slice(&crc32c::crc32c(&table).to_le_bytes());
        trailer.extend_from_slice(MAGIC);
        self.put(&table)?;
        self.put(&trailer)?;
        let (len, sha256) = self.out.finish()?;
        Ok((self.table, len, sha256))
    }
}

/// What a pack says of a message.
fn entry(id: EmailId, known: &ForeignMessage) -> [u8; ENTRY_BYTES] {
    let ForeignMessage { octets, header_octets, digest } = *known;
    let mut entry = [0; ENTRY_BYTES];
    let numbers = id.0.to_le_bytes().into_iter().chain(digest.to_le_bytes());
    let numbers = numbers.chain(octets.to_le_bytes()).chain(header_octets.to_le_bytes());
    entry.iter_mut().zip(numbers).for_each(|(place, byte)| *place = byte);
    entry
}

type Mark = [u8; MARK_BYTES];

fn mark(id: EmailId, known: &ForeignMessage, marker: &Marker) -> Mark {
    marker.mark(&[b"message\n", &entry(id, known)])
}

/// Where the list of the encrypted pack at `path` is.
pub(super) fn list_path(path: &Path) -> PathBuf {
    path.with_extension("list")
}

/// The list of a pack with these messages.
pub(super) fn list_of(table: &[(EmailId, ForeignMessage)], marker: &Marker) -> Vec<u8> {
    let mut list = table.iter().map(|(id, known)| mark(*id, known, marker)).collect::<Vec<_>>().concat();
    list.extend_from_slice(&crc32c::crc32c(&list).to_le_bytes());
    list.extend_from_slice(LIST_MAGIC);
    list
}

/// The marks in the list of the encrypted pack at `path`. `Corrupt` when it is damaged.
pub(super) fn read_list(disk: &dyn Disk, path: &Path) -> Result<HashSet<Mark>> {
    let damaged = || Error::new(ErrorKind::Corrupt, "the list of a pack is damaged");
    let bytes = disk.read(&list_path(path))?;
    let (marks, crc) = bytes.strip_suffix(LIST_MAGIC).and_then(<[u8]>::split_last_chunk).ok_or_else(damaged)?;
    let (marks, rest) = marks.as_chunks();
    if crc32c::crc32c(marks.as_flattened()) != u32::from_le_bytes(*crc) || !rest.is_empty() {
        return Err(damaged());
    }
    Ok(marks.iter().copied().collect())
}

/// What is known of the messages of a pack.
pub(super) enum Contents {
    /// All that it says.
    Table(PackTable),
    /// Their marks.
    Marks(HashSet<Mark>),
}

/// Is given a message: its id, what is known of it, its octets.
pub(super) type Take<'t> = dyn FnMut(EmailId, &ForeignMessage, &[u8]) -> Result<()> + 't;

/// A pack to be read.
pub(super) struct Pack {
    file: std::sync::Arc<dyn File>,
    table_at: u64,
    /// In the order in which they lie.
    pub(super) table: PackTable,
}

fn damaged() -> Error {
    Error::new(ErrorKind::Corrupt, "the pack of octets is damaged")
}

fn number<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let (number, rest) = bytes.split_first_chunk::<N>().ok_or_else(damaged)?;
    *bytes = rest;
    Ok(*number)
}

impl Pack {
    /// Reads the table of the pack at `path`. `Corrupt` when it is damaged.
    pub(super) fn open(disk: &dyn Disk, path: &Path) -> Result<Pack> {
        let file = disk.open(path, OpenMode::Read)?;
        let len = file.len()?;
        let trailer_at = len.checked_sub(TRAILER_BYTES as u64).ok_or_else(damaged)?;
        let mut trailer = [0; TRAILER_BYTES];
        file.read_exact_at(&mut trailer, trailer_at)?;
        let mut rest = trailer.as_slice();
        let table_at = u64::from_le_bytes(number(&mut rest)?);
        let count = u32::from_le_bytes(number(&mut rest)?);
        let crc = u32::from_le_bytes(number(&mut rest)?);
        let table_bytes = u64::from(count) * ENTRY_BYTES as u64;
        if rest != MAGIC || table_at.checked_add(table_bytes) != Some(trailer_at) {
            return Err(damaged());
        }
        let mut bytes = vec![0; table_bytes as usize];
        file.read_exact_at(&mut bytes, table_at)?;
        if crc32c::crc32c(&bytes) != crc {
            return Err(damaged());
        }
        let mut table = Vec::with_capacity(count as usize);
        for mut entry in bytes.chunks_exact(ENTRY_BYTES) {
            let id = EmailId(u64::from_le_bytes(number(&mut entry)?));
            let digest = u64::from_le_bytes(number(&mut entry)?);
            let (octets, header_octets) = (number(&mut entry)?, number(&mut entry)?);
            let (octets, header_octets) = (u32::from_le_bytes(octets), u32::from_le_bytes(header_octets));
            table.push((id, ForeignMessage { octets, header_octets, digest }));
        }
        Ok(Pack { file, table_at, table })
    }

    /// Gives the messages of `wanted` to `take`, in the order in which they lie. Blocks that have none of them are not read.
    pub(super) fn read(&self, wanted: &HashSet<EmailId>, take: &mut Take<'_>) -> Result<()> {
        let mut at = 0;
        let mut messages = self.table.as_slice();
        while at < self.table_at {
            let mut lengths = [0; BLOCK_HEADER_BYTES];
            self.file.read_exact_at(&mut lengths, at)?;
            let mut rest = lengths.as_slice();
            let raw_len = u32::from_le_bytes(number(&mut rest)?) as usize;
            let stored_len = u32::from_le_bytes(number(&mut rest)?) as usize;
            at += BLOCK_HEADER_BYTES as u64;
            if raw_len > BLOCK_RAW_BYTES_MAX || at.saturating_add(stored_len as u64) > self.table_at {
                return Err(damaged());
            }
            // A block ends where a message does; an empty one belongs to any.
            let mut octets = 0usize;
            let is_full = |(_, known): &(EmailId, ForeignMessage)| {
                let is_full = octets >= raw_len;
                octets += if is_full { 0 } else { known.octets as usize };
                is_full
            };
            let count = messages.iter().position(is_full).unwrap_or(messages.len());
            let (inside, behind) = messages.split_at(count);
            if octets != raw_len {
                return Err(damaged());
            }
            if inside.iter().any(|(id, _)| wanted.contains(id)) {
                let mut stored = vec![0; stored_len];
                self.file.read_exact_at(&mut stored, at)?;
                let raw = zstd::bulk::decompress(&stored, raw_len).map_err(|_| damaged())?;
                let mut rest = raw.as_slice();
                for (id, known) in inside {
                    let (message, after) = rest.split_at_checked(known.octets as usize).ok_or_else(damaged)?;
                    if wanted.contains(id) {
                        take(*id, known, message)?;
                    }
                    rest = after;
                }
            }
            at += stored_len as u64;
            messages = behind;
        }
        for (id, known) in messages {
            if known.octets > 0 {
                return Err(damaged());
            }
            if wanted.contains(id) {
                take(*id, known, &[])?;
            }
        }
        Ok(())
    }
}

/// Of the packs of an account those that are needed for `needed`, and what none of them has.
pub(super) fn covering(
    packs: Vec<(SnapshotFile, Contents)>,
    needed: &Messages,
    marker: Option<&Marker>,
) -> (Vec<SnapshotFile>, Messages) {
    let mut missing = needed.clone();
    let mut marks: HashMap<Mark, EmailId> = HashMap::new();
    if let Some(marker) = marker {
        marks = needed.iter().map(|(id, known)| (mark(*id, known, marker), *id)).collect();
    }
    let mut used = Vec::new();
    for (file, contents) in packs {
        let before = missing.len();
        match contents {
            Contents::Table(table) => table.iter().for_each(|(id, known)| {
                if missing.get(id) == Some(known) {
                    missing.remove(id);
                }
            }),
            Contents::Marks(listed) => {
                listed.iter().filter_map(|mark| marks.get(mark)).for_each(|id| {
                    missing.remove(id);
                });
            }
        }
        if missing.len() < before {
            used.push(file);
        }
    }
    (used, missing)
}

/// Takes the octets of a pack into the log of an account that was unpacked, as far as they are wanted.
pub(super) fn take_in(log: &std::sync::Arc<Log>, pack: &Pack, wanted: &HashSet<EmailId>) -> Result<()> {
    let mut batch: Vec<(EmailId, index::PendingMessage)> = Vec::new();
    let mut octets = 0;
    let state = log.state();
    let commit = |batch: &mut Vec<(EmailId, index::PendingMessage)>| {
        let batch = std::mem::take(batch);
        log.commit(|transaction| batch.into_iter().try_for_each(|(id, message)| transaction.bytes_here(id, message)))
    };
    let mut seen: HashMap<EmailId, ()> = HashMap::new();
    pack.read(wanted, &mut |id, known, message| {
        if state.foreign(id) != Some(*known) || seen.insert(id, ()).is_some() {
            return Ok(());
        }
        let mut writer = log.message_writer();
        writer.write(message)?;
        batch.push((id, writer.finish(known.header_octets)?));
        octets += message.len() as u64;
        if octets >= 4 * PIECE_BYTES || batch.len() >= 2_000 {
            octets = 0;
            commit(&mut batch)?;
        }
        Ok(())
    })?;
    commit(&mut batch)
}
