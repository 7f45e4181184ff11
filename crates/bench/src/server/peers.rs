//! The servers that the benchmark can start by itself, by name.

use super::{Local, Mailyard, Server};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// A server that can be started when it is installed.
pub struct Peer {
    /// As in `--peer`.
    pub name: &'static str,
    /// What it is and where messages live.
    pub about: &'static str,
    /// What has to be installed.
    pub package: &'static str,
}

/// Where peers find what they need.
pub struct Place {
    /// A folder for everything of this one server.
    pub work: PathBuf,
    /// The program `mailyard`.
    pub mailyard: PathBuf,
}

/// Every peer that is known.
pub const PEERS: [Peer; 1] =
    [Peer { name: "mailyard-native", about: "Mailyard, its own store", package: "this program" }];

/// Makes the peer's configuration and accounts, and starts it.
pub fn start(name: &str, place: &Place) -> Result<Box<dyn Server>> {
    std::fs::create_dir_all(&place.work).map_err(|error| Error::new(format!("{}: {error}", place.work.display())))?;
    match name {
        "mailyard-native" => {
            let mut server = Mailyard::create(&place.mailyard, &place.work)?;
            server.start()?;
            Ok(Box::new(server))
        }
        _ => {
            let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
            Err(Error::new(format!("no peer is called {name:?}; there are {}", names.join(", "))))
        }
    }
}

/// Whether the peer could be started here: its version, or what is missing.
pub fn installed(peer: &Peer, mailyard: &Path) -> std::result::Result<String, String> {
    match peer.name {
        "mailyard-native" if mailyard.is_file() => Ok(mailyard.display().to_string()),
        _ => Err(format!("needs {}", peer.package)),
    }
}
