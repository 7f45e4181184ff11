//! IDLE (RFC 9051 §6.3.13, RFC 2177): changes are said as they happen.

use std::sync::Arc;
use std::time::Duration;

use crate::Output;
use crate::imap::notify::Notices;
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::Session;
use crate::imap::updates::{Updates, Why};

pub(crate) fn run(session: &mut Session, out: &mut Output) -> Started {
    let account = session.account()?;
    let waker = Arc::clone(&session.waker);
    if let Some(selected) = &mut session.selected {
        // First listen, then look: a change in between is seen by `pull`, which looks each time.
        selected.listener = Some(account.listen(waker));
    }
    session.idle = true;
    out.push_str("+ Waiting with you\r\n");
    Ok(Reply::Running(Box::new(Idle { updates: None, notices: None, done: None })))
}

/// How long it is waited when a mailbox file has changed and is locked: whoever changed it is about to be done.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

/// Takes in what other programs did to the file of the selected mailbox, if it has one. False: it is locked.
fn look_at_file(session: &Session) -> bool {
    match (session.account(), &session.selected) {
        // What is wrong with the file is told to who asks for something in it.
        (Ok(account), Some(selected)) => account.try_refresh(selected.mailbox).unwrap_or(true),
        _ => true,
    }
}

struct Idle {
    updates: Option<Updates>,
    /// The same for a client that has said NOTIFY.
    notices: Option<Notices>,
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
            if let Some(notices) = &mut self.notices {
                if !notices.pull(session, out) {
                    return Ok(Progress::More);
                }
                self.notices = None;
            }
            if let Some(done) = self.done.take() {
                return Ok(Progress::Done(done));
            }
            if session.notify.is_some() {
                // RFC 5465 §4: exactly what NOTIFY asked for; expunges that it wants delayed may come now.
                self.notices = Notices::look(session, true);
                if self.notices.is_none() {
                    return Ok(session.looks_again_at().map_or(Progress::WaitForLine, Progress::WaitUntil));
                }
                continue;
            }
            let is_locked = !look_at_file(session);
            self.updates = Updates::new(session, true, Why::Passing);
            if self.updates.is_none() {
                let again = session.now.monotonic.saturating_add(LOCKED_PAUSE);
                return Ok(if is_locked { Progress::WaitUntil(again) } else { Progress::WaitForLine });
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
