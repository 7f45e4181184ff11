//! Which deliveries an account has taken: so that one that is sent again after its answer was lost is recognised.
//!
//! The last [`DELIVERIES_MAX`] are remembered, in annotations of the log that come with the messages themselves: both are durable or
//! neither is. Only deliveries that have an id are remembered (RFC 3461 §4.4 ENVID); nothing else tells a repeated delivery from two
//! equal messages.

use index::State;
use model::{MailboxId, Result};

use crate::{Appended, Edit, NewMessage};

/// Deliveries with an id that an account remembers.
pub const DELIVERIES_MAX: u64 = 256;

/// A delivery to one recipient: a digest of its id, its sender, its recipient and its octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryId(pub [u8; 16]);

fn key(place: u64) -> String {
    format!("delivery/{place:03}")
}

/// Where the next one is kept, and its number; `None`: this one is kept already. A value is a digest and its number, little-endian.
fn place(state: &State, id: DeliveryId) -> Option<(u64, u64)> {
    let kept = (0..DELIVERIES_MAX).filter_map(|place| state.annotation(&key(place)));
    let mut next = 0;
    for value in kept {
        let Some((digest, number)) = value.split_first_chunk::<16>() else { continue };
        if *digest == id.0 {
            return None;
        }
        let number = number.try_into().map_or(0, u64::from_le_bytes);
        next = next.max(number.saturating_add(1));
    }
    Some((next % DELIVERIES_MAX, next))
}

impl Edit<'_> {
    /// [`Edit::append`] of one message, unless the account has taken the delivery already: then `None`, and nothing is done.
    pub fn deliver(&mut self, mailbox: MailboxId, message: &NewMessage, id: DeliveryId) -> Result<Option<Appended>> {
        let Some((place, number)) = place(self.transaction.state(), id) else { return Ok(None) };
        let mut value = id.0.to_vec();
        value.extend_from_slice(&number.to_le_bytes());
        let appended = self.append(mailbox, std::slice::from_ref(message))?;
        self.transaction.annotate_account(&key(place), Some(&value))?;
        Ok(Some(appended))
    }
}
