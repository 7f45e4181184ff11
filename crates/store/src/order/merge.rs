//! Sorting in bounded pieces: items come in, runs are sorted as they fill, and runs are merged a piece at a time.
//!
//! The order must be total; who wants ties by number compares the number last.

use std::cmp::Ordering;
use std::collections::VecDeque;

/// Items that are sorted at once: a few milliseconds.
const RUN_ITEMS: usize = 1 << 14;
/// Items that one step of merging moves.
const STEP_ITEMS: usize = 1 << 16;

/// A sort that is under way.
pub(super) struct MergeSort<T> {
    /// Still to be sorted.
    filling: Vec<T>,
    /// Sorted.
    runs: VecDeque<Vec<T>>,
    merging: Option<Merging<T>>,
}

/// Two runs becoming one.
struct Merging<T> {
    a: std::iter::Peekable<std::vec::IntoIter<T>>,
    b: std::iter::Peekable<std::vec::IntoIter<T>>,
    out: Vec<T>,
}

impl<T> MergeSort<T> {
    pub(super) fn new() -> Self {
        MergeSort { filling: Vec::new(), runs: VecDeque::new(), merging: None }
    }

    /// Takes an item; sorts a run when one is full.
    pub(super) fn push(&mut self, item: T, compare: impl FnMut(&T, &T) -> Ordering) {
        self.filling.push(item);
        if self.filling.len() >= RUN_ITEMS {
            self.end_run(compare);
        }
    }

    fn end_run(&mut self, compare: impl FnMut(&T, &T) -> Ordering) {
        let mut run = std::mem::take(&mut self.filling);
        if !run.is_empty() {
            run.sort_unstable_by(compare);
            self.runs.push_back(run);
        }
    }

    /// Does a bounded piece of work once all items are there; `Some` when everything is in order.
    pub(super) fn step(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) -> Option<Vec<T>> {
        self.end_run(&mut compare);
        let mut left = STEP_ITEMS;
        while left > 0 {
            let Some(merging) = &mut self.merging else {
                let Some(a) = self.runs.pop_front() else { return Some(Vec::new()) };
                let Some(b) = self.runs.pop_front() else { return Some(a) };
                let out = Vec::with_capacity(a.len() + b.len());
                self.merging = Some(Merging { a: a.into_iter().peekable(), b: b.into_iter().peekable(), out });
                continue;
            };
            let next = match (merging.a.peek(), merging.b.peek()) {
                (Some(a), Some(b)) if compare(b, a) == Ordering::Less => merging.b.next(),
                (None, Some(_)) => merging.b.next(),
                _ => merging.a.next(),
            };
            match next {
                Some(item) => merging.out.push(item),
                None => self.runs.extend(self.merging.take().map(|merging| merging.out)),
            }
            left -= 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_become_one() {
        for count in [0u64, 1, 2, 1000, 16_384, 16_385, 100_000, 200_001] {
            let mut sort = MergeSort::new();
            let mut state = count;
            let mut expected: Vec<(u64, u64)> = Vec::new();
            for n in 0..count {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let item = (state >> 48, n);
                expected.push(item);
                sort.push(item, Ord::cmp);
            }
            expected.sort();
            let mut steps = 1;
            let sorted = loop {
                match sort.step(Ord::cmp) {
                    Some(sorted) => break sorted,
                    None => steps += 1,
                }
            };
            assert_eq!(sorted, expected);
            assert!(steps as u64 >= count / STEP_ITEMS as u64);
        }
    }
}
