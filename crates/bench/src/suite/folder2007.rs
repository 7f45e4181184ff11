//! `folder2007`: opening a mailbox, converting it, backing it up.
//!
//! Source: Florian Lohoff's comparison of mbox and Maildir, 2007: one mailbox of about 58,000 messages and 350 MB, opened in a mail
//! reader with a cold and with a hot page cache, converted from mbox, and packed with tar.
//!
//! What we changed, and why:
//! - The mailbox is opened over IMAP by any server instead of by a mail reader on the files, so that formats without files of their own
//!   for each message can take part. "Opened" means what such a reader needs to show its list: SELECT, and one FETCH of flags, size, date
//!   and the header fields that mutt asks for, of all messages.
//! - The first opening ever of a converted mailbox is a test of its own: it is when indexes are built.
//! - A conversion ends when the result is on the disk (syncfs(2) is part of the time); it uses the server's own tool where it has one,
//!   else the messages go over the wire; a note says which. Two programs that convert into a Maildir and serve nothing stand beside: mb2md,
//!   which administrators use, and Python's `mailbox`.
//! - tar writes into a pipe that is read to its end. GNU tar does not read the files at all when its output is /dev/null.
//!
//! Each repetition has an account of its own: every one converts into a mailbox that was never there.

mod backup;
mod conversion;
mod opening;
mod programs;

use super::Suite;
use crate::error::Result;
use crate::run::{Contestant, Run};
use crate::wire::Address;
use std::cell::Cell;
use std::time::Instant;

/// In results and on the command line.
const NAME: &str = "folder2007";

/// The mailbox that is made.
const MAILBOX: &str = "bench";

/// The suite.
#[derive(Default)]
pub struct Folder2007 {
    /// Accounts that earlier sizes have used. The first account is left to others, who leave mail in it.
    used: Cell<usize>,
}

impl Suite for Folder2007 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> &'static str {
        "Florian Lohoff's comparison of mbox and Maildir, 2007"
    }

    fn about(&self) -> &'static str {
        "A mailbox is converted from an mbox file, until the result is on the disk; opened for the first time, then with the server just \
         started and its files out of the page cache, then once more: SELECT and one FETCH of flags, size, date and the header fields that \
         a mail reader shows, of all messages; and packed with tar, cold, into a pipe. The limits are a copy of the mbox file with a sync, \
         the same answer replayed from a file, and the mbox file through a pipe."
    }

    fn per_size(&self) -> bool {
        true
    }

    fn run(&self, run: &mut Run) -> Result<()> {
        let mut replayed = None;
        let began = Instant::now();
        for round in 0..run.plan.repeat {
            if !run.again(NAME, round, began)? {
                break;
            }
            let number = self.used.get() + 1;
            self.used.set(number);
            run.each(NAME, "conversion", |contestant, tools| {
                let account = account(contestant, number)?;
                conversion::measure(contestant, &account, tools, round)
            })?;
            run.each(NAME, "opening", |contestant, tools| {
                let account = account(contestant, number)?;
                opening::first_and_cold(contestant, &account, tools, round)
            })?;
            run.each(NAME, "opening again", |contestant, tools| {
                let account = account(contestant, number)?;
                opening::warm(contestant, &account, tools, round)?;
                if replayed.is_none() {
                    replayed = Some(opening::record(contestant, &account, tools)?);
                }
                Ok(())
            })?;
            run.each(NAME, "backup", |contestant, tools| {
                let account = account(contestant, number)?;
                backup::measure(contestant, &account, tools, round)
            })?;
            programs::measure(run, round)?;
            conversion::limit(run, round)?;
            if let Some(recording) = &replayed {
                opening::limit(run, recording, round)?;
            }
            backup::limit(run, round)?;
            run.each(NAME, "cleaning up", |contestant, _| {
                let account = account(contestant, number)?;
                conversion::remove_mailbox(&account)
            })?;
        }
        Ok(())
    }
}

/// The account with this number, counted from 0; of a server with fewer, one of those.
fn account(contestant: &mut Contestant, number: usize) -> Result<Address> {
    let accounts = contestant.server.accounts(number + 1)?;
    accounts.into_iter().nth(number).ok_or_else(|| crate::error::Error::new("the server has no account"))
}
