//! The files of an account and which of them are in use.

use std::sync::Arc;

use crate::segment::Segment;
use crate::tail::Tail;

/// The truth.
pub(crate) const LOG_DIR: &str = "log";
/// What can be derived; may be deleted while the account is closed.
pub(crate) const INDEX_DIR: &str = "index";
/// Messages on their way in; emptied when the account is opened.
pub(crate) const SPOOL_DIR: &str = "spool";
/// Locked while the account is open.
pub(crate) const LOCK_FILE: &str = "lock";

/// The segments and tails, each in the order of their frames; the last tail is the one that is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) tails: Vec<Arc<Tail>>,
}
