//! IDLE (RFC 9051 §6.3.13, RFC 2177): changes are said as they happen.

use std::sync::Arc;

use crate::Output;
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::Session;
use crate::imap::updates::Updates;

pub(crate) fn run(session: &mut Session, out: &mut Output) -> Started {
    let account = session.account()?;
    let waker = Arc::clone(&session.waker);
    if let Some(selected) = &mut session.selected {
        // First listen, then look: a change in between is seen by `pull`, which looks each time.
        selected.listener = Some(account.listen(waker));
    }
    session.idle = true;
    out.push_str("+ Waiting with you\r\n");
    Ok(Reply::Running(Box::new(Idle { updates: None, done: None })))
}

struct Idle {
    updates: Option<Updates>,
    done: Option<Done>,
}

impl Running for Idle {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        loop {
            if let Some(updates) = &mut self.updates {
                if !updates.pull(session, out) {
                    return Ok(Progress::More);
                }
                self.updates = None;
            }
            if let Some(done) = self.done.take() {
                return Ok(Progress::Done(done));
            }
            self.updates = Updates::new(session, true);
            if self.updates.is_none() {
                return Ok(Progress::WaitForLine);
            }
        }
    }

    fn line(&mut self, session: &mut Session, line: &[u8]) -> Result<(), Stop> {
        session.stop_idling();
        // RFC 9051 §6.3.13: DONE, in any case; whatever else comes ends IDLE too.
        if !line.eq_ignore_ascii_case(b"DONE") {
            return Err(Done::bad("IDLE ends with DONE").into());
        }
        self.done = Some(Done::ok("Done waiting"));
        Ok(())
    }
}
