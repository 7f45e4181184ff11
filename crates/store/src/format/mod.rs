//! Where message bytes live outside the store's own log: foreign files, read by their rules.

pub mod mbox;
pub mod served;
