//! `scan2002`: finding where the messages of an mbox file begin.
//!
//! Source: xystrus' measurements of scanning mailboxes through mmap, bug-mailutils mailing list, 2002: one, two, four and seven processes
//! at once, on one mailbox and on several.
//!
//! What we changed, and why:
//! - Several programs instead of several versions of one: Mailyard's `scan --count`, GNU Mailutils' `messages`, the module `mailbox` of
//!   Python, and as the floor `grep -c '^From '`, which knows nothing of mail. All say how many messages they found; one that says
//!   something else than is there has a wrong result beside its rate.
//! - The files are in the page cache: memory is what limits a scan today. Each process scans its file as often as takes about half a
//!   second, so that starting it does not count; what counts is bytes scanned a second by all processes together, and a second of
//!   processor time.
//! - The several mailboxes are seven equal parts of the one, so that it takes no more room than twice the mailbox.
//!
//! The limit is a search for a byte that is not there, over the same bytes in memory, by as many threads.

mod limit;
mod parts;
mod programs;

use super::Suite;
use crate::error::{Doing, Result};
use crate::limits;
use crate::results::{Better, Key, State, Unit, Verdict};
use crate::run::Run;
use parts::Mailbox;
use programs::{Outcome, Program};
use std::fs::File;

/// In results and on the command line.
const NAME: &str = "scan2002";

/// Processes at once.
const PROCESSES: [usize; 4] = [1, 2, 4, 7];

/// The suite.
pub struct Scan2002;

/// What a case yields: bytes a second.
struct Rates {
    wall: f64,
    processor: f64,
}

impl Suite for Scan2002 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> &'static str {
        "xystrus: scanning mailboxes through mmap, bug-mailutils mailing list, 2002"
    }

    fn about(&self) -> &'static str {
        "Programs that count the messages of an mbox file in the page cache: one, two, four and seven processes at once, all on the same \
         file or each on a file of its own. Bytes scanned a second by all processes together, and by a second of processor time. The limit \
         is a search for a byte that is not there, over the same bytes in memory."
    }

    fn per_size(&self) -> bool {
        true
    }

    fn needs_servers(&self) -> bool {
        false
    }

    fn run(&self, run: &mut Run) -> Result<()> {
        let several = PROCESSES.last().copied().unwrap_or(1);
        let parts = parts::split(&run.corpus, several, &run.work().join("scan2002"))?;
        let whole = vec![Mailbox::of(&run.corpus)];
        let cases = [("one file", whole), ("several files", parts)];
        let programs = programs::all(run.plan.mailyard.as_deref());
        for program in &programs {
            run.recorder.note(NAME, program.name, program.explained())?;
        }
        // The first to scan would be measured with the disk otherwise.
        for file in cases.iter().flat_map(|(_, files)| files) {
            limits::drain(File::open(&file.path).doing(file.path.display())?)?;
        }
        let processes = if run.plan.quick { &PROCESSES[..2] } else { &PROCESSES[..] };
        for round in 0..run.plan.repeat {
            for (test, files) in &cases {
                for count in processes {
                    // Each process has the next file; where there is only one, all have that.
                    let files: Vec<&Mailbox> = files.iter().cycle().take(*count).collect();
                    for program in &programs {
                        run.progress.say(&format!("{NAME}: {test}, {count} processes: {}", program.name));
                        measure(run, program, test, &files, round)?;
                    }
                    let rates = limit::measure(&files, run.plan.quick)?;
                    keep(run, limit_key(run, test, *count), &rates, Verdict::Right, round)?;
                }
            }
        }
        parts::remove(&run.work().join("scan2002"))
    }
}

fn measure(run: &mut Run, program: &Program, test: &str, files: &[&Mailbox], round: usize) -> Result<()> {
    let key = Key { server: program.name.into(), ..limit_key(run, test, files.len()) };
    match program.scan(files, run.plan.quick) {
        Outcome::Scanned { rates, verdict } => keep(run, key, &rates, verdict, round),
        Outcome::Missing(why) => run.recorder.missing(key, round, Verdict::Unsupported(why)),
        Outcome::Failed(why) => run.recorder.missing(key, round, Verdict::Failed(why)),
    }
}

fn limit_key(run: &Run, test: &str, processes: usize) -> Key {
    let key = Key::new(NAME, test, crate::results::LIMIT, "rate").size(&run.corpus.name).state(State::Warm);
    key.with("processes", processes)
}

fn keep(run: &mut Run, key: Key, rates: &Rates, verdict: Verdict, round: usize) -> Result<()> {
    for (measure, rate) in [("rate", rates.wall), ("rate per processor second", rates.processor)] {
        let key = Key { measure: measure.into(), ..key.clone() };
        run.recorder.sample(key, round, rate, Unit::BytesPerSecond, Better::Higher, verdict.clone())?;
    }
    Ok(())
}
