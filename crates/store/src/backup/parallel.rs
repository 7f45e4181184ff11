//! Work on many files at a time: while the disk writes one, others are read and digested.
//!
//! Invariant: what is done to each file, and what is said of it, does not depend on how many are worked on at a time.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

use model::Result;

use super::Listener;

/// Files at a time. More than there are processors: most of them wait for a disk.
const WORKERS: usize = 4;
/// Fewer octets than these are not worth a thread.
const PARALLEL_BYTES_MIN: u64 = 16 << 20;

/// Is told how many more octets are done; `Break`: whoever listens has ended it.
pub(super) type Progress<'p> = &'p dyn Fn(u64) -> ControlFlow<()>;

/// Does `work` to each item, of `total` octets together. What came of each, in their order; `None`: the listener has ended it. After an error no item
/// is begun any more.
pub(super) fn for_each<T: Sync, R: Send>(
    items: &[T],
    total: u64,
    listener: Listener<'_>,
    work: impl Fn(&T, Progress<'_>) -> Result<Option<R>> + Sync,
) -> Result<Option<Vec<R>>> {
    let done = AtomicU64::new(0);
    if items.len() < 2 || total < PARALLEL_BYTES_MIN {
        let listener = RefCell::new(listener);
        let progress = |octets| listener.borrow_mut()(done.fetch_add(octets, Ordering::Relaxed) + octets, total);
        let mut results = Vec::with_capacity(items.len());
        for item in items {
            let Some(result) = work(item, &progress)? else { return Ok(None) };
            results.push(result);
        }
        return Ok(Some(results));
    }
    let (next, is_ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (tell, told) = mpsc::channel::<()>();
    let worker = |tell: mpsc::Sender<()>| {
        let progress = |octets| {
            done.fetch_add(octets, Ordering::Relaxed);
            // Whoever is told listens until the last worker has ended.
            let _ = tell.send(());
            if is_ended.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut results = Vec::new();
        while !is_ended.load(Ordering::Relaxed) {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(nth) else { break };
            let result = work(item, &progress);
            if !matches!(result, Ok(Some(_))) {
                is_ended.store(true, Ordering::Relaxed);
            }
            results.extend(result?.map(|result| (nth, result)));
        }
        Ok(results)
    };
    let results: Result<Vec<_>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS.min(items.len()))
            .map(|_| {
                let tell = tell.clone();
                scope.spawn(|| worker(tell))
            })
            .collect();
        drop(tell);
        for () in told {
            if listener(done.load(Ordering::Relaxed), total).is_break() {
                is_ended.store(true, Ordering::Relaxed);
            }
        }
        let joined = workers.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Result<Vec<_>>>()
    });
    let mut results: Vec<(usize, R)> = results?.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(nth, _)| *nth);
    let is_whole = results.len() == items.len();
    Ok(is_whole.then(|| results.into_iter().map(|(_, result)| result).collect()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use model::{Error, ErrorKind};

    const TOTALS: [u64; 2] = [100, PARALLEL_BYTES_MIN];

    fn run(total: u64, listener: Listener<'_>, bad: Option<u64>) -> Result<Option<Vec<u64>>> {
        let items: Vec<u64> = (0..100).collect();
        for_each(&items, total, listener, |item, progress| match (bad == Some(*item), progress(total / 100)) {
            (true, _) => Err(Error::new(ErrorKind::Corrupt, "bad")),
            (false, ControlFlow::Break(())) => Ok(None),
            (false, ControlFlow::Continue(())) => Ok(Some(item * 2)),
        })
    }

    #[test]
    fn results_are_in_order() {
        for total in TOTALS {
            let mut last = 0;
            let results = run(
                total,
                &mut |done, all| {
                    assert!(done >= last && all == total);
                    last = done;
                    ControlFlow::Continue(())
                },
                None,
            );
            assert_eq!(results.unwrap().unwrap(), (0..100).map(|item| item * 2).collect::<Vec<_>>());
            assert_eq!(last, total / 100 * 100);
        }
    }

    #[test]
    fn errors_and_listeners_end_it() {
        for total in TOTALS {
            assert!(run(total, &mut |_, _| ControlFlow::Continue(()), Some(50)).is_err());
        }
        assert_eq!(run(TOTALS[0], &mut |_, _| ControlFlow::Break(()), None).unwrap(), None);
        let items = [1, 2];
        let gave_up = for_each(&items, PARALLEL_BYTES_MIN, &mut |_, _| ControlFlow::Break(()), |_, progress| {
            // However long it takes the listener to hear of it.
            while progress(0).is_continue() {
                std::thread::yield_now();
            }
            Ok(None::<()>)
        });
        assert_eq!(gave_up.unwrap(), None);
    }
}
