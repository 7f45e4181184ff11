//! Operations that change nothing: SELECT and FETCH.

use super::{Bench, MAILBOX, Target, say};
use crate::error::{Error, Result};
use crate::server::Local;
use crate::wire::{Answer, Connection};
use crate::workload::report::{Goal, Unit};

/// SELECT of a mailbox that is in use, at any size.
const SELECT_WARM_MS: f64 = 20.0;
/// Headers at half the speed of a plain read-and-send.
const HEADERS_TIMES: f64 = 2.0;

impl Bench<'_> {
    /// SELECT cold and warm, headers, envelopes.
    pub(super) fn reads(&mut self) -> Result<()> {
        self.select_after_restart()?;
        let rounds = self.plan.repeat;
        let goal = Some(Goal::AtMost(SELECT_WARM_MS));
        self.against_replay("SELECT", 0, goal, rounds, |target, _, _| Ok(target.connection()?.select(MAILBOX)?.0))?;
        let goal = Some(Goal::TimesLimit(HEADERS_TIMES));
        self.against_replay("FETCH 1:* BODY.PEEK[HEADER]", 0, goal, rounds, |target, _, _| {
            fetch_all(target, "BODY.PEEK[HEADER]")
        })?;
        self.against_replay("FETCH 1:* FLAGS UID SIZE DATE ENVELOPE", 0, None, rounds, |target, _, _| {
            fetch_all(target, "(FLAGS UID RFC822.SIZE INTERNALDATE ENVELOPE)")
        })?;
        self.against_replay("FETCH 1:* FLAGS UID", 0, None, rounds, |target, _, _| fetch_all(target, "(FLAGS UID)"))?;
        self.against_replay("FETCH 1:* BODY.PEEK[]", 0, None, rounds.min(3), |target, _, _| {
            fetch_all(target, "BODY.PEEK[]")
        })
    }

    /// The first SELECT after the server has been started: what is not in its memory yet.
    fn select_after_restart(&mut self) -> Result<()> {
        say("SELECT after a restart");
        let mut results = self.no_samples();
        for _ in 0..self.plan.repeat {
            for (target, samples) in self.targets.iter_mut().zip(&mut results) {
                if target.mailyard.is_none() {
                    continue;
                }
                target.connection = None;
                if let Some(mailyard) = &mut target.mailyard {
                    mailyard.stop()?;
                    mailyard.start()?;
                }
                let mut connection = Connection::login(&target.address)?;
                let (answer, exists) = connection.select(MAILBOX)?;
                samples.push_time(answer.took);
                target.exists = exists;
                target.connection = Some(connection);
            }
        }
        self.row("SELECT, server just started", Unit::Ms, results, None, None);
        Ok(())
    }
}

/// Fetches items of all messages; every message must answer once.
fn fetch_all(target: &mut Target, items: &str) -> Result<Answer> {
    let answer = target.connection()?.command(&format!("FETCH 1:* {items}"))?;
    if answer.fetches != u64::from(target.exists) {
        return Err(Error::new(format!("{}: {} of {} messages fetched", target.name, answer.fetches, target.exists)));
    }
    Ok(answer)
}
