//! This machine and its processes.

use std::fs;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::clock::Timestamp;
use crate::host::Host;

/// The machine that this runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealHost;

impl Host for RealHost {
    fn name(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    fn running_since(&self, process: u32) -> Option<Timestamp> {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw)?;
        // EPERM: it runs, and belongs to somebody else.
        if matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH)) {
            return None;
        }
        Some(started(process).unwrap_or(Timestamp::from_seconds(i64::MIN)))
    }
}

/// When a process was started, by proc(5).
fn started(process: u32) -> Option<Timestamp> {
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let boot: i64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    // The second field, the program's name in parentheses, may hold anything; starttime is the 22nd, the 20th behind it.
    let behind_name = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(behind_name + 1..)?).ok()?;
    let ticks: i64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let per_second = i64::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some(Timestamp::from_seconds(boot.checked_add(ticks.checked_div(per_second)?)?))
}
