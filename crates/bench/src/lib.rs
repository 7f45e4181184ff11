//! Workloads, load generator and report: what a mail server does in a second, beside what the machine could do.
//!
//! Everything is measured over the wire, so any IMAP server can stand in Mailyard's place. Every figure comes with the physical limit
//! of the same work, measured in the same run; the ratio of the two is the result.

mod cli;
pub mod cold;
pub mod corpus;
pub mod error;
pub mod fill;
pub mod interrupt;
pub mod limits;
pub mod mbox;
pub mod progress;
pub mod random;
pub mod report;
pub mod results;
pub mod run;
pub mod server;
pub mod suite;
pub mod usage;
pub mod wire;
pub mod workload;

pub use cli::run;
