//! Where a step of a session runs: it may wait for the disk, and the runtime has few threads.
//!
//! Telling the runtime that a thread may block ([`tokio::task::block_in_place`]) hands all of the thread's other work to another one: two
//! context switches, several times the cost of most commands. So a step just runs on the runtime's own thread, of which there are more
//! than cores, and only when nearly all of them are in a step is the runtime told.
//!
//! Invariant: [`SPARE`] of the runtime's threads are never in a step that it does not know of, so sockets and timers are
//! always served.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that are kept free of steps.
const SPARE: usize = 1;

/// Threads that may wait for the disk or for a processor while all processors are at work.
const WAITING: usize = 2;

/// Threads of the runtime. Not more than needed: the runtime wakes one after the other to look for work, and each that finds none has cost
/// as much as a short command.
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get) + WAITING + SPARE
}

/// Counts the steps that run.
#[derive(Debug)]
pub struct Steps {
    running: AtomicUsize,
    /// So many at once may go on without the runtime's knowledge.
    unannounced_max: usize,
}

/// Counts a step out, also when it panics.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Steps {
    /// For a runtime of so many threads.
    pub fn new(workers: usize) -> Self {
        Steps { running: AtomicUsize::new(0), unannounced_max: workers.saturating_sub(SPARE) }
    }

    /// Runs a step on this thread.
    pub fn run<T>(&self, step: impl FnOnce() -> T) -> T {
        let others = self.running.fetch_add(1, Ordering::Relaxed);
        let _running = Running(&self.running);
        if others < self.unannounced_max { step() } else { tokio::task::block_in_place(step) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use tokio::sync::Barrier;

    use super::*;

    #[test]
    fn the_runtime_lives_while_every_step_blocks() {
        let workers = workers();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().unwrap();
        let steps = Arc::new(Steps::new(workers));
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let blocked = 2 * workers;
        runtime.block_on(async {
            let tasks: Vec<_> = (0..blocked)
                .map(|_| {
                    let (steps, wait) = (Arc::clone(&steps), Arc::clone(&wait));
                    tokio::spawn(async move {
                        // The other end is dropped, never written to.
                        steps.run(|| wait.lock().unwrap().recv().unwrap_err());
                    })
                })
                .collect();
            // Others get their turn although twice as many steps as threads are stuck.
            let barrier = Arc::new(Barrier::new(3));
            let others: Vec<_> = (0..3)
                .map(|_| {
                    let barrier = Arc::clone(&barrier);
                    tokio::spawn(async move { barrier.wait().await.is_leader() })
                })
                .collect();
            for other in others {
                other.await.unwrap();
            }
            drop(release);
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(steps.running.load(Ordering::Relaxed), 0);
    }
}
