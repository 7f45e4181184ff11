//! SIGINT and SIGTERM: the run ends early, with what was measured kept and nothing left behind.
//!
//! The first signal kills the servers that were started; whatever waits for one of them then fails, and the run comes to its end by the
//! ordinary way, on which results are closed and temporary files removed. A second signal removes them and ends the program at once.

use crate::error::{Doing, Error, Result};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As shells report an end by SIGINT: 128 + 2.
const EXIT_CODE: i32 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static SERVERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// From now on the signals do what is said above.
pub fn listen() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).doing("signals")?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            let again = INTERRUPTED.swap(true, Ordering::SeqCst);
            for server in servers().iter() {
                let _ = rustix::process::kill_process(*server, Signal::KILL);
            }
            if again {
                for folder in folders().iter() {
                    let _ = std::fs::remove_dir_all(folder);
                }
                std::process::exit(EXIT_CODE);
            }
            eprintln!("interrupted: ending; once more ends at once");
        }
    });
    Ok(())
}

/// An error once a signal came: asked before each step of a run.
pub fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err(Error::new("interrupted")) } else { Ok(()) }
}

/// A temporary folder, removed when the program ends at once.
pub fn remove_at_once(folder: &Path) {
    folders().push(folder.to_path_buf());
}

/// A process that is killed at the first signal.
pub fn kill_on_interrupt(server: Pid) {
    let mut servers = servers();
    servers.push(server);
    if INTERRUPTED.load(Ordering::SeqCst) {
        let _ = rustix::process::kill_process(server, Signal::KILL);
    }
}

/// The process is about to be waited for: its id may soon be another's.
pub fn is_gone(server: Pid) {
    servers().retain(|other| *other != server);
}

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn servers() -> MutexGuard<'static, Vec<Pid>> {
    // A list of numbers has no half-changed state.
    SERVERS.lock().unwrap_or_else(PoisonError::into_inner)
}
