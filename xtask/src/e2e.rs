//! Tests with real programs: mutt, mbsync, Python's imaplib, openssl, against the release build.
//!
//! The tests are Python programs in `tests/e2e/`, one `test_*.py` a subject; each starts its own server on a free loopback port in a
//! folder of its own and ends it by process id.

use crate::mail;
use crate::seaweed;
use crate::step::{Log, Outcome, Report, Result};
use crate::tree::Tree;
use std::path::PathBuf;
use std::process::Command;

/// No test takes longer than this; most take seconds.
const TEST_MINUTES: u32 = 10;

/// What needs SeaweedFS, which not every machine can fetch.
const WITH_SEAWEEDFS: &str = "test_objects";

/// The release build, the corpus, and the tests whose name contains one of `names` (all when there are none).
pub fn steps(report: &mut Report, names: &[String]) {
    mail::steps(report);
    report.step("release build", |tree, log| {
        log.run(&release_build(tree), 30)?;
        Ok(Outcome::Passed)
    });
    let scripts = match scripts(report.tree) {
        Ok(scripts) => scripts,
        Err(error) => {
            report.step("end-to-end tests", |_, _| Err(error));
            return;
        }
    };
    for script in scripts {
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let wanted = names.iter().filter(|name| !name.starts_with("--")).collect::<Vec<_>>();
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
            report.step(&format!("e2e {}", name.trim_start_matches("test_")), |tree, log| python(tree, log, &script));
        }
    }
}

/// The optimised programs that the tests and the benchmark drive.
pub fn release_build(tree: &Tree) -> Command {
    let mut command = tree.cargo();
    command.args([
        "build",
        "--release",
        "--locked",
        "--package",
        "mailyard-server",
        "--package",
        "mailyard-bench",
        "--bins",
    ]);
    command
}

fn scripts(tree: &Tree) -> Result<Vec<PathBuf>> {
    let mut scripts = tree.files("py")?;
    scripts.retain(|path| {
        path.starts_with("tests/e2e")
            && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test_"))
    });
    if scripts.is_empty() {
        return Err("tests/e2e holds no test_*.py".to_string());
    }
    Ok(scripts)
}

fn python(tree: &Tree, log: &mut Log, script: &PathBuf) -> Result<Outcome> {
    if script.file_stem().is_some_and(|name| name == WITH_SEAWEEDFS) && !seaweed::is_there(tree) {
        return Ok(Outcome::Skipped("SeaweedFS is not there; `cargo xtask packages` fetches it".to_string()));
    }
    let mut command = Command::new("python3");
    command
        .arg("-B")
        .arg(script)
        .current_dir(&tree.root)
        .env("PYTHONUNBUFFERED", "1")
        .env("MAILYARD", tree.target().join("release/mailyard"))
        .env("MAILYARD_BENCH", tree.target().join("release/mailyard-bench"));
    let output = log.run(&command, TEST_MINUTES)?;
    // unittest exits with 0 when it found nothing to run.
    let ran = output.lines().rev().find(|line| line.starts_with("Ran ")).unwrap_or("Ran 0 tests");
    if ran.starts_with("Ran 0 ") {
        return Err(format!("{} ran no test", script.display()));
    }
    if let Some(line) = output.lines().rev().find(|line| line.contains("skipped=")) {
        return Err(format!("{}: a skipped test is not a test: {line}", script.display()));
    }
    Ok(Outcome::PassedWith(ran.to_lowercase()))
}
