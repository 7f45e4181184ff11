//! What the machine is, for the reader of the results.

use crate::results::Machine;
use std::path::Path;

/// Looks at /proc and /etc; what cannot be read stays empty. `work` is a folder on the disk that is measured.
pub fn machine(work: &Path) -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, key: &str, separator: char| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(separator)?.1.trim().trim_matches('"').to_string())
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal", ':').unwrap_or_default();
    let kilobytes: u64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
    Machine {
        processor: field(&read("/proc/cpuinfo"), "model name", ':').unwrap_or_default(),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        memory_bytes: kilobytes * 1024,
        kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        system: field(&read("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or_default(),
        file_system: file_system(&read("/proc/mounts"), work).unwrap_or_default(),
    }
}

/// Type and options of the mount that holds the path: the one with the longest mount point before it (proc(5), `/proc/mounts`).
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let lines = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?, words.next()?))
    });
    let (_, kind, options) =
        lines.filter(|(point, _, _)| path.starts_with(point)).max_by_key(|(point, _, _)| point.len())?;
    Some(format!("{kind} ({options})"))
}

#[cfg(test)]
mod tests {
    use super::{file_system, machine};
    use std::path::Path;

    #[test]
    fn the_nearest_mount() {
        let mounts = "a / ext4 rw 0 0\nb /no/such xfs rw,noatime 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/no/such/place")).as_deref(), Some("xfs (rw,noatime)"));
        assert_eq!(file_system(mounts, Path::new("/no/suchlike")).as_deref(), Some("ext4 (rw)"));
    }

    #[test]
    fn this_one() {
        let machine = machine(Path::new("/"));
        assert!(machine.processors > 0 && machine.memory_bytes > 1 << 20 && machine.kernel.len() > 6);
    }
}
