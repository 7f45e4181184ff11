//! What a server takes beside time: memory, disk, and how easily its files can be backed up.

use super::{Bench, MAILBOX, Target, say};
use crate::error::{Doing, Error, Result};
use crate::limits;
use crate::server::Local;
use crate::wire::Connection;
use crate::workload::report::{Goal, Samples, Unit};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const IDLE_SESSIONS: usize = 200;
const IDLE_MEGABYTES: f64 = 100.0;
/// Disk over mail, with default settings.
const DISK_SHARE: f64 = 0.6;
/// tar of an account against cat of the same bytes.
const TAR_TIMES: f64 = 1.3;

const SETTLE_POLL: Duration = Duration::from_millis(500);
const SETTLE_POLLS_MAX: usize = 240;
/// Background work is done when the disk use has not changed for so many polls.
const SETTLE_POLLS_SAME: usize = 6;

impl Target {
    /// Begins a new measurement of peak memory, where the process is ours.
    pub(super) fn reset_peak(&self) -> Result<()> {
        self.mailyard.as_ref().map_or(Ok(()), |mailyard| mailyard.reset_peak())
    }
}

impl Bench<'_> {
    /// Adds a row with the peak memory since the last reset.
    pub(super) fn peak_row(&mut self, name: &str) -> Result<()> {
        let mut results = self.no_samples();
        for (target, samples) in self.targets.iter().zip(&mut results) {
            if let Some(mailyard) = &target.mailyard {
                samples.push(mailyard.peak()? as f64 / 1e6);
            }
        }
        self.row(&format!("  peak memory, {name}"), Unit::Megabytes, results, None, None);
        Ok(())
    }

    /// Disk use over the size of the mail, and tar against cat.
    pub(super) fn disk_and_backup(&mut self) -> Result<()> {
        let mut share = self.no_samples();
        let mut tar = self.no_samples();
        let mut cat = Samples::default();
        let everything = self.work("everything");
        for number in 0..self.targets.len() {
            let Some(target) = self.targets.get(number) else { continue };
            let Some(mailyard) = &target.mailyard else { continue };
            say("waiting for background work to settle");
            let data = mailyard.account();
            let used = settled(&data)?;
            if let Some(samples) = share.get_mut(number) {
                samples.push(used as f64 / self.mail_bytes as f64);
            }
            say("tar and cat");
            concatenate(&data, &everything)?;
            for _ in 0..self.plan.repeat {
                let mut command = Command::new("tar");
                // Records of 256 KiB: with its own of 10 KiB tar takes twice the time of cat even for one single file.
                command.args(["--create", "--blocking-factor=512", "--file=-", "--directory"]).arg(&data).arg(".");
                if let Some(samples) = tar.get_mut(number) {
                    samples.push_time(sink(command)?);
                }
                let mut command = Command::new("cat");
                command.arg(&everything);
                cat.push_time(sink(command)?);
            }
        }
        if cat.is_empty() {
            return Ok(());
        }
        std::fs::remove_file(&everything).doing(everything.display())?;
        self.row("disk use over size of the mail", Unit::Ratio, share, None, Some(Goal::AtMost(DISK_SHARE)));
        let limit = Some((cat, "cat of the same bytes".to_string()));
        self.row("tar of the account", Unit::Ms, tar, limit, Some(Goal::TimesLimit(TAR_TIMES)));
        Ok(())
    }

    /// Memory of a server with many sessions that have the mailbox selected and idle.
    pub(super) fn idle_sessions(&mut self) -> Result<()> {
        let name = format!("memory with {IDLE_SESSIONS} idle sessions");
        say(&name);
        let mut results = self.no_samples();
        for (target, samples) in self.targets.iter_mut().zip(&mut results) {
            // Measured on a fresh server: what earlier work left in its memory is not the sessions'.
            target.connection = None;
            let Some(mailyard) = &mut target.mailyard else { continue };
            mailyard.stop()?;
            mailyard.start()?;
            let mut sessions = Vec::new();
            for _ in 0..IDLE_SESSIONS {
                let mut connection = Connection::login(&target.address)?;
                connection.select(MAILBOX)?;
                connection.idle()?;
                sessions.push(connection);
            }
            samples.push(mailyard.resident()? as f64 / 1e6);
        }
        self.row(&name, Unit::Megabytes, results, None, Some(Goal::AtMost(IDLE_MEGABYTES)));
        Ok(())
    }
}

/// Disk use once it stops changing, in bytes.
fn settled(folder: &Path) -> Result<u64> {
    let mut last = disk_use(folder)?;
    let mut same = 0;
    for _ in 0..SETTLE_POLLS_MAX {
        std::thread::sleep(SETTLE_POLL);
        let now = disk_use(folder)?;
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if same == SETTLE_POLLS_SAME {
            return Ok(last);
        }
    }
    Err(Error::new(format!("{}: still changing", folder.display())))
}

/// Allocated blocks of every file, in bytes.
fn disk_use(folder: &Path) -> Result<u64> {
    // stat(2): st_blocks counts 512-byte units on every file system. A file may go while one looks.
    Ok(files(folder)?.iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).doing(folder.display())? {
            let entry = entry.doing(folder.display())?;
            let kind = entry.file_type().doing(folder.display())?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn concatenate(folder: &Path, to: &Path) -> Result<()> {
    let mut out = std::fs::File::create(to).doing(to.display())?;
    for path in files(folder)? {
        let mut file = std::fs::File::open(&path).doing(path.display())?;
        std::io::copy(&mut file, &mut out).doing(path.display())?;
    }
    out.flush().doing(to.display())
}

/// Runs a command and swallows what it writes. A pipe and not /dev/null, since tar knows that one and reads no file for it.
fn sink(mut command: Command) -> Result<Duration> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().doing(format!("{command:?}"))?;
    let began = std::time::Instant::now();
    let output = child.stdout.take().ok_or_else(|| Error::new("no output"))?;
    limits::drain(output)?;
    let took = began.elapsed();
    let status = child.wait().doing(format!("{command:?}"))?;
    if status.success() { Ok(took) } else { Err(Error::new(format!("{command:?}: {status}"))) }
}
