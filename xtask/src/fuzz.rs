//! A short run of every fuzz target.
//!
//! The targets are a workspace of their own in `fuzz/`, since the sanitizers that libFuzzer works with are nightly features of the
//! compiler. A stable compiler has them too and lets them be used when RUSTC_BOOTSTRAP=1 says that one knows what one does, so a
//! nightly toolchain is used when there is one and is not needed. Without cargo-fuzz the same properties run under a fixed budget of
//! random input; that they do always.

use crate::step::{Outcome, Report};
use crate::tree::{Tree, program, succeeds};
use std::process::Command;

const SECONDS: u32 = 60;
/// The first target also builds everything.
const MINUTES: u32 = 10;

/// The properties on the stable toolchain, then one step a target.
pub fn steps(report: &mut Report) {
    report.step("properties", |tree, log| {
        let mut command = tree.cargo();
        command.args(["test", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]).arg(tree.target());
        log.run(&command, 20)?;
        Ok(Outcome::Passed)
    });
    let targets = targets(report.tree);
    if program("cargo-fuzz").is_none() {
        let why = "no cargo-fuzz (`cargo install cargo-fuzz`); the same properties ran with a fixed budget";
        report.step("fuzz", |_, _| Ok(Outcome::Skipped(why.to_string())));
        return;
    }
    if targets.is_empty() {
        report.step("fuzz", |_, _| Err("fuzz/fuzz_targets holds no target".to_string()));
    }
    for target in targets {
        report.step(&format!("fuzz {target}"), |tree, log| {
            let mut command = compiler(tree);
            command
                .args(["fuzz", "run", "--fuzz-dir", "fuzz", "--features", "libfuzzer", &target, "--"])
                .arg(format!("-max_total_time={SECONDS}"))
                .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]);
            log.run(&command, MINUTES)?;
            Ok(Outcome::PassedWith(format!("{SECONDS} s")))
        });
    }
}

/// A cargo whose compiler takes nightly features.
fn compiler(tree: &Tree) -> Command {
    let has_nightly =
        program("rustup").is_some() && succeeds(Command::new("rustup").args(["run", "nightly", "rustc", "--version"]));
    if !has_nightly {
        let mut command = tree.cargo();
        command.env("RUSTC_BOOTSTRAP", "1");
        return command;
    }
    // The toolchain is chosen by rustup's own proxy, so its variables of the outer cargo must not reach it.
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo"])
        .current_dir(&tree.root)
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC");
    command
}

fn targets(tree: &Tree) -> Vec<String> {
    let Ok(listing) = std::fs::read_dir(tree.path("fuzz/fuzz_targets")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = listing
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}
