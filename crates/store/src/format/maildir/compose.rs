//! Making message files: written in `tmp`, or linked there, and renamed into place when they are durable.
//!
//! Names are `SECONDS.MmicrosecondsPprocessQcountRrandom.host,S=octets,W=octets`, as the Maildir page advises and Dovecot reads. A message
//! whose lines all end with CRLF is written with LF; any other one octet by octet, and its name says so (`R=1`): both are served as they came.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use index::Row;
use model::{EmailId, Error, Result};
use platform::{File, OpenMode, Timestamp};

use super::account::MaildirAccount;
use super::layout::SUBDIRS;
use super::listing::{self, Listed, Subdir};
use super::name::{Info, Letters, Name, SEPARATOR, field};
use super::serve::Opened;
use super::{RAW, ZONE_FIELD};
use crate::export::{Shape, to_lf};

/// Octets that are written at a time.
const WRITE_BYTES: usize = 256 << 10;

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

    /// Makes a file for an entry; its name is durable once the directory is synced.
    pub(super) fn deliver(
        &self,
        maildir: &Path,
        subdir: Subdir,
        letters: Letters,
        row: &Row,
        source: Source,
    ) -> Result<Listed> {
        let unique = self.unique_name();
        let temporary = maildir.join("tmp").join(&unique);
        let made = match &source {
            Source::Log(id) => self.write_from_log(&temporary, *id, row),
            Source::File { path, base, opened } => self.link_or_copy(&temporary, path, base, opened, row),
            Source::Open(opened) => self.copy(&temporary, opened, row).map(|len| opened_fields(opened, len, row)),
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
        let to = listing::path(maildir, subdir, &file.name);
        self.env.disk.rename(&temporary, &to).map_err(|error| Error::from(error).context(to.display()))?;
        Ok(file)
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
    fn write_from_log(&self, path: &Path, id: EmailId, row: &Row) -> Result<Vec<u8>> {
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
        set_date(&*file, row)?;
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
    fn link_or_copy(&self, path: &Path, from: &Path, base: &[u8], opened: &Opened, row: &Row) -> Result<Vec<u8>> {
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
                file.sync_all()?;
                return Ok(kept_fields(base, row));
            }
            disk.remove(path)?;
        }
        self.copy(path, opened, row)?;
        Ok(kept_fields(base, row))
    }

    /// Copies a file octet by octet; its length.
    fn copy(&self, path: &Path, opened: &Opened, row: &Row) -> Result<u64> {
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
        set_date(&*file, row)?;
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
fn set_date(file: &dyn File, row: &Row) -> Result<()> {
    file.set_modified(Timestamp::from_seconds(row.internal_date.unix_seconds))?;
    Ok(file.sync_all()?)
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
