//! How fast memory is copied.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Copies one buffer into another, both larger than any cache of the processor is supposed to be and touched before.
pub fn copy(bytes: usize) -> Duration {
    let from = vec![1u8; bytes];
    let mut to = vec![2u8; bytes];
    let began = Instant::now();
    to.copy_from_slice(black_box(&from));
    let took = began.elapsed();
    black_box(&to);
    took
}
