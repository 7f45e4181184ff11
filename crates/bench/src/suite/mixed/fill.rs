//! Making a user's mailboxes, and bringing them back to where they were before every round.

use super::place::{INBOX, Mailbox, Pool};
use crate::error::{Error, Result};
use crate::wire::{Address, Connection, Outgoing};
use std::sync::Mutex;

/// Messages in one batch: one command where the server has MULTIAPPEND.
const BATCH: usize = 50;
/// Users whose mailboxes are filled at once.
const THREADS: usize = 4;

/// Fills the mailboxes of all users.
pub fn fill(accounts: &[Address], mailboxes: &[impl AsRef<[Mailbox]> + Sync], pool: &Pool) -> Result<()> {
    let waiting = Mutex::new(accounts.iter().zip(mailboxes));
    let next = || waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        let work = || {
            while let Some((account, mailboxes)) = next() {
                one_user(account, mailboxes.as_ref(), pool)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| Error::new("a filling thread failed"))?)
    })
}

fn one_user(account: &Address, mailboxes: &[Mailbox], pool: &Pool) -> Result<()> {
    let mut connection = Connection::login(account)?;
    let offered = connection.capabilities()?;
    for mailbox in mailboxes {
        connection.renew(&mailbox.name)?;
        let messages = pool.messages.get(mailbox.messages.clone()).unwrap_or_default();
        let outgoing: Vec<Outgoing> = messages.iter().map(|bytes| Outgoing { bytes, internal_date: "" }).collect();
        for batch in outgoing.chunks(BATCH) {
            connection.append_all(&mailbox.name, batch, &offered)?;
        }
    }
    connection.renew(INBOX)
}

/// No flags are set and nothing was appended: every round begins with the same mailboxes.
pub fn reset(account: &Address, mailboxes: &[Mailbox]) -> Result<()> {
    let mut connection = Connection::login(account)?;
    for mailbox in mailboxes {
        let (_, exists) = connection.select(&mailbox.name)?;
        if exists > 0 {
            connection.command("STORE 1:* -FLAGS.SILENT (\\Seen \\Flagged \\Answered)")?;
        }
        // A mailbox that is selected may not be one that goes.
        connection.command("CLOSE")?;
    }
    connection.renew(INBOX)
}

/// Leaves the account as it was.
pub fn remove(account: &Address, mailboxes: &[Mailbox]) -> Result<()> {
    let mut connection = Connection::login(account)?;
    for name in mailboxes.iter().map(|mailbox| mailbox.name.as_str()).chain([INBOX]) {
        connection.command(&format!("DELETE {}", connection.mailbox(name)))?;
    }
    Ok(())
}
