//! Where a step of a session runs: on the runtime's own threads, because it is short. It may read from the disk; a sync it waits for only
//! when no other step runs ([`Steps::is_alone`]), else the threads of `writers` do.
//!
//! Telling the runtime that a thread may block ([`tokio::task::block_in_place`]) hands the thread's other work to another one, which
//! takes the next step and does the same: on a busy machine hundreds of threads then fight for a few processors, and everybody waits for
//! all of them. Here those who find no thread wait in a queue instead, in the order in which they came.
//!
//! Invariant: [`SPARE`] of the runtime's threads are never in a step, so sockets and timers are always served.

use std::num::NonZero;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// Threads that are kept free of steps.
const SPARE: usize = 1;

/// Threads that may wait for the disk while all processors are at work: as many reads as a disk serves well at once. With 200 busy
/// connections on two processors and mail that is not in the page cache, 2 left the processors idle and 60 were slower again.
const WAITING: usize = 14;

/// Threads of the runtime.
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get) + WAITING + SPARE
}

/// Lets so many steps run at once.
#[derive(Debug)]
pub struct Steps {
    permits: Arc<Semaphore>,
    all: usize,
}

impl Steps {
    /// For a runtime of so many threads.
    pub fn new(workers: usize) -> Self {
        let all = workers.saturating_sub(SPARE).max(1);
        Steps { permits: Arc::new(Semaphore::new(all)), all }
    }

    /// Whether no step runs but, at most, the one that asks.
    pub fn is_alone(&self) -> bool {
        self.permits.available_permits() + 1 >= self.all
    }

    /// As if so many steps were running.
    #[cfg(test)]
    pub fn running(&self, steps: usize) -> Vec<tokio::sync::OwnedSemaphorePermit> {
        (0..steps).map(|_| Arc::clone(&self.permits).try_acquire_owned().unwrap()).collect()
    }

    /// Runs a step on this thread, when it is its turn.
    pub async fn run<T>(&self, step: impl FnOnce() -> T) -> T {
        // Never closed.
        let _permit = self.permits.acquire().await.ok();
        step()
    }

    /// Runs a step that changes several accounts. It never counts as alone, so that it has all of them written side by side.
    pub async fn run_for_several<T>(&self, step: impl FnOnce() -> T) -> T {
        let company = if self.all > 1 { 2 } else { 1 };
        let _permits = self.permits.acquire_many(company).await.ok();
        step()
    }
}

#[cfg(test)]
mod tests {
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
                        steps.run(|| wait.lock().unwrap().recv().unwrap_err()).await;
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
        assert_eq!(steps.permits.available_permits(), workers - SPARE);
        assert!(steps.is_alone());
        assert!(!runtime.block_on(steps.run_for_several(|| steps.is_alone())));
    }
}
