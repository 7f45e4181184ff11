//! The steps of a round.

use super::{NAME, file};
use crate::cold;
use crate::error::{Doing, Result};
use crate::limits;
use crate::mbox;
use crate::results::{Better, Key, LIMIT, State, Unit, Verdict};
use crate::run::{Run, Tools};
use crate::server::Local;
use crate::usage::{Meter, Watch, device};
use crate::wire::{Address, Connection, sequence_sets};
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const FIRST_OPEN: &str = "first open";
const FLAGS: &str = "flags";
const WRITE_BACK: &str = "write back";
const REOPEN: &str = "reopen";
const OPEN_AFTER: &str = "open after 10";
const FLAGS_AGAIN: &str = "flags again";
const WRITE_BACK_AGAIN: &str = "write back again";
const EXPUNGE: &str = "expunge 1 %";

/// Every test, with the state before it.
const TESTS: [(&str, State); 9] = [
    (FIRST_OPEN, State::Cold),
    (FLAGS, State::Warm),
    (WRITE_BACK, State::Warm),
    (REOPEN, State::Cold),
    (REOPEN, State::Warm),
    (OPEN_AFTER, State::Warm),
    (FLAGS_AGAIN, State::Warm),
    (WRITE_BACK_AGAIN, State::Warm),
    (EXPUNGE, State::Warm),
];

/// Messages that arrive before the last step.
const DELIVERED: u64 = 10;

/// The server and the mailbox of one round.
pub struct Subject<'s> {
    /// Its name in results.
    pub name: String,
    /// The server.
    pub local: &'s mut dyn Local,
    /// Whose mailbox it is.
    pub account: Address,
    /// The mailbox.
    pub mailbox: String,
    /// The file behind it.
    pub path: PathBuf,
    /// The messages that are expunged in the end, by number, rising.
    pub doomed: Vec<u32>,
}

/// What a step did beside taking time.
struct Done {
    took: Duration,
    verdict: Verdict,
}

/// All steps of a round.
pub fn measure(subject: &mut Subject, tools: &mut Tools, round: usize) -> Result<()> {
    let messages = tools.corpus.messages;
    subject.local.stop()?;
    mbox::place(&tools.corpus.path, &subject.path)?;
    cold::drop_from_cache(std::slice::from_ref(&tools.corpus.path))?;
    subject.make_cold(tools)?;

    let mut connection = Connection::login(&subject.account)?;
    subject.step(tools, (FIRST_OPEN, State::Cold), round, |subject, _| subject.open(&mut connection, messages))?;
    subject.step(tools, (FLAGS, State::Warm), round, |_, _| {
        let answer = connection.command(r"STORE 1:* +FLAGS.SILENT (\Seen \Answered \Flagged)")?;
        Ok(Done { took: answer.took, verdict: Verdict::Right })
    })?;
    subject.step(tools, (WRITE_BACK, State::Warm), round, |subject, meter| {
        let took = subject.finish(&mut connection, &["CHECK", "CLOSE"], meter)?;
        let flagged = file::flagged(&subject.path, b"RAF", b"")?;
        Ok(Done { took, verdict: judge("have the flags in the file", messages, flagged) })
    })?;

    subject.local.stop()?;
    subject.make_cold(tools)?;
    for state in [State::Cold, State::Warm] {
        subject.open_anew(tools, (REOPEN, state), round, messages)?;
    }
    let delivered = file::deliver(&tools.corpus.path, DELIVERED, &subject.path)?;
    // Reopening an unchanged file may have left most of it on the disk.
    limits::drain(File::open(&subject.path).doing(subject.path.display())?)?;
    let messages = messages + delivered;
    subject.open_anew(tools, (OPEN_AFTER, State::Warm), round, messages)?;
    later_changes(subject, tools, round, messages)?;
    let mut connection = Connection::login(&subject.account)?;
    let delete = format!("DELETE {}", connection.mailbox(&subject.mailbox));
    connection.command(&delete)?;
    connection.command("LOGOUT").map(drop)
}

/// Flags that find room in the file, and messages that leave it.
fn later_changes(subject: &mut Subject, tools: &mut Tools, round: usize, messages: u64) -> Result<()> {
    let mut connection = Connection::login(&subject.account)?;
    connection.select(&subject.mailbox)?;
    subject.step(tools, (FLAGS_AGAIN, State::Warm), round, |_, _| {
        let answer = connection.command(r"STORE 1:* -FLAGS.SILENT (\Answered \Flagged)")?;
        Ok(Done { took: answer.took, verdict: Verdict::Right })
    })?;
    subject.step(tools, (WRITE_BACK_AGAIN, State::Warm), round, |subject, meter| {
        let took = subject.finish(&mut connection, &["CHECK", "CLOSE"], meter)?;
        let flagged = file::flagged(&subject.path, b"", b"AF")?;
        Ok(Done { took, verdict: judge("have lost the flags in the file", messages, flagged) })
    })?;
    let mut connection = Connection::login(&subject.account)?;
    connection.select(&subject.mailbox)?;
    subject.step(tools, (EXPUNGE, State::Warm), round, |subject, meter| {
        let began = Instant::now();
        let sets = sequence_sets(&subject.doomed);
        let marks: Vec<String> = sets.iter().map(|set| format!("STORE {set} +FLAGS.SILENT (\\Deleted)")).collect();
        connection.batch(&marks)?;
        let marked = began.elapsed();
        let took = marked + subject.finish(&mut connection, &["EXPUNGE", "CLOSE"], meter)?;
        let left = messages.saturating_sub(subject.doomed.len() as u64);
        Ok(Done { took, verdict: judge("are left in the file", left, file::flagged(&subject.path, b"", b"")?) })
    })
}

/// The records of a server that does not serve mbox files.
pub fn unsupported(name: &str, tools: &mut Tools, round: usize) -> Result<()> {
    for (test, state) in TESTS {
        let key = Key::new(NAME, test, name, "time").size(&tools.corpus.name).state(state);
        tools.unsupported(key, round, "it does not serve mbox files in place, or not on this machine")?;
    }
    Ok(())
}

/// Reading the file, and writing it.
pub fn limits(run: &mut Run, round: usize) -> Result<()> {
    let corpus = run.corpus.clone();
    let key = |test, state| Key::new(NAME, test, LIMIT, "time").size(&corpus.name).state(state);
    cold::drop_from_cache(std::slice::from_ref(&corpus.path))?;
    let (_, took) = limits::drain(File::open(&corpus.path).doing(corpus.path.display())?)?;
    run.recorder.time(key(FIRST_OPEN, State::Cold), round, took)?;
    let copy = run.work().join("mbox2004-copy.mbox");
    let took = limits::copy_and_sync(&corpus.path, &copy)?;
    std::fs::remove_file(&copy).doing(copy.display())?;
    run.recorder.time(key(WRITE_BACK, State::Warm), round, took)
}

impl Subject<'_> {
    /// The server is stopped; starts it with its files out of the page cache.
    fn make_cold(&mut self, tools: &mut Tools) -> Result<()> {
        let mut files = self.local.files();
        files.push(self.path.clone());
        let dropped = cold::drop_from_cache(&files)?;
        tools.recorder.note(NAME, &self.name, format!("cold: {}", dropped.explained()))?;
        self.local.start()
    }

    /// Does a step and records what it took.
    fn step(
        &mut self,
        tools: &mut Tools,
        (test, state): (&str, State),
        round: usize,
        action: impl FnOnce(&mut Self, &mut Meter) -> Result<Done>,
    ) -> Result<()> {
        // A page that is dirty already is not counted as written again.
        cold::sync(&tools.plan.work)?;
        let work = tools.plan.work.clone();
        let on_disk = device::written(&work);
        let mut meter = Meter::start(&self.local.processes()?)?;
        let watch = Watch::start(self.local.processes()?);
        let done = action(self, &mut meter).doing(test)?;
        let anonymous = watch.finish();
        let usage = meter.finish(&self.local.processes()?)?;
        let key = Key::new(NAME, test, &self.name, "time").size(&tools.corpus.name).state(state);
        let ms = done.took.as_secs_f64() * 1e3;
        tools.recorder.sample(key.clone(), round, ms, Unit::Ms, Better::Lower, done.verdict)?;
        usage.record(tools.recorder, &key, round)?;
        cold::sync(&work)?;
        if let Some(written) = device::written(&work).zip(on_disk).map(|(now, then)| now.saturating_sub(then)) {
            let key = Key { measure: "disk_written".into(), ..key.clone() };
            tools.recorder.sample(key, round, written as f64, Unit::Bytes, Better::Lower, Verdict::Right)?;
        }
        let key = Key { measure: "peak_anonymous".into(), ..key };
        tools.recorder.sample(key, round, anonymous as f64, Unit::Bytes, Better::Lower, Verdict::Right)
    }

    /// Some commands, then LOGOUT, and waiting until the file is let go of; the time of all.
    fn finish(&mut self, connection: &mut Connection, commands: &[&str], meter: &mut Meter) -> Result<Duration> {
        let began = Instant::now();
        for command in commands {
            connection.command(command)?;
        }
        let before_the_end = began.elapsed();
        // The session's process may be gone in a moment, and its memory with it.
        meter.look(&self.local.processes()?)?;
        let began = Instant::now();
        connection.command("LOGOUT")?;
        file::wait_until_released(&self.path, || self.local.processes())?;
        Ok(before_the_end + began.elapsed())
    }

    fn open(&mut self, connection: &mut Connection, messages: u64) -> Result<Done> {
        let (answer, exists) = connection.select(&self.mailbox)?;
        Ok(Done { took: answer.took, verdict: judge("are there", messages, exists.into()) })
    }

    /// A step that is nothing but opening the mailbox, on a new connection.
    fn open_anew(&mut self, tools: &mut Tools, test: (&str, State), round: usize, messages: u64) -> Result<()> {
        let mut connection = Connection::login(&self.account)?;
        self.step(tools, test, round, |subject, _| subject.open(&mut connection, messages))?;
        connection.command("LOGOUT")?;
        file::wait_until_released(&self.path, || self.local.processes())
    }
}

fn judge(what: &str, messages: u64, found: u64) -> Verdict {
    if found == messages { Verdict::Right } else { Verdict::Wrong(format!("of {messages} messages {found} {what}")) }
}
