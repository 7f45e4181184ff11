//! Dates.

/// A date as written in a message: civil date and time with its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DateTime {
    /// Year, four digits.
    pub year: u16,
    /// Month, 1-12.
    pub month: u8,
    /// Day of the month, 1-31.
    pub day: u8,
    /// Hour, 0-23.
    pub hour: u8,
    /// Minute, 0-59.
    pub minute: u8,
    /// Second, 0-60.
    pub second: u8,
    /// Minutes east of UTC.
    pub offset_minutes: i16,
}

impl DateTime {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub fn unix_seconds(&self) -> i64 {
        todo!()
    }
    /// Days since 1970-01-01 of the civil date as written, the zone disregarded (SENTBEFORE, SENTON,
    /// SENTSINCE: RFC 9051 §6.4.4).
    pub fn civil_days(&self) -> i64 {
        todo!()
    }
}

/// The date of a raw Date field value.
pub fn parse_date(_value: &[u8]) -> Option<DateTime> {
    todo!()
}
