//! How often some processes call fsync and fdatasync: counted by perf(1), which needs root or the like.

use crate::error::{Doing, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const EVENTS: &str = "syscalls:sys_enter_fsync,syscalls:sys_enter_fdatasync";

/// The calls of these processes, and of those that they start, while `work` is done; `None` where perf cannot count them.
pub fn during(processes: &[u32], work: impl FnOnce() -> Result<()>) -> Result<Option<u64>> {
    let list: Vec<String> = processes.iter().map(u32::to_string).collect();
    // The shell that perf starts says that counting has begun, and goes on until it is told to end.
    let mut command = Command::new("perf");
    command.args(["stat", "-x,", "-e", EVENTS, "-p"]).arg(list.join(","));
    command.args(["--", "sh", "-c", "echo ready; read line"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut perf) = command.spawn() else { return work().map(|()| None) };
    let (stdin, stdout, stderr) = (perf.stdin.take(), perf.stdout.take(), perf.stderr.take());
    let mut ready = String::new();
    if let Some(stdout) = stdout {
        BufReader::new(stdout).read_line(&mut ready).doing("perf")?;
    }
    let worked = work();
    drop(stdin);
    if ready.is_empty() {
        // It could not begin, or does not end by itself.
        let _gone = kill_process(Pid::from_child(&perf), Signal::INT);
    }
    let mut said = String::new();
    if let Some(mut stderr) = stderr {
        stderr.read_to_string(&mut said).doing("perf")?;
    }
    perf.wait().doing("perf")?;
    worked.map(|()| total(&said))
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
