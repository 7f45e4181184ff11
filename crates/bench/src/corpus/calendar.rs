//! Dates as mail writes them, from seconds since 1970, in UTC.

const DAY_NAMES: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTH_NAMES: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A moment, taken apart.
struct Moment {
    year: u64,
    month_name: &'static str,
    day: u64,
    day_name: &'static str,
    hour: u64,
    minute: u64,
    second: u64,
}

/// RFC 5322 §3.3 date-time.
pub fn header_date(seconds: u64) -> String {
    let m = Moment::of(seconds);
    let (name, day, month, year) = (m.day_name, m.day, m.month_name, m.year);
    format!("{name}, {day:02} {month} {year} {:02}:{:02}:{:02} +0000", m.hour, m.minute, m.second)
}

/// RFC 4155 appendix A: the timestamp of an mbox `From ` line.
pub fn mbox_date(seconds: u64) -> String {
    let m = Moment::of(seconds);
    let (name, day, month, year) = (m.day_name, m.day, m.month_name, m.year);
    format!("{name} {month} {day:>2} {:02}:{:02}:{:02} {year}", m.hour, m.minute, m.second)
}

impl Moment {
    fn of(seconds: u64) -> Moment {
        let days = seconds / 86_400;
        let within = seconds % 86_400;
        let day_name = DAY_NAMES.get((days % 7) as usize).copied().unwrap_or_default();
        // The civil calendar in years that begin on the first of March, so that the leap day is the last of its year (Hinnant).
        let shifted = days + 719_468;
        let era = shifted / 146_097;
        let day_of_era = shifted % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12;
        let year = year_of_era + era * 400 + u64::from(month < 2);
        Moment {
            year,
            month_name: MONTH_NAMES.get(month as usize).copied().unwrap_or_default(),
            day,
            day_name,
            hour: within / 3_600,
            minute: within / 60 % 60,
            second: within % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{header_date, mbox_date};

    #[test]
    fn known_dates() {
        assert_eq!(header_date(0), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(header_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 +0000");
        assert_eq!(header_date(1_234_567_890), "Fri, 13 Feb 2009 23:31:30 +0000");
        assert_eq!(mbox_date(978_307_199), "Sun Dec 31 23:59:59 2000");
        assert_eq!(mbox_date(978_307_200), "Mon Jan  1 00:00:00 2001");
    }
}
