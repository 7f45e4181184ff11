//! Time as the mail store sees it: a calendar clock for dates, a monotonic one for intervals.

use std::fmt;
use std::time::Duration;

/// An instant of the calendar, UTC, since 1970-01-01 00:00:00 without leap seconds (POSIX time).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Whole seconds, rounded down: negative before 1970.
    pub seconds: i64,
    /// Nanoseconds after `seconds`: 0 to 999,999,999.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// An instant of whole seconds.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self { seconds, nanoseconds: 0 }
    }

    /// This instant moved forward; stops at the end of what the type can say.
    pub fn saturating_add(self, by: Duration) -> Self {
        const LAST: Timestamp = Timestamp { seconds: i64::MAX, nanoseconds: 999_999_999 };
        let nanoseconds = self.nanoseconds.saturating_add(by.subsec_nanos());
        let carry = nanoseconds / 1_000_000_000;
        self.seconds
            .checked_add_unsigned(by.as_secs())
            .and_then(|seconds| seconds.checked_add_unsigned(u64::from(carry)))
            .map_or(LAST, |seconds| Timestamp { seconds, nanoseconds: nanoseconds % 1_000_000_000 })
    }
}

/// Where the time comes from.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The calendar time. May jump in either direction when somebody sets the machine's clock.
    fn now(&self) -> Timestamp;

    /// Time since some fixed instant in the past of this process. Never goes backwards; use it for intervals.
    fn monotonic(&self) -> Duration;

    /// Lets the calling thread wait. A simulated clock moves on by as much and returns at once.
    fn sleep(&self, time: Duration);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Env;
    use std::time::UNIX_EPOCH;

    #[test]
    fn time_adds_up_and_stops_at_the_end() {
        let time = Timestamp { seconds: -1, nanoseconds: 999_999_999 };
        assert_eq!(time.saturating_add(Duration::from_nanos(1)), Timestamp::from_seconds(0));
        assert_eq!(time.saturating_add(Duration::ZERO), time);
        let last = Timestamp { seconds: i64::MAX, nanoseconds: 999_999_999 };
        assert_eq!(last.saturating_add(Duration::from_nanos(1)), last);
        assert_eq!(time.saturating_add(Duration::MAX), last);
    }

    #[test]
    fn the_system_time_is_rounded_down() {
        let at = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        assert_eq!(Timestamp::from(UNIX_EPOCH), at(0, 0));
        assert_eq!(Timestamp::from(UNIX_EPOCH + Duration::new(5, 7)), at(5, 7));
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::new(5, 0)), at(-5, 0));
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::new(5, 7)), at(-6, 999_999_993));
    }

    #[test]
    fn the_real_clock_runs_and_the_real_source_varies() {
        let env = Env::real();
        assert!(env.clock.now() > Timestamp::from_seconds(1_700_000_000));
        let first = env.clock.monotonic();
        assert!(env.clock.monotonic() >= first);
        assert_ne!(env.random.u64(), env.random.u64());
    }
}
