//! News of files that other programs change.

use std::any::Any;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Called when something may have happened to a watched path, from any thread and with no lock held that others wait for long; must be quick. May be called for nothing,
/// and once for many changes.
pub type OnChange = Arc<dyn Fn() + Send + Sync>;

/// What became of a name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameChange {
    /// It was made, or something was renamed to it.
    Came,
    /// What had it was renamed, perhaps into another directory.
    Left,
    /// What had it was removed under this name.
    Removed,
}

/// What [`Watch::watch_names`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameNews<'a> {
    /// A change of one name. In the order of the changes.
    Name(&'a OsStr, NameChange),
    /// Whatever may have happened: the system lost count.
    Any,
    /// The system does not tell of names here, or from now on not any more: [`NameNews::Any`] comes at best.
    Blind,
}

/// Called for every change of a name, like [`OnChange`].
pub type OnNames = Arc<dyn Fn(NameNews<'_>) + Send + Sync>;

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

    /// Calls for each name in a directory that comes or goes from now on, and with [`NameNews::Any`] where the system cannot say which. That
    /// the bytes of a file changed is no news.
    ///
    /// On a file system of this machine no change is left out. It may be told an instant after it shows in the directory's times: the
    /// system counts first and tells then.
    fn watch_names(&self, dir: &Path, on_names: OnNames) -> io::Result<WatchGuard>;

    /// Calls everyone about what the system has to tell, before it returns. What is called must not call this.
    fn settle(&self);
}
