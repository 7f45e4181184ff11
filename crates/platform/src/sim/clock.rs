//! Time that moves only when it is told to, and randomness that repeats.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::hold;
use crate::clock::{Clock, Timestamp};
use crate::random::{Prng, Random};

/// Where every simulated clock starts: 2001-09-09 01:46:40 UTC.
pub const SIM_START: Timestamp = Timestamp::from_seconds(1_000_000_000);

/// A clock that is moved by hand. Clones are the same clock.
#[derive(Debug, Clone)]
pub struct SimClock {
    time: Arc<Mutex<(Timestamp, Duration)>>,
}

impl Default for SimClock {
    fn default() -> Self {
        Self { time: Arc::new(Mutex::new((SIM_START, Duration::ZERO))) }
    }
}

impl SimClock {
    /// Lets time pass on both clocks.
    pub fn advance(&self, by: Duration) {
        let mut time = hold(&self.time);
        time.0 = time.0.saturating_add(by);
        time.1 = time.1.saturating_add(by);
    }

    /// Sets the calendar, as an administrator may, in either direction; the monotonic clock does not notice.
    pub fn set(&self, now: Timestamp) {
        hold(&self.time).0 = now;
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        hold(&self.time).0
    }

    fn monotonic(&self) -> Duration {
        hold(&self.time).1
    }

    fn sleep(&self, time: Duration) {
        self.advance(time);
    }
}

/// A seeded source. Clones draw from the same sequence.
#[derive(Debug, Clone)]
pub struct SimRandom {
    prng: Arc<Mutex<Prng>>,
}

impl SimRandom {
    /// The source of this seed.
    pub fn new(seed: u64) -> Self {
        Self { prng: Arc::new(Mutex::new(Prng::new(seed))) }
    }
}

impl Random for SimRandom {
    fn fill(&self, buf: &mut [u8]) {
        hold(&self.prng).fill(buf);
    }
}
