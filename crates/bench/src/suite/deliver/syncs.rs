//! How often some processes call fsync and fdatasync: counted by perf(1), which needs root or the like.

use crate::error::{Doing, Result};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

const EVENTS: &str = "syscalls:sys_enter_fsync,syscalls:sys_enter_fdatasync";
/// How often it is tried to begin: a process of the list may end in the same moment.
const TRIES: usize = 5;

/// The calls of some processes, and of those that they start, while `work` is done; `None` where perf cannot count them.
pub fn during(processes: impl Fn() -> Result<Vec<u32>>, work: impl FnOnce() -> Result<()>) -> Result<Option<u64>> {
    let mut perf = None;
    for _ in 0..TRIES {
        perf = begin(&processes()?)?;
        if perf.is_some() {
            break;
        }
    }
    let worked = work();
    let said = perf.map(end).transpose()?;
    worked.map(|()| said.and_then(|said| total(&said)))
}

/// Starts perf; `None` when it ends at once or is not there.
fn begin(processes: &[u32]) -> Result<Option<Child>> {
    let list: Vec<String> = processes.iter().map(u32::to_string).collect();
    // The shell that perf starts says that counting has begun, and goes on until its input ends.
    let mut command = Command::new("perf");
    command.args(["stat", "-x,", "-e", EVENTS, "-p"]).arg(list.join(","));
    command.args(["--", "sh", "-c", "echo ready; read line"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut perf) = command.spawn() else { return Ok(None) };
    let mut ready = String::new();
    if let Some(stdout) = perf.stdout.take() {
        BufReader::new(stdout).read_line(&mut ready).doing("perf")?;
    }
    if ready.is_empty() {
        end(perf)?;
        return Ok(None);
    }
    Ok(Some(perf))
}

/// Ends it; what it says.
fn end(mut perf: Child) -> Result<String> {
    drop(perf.stdin.take());
    let mut said = String::new();
    if let Some(mut stderr) = perf.stderr.take() {
        stderr.read_to_string(&mut said).doing("perf")?;
    }
    perf.wait().doing("perf")?;
    Ok(said)
}

/// perf-stat(1), CSV format: `count,unit,event,...`.
fn total(said: &str) -> Option<u64> {
    let counts = said.lines().filter(|line| line.contains("sys_enter_f"));
    let counts: Option<Vec<u64>> = counts.map(|line| line.split(',').next()?.parse().ok()).collect();
    counts.filter(|counts| !counts.is_empty()).map(|counts| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn what_perf_says() {
        let said = "12,,syscalls:sys_enter_fsync,100,100.00,,\n30,,syscalls:sys_enter_fdatasync,100,100.00,,\n";
        assert_eq!(total(said), Some(42));
        assert_eq!(total("<not supported>,,syscalls:sys_enter_fsync,0,0.00,,\n"), None);
        assert_eq!(total("event syntax error\n"), None);
    }
}
