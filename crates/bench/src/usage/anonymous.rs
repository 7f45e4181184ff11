//! The peak of memory that belongs to processes alone: resident pages of no file.
//!
//! The kernel keeps a peak of all resident pages (`VmHWM`), in which the pages of a mapped file count although they are the page cache's, and can
//! be dropped at any moment. It keeps none of the rest (`RssAnon`, proc(5)), so somebody has to look again and again.
//!
//! Invariant: the thread ends when the [`Watch`] is finished or dropped.

use super::process;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often one looks: often enough for buffers that live as long as a disk takes, seldom enough to cost a thousandth of a processor.
const POLL: Duration = Duration::from_millis(10);

/// Looks at some processes until it is finished.
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<u64>>,
}

impl Watch {
    /// Begins to look. Processes that are born later are not seen.
    pub fn start(processes: Vec<u32>) -> Watch {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut peak = 0;
            loop {
                let is_over = stopped.recv_timeout(POLL) != Err(RecvTimeoutError::Timeout);
                peak = peak.max(processes.iter().map(|id| process::anonymous(*id)).sum());
                if is_over {
                    return peak;
                }
            }
        });
        Watch { stop: Some(stop), thread: Some(thread) }
    }

    /// The largest sum that was seen, in bytes.
    pub fn finish(mut self) -> u64 {
        self.end()
    }

    fn end(&mut self) -> u64 {
        drop(self.stop.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::Watch;

    #[test]
    fn what_is_allocated_meanwhile_is_seen() {
        let watch = Watch::start(vec![std::process::id()]);
        let before = watch.finish();
        let watch = Watch::start(vec![std::process::id(), u32::MAX >> 1]);
        let pages = vec![1u8; 50 << 20];
        // It looks a last time when it is asked to end.
        assert!(std::hint::black_box(&pages).iter().all(|byte| *byte == 1));
        let seen = watch.finish();
        drop(pages);
        assert!(before > 0 && seen > before + (30 << 20), "{before} {seen}");
    }
}
