//! The servers that the benchmark can start by itself, by name.
//!
//! Each gets a folder of its own in the run's temporary folder, a configuration made for the run, a port on loopback and as many accounts
//! as are asked for; everything that it starts ends with it (see `server/tree.rs`).

mod courier;
mod cyrus;
mod daemon;
mod doveadm;
mod dovecot;
mod mailutils;
mod package;
pub(in crate::server) mod placed;
mod unpack;
mod users;
mod uw;

pub use package::Package;
pub use unpack::unpack;

use super::{Form, Local, Mailyard, Server, tree};
use crate::error::{Doing, Error, Result};
use courier::Courier;
use cyrus::Cyrus;
use daemon::{Daemon, Product};
use dovecot::Dovecot;
use mailutils::Mailutils;
use std::path::{Path, PathBuf};
use uw::Uw;

/// A server that can be started when it is installed.
pub struct Peer {
    /// As in `--peer`.
    pub name: &'static str,
    /// What it is and where messages live.
    pub about: &'static str,
    kind: Kind,
}

/// How a peer is run.
#[derive(Clone, Copy)]
enum Kind {
    /// Mailyard itself, with one of its formats.
    Mailyard(Form),
    /// What is installed or unpacked.
    Other(fn() -> Box<dyn Product>),
}

impl Peer {
    fn product(&self) -> Option<Box<dyn Product>> {
        match self.kind {
            Kind::Mailyard(_) => None,
            Kind::Other(product) => Some(product()),
        }
    }
}

/// Where peers find what they need.
pub struct Place {
    /// A folder for everything of this one server. On a system where this program runs as root, others may enter it.
    pub work: PathBuf,
    /// The program `mailyard`.
    pub mailyard: PathBuf,
    /// Where packages were unpacked to.
    pub unpacked: PathBuf,
}

/// Every peer that is known.
pub const PEERS: [Peer; 14] = [
    Peer { name: "mailyard-native", about: "Mailyard, its own store", kind: Kind::Mailyard(Form::Native) },
    Peer { name: "mailyard-mbox", about: "Mailyard, one file a mailbox", kind: Kind::Mailyard(Form::Mbox) },
    Peer { name: "mailyard-maildir", about: "Mailyard, one file a message", kind: Kind::Mailyard(Form::Maildir) },
    Peer { name: "mailyard-sql", about: "Mailyard, a MariaDB database", kind: Kind::Mailyard(Form::Sql) },
    Peer { name: "dovecot-mbox", about: "Dovecot, one file a mailbox", kind: Kind::Other(|| Box::new(Dovecot::Mbox)) },
    Peer {
        name: "dovecot-maildir",
        about: "Dovecot, one file a message",
        kind: Kind::Other(|| Box::new(Dovecot::Maildir)),
    },
    Peer {
        name: "dovecot-sdbox",
        about: "Dovecot, one file a message, flags in an index",
        kind: Kind::Other(|| Box::new(Dovecot::Sdbox)),
    },
    Peer {
        name: "dovecot-mdbox",
        about: "Dovecot, files of many messages",
        kind: Kind::Other(|| Box::new(Dovecot::Mdbox)),
    },
    Peer {
        name: "dovecot-mdbox-xapian",
        about: "Dovecot, files of many messages, the plugin fts-xapian",
        kind: Kind::Other(|| Box::new(Dovecot::MdboxXapian)),
    },
    Peer {
        name: "cyrus",
        about: "Cyrus, one file a message, no full-text index",
        kind: Kind::Other(|| Box::new(Cyrus { squatter: false })),
    },
    Peer {
        name: "cyrus-squatter",
        about: "Cyrus, one file a message, squatter's index",
        kind: Kind::Other(|| Box::new(Cyrus { squatter: true })),
    },
    Peer { name: "courier", about: "Courier, one file a message", kind: Kind::Other(|| Box::new(Courier)) },
    Peer { name: "mailutils", about: "GNU Mailutils, one file a mailbox", kind: Kind::Other(|| Box::new(Mailutils)) },
    Peer { name: "uw-imap", about: "UW-IMAP, one file a mailbox", kind: Kind::Other(|| Box::new(Uw)) },
];

/// The products that can be unpacked, each once.
pub fn packages() -> Vec<&'static Package> {
    let mut packages: Vec<&Package> = PEERS.iter().filter_map(|peer| Some(peer.product()?.package())).collect();
    packages.retain(|package| !package.debian.is_empty());
    packages.dedup_by_key(|package| package.name);
    packages
}

/// Makes the peer's configuration and accounts, and starts it.
pub fn start(name: &str, place: &Place) -> Result<Box<dyn Server>> {
    let Some(peer) = PEERS.iter().find(|peer| peer.name == name) else {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        return Err(Error::new(format!("no peer is called {name:?}; there are {}", names.join(", "))));
    };
    std::fs::create_dir_all(&place.work).doing(place.work.display())?;
    let product = match peer.kind {
        Kind::Mailyard(form) => {
            let mut server = Mailyard::create(&place.mailyard, &place.work, form)?;
            server.start()?;
            return Ok(Box::new(server));
        }
        Kind::Other(product) => product(),
    };
    let installed = product.package().find(&place.unpacked).doing(name)?;
    let mut server = Daemon::create(peer.name, product, &place.work, installed)?;
    server.start()?;
    server.accounts(1)?;
    Ok(Box::new(server))
}

impl Peer {
    /// Whether the peer could be started here: its version, or what is missing.
    pub fn installed(&self, mailyard: &Path, unpacked: &Path) -> std::result::Result<String, String> {
        let Some(product) = self.product() else {
            return if mailyard.is_file() {
                Ok(mailyard.display().to_string())
            } else {
                Err("the program `mailyard` is not beside this one: name it with --mailyard".into())
            };
        };
        let found = product.package().find(unpacked).map_err(|error| error.to_string())?;
        tree::permitted().map_err(|error| error.to_string())?;
        Ok(match found.tree {
            Some(tree) => format!("{}, unpacked in {}", found.version, tree.display()),
            None => found.version,
        })
    }
}

/// Where packages are unpacked to unless another folder is named: `mailyard/peers` in the user's folder for caches.
pub fn default_unpacked() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    cache.or_else(home).unwrap_or_else(std::env::temp_dir).join("mailyard").join("peers")
}
