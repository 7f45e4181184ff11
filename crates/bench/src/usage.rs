//! What a set of processes takes: processor time, input and output, memory; all from /proc (proc(5)).
//!
//! A server may be one process or a family that forks and ends processes all the time. So a [`Meter`] is given the family's ids as often
//! as one likes and counts the union of all that it saw. Linux helps: when a process waits for an ended child, the child's processor
//! time goes to its `cutime` and `cstime`, and the child's input and output to its own /proc/PID/io; so as long as the parent is in the
//! set, a child counts wholly, even one that was born and ended between two looks.
//!
//! What this misses:
//! - what a process did after the last look at it, when it then ended without a parent of the set that waits for children (the
//!   parent is init, or ignores SIGCHLD);
//! - memory of processes that were gone when one looked;
//! - processor time below one clock tick (10 ms on most systems) per process.
//!
//! Invariants:
//! - a process is known by id and start time, so an id that is used again is another process;
//! - nothing counts twice: an ended process counts by itself only when no parent took over its counters.

mod anonymous;
pub mod device;
mod process;

pub use anonymous::Watch;

use crate::error::{Error, Result};
use crate::results::{Better, Key, Recorder, Unit, Verdict};
use process::{Counters, Identity};
use std::collections::BTreeMap;
use std::time::Duration;

/// Input and output of a set of processes, in bytes (proc(5), `/proc/PID/io`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Returned by `read` and the like, from wherever: page cache and sockets included (`rchar`).
    pub chars_read: u64,
    /// Given to `write` and the like, to wherever: sockets included (`wchar`).
    pub chars_written: u64,
    /// Fetched from the storage (`read_bytes`).
    pub bytes_read: u64,
    /// Pages made dirty, whether they have reached the storage yet or not (`write_bytes`), less those that were thrown away before that
    /// (`cancelled_write_bytes`).
    pub bytes_written: u64,
}

/// What a set of processes took over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// In user mode.
    pub cpu_user: Duration,
    /// In the kernel on behalf of the processes.
    pub cpu_system: Duration,
    /// Absent when the kernel does not show it: the processes belong to another user.
    pub transfer: Option<Transfer>,
    /// The sum of the processes' peaks of resident memory, in bytes; the largest sum of all looks. Peaks of single processes may
    /// have been at different times and shared pages count once for each, so this is an upper bound of what was in use at once.
    pub peak_memory: u64,
}

/// Memory of a set of processes at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Sum of the resident sets; a page that several share counts for each (`VmRSS`).
    pub resident: u64,
    /// Sum of the proportional shares: a page that n share counts 1/n for each (`Pss`). Absent where the kernel does not show it.
    pub proportional: Option<u64>,
}

/// Counts what a set of processes takes from now on.
pub struct Meter {
    /// All that were ever seen, with what they had used when last looked at.
    seen: BTreeMap<Identity, Counters>,
    began: Usage,
    peak_memory: u64,
}

impl Meter {
    /// Begins to count and starts new peaks of memory.
    pub fn start(processes: &[u32]) -> Result<Meter> {
        for id in processes {
            process::reset_peak(*id)?;
        }
        let mut meter = Meter { seen: BTreeMap::new(), began: Usage::default(), peak_memory: 0 };
        meter.look(processes)?;
        meter.began = meter.totals();
        Ok(meter)
    }

    /// Looks at the set as it is now. The more often, the less is missed of processes that nobody waits for.
    pub fn look(&mut self, processes: &[u32]) -> Result<()> {
        let mut ids: Vec<u32> = processes.iter().copied().chain(self.seen.keys().map(|known| known.id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut alive = BTreeMap::new();
        for id in ids {
            if let Some((identity, counters)) = process::counters(id)?
                && (processes.contains(&id) || self.seen.contains_key(&identity))
            {
                alive.insert(identity, counters);
            }
        }
        self.peak_memory = self.peak_memory.max(alive.values().map(|counters| counters.peak_memory).sum());
        // A process that ended leaves the sum of the living; whoever waited for it has its counters from then on.
        let inherited: Vec<Identity> =
            self.seen.keys().filter(|ended| self.has_heir(**ended, &alive)).copied().collect();
        self.seen.retain(|identity, _| !inherited.contains(identity));
        for (identity, counters) in alive {
            self.seen.insert(identity, counters);
        }
        Ok(())
    }

    /// What was taken since the start, as of the last look.
    pub fn usage(&self) -> Usage {
        self.totals() - self.began
    }

    /// Looks once more and gives what was taken.
    pub fn finish(mut self, processes: &[u32]) -> Result<Usage> {
        self.look(processes)?;
        Ok(self.usage())
    }

    /// Whether a process is gone and its counters went to a living one: to its parent or, when that is gone as well, to the parent's.
    fn has_heir(&self, ended: Identity, alive: &BTreeMap<Identity, Counters>) -> bool {
        if alive.contains_key(&ended) {
            return false;
        }
        let mut next = self.seen.get(&ended);
        // A chain of parents is no longer than all processes.
        for _ in 0..self.seen.len() {
            let Some(counters) = next else { return false };
            if let Some((_, parent)) = alive.iter().find(|(identity, _)| identity.id == counters.parent) {
                return parent.waits;
            }
            next = self.seen.iter().find(|(identity, _)| identity.id == counters.parent).map(|(_, parent)| parent);
        }
        false
    }

    fn totals(&self) -> Usage {
        let mut totals = Usage { transfer: Some(Transfer::default()), ..Usage::default() };
        for counters in self.seen.values() {
            totals.cpu_user += counters.cpu_user;
            totals.cpu_system += counters.cpu_system;
            totals.transfer =
                totals.transfer.zip(counters.transfer).map(|(sum, one)| sum.with(one, u64::saturating_add));
        }
        Usage { peak_memory: self.peak_memory, ..totals }
    }
}

impl Transfer {
    /// Combines each field with the other's.
    fn with(self, other: Transfer, combine: impl Fn(u64, u64) -> u64) -> Transfer {
        Transfer {
            chars_read: combine(self.chars_read, other.chars_read),
            chars_written: combine(self.chars_written, other.chars_written),
            bytes_read: combine(self.bytes_read, other.bytes_read),
            bytes_written: combine(self.bytes_written, other.bytes_written),
        }
    }
}

impl Usage {
    /// This process' own usage since it began; the difference of two is what was taken between them.
    pub fn own() -> Result<Usage> {
        let (_, counters) =
            process::counters(std::process::id())?.ok_or_else(|| Error::new("/proc does not know this process"))?;
        Ok(Usage {
            cpu_user: counters.cpu_user,
            cpu_system: counters.cpu_system,
            transfer: counters.transfer,
            peak_memory: counters.peak_memory,
        })
    }

    /// User and system time.
    pub fn cpu(&self) -> Duration {
        self.cpu_user + self.cpu_system
    }

    /// The values by their measures' names, as all suites record them: `cpu_user`, `cpu_system` (ms), `bytes_read`, `bytes_written`,
    /// `chars_read`, `chars_written`, `peak_memory` (bytes).
    pub fn measures(&self) -> Vec<(&'static str, f64, Unit)> {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let mut measures =
            vec![("cpu_user", ms(self.cpu_user), Unit::Ms), ("cpu_system", ms(self.cpu_system), Unit::Ms)];
        if let Some(transfer) = self.transfer {
            measures.extend([
                ("bytes_read", transfer.bytes_read as f64, Unit::Bytes),
                ("bytes_written", transfer.bytes_written as f64, Unit::Bytes),
                ("chars_read", transfer.chars_read as f64, Unit::Bytes),
                ("chars_written", transfer.chars_written as f64, Unit::Bytes),
            ]);
        }
        measures.push(("peak_memory", self.peak_memory as f64, Unit::Bytes));
        measures
    }

    /// Records all measures under the key, whose own measure is replaced.
    pub fn record(&self, recorder: &mut Recorder, key: &Key, round: usize) -> Result<()> {
        for (measure, value, unit) in self.measures() {
            let key = Key { measure: measure.into(), ..key.clone() };
            recorder.sample(key, round, value, unit, Better::Lower, Verdict::Right)?;
        }
        Ok(())
    }
}

impl std::ops::Sub for Usage {
    type Output = Usage;

    /// What was taken between two looks at the same processes; the peak is the later one's.
    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            cpu_user: self.cpu_user.saturating_sub(earlier.cpu_user),
            cpu_system: self.cpu_system.saturating_sub(earlier.cpu_system),
            transfer: self.transfer.zip(earlier.transfer).map(|(now, then)| now.with(then, u64::saturating_sub)),
            peak_memory: self.peak_memory,
        }
    }
}

/// The memory that the processes have now; those that are gone have none.
pub fn memory(processes: &[u32]) -> Result<Memory> {
    let mut sum = Memory { resident: 0, proportional: Some(0) };
    for id in processes {
        let Some(one) = process::memory(*id)? else { continue };
        sum.resident += one.resident;
        sum.proportional = sum.proportional.zip(one.proportional).map(|(sum, one)| sum + one);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Meter, Usage, memory};
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    /// A shell that does what it is told and says when it is done.
    struct Shell(Child);

    impl Shell {
        fn start() -> Shell {
            let mut command = Command::new("sh");
            Shell(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
        }

        fn run(&mut self, script: &str) -> String {
            writeln!(self.0.stdin.as_mut().unwrap(), "{script}; echo done").unwrap();
            let mut line = String::new();
            BufReader::with_capacity(1, self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            line.trim().to_string()
        }

        fn id(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    const WORK: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

    #[test]
    fn a_process_and_the_children_it_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let mut shell = Shell::start();
        shell.run("true");
        let mut meter = Meter::start(&[shell.id()]).unwrap();
        shell.run(WORK);
        meter.look(&[shell.id()]).unwrap();
        let own = meter.usage();
        assert!(own.cpu_user.as_millis() >= 10, "{own:?}");
        // A child that nobody ever looked at: 3 MB written by it are the parent's once it was waited for.
        shell.run(&format!("({WORK}; head -c 3000000 /dev/zero) > {}", file.display()));
        let all = meter.finish(&[shell.id()]).unwrap();
        assert!((all - own).cpu_user.as_millis() >= 10, "{all:?} after {own:?}");
        let transfer = (all - own).transfer.unwrap();
        assert!((3_000_000..3_200_000).contains(&transfer.chars_written), "{transfer:?}");
        assert!(all.peak_memory > 100_000);
    }

    #[test]
    fn a_process_that_ends_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let mut shell = Shell::start();
        // The second shell reads from a pipe, so that it can be told to end.
        let pipe = folder.path().join("pipe");
        shell.run(&format!("mkfifo {}", pipe.display()));
        shell.run(&format!("sh {} & child=$!", pipe.display()));
        let child: u32 = shell.run("printf '%s ' $child").trim_end_matches(" done").parse().unwrap();
        let mut meter = Meter::start(&[shell.id(), child]).unwrap();
        let mut told = std::fs::File::options().write(true).open(&pipe).unwrap();
        writeln!(told, "head -c 2000000 /dev/zero > {0}; cat < /dev/null >> {0}", file.display()).unwrap();
        drop(told);
        shell.run("wait");
        meter.look(&[shell.id()]).unwrap();
        let written = meter.usage().transfer.unwrap().chars_written;
        assert!((2_000_000..2_100_000).contains(&written), "once, through its parent: {written}");
    }

    #[test]
    fn a_process_without_a_parent_in_the_set_keeps_what_was_seen() {
        let mut shell = Shell::start();
        let mut meter = Meter::start(&[shell.id()]).unwrap();
        shell.run(WORK);
        meter.look(&[shell.id()]).unwrap();
        let seen = meter.usage();
        assert!(memory(&[shell.id()]).unwrap().resident > 100_000);
        drop(shell);
        let after = meter.finish(&[]).unwrap();
        assert_eq!(after.cpu_user, seen.cpu_user);
        assert_eq!(after.peak_memory, seen.peak_memory);
    }

    #[test]
    fn of_ourselves() {
        let before = Usage::own().unwrap();
        assert!(before.peak_memory > 100_000);
        let used = Usage::own().unwrap() - before;
        assert!(used.cpu().as_secs() < 5);
        let memory = memory(&[std::process::id()]).unwrap();
        assert!(memory.proportional.is_some_and(|share| share > 0 && share <= memory.resident));
    }
}
