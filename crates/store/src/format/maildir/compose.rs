//! Making message files: written in `tmp`, or linked there, and renamed into place when they are durable, one by one or a batch of them at once.
//!
//! Names are `SECONDS.MmicrosecondsPprocessQcountRrandom.host,S=octets,W=octets`, as the Maildir page advises and Dovecot reads. A message
//! whose lines all end with CRLF is written with LF; any other one octet by octet, and its name says so (`R=1`): both are served as they came.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use index::Row;
use model::{EmailId, Error, Result};
use platform::{Batch, File, OpenMode, Timestamp};

use super::account::MaildirAccount;
use super::layout::SUBDIRS;
use super::listing::{self, Listed, Subdir};
use super::name::{Info, Letters, Name, SEPARATOR, field};
use super::serve::Opened;
use super::{RAW, ZONE_FIELD};
use crate::export::{Shape, to_lf};

/// Octets that are written at a time.
const WRITE_BYTES: usize = 256 << 10;

/// Files that are worth a batch: what a batch waits for may be more than they are.
const BATCH_FILES_MIN: usize = 64;
/// Files of a batch at most: a process that is killed leaves so many in `tmp`.
const BATCH_FILES_MAX: usize = 2_000;
/// Octets of the messages of a batch, about.
const BATCH_OCTETS: u64 = 32 << 20;

/// Who waits for a new file to be durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Syncing {
    /// It is, when it is made.
    Each,
    /// The batch that it is made in.
    Batch,
}

/// A file in `tmp`, and where it belongs.
pub(super) struct Prepared {
    temporary: PathBuf,
    file: Listed,
}

/// Entries in pieces whose files are made together.
pub(super) fn batches(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    let is_bulk = rows.len() >= BATCH_FILES_MIN;
    let mut rest = rows;
    std::iter::from_fn(move || {
        let mut octets = 0;
        let is_enough = |row: &Row| {
            octets += u64::from(row.size);
            octets >= BATCH_OCTETS || !is_bulk
        };
        let count = rest.iter().position(is_enough).map_or(rest.len(), |last| last + 1).min(BATCH_FILES_MAX);
        let (piece, after) = rest.split_at(count);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Where the octets of a new file come from.
pub(super) enum Source {
    /// The log has them.
    Log(EmailId),
    /// Another file.
    File { path: PathBuf, base: Vec<u8>, opened: Opened },
    /// One that has lost its name.
    Open(Opened),
}

impl MaildirAccount {
    /// Makes the directories of a Maildir that are missing. The top one is not made: if it is not there, something else is wrong.
    pub(super) fn make_maildir(&self, maildir: &Path) -> Result<()> {
        let disk = &*self.env.disk;
        if maildir == self.root && !disk.exists(maildir)? {
            return Err(Error::from(std::io::Error::from(std::io::ErrorKind::NotFound)).context(maildir.display()));
        }
        for subdir in SUBDIRS {
            disk.create_dir_all_durable(&maildir.join(subdir))?;
        }
        Ok(())
    }

    /// A batch for files of a Maildir; `None`: each is to be synced.
    pub(super) fn batch(&self, maildir: &Path) -> Result<Option<Box<dyn Batch>>> {
        match self.env.disk.batch(maildir) {
            Ok(batch) => Ok(Some(batch)),
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(Error::from(error).context(maildir.display())),
        }
    }

    /// Makes the files of a batch ([`batches`]) with `prepare`, waits until they are durable, and puts them where they belong, telling `placed` of
    /// each; their names are durable once the directories are synced.
    pub(super) fn deliver(
        &self,
        maildir: &Path,
        rows: &[Row],
        mut prepare: impl FnMut(&Row, Syncing) -> Result<Prepared>,
        mut placed: impl FnMut(&Row, &Listed),
    ) -> Result<()> {
        let batch = if rows.len() > 1 { self.batch(maildir)? } else { None };
        let syncing = if batch.is_some() { Syncing::Batch } else { Syncing::Each };
        let mut prepared = VecDeque::with_capacity(rows.len());
        let mut made = Ok(());
        for row in rows {
            match prepare(row, syncing) {
                Ok(one) => prepared.push_back((row, one)),
                Err(error) => {
                    made = Err(error);
                    break;
                }
            }
        }
        if prepared.len() == rows.len() {
            made = batch.map_or(Ok(()), |batch| batch.sync().map_err(Error::from));
        }
        while made.is_ok()
            && let Some((row, one)) = prepared.pop_front()
        {
            let to = listing::path(maildir, one.file.subdir, &one.file.name);
            match self.env.disk.rename(&one.temporary, &to) {
                Ok(()) => placed(row, &one.file),
                Err(error) => {
                    made = Err(Error::from(error).context(to.display()));
                    prepared.push_front((row, one));
                }
            }
        }
        for (_, left) in prepared {
            let _ = self.env.disk.remove(&left.temporary);
        }
        made
    }

    /// Makes a file for an entry in `tmp`.
    pub(super) fn prepare(
        &self,
        maildir: &Path,
        subdir: Subdir,
        letters: Letters,
        row: &Row,
        (source, syncing): (Source, Syncing),
    ) -> Result<Prepared> {
        let unique = self.unique_name();
        let temporary = maildir.join("tmp").join(&unique);
        let made = match &source {
            Source::Log(id) => self.write_from_log(&temporary, *id, row, syncing),
            Source::File { path, base, opened } => self.link_or_copy(&temporary, (path, base, opened), row, syncing),
            Source::Open(opened) => {
                self.copy(&temporary, opened, row, syncing).map(|len| opened_fields(opened, len, row))
            }
        };
        let fields = match made {
            Ok(fields) => fields,
            Err(error) => {
                let _ = self.env.disk.remove(&temporary);
                return Err(error);
            }
        };
        let base = [unique.as_bytes(), &fields].concat();
        let info = match subdir {
            Subdir::New => Info::None,
            Subdir::Cur => Info::Flags { separator: SEPARATOR, letters, rest: &[] },
        };
        let file = Listed { subdir, name: Name { base: &base, info }.write(), base_len: base.len() };
        Ok(Prepared { temporary, file })
    }

    /// A name that no file on any machine has.
    fn unique_name(&self) -> String {
        let now = self.env.clock.now();
        let count = self.made.fetch_add(1, Ordering::Relaxed);
        // What would end the base, or the name of the file.
        let host = self.env.host.name().replace('/', "\\057").replace(':', "\\072").replace(',', "\\054");
        format!(
            "{}.M{}P{}Q{count}R{:08x}.{host}",
            now.seconds,
            now.nanoseconds / 1000,
            self.env.host.process(),
            self.env.random.u64() as u32
        )
    }

    /// Writes a message of the log; returns the fields of its name.
    fn write_from_log(&self, path: &Path, id: EmailId, row: &Row, syncing: Syncing) -> Result<Vec<u8>> {
        let mut shape = Shape::default();
        let mut reader = self.log.reader();
        reader.range(id, 0..u64::MAX, &mut |piece| {
            shape.push(piece);
            Ok(())
        })?;
        let file = self.env.disk.open(path, OpenMode::CreateNew)?;
        let mut out = Writer { file: &*file, buffer: Vec::new(), at: 0 };
        let mut held = false;
        reader.range(id, 0..u64::MAX, &mut |piece| {
            match shape.is_raw {
                true => out.buffer.extend_from_slice(piece),
                false => to_lf(piece, &mut held, &mut out.buffer),
            }
            out.write_when_full()
        })?;
        if held {
            out.buffer.push(b'\r');
        }
        let len = out.finish()?;
        set_date(&*file, row, syncing)?;
        let served = u64::from(row.size);
        // For a raw one Dovecot would serve CRLF for its bare LFs: what it makes of that is its own business, so no size is claimed.
        let mut fields = match shape.is_raw {
            true => format!(",S={len},{RAW}=1"),
            false => format!(",S={len},W={served}"),
        };
        fields.push_str(&zone_field(row));
        Ok(fields.into_bytes())
    }

    /// Gives the file of another entry a second name, or copies it where that cannot be; returns the fields of its name.
    fn link_or_copy(
        &self,
        path: &Path,
        (from, base, opened): (&Path, &[u8], &Opened),
        row: &Row,
        syncing: Syncing,
    ) -> Result<Vec<u8>> {
        let disk = &*self.env.disk;
        let is_linked = match opened.file.metadata()?.modified.seconds == row.internal_date.unix_seconds {
            true => disk.link(from, path).is_ok(),
            // The date would be that of both.
            false => false,
        };
        if is_linked {
            let file = disk.open(path, OpenMode::Read)?;
            if file.metadata()?.inode == opened.file.metadata()?.inode {
                // Whoever delivered it may not have waited for the disk.
                sync(&*file, syncing)?;
                return Ok(kept_fields(base, row));
            }
            disk.remove(path)?;
        }
        self.copy(path, opened, row, syncing)?;
        Ok(kept_fields(base, row))
    }

    /// Copies a file octet by octet; its length.
    fn copy(&self, path: &Path, opened: &Opened, row: &Row, syncing: Syncing) -> Result<u64> {
        let file = self.env.disk.open(path, OpenMode::CreateNew)?;
        let mut out = Writer { file: &*file, buffer: Vec::new(), at: 0 };
        let mut at = 0;
        loop {
            let mut piece = vec![0; WRITE_BYTES];
            let count = opened.file.read_at(&mut piece, at)?;
            if count == 0 {
                break;
            }
            at += count as u64;
            out.buffer.extend_from_slice(piece.get(..count).unwrap_or_default());
            out.write_when_full()?;
        }
        let len = out.finish()?;
        set_date(&*file, row, syncing)?;
        Ok(len)
    }
}

/// The fields for a copy of a file of which only the octets are known.
fn opened_fields(opened: &Opened, len: u64, row: &Row) -> Vec<u8> {
    let served = match opened.form.convert {
        true => format!(",W={}", row.size),
        false => format!(",{RAW}=1"),
    };
    format!(",S={len}{served}{}", zone_field(row)).into_bytes()
}

/// The fields that say something of the octets.
fn kept_fields(base: &[u8], row: &Row) -> Vec<u8> {
    let mut out = Vec::new();
    for key in [b"S", b"W", RAW.as_bytes()] {
        if let Some(value) = field(base, key) {
            out.extend([b",", key, b"=", value].concat());
        }
    }
    out.extend(zone_field(row).into_bytes());
    out
}

/// Minutes east of UTC of the internal date, where it is not UTC.
fn zone_field(row: &Row) -> String {
    match row.internal_date.offset_minutes {
        0 => String::new(),
        minutes => format!(",{}={minutes}", String::from_utf8_lossy(ZONE_FIELD)),
    }
}

/// For others the internal date is the time of the file, so it has to last as the octets do.
fn set_date(file: &dyn File, row: &Row, syncing: Syncing) -> Result<()> {
    file.set_modified(Timestamp::from_seconds(row.internal_date.unix_seconds))?;
    sync(file, syncing)
}

fn sync(file: &dyn File, syncing: Syncing) -> Result<()> {
    match syncing {
        Syncing::Each => Ok(file.sync_all()?),
        Syncing::Batch => Ok(()),
    }
}

struct Writer<'a> {
    file: &'a dyn File,
    buffer: Vec<u8>,
    at: u64,
}

impl Writer<'_> {
    fn write_when_full(&mut self) -> Result<()> {
        if self.buffer.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.file.write_at(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.write()?;
        Ok(self.at)
    }
}
