//! `mbox2004`: a server and an mbox file that it serves in place.
//!
//! Source: Timo Sirainen, "1.0-test24 and some mbox benchmarking", dovecot mailing list, 2 July 2004: a mailbox of 361,052 messages and
//! 1.4 GB, the archive of the Linux kernel's list of 1996-2002, opened and rewritten by Dovecot and UW-IMAP on an Athlon. A server that
//! meets an mbox for the first time has to find every message; one that is to keep flags in it has to make room for them in every header,
//! and so to write the whole file again.
//!
//! The steps of a round, each on a connection that has logged in already:
//! 1. `first open`: SELECT of a file that was put in place while the server did not run, and that is out of the page cache;
//! 2. `flags`: `STORE 1:* +FLAGS.SILENT (\Seen \Answered \Flagged)`;
//! 3. `write back`: CHECK, CLOSE, LOGOUT, until no process of the server has the file open for writing. The flags are then looked for in the file;
//! 4. `reopen`: SELECT of the unchanged file, with the server just started and everything out of the page cache, then once more;
//! 5. `open after 10`: SELECT after ten messages were added to the file as a delivery agent would;
//! 6. `flags again`, `write back again`: two of the flags are taken away from all messages, and as in 3; the headers have room by now;
//! 7. `expunge 1 %`: a random hundredth is marked and expunged, CLOSE, LOGOUT, until no
//!    process has the file open for writing.
//!
//! What we changed, and why: reads and writes are those of the server's processes rather than of the whole system (/proc/PID/io), memory
//! is the peak of the resident sets, and of the part of them that is no page of a mapped file (`peak_anonymous`); what the disk itself was
//! given until all was synced is there as well (`disk_written`), since Linux counts a page of a file as written by a process when one octet of it
//! changes, and such a page can be 2 MiB large, of which only the changed 4 KiB go to the disk; steps 4 to 7 were added,
//! since nobody opens a mailbox only once; the mail is made from real mail, since the archive's own is not the same for everybody.
//!
//! A server that stores mail in another way has no first open: it is in the results as one that does not offer this.

mod file;
mod steps;

use super::Suite;
use crate::error::{Error, Result};
use crate::run::Run;
use std::cell::Cell;

/// In results and on the command line.
const NAME: &str = "mbox2004";

/// The suite.
#[derive(Default)]
pub struct Mbox2004 {
    /// Mailboxes that were made so far: each round has one that was never seen.
    made: Cell<usize>,
}

impl Suite for Mbox2004 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> &'static str {
        "Timo Sirainen: 1.0-test24 and some mbox benchmarking, dovecot mailing list, 2 July 2004"
    }

    fn about(&self) -> &'static str {
        "An mbox file is put where the server serves it, opened for the first time with a cold page cache, every message is flagged, the \
         flags are written back, and the file is opened again: unchanged, cold and warm, and after ten messages were added to it; other flags \
         are written into the room that is there by then, and a random 1 % is expunged. For each step the wall time, and of the server's processes the user and system time, the bytes read and written and the peak of resident \
         memory. The limits are reading the file once and writing a copy of it once."
    }

    fn per_size(&self) -> bool {
        true
    }

    fn run(&self, run: &mut Run) -> Result<()> {
        for round in 0..run.plan.repeat {
            let number = self.made.get() + 1;
            self.made.set(number);
            let mailbox = format!("bench-{number}");
            let messages = u32::try_from(run.corpus.messages).unwrap_or(u32::MAX);
            let doomed = run.random.choose((messages as usize / 100).max(1), messages);
            run.each(NAME, "opening, flagging, opening again", |contestant, tools| {
                let account = contestant.server.accounts(1)?.into_iter().next();
                let account = account.ok_or_else(|| Error::new("the server has no account"))?;
                let name = contestant.info.name.clone();
                let path = contestant.server.local().and_then(|local| local.mbox(&account, &mailbox));
                match (contestant.server.local(), path) {
                    (Some(local), Some(path)) => {
                        let (mailbox, doomed) = (mailbox.clone(), doomed.clone());
                        let mut subject = steps::Subject { name, local, account, mailbox, path, doomed };
                        steps::measure(&mut subject, tools, round)
                    }
                    _ => steps::unsupported(&name, tools, round),
                }
            })?;
            steps::limits(run, round)?;
        }
        Ok(())
    }
}
