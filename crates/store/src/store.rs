//! The store: a directory of accounts.
//!
//! Invariant: one process at a time holds a store (a lock file), one [`Account`] object at a time stands for an account.

use std::path::PathBuf;
use std::sync::Arc;

use model::{AccountName, Result};
use platform::Env;

use crate::Account;

/// How a store behaves; every number has its unit in its name.
#[derive(Clone, Debug)]
pub struct Options {
    /// Largest message, octets.
    pub message_bytes_max: u64,
    /// How the account logs behave.
    pub log: index::Options,
    /// An account that nobody has used for so long is closed, seconds.
    pub account_idle_seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        todo!()
    }
}

/// The store.
pub struct Store {}

impl Store {
    /// Opens the store at `root`, which is made when it is not there. [`model::ErrorKind::InUse`] when another process holds it.
    pub fn open(_env: Env, _root: PathBuf, _options: Options) -> Result<Arc<Store>> {
        todo!()
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        todo!()
    }

    /// Clock, disk and randomness.
    pub fn env(&self) -> &Env {
        todo!()
    }

    /// Makes an empty account with an INBOX.
    pub fn create_account(&self, _name: &AccountName) -> Result<()> {
        todo!()
    }

    /// Removes an account and everything in it. [`model::ErrorKind::InUse`] while someone holds it open.
    pub fn delete_account(&self, _name: &AccountName) -> Result<()> {
        todo!()
    }

    /// The accounts, sorted.
    pub fn accounts(&self) -> Result<Vec<AccountName>> {
        todo!()
    }

    /// The account, opened when it is not open. Everyone gets the same object.
    pub fn account(&self, _name: &AccountName) -> Result<Arc<Account>> {
        todo!()
    }

    /// Background work of all open accounts, a bounded piece of it: sealing, compaction, checkpoints, closing of idle accounts.
    /// Returns whether more is waiting. The server calls it from a thread of its own.
    pub fn maintain(&self) -> Result<bool> {
        todo!()
    }
}
