//! The servers that are compared: whatever speaks IMAP at an address, and those that the benchmark can start by itself.
//!
//! Nothing in a suite knows which product it talks to; what only a server on this machine can do (restart, bytes read, memory) is
//! behind [`Local`], and a suite that needs it says so for the others.

mod mailyard;
mod mariadb;
pub mod peers;
mod remote;
mod tree;

pub use mailyard::{Form, Mailyard, free_port};
pub use remote::Remote;

use crate::error::{Error, Result};
use crate::results::ServerInfo;
use crate::wire::Address;
use std::path::{Path, PathBuf};

/// A server that takes part in a run.
pub trait Server {
    /// What the report says of it. Asked once it runs.
    fn info(&self) -> ServerInfo;

    /// The accounts, at least one. A server of our own makes as many as were asked for; the same user may come back more than once where
    /// there is only one.
    fn accounts(&mut self, count: usize) -> Result<Vec<Address>>;

    /// The server as a process of this machine that is ours; `None` when it is only an address.
    fn local(&mut self) -> Option<&mut dyn Local>;
}

/// What a server may offer beside IMAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// RFC 2033, to INBOX of each account by its name.
    Lmtp,
    /// RFC 1939.
    Pop3,
}

/// A server that the benchmark starts and stops.
///
/// Invariant: when it is dropped, none of its processes is left.
pub trait Local {
    /// Starts it and waits until it greets. Nothing happens when it runs.
    fn start(&mut self) -> Result<()>;

    /// Asks it to end, waits until all its processes are gone. Nothing happens when it does not run.
    fn stop(&mut self) -> Result<()>;

    /// The ids of all its processes: listener, login and session processes, whatever it consists of.
    fn processes(&self) -> Result<Vec<u32>>;

    /// The port of a service on this machine's loopback address; `None` where there is none.
    fn port(&self, service: Service) -> Option<u16> {
        let _ = service;
        None
    }

    /// Where the account's mail is: the folders and files that a backup of the account would take.
    fn storage(&self, account: &Address) -> Vec<PathBuf>;

    /// Everything that it keeps on disk, indexes outside of the mail included.
    fn files(&self) -> Vec<PathBuf>;

    /// The mbox file that this server would serve as the mailbox, when it serves mbox files in place; the server need not run.
    fn mbox(&self, account: &Address, mailbox: &str) -> Option<PathBuf> {
        let _ = (account, mailbox);
        None
    }

    /// Brings an mbox file into a mailbox that is not there yet, with the product's own tool or the one that is commonly used for its
    /// format, while the server does not run. Gives the tool's name; `None` when there is none.
    fn convert(&mut self, account: &Address, mailbox: &str, mbox: &Path) -> Result<Option<String>> {
        let _ = (account, mailbox, mbox);
        Ok(None)
    }

    /// Fills a mailbox that is there and empty from an mbox file, in order and with the internal dates of [`crate::fill`], by writing the
    /// server's own files while it does not run. Says how. Only for those that [`Local::can_place`].
    fn place(&mut self, account: &Address, mailbox: &str, mbox: &Path) -> Result<String> {
        let _ = (account, mailbox, mbox);
        Err(Error::new("the server's files cannot be written by others"))
    }

    /// Whether the server's files are simply files of messages.
    fn can_place(&self) -> bool {
        false
    }

    /// Makes the full-text index of a mailbox, where the product has one that does not make itself; gives the tool's name.
    fn index(&mut self, account: &Address, mailbox: &str) -> Result<Option<String>> {
        let _ = (account, mailbox);
        Ok(None)
    }

    /// The product's own backups, where it has some that are made while it runs.
    fn backups(&self) -> Option<&dyn Backups> {
        None
    }

    /// Turns syncing off or on, where the server has a setting for that; takes effect at the next start. False when it has none.
    fn set_synced(&mut self, synced: bool) -> Result<bool> {
        let _ = synced;
        Ok(false)
    }
}

/// Backups of accounts that a product makes while it runs, in a folder that grows with each.
pub trait Backups {
    /// Saves an account; into a folder that has been used for it before what is new.
    fn save(&self, account: &Address, folder: &Path) -> Result<()>;

    /// Reads everything back and compares it.
    fn verify(&self, folder: &Path) -> Result<()>;

    /// Brings a mailbox back as it was saved last, under another name.
    fn restore_mailbox(&self, account: &Address, folder: &Path, mailbox: &str, into: &str) -> Result<()>;

    /// Brings an account back as it was saved last, as one that is not there.
    fn restore_account(&self, account: &Address, folder: &Path, user: &str) -> Result<()>;

    /// Lets the user of an account that was brought back log in.
    fn admit(&self, user: &str) -> Result<Address>;

    /// Removes an account that was brought back, with its mail.
    fn forget_account(&self, user: &str) -> Result<()>;
}
