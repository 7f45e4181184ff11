//! The system's clocks and its random source.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::clock::{Clock, Timestamp};
use crate::random::Random;

/// The system's clocks.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
}

impl Default for RealClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => {
                let seconds = i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
                Timestamp { seconds, nanoseconds: after.subsec_nanos() }
            }
            Err(before) => {
                // Rounded down, so that the nanoseconds stay positive.
                let before = before.duration();
                let borrow = u64::from(before.subsec_nanos() != 0);
                let seconds = 0i64.checked_sub_unsigned(before.as_secs().saturating_add(borrow)).unwrap_or(i64::MIN);
                Timestamp { seconds, nanoseconds: (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000 }
            }
        }
    }
}

/// The kernel's cryptographic random source (`getrandom(2)`).
#[derive(Debug, Clone, Copy, Default)]
pub struct RealRandom;

impl Random for RealRandom {
    fn fill(&self, buf: &mut [u8]) {
        // Fails only on kernels older than 3.17 with no /dev/urandom; going on with predictable salts would be worse.
        getrandom::fill(buf).expect("Linux has a random source");
    }
}
