//! A run: servers, corpora, suites, and the folder that the results go to.
//!
//! Servers take turns within every repetition (A B A B), so that a machine that grows slower or faster does so for all of them. A server
//! that fails leaves the run with a record of why, and the others go on.

use crate::cold;
use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::progress::Progress;
use crate::random::Random;
use crate::results::{Key, Limit, Recorder, ServerInfo, Verdict};
use crate::server::Server;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to measure.
pub struct Plan {
    /// How often each test is measured.
    pub repeat: usize,
    /// No repetition of a suite begins that would end later than this after the first one began.
    pub suite_max: Option<Duration>,
    /// For all choices of messages.
    pub seed: u64,
    /// Fewer connections, rounds and seconds everywhere: shows that everything works; its figures mean nothing.
    pub quick: bool,
    /// The program `mailyard`, for the suites that measure its tools; the one beside this program unless named.
    pub mailyard: Option<PathBuf>,
    /// An existing folder on the disk that is measured, for everything temporary.
    pub work: PathBuf,
}

/// A server in the run.
pub struct Contestant {
    /// What the report says of it.
    pub info: ServerInfo,
    /// The server itself.
    pub server: Box<dyn Server>,
    /// Why it is out of the run.
    pub failed: Option<String>,
}

/// A run that is going on.
pub struct Run<'p> {
    /// What to measure.
    pub plan: &'p Plan,
    /// The mail of this part of the run.
    pub corpus: Corpus,
    /// Everyone, in turn.
    pub servers: Vec<Contestant>,
    /// Where the results go.
    pub recorder: Recorder,
    /// What the person at the terminal sees.
    pub progress: Progress,
    /// Choices that are the same for every server are made once, from this.
    pub random: Random,
}

impl Run<'_> {
    /// Does something with every server that is still in the run, in turn; one that fails is out from then on.
    pub fn each(
        &mut self,
        suite: &str,
        what: &str,
        mut action: impl FnMut(&mut Contestant, &mut Tools) -> Result<()>,
    ) -> Result<()> {
        let mut tools = Tools { plan: self.plan, corpus: &self.corpus, recorder: &mut self.recorder };
        for contestant in self.servers.iter_mut().filter(|contestant| contestant.failed.is_none()) {
            self.progress.say(&format!("{suite}: {what}: {}", contestant.info.name));
            interrupt::check()?;
            if let Err(error) = action(contestant, &mut tools) {
                // An interruption kills the servers: their failing is no result.
                interrupt::check()?;
                // Without a place for results there is nothing to go on for.
                tools.recorder.problem(&contestant.info.name, suite, &error)?;
                contestant.failed = Some(error.to_string());
            }
        }
        if self.nobody_is_left() {
            return Err(Error::new(format!("{suite}: no server is left to measure")));
        }
        Ok(())
    }

    /// Whether every server is out of the run.
    pub fn nobody_is_left(&self) -> bool {
        self.servers.iter().all(|contestant| contestant.failed.is_some())
    }

    /// Whether a suite that began its repetitions then goes on with this one, counted from 0: the first always, a further one only if it
    /// will end in time ([`Plan::suite_max`]) when it takes as long as those before it. A note says if not.
    pub fn again(&mut self, suite: &str, round: usize, began: Instant) -> Result<bool> {
        let Some(max) = self.plan.suite_max else { return Ok(true) };
        if round == 0 || fits(began.elapsed(), round, max) {
            return Ok(true);
        }
        let (wanted, minutes) = (self.plan.repeat, max.as_secs() / 60);
        let text =
            format!("{round} of {wanted} repetitions: with another the suite would take more than {minutes} minutes");
        self.recorder.note(suite, "", text)?;
        Ok(false)
    }

    /// Stops a server of our own and starts it again with its files out of the page cache; says how far that went, or `None` for a
    /// server that is only an address.
    pub fn make_cold(contestant: &mut Contestant) -> Result<Option<cold::Dropped>> {
        let Some(local) = contestant.server.local() else { return Ok(None) };
        local.stop()?;
        let dropped = cold::drop_from_cache(&local.files())?;
        local.start()?;
        Ok(Some(dropped))
    }

    /// A folder of its own for temporary files.
    pub fn work(&self) -> &Path {
        &self.plan.work
    }
}

/// Whether one more repetition fits after so many that took so long.
fn fits(took: Duration, repetitions: usize, max: Duration) -> bool {
    let repetitions = u32::try_from(repetitions).unwrap_or(u32::MAX).max(1);
    took + took / repetitions <= max
}

/// What an action on one server may use.
pub struct Tools<'r> {
    /// What to measure.
    pub plan: &'r Plan,
    /// The mail.
    pub corpus: &'r Corpus,
    /// Where results go.
    pub recorder: &'r mut Recorder,
}

impl Tools<'_> {
    /// A test that the server does not offer.
    pub fn unsupported(&mut self, key: Key, round: usize, why: impl Into<String>) -> Result<()> {
        self.recorder.missing(key, round, Verdict::Unsupported(why.into()))
    }

    /// A limit of the machine.
    pub fn limit(&mut self, limit: Limit) -> Result<()> {
        self.recorder.limit(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::fits;
    use std::time::Duration;

    #[test]
    fn another_repetition() {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        assert!(fits(minutes(5), 1, minutes(10)));
        assert!(!fits(minutes(6), 1, minutes(10)));
        assert!(fits(minutes(6), 2, minutes(9)));
        assert!(!fits(minutes(9), 2, minutes(9)));
    }
}
