//! What is done to the mbox file, and looked for in it, behind the server's back.

use crate::error::{Doing, Error, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A server that keeps the file open for longer after a LOGOUT has failed.
const RELEASE_MAX: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(2);

/// How many messages of the file have all letters of `has` in `Status` or `X-Status` and none of `lacks`: `R`ead, `A`nswered, `F`lagged.
pub fn flagged(path: &Path, has: &[u8], lacks: &[u8]) -> Result<u64> {
    let mut lines = BufReader::with_capacity(1 << 20, File::open(path).doing(path.display())?);
    let mut line = Vec::new();
    let mut flagged = 0;
    let mut in_head = false;
    let mut letters: Vec<u8> = Vec::new();
    while {
        line.clear();
        lines.read_until(b'\n', &mut line).doing(path.display())? > 0
    } {
        if line.starts_with(b"From ") {
            in_head = true;
            letters.clear();
        } else if in_head && line.trim_ascii_end().is_empty() {
            in_head = false;
            let fits = has.iter().all(|letter| letters.contains(letter)) && !lacks.iter().any(|l| letters.contains(l));
            flagged += u64::from(fits);
        } else if in_head {
            letters
                .extend_from_slice(value(&line, b"Status:").or_else(|| value(&line, b"X-Status:")).unwrap_or_default());
        }
    }
    Ok(flagged)
}

fn value<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then_some(value)
}

/// Adds the first messages of one mbox file to another, as a delivery agent would. Gives how many there were.
pub fn deliver(from: &Path, count: u64, to: &Path) -> Result<u64> {
    let mut lines = BufReader::new(File::open(from).doing(from.display())?);
    let mut messages = Vec::new();
    let mut found = 0;
    loop {
        let start = messages.len();
        let ended = lines.read_until(b'\n', &mut messages).doing(from.display())? == 0;
        let begins = messages.get(start..).is_some_and(|line| line.starts_with(b"From "));
        if ended || begins && found == count {
            messages.truncate(start);
            break;
        }
        found += u64::from(begins);
    }
    let mut file = File::options().append(true).open(to).doing(to.display())?;
    file.write_all(&messages).and_then(|()| file.sync_data()).doing(to.display())?;
    Ok(found)
}

/// Waits until none of the processes has the file open for writing. One that still reads it (to index it, say) is done with the change.
pub fn wait_until_released(path: &Path, processes: impl Fn() -> Result<Vec<u32>>) -> Result<()> {
    let began = Instant::now();
    while processes()?.iter().any(|id| is_written(*id, path)) {
        if began.elapsed() > RELEASE_MAX {
            return Err(Error::new(format!("the server keeps {} open", path.display())));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// proc(5), `/proc/PID/fd` and `fdinfo`. A process that is gone, or not ours to look at, has nothing open.
fn is_written(process: u32, path: &Path) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    open.flatten().any(|entry| {
        let is_it = std::fs::read_link(entry.path()).is_ok_and(|target| target == path);
        is_it && may_write(process, &entry.file_name().to_string_lossy())
    })
}

/// By the flags that open(2) was given, in octal: O_WRONLY is 1, O_RDWR is 2. One that is closed meanwhile may not.
fn may_write(process: u32, descriptor: &str) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
}

#[cfg(test)]
mod tests {
    use super::{deliver, flagged, is_written, wait_until_released};

    #[test]
    fn flags_in_heads_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mbox");
        let text = "From a\nStatus: RO\nX-Status: AF\n\nx\n\nFrom b\nStatus: RO\nX-Status: A\n\nX-Status: F\n\n\
                    From c\nstatus: ORAF\n\n\nFrom d\n\n\n";
        std::fs::write(&path, text).expect("written");
        assert_eq!(flagged(&path, b"RAF", b"").expect("read"), 2);
        assert_eq!(flagged(&path, b"R", b"F").expect("read"), 1);
        assert_eq!(flagged(&path, b"", b"").expect("read"), 4);
    }

    #[test]
    fn delivery() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, "From a\n\n1\n\nFrom b\n\n2\n\nFrom c\n\n3\n\n").expect("written");
        std::fs::write(&to, "From z\n\n9\n\n").expect("written");
        assert_eq!(deliver(&from, 2, &to).expect("delivered"), 2);
        assert_eq!(deliver(&from, 10, &to).expect("delivered"), 3);
        let text = std::fs::read_to_string(&to).expect("read");
        assert!(
            text.starts_with("From z\n\n9\n\nFrom a\n\n1\n\nFrom b\n\n2\n\nFrom a\n\n1\n\n") && text.ends_with("3\n\n")
        );
    }

    #[test]
    fn open_files_are_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("a path").join("file");
        let file = std::fs::File::create(&path).expect("made");
        assert!(is_written(std::process::id(), &path));
        drop(file);
        let _reading = std::fs::File::open(&path).expect("opened");
        assert!(!is_written(std::process::id(), &path));
        wait_until_released(&path, || Ok(vec![std::process::id()])).expect("released");
    }
}
