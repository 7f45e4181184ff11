//! The Debian packages whose programs the tests drive.

use crate::seaweed;
use crate::step::{Log, Outcome, Report, Result};
use crate::tree::{is_root, program};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

/// A program that the tests call, by its name or where it lies, and the Debian package that has it.
const NEEDED: [(&str, &str); 20] = [
    ("mutt", "mutt"),
    ("mbsync", "isync"),
    ("python3", "python3"),
    ("tmux", "tmux"),
    ("openssl", "openssl"),
    ("chromium", "chromium"),
    ("lockfile", "procmail"),
    ("setpriv", "util-linux"),
    ("dotlockfile", "liblockfile-bin"),
    ("lockfile-create", "lockfile-progs"),
    ("dovecot", "dovecot-imapd"),
    ("/usr/lib/dovecot/lmtp", "dovecot-lmtpd"),
    ("/usr/lib/dovecot/pop3", "dovecot-pop3d"),
    ("postfix", "postfix"),
    ("swaks", "swaks"),
    ("fetchmail", "fetchmail"),
    ("mpop", "mpop"),
    ("mariadbd", "mariadb-server"),
    ("nats-server", "nats-server"),
    ("age", "age"),
];

/// Asked by packages before they start a service (invoke-rc.d(8), deb-systemd-invoke(1p)): 101 forbids it.
const POLICY: &str = "/usr/sbin/policy-rc.d";

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
    seaweed::steps(report);
}

fn missing() -> Vec<&'static str> {
    NEEDED.iter().filter(|(name, _)| !is_there(name)).map(|(_, package)| *package).collect()
}

/// Servers are where only root's PATH leads.
fn is_there(name: &str) -> bool {
    program(name).is_some() || Path::new("/usr/sbin").join(name).is_file()
}

/// Installs Debian packages; an error that names them when we may not.
pub fn install(log: &mut Log, packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if !is_root() || program("apt-get").is_none() {
        return Err(format!("missing programs; install these Debian packages: apt-get install {names}"));
    }
    let _no_services = NoServices::begin()?;
    log.run(apt().arg("update"), 5)?;
    log.run(apt().args(["install", "--yes", "--no-install-recommends"]).args(packages), 10)?;
    Ok(())
}

/// As long as it is there, no package that is installed starts a service: the tests start their servers themselves. A policy that the
/// system has already stays as it is.
struct NoServices {
    ours: bool,
}

impl NoServices {
    fn begin() -> Result<NoServices> {
        let new = File::options().write(true).create_new(true).mode(0o755).open(POLICY);
        match new.and_then(|mut file| file.write_all(b"#!/bin/sh\nexit 101\n")) {
            Ok(()) => Ok(NoServices { ours: true }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(NoServices { ours: false }),
            Err(error) => Err(format!("{POLICY}: {error}")),
        }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.ours {
            let _ = std::fs::remove_file(POLICY);
        }
    }
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}
