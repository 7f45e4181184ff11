//! The thread that does the store's background work: at a bounded pace beside sessions, without pauses beside an import.

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

/// The pause beside an import when nothing waits: new mail comes fast.
const IMPORT_PAUSE: Duration = Duration::from_millis(20);

/// The thread's nice value beside sessions (setpriority(2)): about a tenth of a processor that others want too.
const SHARED_NICE: i32 = 10;

/// How much of the machine the thread takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Half of the disk at most, and what of the processors is left over: sessions want both too. Without pauses while somebody searches what
    /// is not indexed yet.
    Shared,
    /// All that it can get.
    Eager,
}

/// The thread. It ends when this is dropped, too, but only [`Maintenance::stop`] waits for it.
pub struct Maintenance {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Maintenance {
    /// Begins, for a server.
    pub fn start(store: Arc<Store>) -> Result<Self> {
        Self::start_at(Pace::Shared, store)
    }

    /// Begins, for a command that writes a lot and has the store for itself: the log is sealed beside it and not within its commits. What
    /// is only there to be faster later is left to the server.
    pub fn start_eager(store: Arc<Store>) -> Result<Self> {
        Self::start_at(Pace::Eager, store)
    }

    fn start_at(pace: Pace, store: Arc<Store>) -> Result<Self> {
        let (stop, stopped) = channel();
        let thread =
            std::thread::Builder::new().name("maintenance".to_owned()).spawn(move || work(&store, &stopped, pace))?;
        Ok(Maintenance { stop, thread })
    }

    /// Begins no more work. Gives the thread, which ends after the piece that is under way.
    pub fn end(self) -> JoinHandle<()> {
        drop(self.stop);
        self.thread
    }

    /// Ends after the piece of work that is under way.
    pub fn stop(self) {
        let _ = self.end().join();
    }
}

fn work(store: &Store, stopped: &Receiver<()>, pace: Pace) {
    if pace == Pace::Shared {
        // On Linux a thread has a priority of its own. Only speed depends on it.
        let _ = rustix::process::setpriority_process(None, SHARED_NICE);
    }
    let clock = &store.env().clock;
    let idle_pause = match pace {
        Pace::Shared => IDLE_PAUSE,
        Pace::Eager => IMPORT_PAUSE,
    };
    let mut pause = idle_pause;
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let began = clock.monotonic();
        // What sessions have left, before this work adds to it.
        platform::memory::give_back_free();
        let result = match pace {
            Pace::Shared => store.maintain(),
            Pace::Eager => store.seal(),
        };
        pause = match result {
            Ok(true) if pace == Pace::Eager => Duration::ZERO,
            // Whoever searches takes more of the machine until the index has caught up than the work does.
            Ok(true) if store.is_awaited() => PAUSE_MIN,
            // As long a pause as the work took.
            Ok(true) => clock.monotonic().saturating_sub(began).max(PAUSE_MIN),
            Ok(false) => idle_pause,
            Err(error) => {
                tracing::error!(%error, "maintenance failed");
                ERROR_PAUSE
            }
        };
    }
}
