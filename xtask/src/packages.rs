//! The Debian packages whose programs the tests drive.

use crate::step::{Log, Outcome, Report, Result};
use crate::tree::{is_root, program};
use std::process::Command;

/// A program that the tests call, and the Debian package that has it.
const NEEDED: [(&str, &str); 9] = [
    ("mutt", "mutt"),
    ("mbsync", "isync"),
    ("python3", "python3"),
    ("tmux", "tmux"),
    ("openssl", "openssl"),
    ("chromium", "chromium"),
    ("lockfile", "procmail"),
    ("dotlockfile", "liblockfile-bin"),
    ("lockfile-create", "lockfile-progs"),
];

/// Checks that every needed program is there; installs what is missing when that is possible.
pub fn steps(report: &mut Report) {
    report.step("packages", |_, log| {
        let missing = missing();
        if missing.is_empty() {
            return Ok(Outcome::Passed);
        }
        install(log, &missing)?;
        Ok(Outcome::PassedWith(format!("installed {}", missing.join(", "))))
    });
}

fn missing() -> Vec<&'static str> {
    NEEDED.iter().filter(|(name, _)| program(name).is_none()).map(|(_, package)| *package).collect()
}

/// Installs Debian packages; an error that names them when we may not.
pub fn install(log: &mut Log, packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if !is_root() || program("apt-get").is_none() {
        return Err(format!("missing programs; install these Debian packages: apt-get install {names}"));
    }
    log.run(apt().arg("update"), 5)?;
    log.run(apt().args(["install", "--yes", "--no-install-recommends"]).args(packages), 10)?;
    Ok(())
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}
