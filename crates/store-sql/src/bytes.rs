//! The bytes of messages: headers in windows of neighbours, bodies part by part ([`crate::ahead`]), all held against their checksums.
//!
//! Who reads a mailbox reads neighbours: after two messages in a row a window holds the headers of the next ones, so that the headers of a
//! whole mailbox come from one scan of `header`, a few hundred rows at a time.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use index::{ForeignMessage, State};
use model::{EmailId, Error, ErrorKind, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::account::Account;
use crate::ahead::Ahead;
use crate::failure::Failure;
use crate::write::{PART_BYTES, head_bytes};

/// Rows that a window has at most.
const WINDOW_ROWS_MAX: u32 = 256;
/// Windows that an account keeps.
const WINDOWS_MAX: usize = 4;
/// Octets that are given away at once.
const PIECE_BYTES: usize = 128 << 10;
/// The sweep looks this often.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Epochs that are kept: somebody may still not be sure of the last commit in one of them.
const TENURES_KEPT: u64 = 100;
/// And takes so many rows at a time.
const SWEEP_ROWS: usize = 1000;

/// What an account keeps of `header`, and of `body`.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// The newest last.
    windows: Vec<Arc<Window>>,
    pub(crate) ahead: Ahead,
}

impl Heads {
    /// Up to which message those from `id` on, as far as they are known, have together at most so many octets; at least `id`.
    pub(crate) fn upto(&self, id: EmailId, bytes_max: u64) -> EmailId {
        let Some(window) = self.windows.iter().rev().find(|window| window.ids.contains(&id.0)) else { return id };
        let mut octets = 0;
        let fits = |(_, message, _): &&(EmailId, ForeignMessage, Range<usize>)| {
            octets += u64::from(message.octets);
            octets <= bytes_max
        };
        window.rows.iter().filter(|row| row.0 >= id).take_while(fits).last().map_or(id, |row| row.0)
    }
}

/// Headers of messages with neighbouring ids.
#[derive(Debug)]
struct Window {
    /// Which ids were asked for: one that is missing is not there.
    ids: Range<u64>,
    /// Rising by id: the message, and where its head lies.
    rows: Vec<(EmailId, ForeignMessage, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Window {
    fn find(&self, id: EmailId) -> Option<(ForeignMessage, &[u8])> {
        let at = self.rows.binary_search_by_key(&id, |row| row.0).ok()?;
        let (_, message, range) = self.rows.get(at)?;
        Some((*message, self.bytes.get(range.clone())?))
    }
}

type HeaderColumns = (u64, u32, u32, u32, u32, Vec<u8>);

fn corrupt(id: EmailId, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("message {id} in the database: {what}"))
}

impl Account {
    pub(crate) fn heads(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The window that has an id, read when there is none.
    fn window(&self, id: EmailId) -> Result<Arc<Window>> {
        let rows = {
            let heads = self.heads();
            if let Some(window) = heads.windows.iter().rev().find(|window| window.ids.contains(&id.0)) {
                return Ok(Arc::clone(window));
            }
            // Where another one ends, more are wanted.
            let before = heads.windows.iter().find(|window| window.ids.end <= id.0 && id.0 - window.ids.end <= 16);
            before.map_or(1, |before| (before.rows.len() as u32 * 4).clamp(2, WINDOW_ROWS_MAX))
        };
        let window = Arc::new(self.read_window(id, rows)?);
        let mut heads = self.heads();
        // A window that is gone on from has served.
        heads.windows.retain(|old| old.ids.end != window.ids.start || old.rows.len() > 1);
        if heads.windows.len() >= WINDOWS_MAX {
            heads.windows.remove(0);
        }
        heads.windows.push(Arc::clone(&window));
        Ok(window)
    }

    fn read_window(&self, id: EmailId, count: u32) -> Result<Window> {
        let rows = self.pool.run("reading headers", |connection| {
            let rows: Vec<HeaderColumns> = connection.exec(
                "SELECT email_id, octets, header_octets, crc, data_crc, data FROM header \
                 WHERE account = ? AND email_id >= ? ORDER BY email_id LIMIT ?",
                (self.id, id.0, count),
            )?;
            Ok(rows)
        })?;
        // Behind the last one new messages may come.
        let end = rows.last().map_or(id.0, |last| last.0).max(id.0).saturating_add(1);
        let mut window = Window { ids: id.0..end, rows: Vec::new(), bytes: Vec::new() };
        for (id, octets, header_octets, crc, data_crc, data) in rows {
            let at = window.bytes.len();
            // One that is damaged is not there for this window; who asks for it hears of it.
            if crc32c::crc32c(&data) != data_crc || data.len() != head_bytes(header_octets) as usize {
                if window.rows.is_empty() && window.ids.start == id {
                    return Err(corrupt(EmailId(id), "the header does not match its checksum"));
                }
                window.ids.end = id;
                break;
            }
            window.bytes.extend_from_slice(&data);
            let message = ForeignMessage { octets, header_octets, digest: u64::from(crc) };
            window.rows.push((EmailId(id), message, at..window.bytes.len()));
        }
        Ok(window)
    }

    pub(crate) fn find_message(&self, id: EmailId) -> Result<Option<ForeignMessage>> {
        Ok(self.window(id)?.find(id).map(|(message, _)| message))
    }

    pub(crate) fn list_messages(&self, ids: Range<u64>) -> Result<Vec<(EmailId, ForeignMessage)>> {
        let rows: Vec<(u64, u32, u32, u32)> = self.pool.run("listing messages", |connection| {
            Ok(connection.exec(
                "SELECT email_id, octets, header_octets, crc FROM header WHERE account = ? AND email_id >= ? AND email_id < ? \
                 ORDER BY email_id",
                (self.id, ids.start, ids.end),
            )?)
        })?;
        let message = |(id, octets, header_octets, crc): (u64, u32, u32, u32)| {
            (EmailId(id), ForeignMessage { octets, header_octets, digest: u64::from(crc) })
        };
        Ok(rows.into_iter().map(message).collect())
    }

    pub(crate) fn read_header(&self, id: EmailId, message: &ForeignMessage, out: &mut Vec<u8>) -> Result<()> {
        let header = u64::from(message.header_octets);
        if head_bytes(message.header_octets) < message.header_octets {
            return self.read_range(id, message, 0..header, &mut |piece| {
                out.extend_from_slice(piece);
                Ok(())
            });
        }
        let window = self.window(id)?;
        let gone = || Error::new(ErrorKind::Expunged, format!("the message {id} is no longer there"));
        out.extend_from_slice(window.find(id).ok_or_else(gone)?.1);
        Ok(())
    }

    pub(crate) fn read_range(
        &self,
        id: EmailId,
        message: &ForeignMessage,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let head = u64::from(head_bytes(message.header_octets));
        let is_whole = range.start == 0 && range.end == u64::from(message.octets);
        let mut crc = 0;
        let mut give = |bytes: &[u8]| {
            for piece in bytes.chunks(PIECE_BYTES) {
                crc = if is_whole { crc32c::crc32c_append(crc, piece) } else { 0 };
                sink(piece)?;
            }
            Ok::<(), Error>(())
        };
        if range.start < head {
            let window = self.window(id)?;
            let gone = || Error::new(ErrorKind::Expunged, format!("the message {id} is no longer there"));
            let (_, bytes) = window.find(id).ok_or_else(gone)?;
            let (from, to) = (range.start as usize, range.end.min(head) as usize);
            give(bytes.get(from..to).ok_or_else(|| corrupt(id, "its header is too short"))?)?;
        }
        let mut at = range.start.max(head);
        // Where it would be put today is where it is looked for first.
        let is_large = self.bodies.as_ref().is_some_and(|bodies| bodies.takes(u64::from(message.octets) - head));
        let mut object = if at < range.end && is_large { self.object_of(id)? } else { None };
        while at < range.end {
            if let Some(placed) = &object {
                self.bodies()?.read(self.id, placed, at - head..range.end - head, &mut give)?;
                break;
            }
            let part = (at - head) / PART_BYTES;
            let part_at = head + part * PART_BYTES;
            let data = if part == 0 { self.first_part(id)? } else { self.read_part(id, part)?.map(Arc::new) };
            let Some(data) = data else {
                let missing = || corrupt(id, "a part of its body is missing");
                object = Some(self.object_of(id)?.ok_or_else(missing)?);
                continue;
            };
            let (from, to) = ((at - part_at) as usize, (range.end - part_at).min(PART_BYTES) as usize);
            give(data.get(from..to).ok_or_else(|| corrupt(id, "a part of its body is too short"))?)?;
            at = part_at + to as u64;
        }
        if is_whole && u64::from(crc) != message.digest {
            return Err(corrupt(id, "its bytes do not match their checksum"));
        }
        Ok(())
    }

    /// `None`: it is not in the database.
    pub(crate) fn read_part(&self, id: EmailId, part: u64) -> Result<Option<Vec<u8>>> {
        let row: Option<(u32, Vec<u8>)> = self.pool.run("reading a message", |connection| {
            Ok(connection.exec_first(
                "SELECT data_crc, data FROM body WHERE account = ? AND email_id = ? AND part = ?",
                (self.id, id.0, part),
            )?)
        })?;
        match row {
            Some((crc, data)) if crc32c::crc32c(&data) == crc => Ok(Some(data)),
            Some(_) => Err(corrupt(id, "a part of its body does not match its checksum")),
            None => Ok(None),
        }
    }

    /// Removes rows that nobody can ask for any more: messages past their retention, mailboxes that were deleted before `time`.
    pub(crate) fn sweep_rows(&self, state: &State, time: i64) -> Result<bool> {
        let now = self.pool.env().clock.monotonic();
        {
            let mut swept_at = self.swept_at.lock().unwrap_or_else(PoisonError::into_inner);
            if swept_at.is_some_and(|at| now.saturating_sub(at) < SWEEP_INTERVAL) {
                return Ok(false);
            }
            *swept_at = Some(now);
        }
        let swept = self.pool.run("sweeping an account", |connection| self.sweep_once(connection, state, time))?;
        self.remove_doomed()?;
        if swept {
            *self.swept_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Ok(swept)
    }

    /// Whether there may be more.
    fn sweep_once(&self, connection: &mut Conn, state: &State, time: i64) -> Result<bool, Failure> {
        let Some(tenure) = *self.tenure() else { return Ok(false) };
        let (epoch, modseq) = self.begin_locked(connection)?;
        if epoch != tenure.epoch || modseq != state.modseq().0 {
            connection.query_drop("ROLLBACK")?;
            return Ok(false);
        }
        let deleted: Option<u64> = connection
            .exec_first("SELECT id FROM mailbox WHERE account = ? AND deleted_at < ? LIMIT 1", (self.id, time))?;
        if let Some(mailbox) = deleted {
            // As if its entries had been expunged then; they are swept with the others.
            connection.exec_drop(
                "INSERT IGNORE INTO expunged (account, mailbox, uid, email_id, flags, flags_high, modseq, internal_date, \
                 zone_minutes, save_date, size, expunged_modseq, expunged_at, touched) \
                 SELECT account, mailbox, uid, email_id, flags, flags_high, modseq, internal_date, zone_minutes, save_date, size, \
                 0, 0, 0 FROM entry WHERE account = ? AND mailbox = ?",
                (self.id, mailbox),
            )?;
            for table in ["entry", "keyword", "annotation"] {
                connection
                    .exec_drop(format!("DELETE FROM {table} WHERE account = ? AND mailbox = ?"), (self.id, mailbox))?;
            }
            connection.exec_drop("DELETE FROM mailbox WHERE account = ? AND id = ?", (self.id, mailbox))?;
        }
        let rows: Vec<(u64, u32, u64)> = connection.exec(
            "SELECT mailbox, uid, email_id FROM expunged WHERE account = ? AND email_id IS NOT NULL AND expunged_at < ? LIMIT ?",
            (self.id, time, SWEEP_ROWS),
        )?;
        for (mailbox, uid, _) in &rows {
            connection.exec_drop(
                "UPDATE expunged SET email_id = NULL WHERE account = ? AND mailbox = ? AND uid = ?",
                (self.id, mailbox, uid),
            )?;
        }
        let ids: BTreeSet<u64> = rows.iter().map(|row| row.2).collect();
        for id in ids {
            let is_used: Option<u32> = connection.exec_first(
                "SELECT 1 FROM entry WHERE account = ? AND email_id = ? UNION ALL \
                 SELECT 1 FROM expunged WHERE account = ? AND email_id = ? LIMIT 1",
                (self.id, id, self.id, id),
            )?;
            if is_used.is_none() {
                self.let_go(connection, id)?;
                for table in ["message", "attachment", "header", "body"] {
                    connection
                        .exec_drop(format!("DELETE FROM {table} WHERE account = ? AND email_id = ?"), (self.id, id))?;
                }
            }
        }
        self.doom(connection)?;
        // Entries of mailboxes that were swept, and expunges that nobody is told of any more.
        connection.exec_drop(
            "DELETE FROM expunged WHERE account = ? AND expunged_modseq = 0 AND email_id IS NULL",
            (self.id,),
        )?;
        for mailbox in state.all_mailboxes().filter(|mailbox| mailbox.vanished_floor().0 > 0) {
            let (id, floor) = (mailbox.id().0, mailbox.vanished_floor().0);
            connection.exec_drop(
                "UPDATE mailbox SET vanished_floor = ? WHERE account = ? AND id = ? AND vanished_floor < ?",
                (floor, self.id, id, floor),
            )?;
            connection.exec_drop(
                "DELETE FROM expunged WHERE account = ? AND mailbox = ? AND expunged_modseq <= ? AND email_id IS NULL",
                (self.id, id, floor),
            )?;
        }
        connection
            .exec_drop("DELETE FROM tenure WHERE account = ? AND epoch + ? < ?", (self.id, TENURES_KEPT, epoch))?;
        connection.query_drop("COMMIT")?;
        Ok(deleted.is_some() || rows.len() >= SWEEP_ROWS)
    }
}
