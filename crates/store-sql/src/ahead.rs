//! The bodies of neighbours, read together for who reads one message after the other: a search index that is made, a copy, a client that
//! fetches a whole mailbox.
//!
//! Only first parts: a body of several is large enough to be asked for by itself.

use std::sync::Arc;

use model::{EmailId, Result};
use mysql::prelude::Queryable;

use crate::account::Account;

/// Octets of messages that are read together, about, and that an account keeps.
const AHEAD_BYTES: u64 = 256 << 10;
/// A message whose id is at most so much behind that of the last one is the next one.
const NEAR: u64 = 16;

/// First parts of bodies, the message of the last one that was asked for.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Rising by id.
    parts: Vec<(EmailId, Arc<Vec<u8>>)>,
    last: u64,
}

impl Ahead {
    fn find(&self, id: EmailId) -> Option<Arc<Vec<u8>>> {
        let at = self.parts.binary_search_by_key(&id, |part| part.0).ok()?;
        self.parts.get(at).map(|(_, part)| Arc::clone(part))
    }
}

impl Account {
    /// The first part of a body; `None`: it is not in the database.
    pub(crate) fn first_part(&self, id: EmailId) -> Result<Option<Arc<Vec<u8>>>> {
        let last = {
            let ahead = &mut self.heads().ahead;
            let last = std::mem::replace(&mut ahead.last, id.0);
            if let Some(part) = ahead.find(id) {
                return Ok(Some(part));
            }
            last
        };
        let is_next = last < id.0 && id.0 - last <= NEAR;
        let upto = if is_next { self.heads().upto(id, AHEAD_BYTES) } else { id };
        let rows: Vec<(u64, u32, Vec<u8>)> = self.pool.run("reading messages", |connection| {
            Ok(connection.exec(
                "SELECT email_id, data_crc, data FROM body WHERE account = ? AND email_id BETWEEN ? AND ? AND part = 0 \
                 ORDER BY email_id",
                (self.id, id.0, upto.0),
            )?)
        })?;
        // One that is damaged is not there; who asks for it hears of it.
        let sound = rows.into_iter().filter(|(_, crc, data)| crc32c::crc32c(data) == *crc);
        let parts: Vec<(EmailId, Arc<Vec<u8>>)> = sound.map(|(id, _, data)| (EmailId(id), Arc::new(data))).collect();
        let found = parts.first().filter(|part| part.0 == id).map(|(_, part)| Arc::clone(part));
        if parts.iter().map(|(_, part)| part.len() as u64).sum::<u64>() <= AHEAD_BYTES {
            self.heads().ahead.parts = parts;
        }
        match found {
            Some(part) => Ok(Some(part)),
            None => Ok(self.read_part(id, 0)?.map(Arc::new)),
        }
    }
}
