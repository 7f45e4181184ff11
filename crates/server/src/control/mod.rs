//! The control socket: `control.sock` in the data directory, by which the command line reaches a running server.
//!
//! A request is one line of JSON ([`crate::admin::Request`]); answers are lines of JSON ([`Answer`]): any number of `progress` and
//! `notice`, then one `done` or `failed`. Whoever may connect may do everything: the socket is only its owner's (mode 0600).

mod client;
mod server;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use client::ask;
pub use server::{bind, serve_control};

/// Longest request, octets.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// One line of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// See [`crate::admin::Progress::advanced`].
    Progress {
        /// So many are done.
        done: u64,
        /// Of so many; 0: not known.
        total: u64,
        /// What is counted.
        unit: String,
    },
    /// See [`crate::admin::Progress::notice`].
    Notice(String),
    /// The result of the command.
    Done(serde_json::Value),
    /// The command failed.
    Failed(String),
}

/// Where the socket of a data directory is.
pub fn socket_path(data: &Path) -> PathBuf {
    data.join("control.sock")
}

/// A path to `name` in the open directory `directory` that fits into a socket address (108 octets), however long the real one is.
pub fn short_path(directory: &std::fs::File, name: impl AsRef<Path>) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
}
