//! News of files that other programs change.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Called when something may have happened to a watched path, from any thread and with no lock held; must be quick. May be called for nothing,
/// and once for many changes.
pub type OnChange = Arc<dyn Fn() + Send + Sync>;

/// Keeps a watch alive; dropping it ends the calls, but for one that may be under way.
#[must_use = "the watch ends with its guard"]
pub struct WatchGuard {
    _held: Box<dyn Any + Send + Sync>,
}

impl WatchGuard {
    /// Wraps the object whose drop ends the watch. For implementations of [`Watch`].
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for WatchGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchGuard")
    }
}

/// Tells of changes, whoever made them, this process included.
///
/// What is called is a hint to look: whoever needs certainty compares [`crate::Metadata`], since changes on other machines of a network file
/// system, for one, may be told late or, by a kernel that does not know of them, never.
pub trait Watch: Send + Sync + fmt::Debug {
    /// Calls when the file of this name is written, cut, replaced, created, renamed or removed; for a directory, when a name in it comes, goes
    /// or changes. There need not be anything yet; whether it is a directory is decided now.
    ///
    /// A watch that cannot be set up in the kernel (its limits, a directory that is not there or not readable) is kept by looking now and then,
    /// so an error is rare: no thread could be started.
    fn watch(&self, path: &Path, on_change: OnChange) -> io::Result<WatchGuard>;
}
