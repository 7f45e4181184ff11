//! Where work runs that takes long.

use std::fmt;
use std::sync::Arc;

/// Runs work that takes long where it is in nobody's way: reading or moving a large file, waiting for a lock of another program or for somebody
/// who does one of these. Who drives many sessions with few threads knows how. The default runs it where it is, as everything else.
#[derive(Clone, Default)]
pub struct Aside(Option<Arc<Run>>);

type Run = dyn Fn(&mut dyn FnMut()) + Send + Sync;

impl Aside {
    /// `run` is given the work and returns when it is done; it must call it exactly once, on the same thread.
    pub fn new(run: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Aside(Some(Arc::new(run)))
    }

    /// Runs it there, and gives what it gave.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(run) = &self.0 else { return work() };
        let (mut work, mut result) = (Some(work), None);
        run(&mut || result = work.take().map(|work| work()));
        result.expect("whoever runs work aside calls it")
    }

    /// The same if it takes long; otherwise at once.
    pub(crate) fn run_if<T>(&self, is_long: bool, work: impl FnOnce() -> T) -> T {
        if is_long { self.run(work) } else { work() }
    }
}

impl fmt::Debug for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Aside" } else { "Here" })
    }
}
