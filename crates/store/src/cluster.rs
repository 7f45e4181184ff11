//! Accounts that live in a database which several nodes share: where they are made and found. What one of them stands on is an
//! [`index::Journal`]; everything above it is the same as for any other account.

use std::fmt;
use std::sync::Arc;

use index::Journal;
use model::{AccountName, Result};

/// The accounts of a database, or of several. Every function waits for it; [`model::ErrorKind::Io`]: it cannot be reached.
pub trait Cluster: Send + Sync + fmt::Debug {
    /// Makes an account with an INBOX. [`model::ErrorKind::AlreadyExists`] when there is one of that name.
    fn create(&self, name: &AccountName) -> Result<()>;

    /// What stands behind the account of that name, if there is one.
    fn find(&self, name: &AccountName) -> Result<Option<Arc<dyn Journal>>>;

    /// Removes an account and everything in it. [`model::ErrorKind::NotFound`].
    fn delete(&self, name: &AccountName) -> Result<()>;

    /// The accounts, sorted.
    fn accounts(&self) -> Result<Vec<AccountName>>;
}
