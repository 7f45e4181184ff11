//! Dates as mail has them: an instant with the zone that it was written in.

use std::fmt;

/// A day of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CivilDate {
    /// The year, 0 to 9999.
    pub year: u16,
    /// The month, 1 to 12.
    pub month: u8,
    /// The day of the month, 1 to 31.
    pub day: u8,
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Days from 1970-01-01 to this day (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
pub fn days_from_civil(date: CivilDate) -> i64 {
    let (y, m, d) = (i64::from(date.year), i64::from(date.month), i64::from(date.day));
    let y = if m <= 2 { y - 1 } else { y };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * ((m + 9) % 12) + 2) / 5 + d - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

impl CivilDate {
    /// `None` when there is no such day.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        (year <= 9999 && (1..=days).contains(&day)).then_some(CivilDate { year, month, day })
    }

    /// The day that is `days` after 1970-01-01; years outside 0 to 9999 become the nearest day inside.
    pub fn from_days(days: i64) -> Self {
        let z = days.clamp(-719_528, 2_932_896) + 719_468;
        let era = z.div_euclid(146_097);
        let day_of_era = z.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        CivilDate { year: year as u16, month: month as u8, day: day as u8 }
    }

    /// The month as three letters.
    pub fn month_name(self) -> &'static str {
        MONTHS.get(usize::from(self.month) - 1).copied().expect("a CivilDate has a month of 1 to 12")
    }

    /// The number of a month's three letters, in any case.
    pub fn month_from_name(name: &str) -> Option<u8> {
        MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name)).map(|index| index as u8 + 1)
    }
}

/// An instant, and the zone that it was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DateTime {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub unix_seconds: i64,
    /// Minutes east of UTC, -1439 to 1439.
    pub offset_minutes: i16,
}

impl DateTime {
    /// An instant in UTC.
    pub const fn utc(unix_seconds: i64) -> Self {
        DateTime { unix_seconds, offset_minutes: 0 }
    }

    /// From the date and time as written in a zone. Seconds may be 60 (a leap second).
    pub fn from_civil(date: CivilDate, hour: u8, minute: u8, second: u8, offset_minutes: i16) -> Option<Self> {
        if hour > 23 || minute > 59 || second > 60 || !(-1439..=1439).contains(&offset_minutes) {
            return None;
        }
        let of_day = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
        let unix_seconds = days_from_civil(date) * 86_400 + of_day - i64::from(offset_minutes) * 60;
        Some(DateTime { unix_seconds, offset_minutes })
    }

    /// The day in the zone that it was written in: what SEARCH compares, "disregarding time and timezone" (RFC 9051 §6.4.4).
    pub fn civil_date(self) -> CivilDate {
        CivilDate::from_days(self.local_seconds().div_euclid(86_400))
    }

    /// Hour, minute and second of the day in its zone.
    pub fn time_of_day(self) -> (u8, u8, u8) {
        let of_day = self.local_seconds().rem_euclid(86_400);
        ((of_day / 3600) as u8, (of_day / 60 % 60) as u8, (of_day % 60) as u8)
    }

    fn local_seconds(self) -> i64 {
        self.unix_seconds.saturating_add(i64::from(self.offset_minutes) * 60)
    }
}

/// As IMAP's date-time without its quotes (RFC 9051 §9): `17-Jul-1996 02:44:25 -0700`, the day padded with a space.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, (hour, minute, second)) = (self.civil_date(), self.time_of_day());
        let sign = if self.offset_minutes < 0 { '-' } else { '+' };
        let offset = self.offset_minutes.unsigned_abs();
        write!(
            f,
            "{:2}-{}-{:04} {hour:02}:{minute:02}:{second:02} {sign}{:02}{:02}",
            date.day,
            date.month_name(),
            date.year,
            offset / 60,
            offset % 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_there_and_back() {
        for days in (-719_528..=2_932_896).step_by(17) {
            let date = CivilDate::from_days(days);
            assert_eq!(days_from_civil(date), days);
            assert_eq!(CivilDate::new(date.year, date.month, date.day), Some(date));
        }
        assert_eq!(CivilDate::from_days(i64::MAX), CivilDate { year: 9999, month: 12, day: 31 });
        assert_eq!(CivilDate::new(1900, 2, 29), None);
        assert!(CivilDate::new(2000, 2, 29).is_some());
    }

    #[test]
    fn display_is_a_date_time() {
        let date = CivilDate::new(1996, 7, 7).unwrap();
        let when = DateTime::from_civil(date, 2, 44, 25, -420).unwrap();
        assert_eq!(when.to_string(), " 7-Jul-1996 02:44:25 -0700");
        assert_eq!(when.civil_date(), date);
        assert_eq!(DateTime::utc(0).to_string(), " 1-Jan-1970 00:00:00 +0000");
    }

    proptest::proptest! {
        #[test]
        fn any_instant_has_a_text(seconds in proptest::num::i64::ANY, offset in -1439i16..=1439) {
            let text = DateTime { unix_seconds: seconds, offset_minutes: offset }.to_string();
            proptest::prop_assert_eq!(text.len(), 26);
        }
    }
}
