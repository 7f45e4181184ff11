//! Where message bytes live.

pub mod mbox;
