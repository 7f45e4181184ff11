//! Accounts that live in a database which several nodes share: where they are made and found. What one of them stands on is an
//! [`index::Journal`]; everything above it is the same as for any other account.

use std::fmt;
use std::sync::Arc;

use index::{Journal, News, PendingMessage};
use model::{AccountName, EmailId, ModSeq, Result};

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

    /// The copy of an account that lives elsewhere: on its way in, or left behind when it went out. Nobody is served from it. With `make` one
    /// is made when there is none. [`model::ErrorKind::AlreadyExists`] when the account itself is here.
    fn copy(&self, name: &AccountName, make: bool) -> Result<Option<Arc<dyn ClusterCopy>>>;

    /// Makes the copy the account. Nothing to do when there is none and the account is here.
    fn publish(&self, name: &AccountName) -> Result<()>;

    /// Makes the account a copy, if `modseq` is that of the last change by anybody; false: it is not. From then on nobody can change it.
    fn retire(&self, name: &AccountName, modseq: ModSeq) -> Result<bool>;

    /// Removes the copy, if there is one.
    fn drop_copy(&self, name: &AccountName) -> Result<()>;
}

/// The copy of an account; see [`Cluster::copy`].
pub trait ClusterCopy: Send + Sync + fmt::Debug {
    /// Every message that it has has an id below this one; it has all below that the account had when they were put.
    fn end(&self) -> Result<u64>;

    /// Adds messages, whose ids rise and are not below [`ClusterCopy::end`]; all or none.
    fn put(&self, messages: &[(EmailId, PendingMessage)]) -> Result<()>;

    /// What its rows say, read from the database.
    fn rows(&self) -> Result<News>;

    /// Makes its rows say this: everything of the account but its messages.
    fn put_rows(&self, rows: &News) -> Result<()>;

    /// To read its messages.
    fn journal(&self) -> Arc<dyn Journal>;
}
