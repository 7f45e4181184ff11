//! Filling a mailbox over the wire, as fast as the server's extensions allow.

use crate::corpus::Corpus;
use crate::error::{Doing, Result};
use crate::mbox;
use crate::wire::{Connection, Outgoing};

/// What is sent before an answer is read: a server may keep a whole command in memory.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_MESSAGES: usize = 100;

/// Appends all messages of the corpus to a mailbox that is there; says how, for the reader of the figures.
pub fn fill(connection: &mut Connection, mailbox: &str, corpus: &Corpus) -> Result<&'static str> {
    let offered = connection.capabilities()?;
    let mut batch: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    let mut send = |batch: &mut Vec<Vec<u8>>| {
        let messages: Vec<Outgoing> = batch.iter().map(|bytes| Outgoing { bytes, internal_date: "" }).collect();
        if !messages.is_empty() {
            connection.append_all(mailbox, &messages, &offered).doing("filling the mailbox")?;
        }
        batch.clear();
        Ok(())
    };
    mbox::each_message(&corpus.path, |message| {
        bytes += message.len();
        batch.push(message);
        if batch.len() == BATCH_MESSAGES || bytes >= BATCH_BYTES {
            send(&mut batch)?;
            bytes = 0;
        }
        Ok(true)
    })?;
    send(&mut batch)?;
    Ok(match (offered.multiappend(), offered.literals().pushed(BATCH_BYTES)) {
        (true, true) => "appended over the wire, 100 messages a command (MULTIAPPEND, LITERAL+)",
        (true, false) => "appended over the wire, 100 messages a command, each literal waited for (MULTIAPPEND)",
        (false, true) => "appended over the wire, a command a message, 100 sent at once (LITERAL+)",
        (false, false) => "appended over the wire, a command a message, each literal waited for",
    })
}
