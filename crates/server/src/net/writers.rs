//! The threads that write and sync what sessions have changed, so that no thread of the runtime waits for that.
//!
//! A job is one batch of one account: everything that its sessions changed while the batch before was written. Accounts take turns.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use model::Result;
use store::{HandOver, Job};

use super::steps::Steps;

/// Threads that write: so many accounts can wait for the disk at once. A disk takes several syncs at once, and the file system makes one
/// journal commit of them.
const WRITERS: usize = 8;

/// What is to be written.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Nobody can add to it any more.
    is_closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; `None` when there will be none.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }
}

/// The threads end when this is dropped and all is written.
struct Entrance(Arc<Queue>);

impl Drop for Entrance {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.filled.notify_all();
    }
}

/// Starts the threads; for [`store::Store::hand_over_to`]. A step that is alone writes itself: nobody waits for its thread, and the way to
/// another one and back takes longer than many a sync.
pub fn start(steps: &Arc<Steps>) -> Result<HandOver> {
    let entrance = Entrance(Arc::default());
    for _ in 0..WRITERS {
        let queue = Arc::clone(&entrance.0);
        std::thread::Builder::new().name("write".to_owned()).spawn(move || queue.work())?;
    }
    let steps = Arc::clone(steps);
    Ok(Arc::new(move |job| {
        if steps.is_alone() {
            return Err(job);
        }
        entrance.0.lock().jobs.push_back(job);
        entrance.0.filled.notify_one();
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Two steps are running, so nobody is alone.
    fn busy() -> (Vec<tokio::sync::OwnedSemaphorePermit>, HandOver) {
        let steps = Arc::new(Steps::new(8));
        let running = steps.running(2);
        (running, start(&steps).unwrap())
    }

    #[test]
    fn who_is_alone_writes_itself() {
        let steps = Arc::new(Steps::new(8));
        let hand_over = start(&steps).unwrap();
        let job = hand_over(Box::new(|| ())).expect_err("given back");
        job();
    }

    #[test]
    fn everything_that_was_handed_over_is_run() {
        let (steps, hand_over) = busy();
        let (done, ran) = channel();
        for n in 0..100 {
            let done = done.clone();
            assert!(hand_over(Box::new(move || done.send(n).unwrap())).is_ok());
        }
        drop((hand_over, done));
        drop(steps);
        // Ends when the last job is gone.
        let mut ran: Vec<u32> = ran.iter().collect();
        ran.sort_unstable();
        assert_eq!(ran, (0..100).collect::<Vec<_>>());
    }
}
