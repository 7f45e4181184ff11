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
        Self {
            seconds,
            nanoseconds: 0,
        }
    }

    /// This instant moved forward; stops at the end of what the type can say.
    pub fn saturating_add(self, by: Duration) -> Self {
        const LAST: Timestamp = Timestamp {
            seconds: i64::MAX,
            nanoseconds: 999_999_999,
        };
        let nanoseconds = self.nanoseconds.saturating_add(by.subsec_nanos());
        let carry = nanoseconds / 1_000_000_000;
        self.seconds
            .checked_add_unsigned(by.as_secs())
            .and_then(|seconds| seconds.checked_add_unsigned(u64::from(carry)))
            .map_or(LAST, |seconds| Timestamp {
                seconds,
                nanoseconds: nanoseconds % 1_000_000_000,
            })
    }
}

/// Where the time comes from.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The calendar time. May jump in either direction when somebody sets the machine's clock.
    fn now(&self) -> Timestamp;

    /// Time since some fixed instant in the past of this process. Never goes backwards; use it for intervals.
    fn monotonic(&self) -> Duration;
}
