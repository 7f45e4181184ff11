//! One process in /proc. A process that is gone is `None`, never an error: processes end while one looks.

use super::{Memory, Transfer};
use crate::error::{Doing, Error, Result};
use std::io::ErrorKind;
use std::time::Duration;

/// A process, distinct from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub id: u32,
    /// In clock ticks since the machine started.
    started: u64,
}

/// What a process has used since it began, the children included that it waited for.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    pub parent: u32,
    /// Whether it takes over the counters of children that end: it does not ignore SIGCHLD (wait(2), notes).
    pub waits: bool,
    pub cpu_user: Duration,
    pub cpu_system: Duration,
    pub transfer: Option<Transfer>,
    /// In bytes, since it was last reset.
    pub peak_memory: u64,
}

/// signal(7): SIGCHLD is number 17 on the processors that Linux servers run on (MIPS, Alpha and SPARC differ).
const SIGCHLD_BIT: u64 = 1 << 16;

/// Looks at a process.
pub fn counters(id: u32) -> Result<Option<(Identity, Counters)>> {
    let Some(stat) = file(id, "stat")? else { return Ok(None) };
    let Some(status) = file(id, "status")? else { return Ok(None) };
    let transfer = match file(id, "io") {
        Ok(Some(io)) => Some(transfer(&io)),
        Ok(None) => return Ok(None),
        Err(_) => None,
    };
    let stat = Stat::parse(&stat).ok_or_else(|| Error::new(format!("/proc/{id}/stat cannot be read: {stat}")))?;
    let ignored = u64::from_str_radix(field(&status, "SigIgn:").unwrap_or("0"), 16).unwrap_or_default();
    let counters = Counters {
        parent: stat.parent,
        waits: ignored & SIGCHLD_BIT == 0,
        cpu_user: ticks(stat.user_ticks),
        cpu_system: ticks(stat.system_ticks),
        transfer,
        peak_memory: kilobytes(&status, "VmHWM:"),
    };
    Ok(Some((Identity { id, started: stat.started }, counters)))
}

/// Starts a new peak of resident memory at what is resident now. A process of another user keeps its old one.
pub fn reset_peak(id: u32) -> Result<()> {
    let path = format!("/proc/{id}/clear_refs");
    // proc(5): 5 resets the peak resident set size to the current value.
    match std::fs::write(&path, "5") {
        Err(error) if !gone(&error) && error.kind() != ErrorKind::PermissionDenied => Err(error).doing(path),
        _ => Ok(()),
    }
}

/// What is resident now.
pub fn memory(id: u32) -> Result<Option<Memory>> {
    let Some(status) = file(id, "status")? else { return Ok(None) };
    let rollup = file(id, "smaps_rollup").ok().flatten();
    let proportional = rollup.map(|text| kilobytes(&text, "Pss:"));
    Ok(Some(Memory { resident: kilobytes(&status, "VmRSS:"), proportional }))
}

/// Resident pages of no file, in bytes; 0 when the process is gone or not ours to look at.
pub fn anonymous(id: u32) -> u64 {
    file(id, "status").ok().flatten().map_or(0, |status| kilobytes(&status, "RssAnon:"))
}

/// proc(5): times in stat are in units of sysconf(_SC_CLK_TCK).
fn ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64)
}

fn file(id: u32, name: &str) -> Result<Option<String>> {
    let path = format!("/proc/{id}/{name}");
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if gone(&error) => Ok(None),
        Err(error) => Err(error).doing(path),
    }
}

/// ENOENT when it was gone before opening, ESRCH when it ended between opening and reading.
fn gone(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// A field of so many kB, in bytes. An ended process that nobody waited for yet has no such field, and no memory.
fn kilobytes(text: &str, key: &str) -> u64 {
    let number = field(text, key).and_then(|value| value.trim_end_matches("kB").trim().parse::<u64>().ok());
    number.unwrap_or_default().saturating_mul(1024)
}

fn transfer(io: &str) -> Transfer {
    let number = |key| field(io, key).and_then(|value| value.parse::<u64>().ok()).unwrap_or_default();
    Transfer {
        chars_read: number("rchar:"),
        chars_written: number("wchar:"),
        bytes_read: number("read_bytes:"),
        bytes_written: number("write_bytes:").saturating_sub(number("cancelled_write_bytes:")),
    }
}

/// Of /proc/PID/stat.
struct Stat {
    parent: u32,
    user_ticks: u64,
    system_ticks: u64,
    started: u64,
}

impl Stat {
    /// proc_pid_stat(5): the second field, the program's name in parentheses, may hold anything; after its last parenthesis come fields
    /// 3 and following, separated by single spaces.
    fn parse(text: &str) -> Option<Stat> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field.checked_sub(3)?)?.parse::<u64>().ok();
        Some(Stat {
            parent: u32::try_from(number(4)?).ok()?,
            // 14 utime, 15 stime, 16 cutime, 17 cstime, 22 starttime.
            user_ticks: number(14)?.saturating_add(number(16)?),
            system_ticks: number(15)?.saturating_add(number(17)?),
            started: number(22)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Stat, counters, gone, kilobytes, memory};

    #[test]
    fn the_fields_of_stat() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let text = format!("77 (a) b (c) {}\n", fields.join(" "));
        let stat = Stat::parse(&text).expect("as documented");
        assert_eq!((stat.parent, stat.user_ticks, stat.system_ticks, stat.started), (4, 14 + 16, 15 + 17, 22));
        for bad in ["", "77 (a", "77 (a) S 1 2", "77 (a) S x"] {
            assert!(Stat::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_of_memory() {
        assert_eq!(kilobytes("VmHWM:\t      12 kB\nVmRSS:\t 3 kB\n", "VmRSS:"), 3 << 10);
        assert_eq!(kilobytes("Name: x\n", "VmRSS:"), 0);
    }

    #[test]
    fn nobody_has_the_highest_id() {
        let id = u32::MAX >> 1;
        assert!(counters(id).expect("no error").is_none());
        assert!(memory(id).expect("no error").is_none());
        assert!(gone(&std::io::Error::from_raw_os_error(3)));
    }
}
