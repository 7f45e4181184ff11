//! The thread that does the store's background work, at a bounded pace.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use model::Result;
use store::Store;

/// The pause when nothing waits.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// The pause after an error: a full disk does not empty itself in a second.
const ERROR_PAUSE: Duration = Duration::from_secs(30);
/// The shortest pause between two pieces of work.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// The thread.
pub struct Maintenance {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Maintenance {
    /// Begins.
    pub fn start(store: Arc<Store>) -> Result<Self> {
        let (stop, stopped) = channel();
        let thread =
            std::thread::Builder::new().name("maintenance".to_owned()).spawn(move || work(&store, &stopped))?;
        Ok(Maintenance { stop, thread })
    }

    /// Ends after the piece of work that is under way.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

fn work(store: &Store, stopped: &Receiver<()>) {
    let clock = &store.env().clock;
    let mut pause = IDLE_PAUSE;
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let began = clock.monotonic();
        pause = match store.maintain() {
            // As long a pause as the work took: half of the disk at most is ours while sessions want it too.
            Ok(true) => clock.monotonic().saturating_sub(began).max(PAUSE_MIN),
            Ok(false) => IDLE_PAUSE,
            Err(error) => {
                tracing::error!(%error, "maintenance failed");
                ERROR_PAUSE
            }
        };
    }
}
