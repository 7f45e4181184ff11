//! Dialogues: `C:`/`S:` text files run through sessions with no socket, on a simulated disk, with a clock moved by hand.
//!
//! `dialogue/README.md` says how they are written. Every scenario runs four times: as it stands; with the client's octets handed in one
//! at a time; cut at random; and with an output that is full after every line. The answers must be the same, and the same again from
//! accounts of every format (see `formats/mod.rs`, which also lists what a format cannot answer alike).
//!
//! `DIALOGUES_WRITE=1 cargo test -p mailyard-sessions --test dialogues` writes what the sessions say into the files, for a human to
//! read before it is committed.

#![allow(clippy::unwrap_used, reason = "tests")]

mod dialogue;
mod formats;
#[path = "../../store-sql/tests/support/mariadb.rs"]
mod mariadb;
#[path = "formats/sql.rs"]
mod sql;

use std::path::{Path, PathBuf};

use dialogue::{Cuts, Scenario, play};
use formats::{DIFFERENT, Format};

fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialogues");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    files
}

/// Plays every scenario and gives one report of all that went wrong.
fn play_all(cuts: Cuts, format: Format) {
    let only = std::env::var("DIALOGUE").unwrap_or_default();
    let write = std::env::var_os("DIALOGUES_WRITE").is_some() && cuts == Cuts::Lines && format == Format::Native;
    let (mut failures, mut played) = (Vec::new(), 0);
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut scenarios = Scenario::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        for scenario in scenarios.iter_mut().filter(|scenario| format!("{file} {}", scenario.name).contains(&only)) {
            let name = format!("{file}: {}", scenario.name);
            if !format.plays(&name) {
                continue;
            }
            played += 1;
            let outcome =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(scenario, cuts, format, write)));
            match outcome {
                Ok(Ok(())) => {}
                Ok(Err(report)) => failures.push(format!("--- {name}\n{report}")),
                Err(_) => failures.push(format!("--- {name}\npanicked")),
            }
        }
        if write {
            let written: Vec<String> = scenarios.iter().map(Scenario::to_text).collect();
            std::fs::write(&path, written.join("\n")).unwrap();
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {played} dialogues fail ({format:?}):\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn as_written() {
    play_all(Cuts::Lines, Format::Native);
}

#[test]
fn octet_by_octet() {
    play_all(Cuts::Octets, Format::Native);
}

#[test]
fn cut_at_random() {
    play_all(Cuts::Random(7), Format::Native);
}

#[test]
fn with_little_room_in_the_output() {
    play_all(Cuts::SmallOutput, Format::Native);
}

#[test]
fn on_mbox_files() {
    play_all(Cuts::Lines, Format::Mbox);
}

#[test]
fn on_mbox_files_of_others() {
    play_all(Cuts::Lines, Format::Delivered);
}

#[test]
fn on_mbox_files_with_little_room_in_the_output() {
    play_all(Cuts::SmallOutput, Format::Delivered);
}

#[test]
fn on_maildirs() {
    play_all(Cuts::Lines, Format::Maildir);
}

#[test]
fn on_a_database() {
    play_all(Cuts::Lines, Format::Sql);
}

#[test]
fn every_exception_is_one_of_a_scenario() {
    let mut names = Vec::new();
    for path in files() {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let scenarios = Scenario::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
        names.extend(scenarios.iter().map(|scenario| format!("{file}: {}", scenario.name)));
    }
    for (_, name, why) in DIFFERENT {
        assert!(names.iter().any(|known| known == name) && !why.is_empty(), "{name}");
    }
}

#[test]
fn there_are_enough_of_them() {
    let count: usize =
        files().iter().map(|path| Scenario::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap().len()).sum();
    assert!(count >= 150, "{count}");
}
