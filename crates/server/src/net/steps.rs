//! Where a step of a session runs: on the runtime's own threads, because it is short. It may read from the disk; a sync it waits for only
//! when no other step runs ([`Steps::is_alone`]), else the threads of `writers` do.
//!
//! Telling the runtime that a thread may block ([`tokio::task::block_in_place`]) hands the thread's other work to another one, which
//! takes the next step and does the same: on a busy machine hundreds of threads then fight for a few processors, and everybody waits for
//! all of them. Here those who find no thread wait in a queue instead, in the order in which they came.
//!
//! Work that takes long (reading an mbox file of gigabytes, waiting for the lock of another program) leaves the queue: [`Steps::aside`].
//!
//! Invariants: [`SPARE`] of the runtime's threads are never in a step, so sockets and timers are always served. Nobody waits for a permit while
//! it holds something that others with a permit may wait for: who comes back from aside goes on without one.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Threads that are kept free of steps.
const SPARE: usize = 1;

/// Threads that may wait for the disk while all processors are at work: as many reads as a disk serves well at once. With 200 busy
/// connections on two processors and mail that is not in the page cache, 2 left the processors idle and 60 were slower again.
const WAITING: usize = 14;

/// Steps that may be aside at once: each has a thread of its own, and some MiB. Those that come then stay in the queue.
const ASIDE_MAX: usize = 64;

thread_local! {
    /// What this thread is doing.
    static DOING: Cell<Doing> = const { Cell::new(Doing::Other) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Other,
    /// A step, with a permit.
    Step,
    /// Work of a step, whose permit was given to others.
    Aside,
    /// The step goes on, without a permit.
    Back,
}

/// Threads of the runtime.
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get) + WAITING + SPARE
}

/// Lets so many steps run at once.
#[derive(Debug)]
pub struct Steps {
    permits: Arc<Semaphore>,
    all: usize,
    aside: Semaphore,
}

impl Steps {
    /// For a runtime of so many threads.
    pub fn new(workers: usize) -> Self {
        let all = workers.saturating_sub(SPARE).max(1);
        Steps { permits: Arc::new(Semaphore::new(all)), all, aside: Semaphore::new(ASIDE_MAX) }
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
        let _running = Running::new(self.permits.acquire().await.ok());
        step()
    }

    /// Runs a step that changes several accounts. It never counts as alone, so that it has all of them written side by side.
    pub async fn run_for_several<T>(&self, step: impl FnOnce() -> T) -> T {
        let company = if self.all > 1 { 2 } else { 1 };
        let _running = Running::new(self.permits.acquire_many(company).await.ok());
        step()
    }

    /// Runs work that takes long: a part of the step on this thread, if there is one. Other steps take its place meanwhile, and the runtime
    /// gets another thread. It runs to its end even when the client is gone: what was found out is of use to who comes next.
    pub fn aside(&self, work: &mut dyn FnMut()) {
        let doing = DOING.get();
        if matches!(doing, Doing::Other | Doing::Aside) {
            return work();
        }
        let Ok(_one) = self.aside.try_acquire() else { return work() };
        tokio::task::block_in_place(|| {
            DOING.set(Doing::Aside);
            if doing == Doing::Step {
                self.permits.add_permits(1);
            }
            work();
            DOING.set(Doing::Back);
        });
    }
}

/// A step while it runs.
struct Running<'s>(Option<SemaphorePermit<'s>>);

impl<'s> Running<'s> {
    /// From now on, on this thread.
    fn new(permit: Option<SemaphorePermit<'s>>) -> Self {
        DOING.set(Doing::Step);
        Running(permit)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if matches!(DOING.replace(Doing::Other), Doing::Aside | Doing::Back)
            && let Some(given) = self.0.as_mut().and_then(|permit| permit.split(1))
        {
            given.forget();
        }
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

    #[test]
    fn long_work_keeps_nobody_waiting() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        // One step at a time.
        let steps = Arc::new(Steps::new(2));
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        runtime.block_on(async {
            let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
            let long: Vec<_> = (0..5)
                .map(|_| {
                    let (steps, wait, begun) = (Arc::clone(&steps), Arc::clone(&wait), begun.clone());
                    tokio::spawn(async move {
                        let step = || {
                            // Once more within, and again behind.
                            steps.aside(&mut || {
                                begun.send(()).unwrap();
                                steps.aside(&mut || assert!(wait.lock().unwrap().recv().is_err()));
                            });
                            steps.aside(&mut || ());
                        };
                        steps.run(step).await;
                    })
                })
                .collect();
            for _ in 0..long.len() {
                has_begun.recv().await.unwrap();
            }
            // They are all at it, and others get their turn.
            for _ in 0..10 {
                let steps = Arc::clone(&steps);
                tokio::spawn(async move { steps.run(|| ()).await }).await.unwrap();
            }
            assert!(steps.is_alone());
            drop(release);
            for task in long {
                task.await.unwrap();
            }
            steps.run_for_several(|| steps.aside(&mut || ())).await;
        });
        assert_eq!((steps.permits.available_permits(), steps.aside.available_permits()), (1, ASIDE_MAX));
        // On a thread of nobody's.
        steps.aside(&mut || ());
        assert_eq!(steps.permits.available_permits(), 1);
    }

    #[test]
    fn who_finds_no_room_aside_stays() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let steps = Arc::new(Steps::new(2));
        let _all = steps.aside.try_acquire_many(ASIDE_MAX as u32).unwrap();
        let inside = Arc::clone(&steps);
        let free = runtime.block_on(async {
            let step = async move { inside.run(|| with_free(&inside)).await };
            tokio::spawn(step).await.unwrap()
        });
        assert_eq!((free, steps.permits.available_permits()), (0, 1));
    }

    /// How many permits are free while something is aside.
    fn with_free(steps: &Steps) -> usize {
        let mut free = usize::MAX;
        steps.aside(&mut || free = steps.permits.available_permits());
        free
    }
}
