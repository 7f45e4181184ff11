//! What runs the asynchronous clients (object store, hints) for callers that block.

use std::future::Future;
use std::sync::mpsc;

use model::{Error, ErrorKind, Result};
use tokio::runtime::{self, Handle};
use tokio::task::JoinHandle;

/// Threads for it: what takes time is elsewhere.
const THREADS: usize = 2;

/// A runtime of our own: calls may come from any thread, those of another runtime included.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    /// `None` only while it is dropped.
    inner: Option<runtime::Runtime>,
}

impl Runtime {
    pub(crate) fn new(name: &str) -> Result<Runtime> {
        let inner = runtime::Builder::new_multi_thread().worker_threads(THREADS).thread_name(name).enable_all().build();
        let inner = inner.map_err(|error| Error::from(error).context("threads for the network"))?;
        Ok(Runtime { handle: inner.handle().clone(), inner: Some(inner) })
    }

    /// Runs something in the background.
    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.handle.spawn(future)
    }

    /// Waits for something that runs there.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.spawn(async move {
            // Who asked has not gone away: it waits.
            let _ = sender.send(future.await);
        });
        receiver.recv().unwrap_or_else(|_| Err(Error::new(ErrorKind::Io, "the network's threads have ended")))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Dropping it would wait, which a thread of another runtime may not.
        if let Some(inner) = self.inner.take() {
            inner.shutdown_background();
        }
    }
}
