//! Dates (RFC 5322 §3.3 and §4.3, and what is found in mail instead).
//!
//! The reader is by shape, not by grammar: the value is cut into words and numbers, comments dropped, and
//! each is taken for what it can only be. So the RFC's own form, two-digit years, asctime
//! (`Sat Jan  1 10:20:30 2000`), ISO 8601 (`2000-01-01T10:20:30+0100`), `1-Jan-2000`, missing seconds, missing zones
//! and AM/PM are all read. A value without day, month and year is no date.

use crate::encoded_word::unfold;

/// A date as written in a message: civil date and time with its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DateTime {
    /// Year, four digits.
    pub year: u16,
    /// Month, 1-12.
    pub month: u8,
    /// Day of the month, 1-31, that the month has.
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
        let clock = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        self.civil_days() * 86_400 + clock - i64::from(self.offset_minutes) * 60
    }

    /// Days since 1970-01-01 of the civil date as written, the zone disregarded (SENTBEFORE, SENTON,
    /// SENTSINCE: RFC 9051 §6.4.4).
    pub fn civil_days(&self) -> i64 {
        // Years begin in March, so that the leap day is the last; eras have 400 years.
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found {
    year: Option<u16>,
    month: Option<u8>,
    day: Option<u8>,
    /// Hour, minute, second.
    clock: Option<(u8, u8, u8)>,
    offset_minutes: Option<i16>,
    is_pm: Option<bool>,
}

/// Longest date value that is looked at.
const DATE_BYTES_MAX: usize = 256;

/// The date of a raw Date field value; `None` if it holds no day, month and year that exist together.
/// Without a time of day it is midnight, without a zone UTC.
pub fn parse_date(value: &[u8]) -> Option<DateTime> {
    let value = value.get(..DATE_BYTES_MAX).unwrap_or(value);
    let text = without_comments(&unfold(value));
    let mut found = Found::default();
    for word in text.split(|octet| octet.is_ascii_whitespace() || *octet == b',') {
        found.word(word);
    }
    found.date_time()
}

/// `text` with comments replaced by spaces; one that is never closed is left as it is.
fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut depth = 0usize;
    let mut outside = 0;
    for &octet in text {
        match octet {
            b'(' => {
                if depth == 0 {
                    outside = out.len();
                }
                depth += 1;
            }
            b')' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    out.truncate(outside);
                    out.push(b' ');
                    continue;
                }
            }
            _ => {}
        }
        out.push(octet);
    }
    out
}

impl Found {
    fn word(&mut self, word: &[u8]) {
        let Ok(word) = std::str::from_utf8(word) else {
            return;
        };
        if word.contains(':') {
            // ISO 8601 joins date and time with a T.
            let (date, clock) = match word.split_once(['T', 't']) {
                Some((date, clock)) if date.contains('-') => (date, clock),
                _ => ("", word),
            };
            self.date_pieces(date);
            self.clock_word(clock);
        } else if (word.starts_with(['+', '-']) || word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit()))
            && self.clock.is_some()
            && self.offset_minutes.is_none()
            && (word.len() != 4 || self.year.is_some())
        {
            self.offset_minutes = numeric_zone(word);
        } else {
            self.date_pieces(word);
        }
    }

    /// Words and numbers between `-`, `/`, `.`: day, month, year, names.
    fn date_pieces(&mut self, word: &str) {
        let pieces: Vec<&str> = word.split(['-', '/', '.']).filter(|piece| !piece.is_empty()).collect();
        // 2000-01-31, 2000/01/31.
        if let [year, month, day] = pieces.as_slice()
            && year.len() == 4
            && let (Ok(year), Ok(month), Ok(day)) = (year.parse(), month.parse(), day.parse())
        {
            (self.year, self.month, self.day) = (Some(year), Some(month), Some(day));
            return;
        }
        // 31/01/2000 and 31.01.2000: the day first, unless it cannot be.
        if let [first, second, year] = pieces.as_slice()
            && let (Ok(first), Ok(second)) = (first.parse::<u8>(), second.parse::<u8>())
        {
            let (day, month) = if second > 12 { (second, first) } else { (first, second) };
            (self.year, self.month, self.day) = (year_of(year), Some(month), Some(day));
            return;
        }
        for piece in pieces {
            self.date_piece(piece);
        }
    }

    fn date_piece(&mut self, piece: &str) {
        if piece.bytes().all(|octet| octet.is_ascii_digit()) {
            // RFC 5322 has the day first; a number that can be no day is a year wherever it stands.
            match piece.parse::<u8>() {
                Ok(day @ 1..=31) if self.day.is_none() && piece.len() <= 2 => self.day = Some(day),
                _ if self.year.is_none() => self.year = year_of(piece),
                _ => {}
            }
            return;
        }
        let lower = piece.to_ascii_lowercase();
        match lower.as_str() {
            "am" => self.is_pm = Some(false),
            "pm" => self.is_pm = Some(true),
            _ => {
                if let Some(month) = month_of(&lower).filter(|_| self.month.is_none()) {
                    self.month = Some(month);
                } else if self.offset_minutes.is_none() && self.clock.is_some() {
                    self.offset_minutes = named_zone(&lower);
                }
            }
        }
    }

    /// `10:20`, `10:20:30`, `10:20:30.5`, each perhaps with a zone or AM/PM right behind it.
    fn clock_word(&mut self, word: &str) {
        if self.clock.is_some() {
            return;
        }
        let end = word.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(word.len());
        let (clock, zone) = word.split_at(end);
        let mut fields = clock.split(':');
        let mut field = |max: u8| {
            let text = fields.next().unwrap_or("0").split('.').next().unwrap_or_default();
            text.parse::<u8>().ok().filter(|&value| value <= max)
        };
        let (Some(hour), Some(minute), Some(second)) = (field(24), field(59), field(61)) else {
            return;
        };
        self.clock = Some((hour % 24, minute, second.min(60)));
        if zone.starts_with(['+', '-']) {
            self.offset_minutes = numeric_zone(zone);
        } else if !zone.is_empty() {
            self.date_piece(zone);
        }
    }

    fn date_time(self) -> Option<DateTime> {
        let (year, month, day) = (self.year?, self.month?, self.day?);
        if day == 0 || day > days_in(year, month)? {
            return None;
        }
        let (hour, minute, second) = self.clock.unwrap_or_default();
        let hour = match self.is_pm {
            Some(true) if hour < 12 => hour + 12,
            Some(false) if hour == 12 => 0,
            _ => hour,
        };
        let offset_minutes = self.offset_minutes.unwrap_or(0);
        Some(DateTime { year, month, day, hour, minute, second, offset_minutes })
    }
}

/// RFC 5322 §4.3: two digits below 50 are 20xx, others and three digits are counted from 1900.
fn year_of(text: &str) -> Option<u16> {
    let year = text.parse::<u16>().ok()?;
    Some(match (text.len(), year) {
        (1 | 2, 0..=49) => year + 2000,
        (1..=3, _) => year + 1900,
        (4, _) => year,
        _ => return None,
    })
}

fn month_of(lower: &str) -> Option<u8> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = lower.get(..3)?;
    // A full name is fine, any other word that begins alike is not ("Mart").
    const FULL: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let index = MONTHS.iter().position(|month| *month == start)?;
    let full = FULL.get(index)?;
    full.starts_with(lower).then(|| u8::try_from(index + 1).ok())?
}

fn days_in(year: u16, month: u8) -> Option<u8> {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    Some(match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    })
}

/// `+hhmm`, `-hhmm`, `+hh:mm`, `+hh`, `hhmm` (east).
fn numeric_zone(text: &str) -> Option<i16> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits: String = digits.chars().filter(|c| *c != ':').take_while(char::is_ascii_digit).collect();
    let (hours, minutes) = match digits.len() {
        1 | 2 => (digits.parse::<i16>().ok()?, 0),
        4 => (digits.get(..2)?.parse::<i16>().ok()?, digits.get(2..)?.parse::<i16>().ok()?),
        _ => return None,
    };
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// RFC 5322 §4.3 obs-zone, and the names most seen besides; military letters but Z say nothing.
fn named_zone(lower: &str) -> Option<i16> {
    let hours = match lower {
        "ut" | "gmt" | "utc" | "z" | "wet" => 0,
        "est" => -5,
        "edt" => -4,
        "cst" => -6,
        "cdt" => -5,
        "mst" => -7,
        "mdt" => -6,
        "pst" => -8,
        "pdt" => -7,
        "bst" | "cet" | "met" | "west" => 1,
        "cest" | "mest" | "eet" => 2,
        "eest" | "msk" => 3,
        "jst" | "kst" => 9,
        "hkt" | "sgt" => 8,
        "aest" => 10,
        "nzst" => 12,
        "nzdt" => 13,
        _ => return None,
    };
    Some(hours * 60)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shown(text: &str) -> String {
        match parse_date(text.as_bytes()) {
            Some(d) => format!(
                "{:04}-{:02}-{:02} {:02}:{:02}:{:02} {:+}",
                d.year, d.month, d.day, d.hour, d.minute, d.second, d.offset_minutes
            ),
            None => "none".to_string(),
        }
    }

    #[test]
    fn standard_forms() {
        assert_eq!(shown(" Fri, 21 Nov 1997 09:55:06 -0600"), "1997-11-21 09:55:06 -360");
        assert_eq!(shown("1 Jul 2003 10:52:37 +0200"), "2003-07-01 10:52:37 +120");
        assert_eq!(
            shown("Thu,\r\n 13\r\n Feb\r\n 1969\r\n 23:32\r\n -0330 (Newfoundland Time)"),
            "1969-02-13 23:32:00 -210"
        );
        assert_eq!(shown("21 Nov 97 09:55:06 GMT"), "1997-11-21 09:55:06 +0");
        assert_eq!(shown("Fri, 21 Nov 1997 09(comment):   55  :  06 -0600").get(..10), Some("1997-11-21"));
        assert_eq!(shown("Mon, 1 Jan 01 00:00:00 EDT"), "2001-01-01 00:00:00 -240");
        assert_eq!(shown("Mon, 1 Jan 102 00:00:00 PST"), "2002-01-01 00:00:00 -480");
    }

    #[test]
    fn odd_forms() {
        assert_eq!(shown("Sat Jan  1 10:20:30 2000"), "2000-01-01 10:20:30 +0");
        assert_eq!(shown("Sat Jan  1 10:20:30 CET 2000"), "2000-01-01 10:20:30 +60");
        assert_eq!(shown("Sat Jan  1 10:20:30 +0100 2000"), "2000-01-01 10:20:30 +60");
        assert_eq!(shown("2000-01-31T10:20:30+01:00"), "2000-01-31 10:20:30 +60");
        assert_eq!(shown("2000-01-31 10:20:30"), "2000-01-31 10:20:30 +0");
        assert_eq!(shown("31-Jan-2000 10:20:30 -0100"), "2000-01-31 10:20:30 -60");
        assert_eq!(shown("31/01/2000 10:20 PM"), "2000-01-31 22:20:00 +0");
        assert_eq!(shown("1/31/2000 12:20:00AM"), "2000-01-31 00:20:00 +0");
        assert_eq!(shown("Monday, 31 January 2000"), "2000-01-31 00:00:00 +0");
        assert_eq!(shown("Mon, 31 Jan 2000 10:20:30 0800"), "2000-01-31 10:20:30 +480");
        assert_eq!(shown("Mon, 31 Jan 2000 10:20:30 \"GMT\""), "2000-01-31 10:20:30 +0");
        assert_eq!(shown("Mon, 31 Jan 2000 24:00:00 -"), "2000-01-31 00:00:00 +0");
    }

    #[test]
    fn no_dates() {
        for text in ["", "x", "Mon", "10:20:30", "31 Feb 2000", "0 Jan 2000", "Jan 2000", "2000-13-01", "32 Jan 99999"]
        {
            assert_eq!(shown(text), "none", "{text}");
        }
    }

    #[test]
    fn seconds_and_days() {
        let at = |text: &str| parse_date(text.as_bytes()).unwrap();
        assert_eq!(at("1 Jan 1970 00:00:00 +0000").unix_seconds(), 0);
        assert_eq!(at("1 Jan 1970 01:00:00 +0100").unix_seconds(), 0);
        assert_eq!(at("Fri, 21 Nov 1997 09:55:06 -0600").unix_seconds(), 880_127_706);
        assert_eq!(at("29 Feb 2000 12:00:00 Z").unix_seconds(), 951_825_600);
        assert_eq!(at("31 Dec 1969 23:59:59 +0000").unix_seconds(), -1);
        assert_eq!(at("1 Jan 1970 23:00:00 -0500").civil_days(), 0);
        assert_eq!(at("1 Mar 1900 00:00:00").civil_days(), -25_508);
    }
}
