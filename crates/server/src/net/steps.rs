//! Where a step of a session runs: it may wait for the disk, and the runtime has few threads.
//!
//! Telling the runtime that a thread may block ([`tokio::task::block_in_place`]) hands all of the thread's other work to another one: two
//! context switches, several times the cost of most commands. So a step just runs on the runtime's own thread, of which there are more
//! than cores, and only when nearly all of them are in a step is the runtime told.
//!
//! Invariant: [`SPARE`] of the runtime's threads are never in a step that it does not know of, so sockets and timers are always served.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads of the runtime: enough for a few that wait for the disk.
pub const WORKERS: usize = 8;
/// Threads that are kept free of steps.
const SPARE: usize = 2;

/// How many steps run now.
#[derive(Debug, Default)]
pub struct Steps(AtomicUsize);

/// Counts a step out, also when it panics.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Steps {
    /// Runs a step on this thread.
    pub fn run<T>(&self, step: impl FnOnce() -> T) -> T {
        let others = self.0.fetch_add(1, Ordering::Relaxed);
        let _running = Running(&self.0);
        if others < WORKERS - SPARE { step() } else { tokio::task::block_in_place(step) }
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
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).build().unwrap();
        let steps = Arc::new(Steps::default());
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let blocked = 2 * WORKERS;
        runtime.block_on(async {
            let tasks: Vec<_> = (0..blocked)
                .map(|_| {
                    let (steps, wait) = (Arc::clone(&steps), Arc::clone(&wait));
                    tokio::spawn(async move { steps.run(|| wait.lock().unwrap().recv().unwrap_or_default()) })
                })
                .collect();
            // Others get their turn although twice as many steps as threads are stuck.
            let barrier = Arc::new(Barrier::new(3));
            let others: Vec<_> = (0..3)
                .map(|_| {
                    tokio::spawn({
                        let b = Arc::clone(&barrier);
                        async move {
                            let _ = b.wait().await;
                        }
                    })
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
        assert_eq!(steps.0.load(Ordering::Relaxed), 0);
    }
}
