//! Delivery: who gets mail ([`Routes`]), the Unix sockets that it comes in by, and the command `mailyard deliver` ([`command`]).
//!
//! Invariant: whoever reaches `deliver.sock` in the data directory may put mail into any mailbox of any user: it is its owner's only
//! (mode 0600), as the control socket is.

pub mod command;
mod conversation;
mod routes;

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Error, ErrorKind, Result};
use sessions::lmtp;
use tokio::net::UnixListener;

pub use self::routes::{Named, Routes};
use crate::config::{Config, OverQuota};
use crate::control::short_path;
use crate::net::Door;

/// The socket of `mailyard deliver`, in the data directory.
const SOCKET: &str = "deliver.sock";

/// LMTP as it is configured.
pub fn settings(config: &Config) -> lmtp::Settings {
    let delivery = &config.delivery;
    lmtp::Settings {
        hostname: match delivery.hostname.as_str() {
            "" => hostname(),
            name => name.to_owned(),
        },
        over_quota: match delivery.over_quota {
            OverQuota::Retry => lmtp::OverQuota::Retry,
            OverQuota::Reject => lmtp::OverQuota::Reject,
        },
        offers_dsn: delivery.offers_dsn,
        recipients_max: delivery.recipients_max as usize,
        idle_time_max: Duration::from_secs(delivery.idle_seconds_max.into()),
        bad_commands_max: config.imap.bad_commands_max,
        input_bytes_max: config.imap.input_bytes_max as usize,
    }
}

/// What the system calls this host; it is part of header fields.
fn hostname() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let is_fine = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if is_fine { name.into_owned() } else { "localhost".to_owned() }
}

/// A Unix socket that listens; its file is removed when this is dropped.
pub struct Socket {
    door: Door,
    path: PathBuf,
    listener: Option<UnixListener>,
}

impl Socket {
    /// Whom it lets in to what.
    pub fn door(&self) -> Door {
        self.door
    }

    /// The socket itself, once.
    pub fn listener(&mut self) -> Result<UnixListener> {
        self.listener.take().ok_or_else(|| Error::new(ErrorKind::Invalid, "the socket is in use"))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Opens the sockets of a server that holds the store.
pub fn bind(config: &Config) -> Result<Vec<Socket>> {
    let mut sockets = vec![open(Door::Deliver, config.server.data.join(SOCKET), 0o600)?];
    let path = &config.listen.lmtp_socket;
    if !path.as_os_str().is_empty() {
        sockets.push(open(Door::Lmtp, path.clone(), config.delivery.socket_mode.0)?);
    }
    Ok(sockets)
}

fn open(door: Door, path: PathBuf, mode: u32) -> Result<Socket> {
    let context = |error: io::Error| Error::from(error).context(path.display());
    let listener = listen(&path, mode).map_err(context)?;
    Ok(Socket { door, path, listener: Some(listener) })
}

fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    // What a dead server has left; a file that is something else stays, and is in the way.
    if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let directory =
        File::open(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // The process's umask lets nobody else in from the first instant.
    let listener = UnixListener::bind(short_path(&directory, name))?;
    std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(listener)
}
