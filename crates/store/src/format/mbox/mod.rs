//! mbox files.

pub mod rewrite;
