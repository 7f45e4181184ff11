//! Where message bytes live outside the store's own log: foreign files, read by their rules.

pub(crate) mod account_format;
pub(crate) mod adoption;
pub(crate) mod files;
pub(crate) mod findings;
#[cfg(test)]
pub(crate) mod format_doc;
pub(crate) mod idle;
pub(crate) mod maildir;
pub mod mbox;
pub(crate) mod names;
pub mod served;

pub use account_format::{AccountFormat, MaildirLayout};
