//! The order of a search result: SORT and THREAD (RFC 5256, RFC 5957), from columns and from what is kept beside the messages.
//!
//! Both take the sequence numbers that a [`crate::search::Search`] found and do their work in bounded steps, as it does. Neither opens a
//! message, recurses on its depth, or takes more than `n log n` time, whatever the mail says.

mod collation;
pub(crate) mod keys;
mod merge;
mod message_id;
mod sort;
mod subject;
mod thread;

pub use sort::{SORT_BYTES_MAX, Sort, SortCriterion, SortKey};
pub use thread::{Algorithm, THREAD_NODES_MAX, Thread, Threads, Token, Tokens};
