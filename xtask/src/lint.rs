//! What the Rust tools find: format, lints, documentation; and the licences of what we depend on.

use crate::licences;
use crate::step::{Log, Outcome, Report, Result};
use crate::tree::{Tree, succeeds};

/// A workspace of its own, with the same rules.
const FUZZ: &str = "fuzz/Cargo.toml";

/// Format, clippy, rustdoc, licences.
pub fn steps(report: &mut Report) {
    report.step("format", |tree, log| {
        if let Some(missing) = component(tree, "fmt", "rustfmt") {
            return Ok(missing);
        }
        passes(log, tree, &["fmt", "--all", "--check"], 5)?;
        passes(log, tree, &["fmt", "--manifest-path", FUZZ, "--check"], 5)
    });
    report.step("licences", licences::check);
    report.step("clippy", |tree, log| {
        if let Some(missing) = component(tree, "clippy", "clippy") {
            return Ok(missing);
        }
        passes(log, tree, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], 20)?;
        let target = tree.target().to_string_lossy().into_owned();
        let fuzz = ["clippy", "--manifest-path", FUZZ, "--target-dir", &target, "--lib", "--tests", "--locked"];
        passes(log, tree, &[fuzz.as_slice(), &["--", "-D", "warnings"]].concat(), 10)
    });
    report.step("documentation", |tree, log| {
        let mut command = tree.cargo();
        command.args(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings");
        log.run(&command, 15)?;
        Ok(Outcome::Passed)
    });
}

fn passes(log: &mut Log, tree: &Tree, arguments: &[&str], minutes: u32) -> Result<Outcome> {
    let mut command = tree.cargo();
    command.args(arguments);
    log.run(&command, minutes)?;
    Ok(Outcome::Passed)
}

/// Toolchains installed with the minimal profile have no rustfmt and no clippy: `Some` says so.
fn component(tree: &Tree, subcommand: &str, component: &str) -> Option<Outcome> {
    let mut command = tree.cargo();
    command.args([subcommand, "--version"]);
    if succeeds(&mut command) {
        return None;
    }
    Some(Outcome::Skipped(format!("the toolchain has no {component}; add it with `rustup component add {component}`")))
}
