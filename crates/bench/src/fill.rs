//! Filling a mailbox over the wire, as fast as the server's extensions allow.

use crate::corpus::Corpus;
use crate::error::{Doing, Result};
use crate::mbox;
use crate::wire::Connection;
use std::time::{Duration, Instant};

/// One command or one batch of commands carries no more than this: a server may keep a whole command in memory.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_MESSAGES: usize = 100;

/// How messages go to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Many messages in one command (RFC 3502), literals not waited for (RFC 7888).
    MultiAppend,
    /// A command a message, many sent before the first answer is read.
    Pipelined,
    /// A command a message, each literal after the server's consent (RFC 9051 §4.3).
    Waiting,
}

impl Way {
    /// The best that the server offers.
    pub fn of(connection: &mut Connection) -> Result<Way> {
        let answer = connection.command("CAPABILITY")?;
        let offers = |name: &str| {
            let lines = answer.kept.iter().filter_map(|line| line.strip_prefix("* CAPABILITY "));
            lines.flat_map(|line| line.split(' ')).any(|offered| offered.eq_ignore_ascii_case(name))
        };
        Ok(match (offers("LITERAL+"), offers("MULTIAPPEND")) {
            (true, true) => Way::MultiAppend,
            (true, false) => Way::Pipelined,
            (false, _) => Way::Waiting,
        })
    }

    /// For the reader of the figures.
    pub fn explained(self) -> &'static str {
        match self {
            Way::MultiAppend => "appended over the wire, 100 messages a command (MULTIAPPEND, LITERAL+)",
            Way::Pipelined => "appended over the wire, a command a message, 100 at once (LITERAL+)",
            Way::Waiting => "appended over the wire, a command a message, each waited for",
        }
    }
}

/// Appends all messages of the corpus to a mailbox that is there. Gives the time from the first byte to the last answer.
pub fn fill(connection: &mut Connection, mailbox: &str, corpus: &Corpus, way: Way) -> Result<Duration> {
    let began = Instant::now();
    let mut batch: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    mbox::each_message(&corpus.path, |message| {
        bytes += message.len();
        batch.push(message);
        if batch.len() == BATCH_MESSAGES || bytes >= BATCH_BYTES {
            send(connection, mailbox, &batch, way)?;
            batch.clear();
            bytes = 0;
        }
        Ok(true)
    })?;
    send(connection, mailbox, &batch, way)?;
    Ok(began.elapsed())
}

fn send(connection: &mut Connection, mailbox: &str, batch: &[Vec<u8>], way: Way) -> Result<()> {
    let messages: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
    match way {
        _ if messages.is_empty() => Ok(()),
        Way::MultiAppend => connection.append(mailbox, &messages).map(drop),
        Way::Pipelined => connection.append_each(mailbox, &messages).map(drop),
        Way::Waiting => messages.iter().try_for_each(|message| connection.append_waiting(mailbox, message).map(drop)),
    }
    .doing("filling the mailbox")
}
