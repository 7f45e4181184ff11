//! Dates and times as they are written (RFC 9051 §9 date, date-time).

use model::{CivilDate, DateTime};

use crate::encode::number;
use crate::error::Parse;
use crate::scan::Scan;

// RFC 9051 §9 date = date-text / DQUOTE date-text DQUOTE
pub(crate) fn date(scan: &mut Scan) -> Parse<CivilDate> {
    if scan.eat(b'"') {
        let date = date_text(scan)?;
        scan.expect(b'"', "\" after a date")?;
        return Ok(date);
    }
    date_text(scan)
}

// RFC 9051 §9 date-text = date-day "-" date-month "-" date-year
fn date_text(scan: &mut Scan) -> Parse<CivilDate> {
    let before = scan.clone();
    let day = scan.number()?;
    month_and_year(scan, &before, day)
}

fn month_and_year(scan: &mut Scan, before: &Scan, day: u32) -> Parse<CivilDate> {
    const EXPECTED: &str = "a date such as 1-Feb-1994";
    scan.expect(b'-', EXPECTED)?;
    let month = scan.take(3, EXPECTED)?;
    let month = std::str::from_utf8(month).ok().and_then(CivilDate::month_from_name);
    scan.expect(b'-', EXPECTED)?;
    let year = scan.fixed_digits(4, EXPECTED)?;
    let date = month.zip(u8::try_from(day).ok()).and_then(|(month, day)| CivilDate::new(year, month, day));
    date.map_or_else(|| before.error(EXPECTED), Ok)
}

/// Reads a date-time as it stands in quotes, INTERNALDATE for one; `None` when it is none.
pub fn read_date_time(text: &[u8]) -> Option<DateTime> {
    let quoted = [b"\"", text, b"\""].concat();
    let mut scan = Scan::new(&quoted);
    let time = date_time(&mut scan).ok()?;
    scan.end().ok().map(|()| time)
}

// RFC 9051 §9 date-time = DQUOTE date-day-fixed "-" date-month "-" date-year SP time SP zone DQUOTE
pub(crate) fn date_time(scan: &mut Scan) -> Parse<DateTime> {
    const EXPECTED: &str = "a date-time such as \" 1-Feb-1994 21:52:25 -0800\"";
    let before = scan.clone();
    scan.expect(b'"', EXPECTED)?;
    // date-day-fixed; a day of one digit without its space is not mistaken for anything else.
    scan.eat(b' ');
    let day = scan.number()?;
    let date = month_and_year(scan, &before, day)?;
    scan.sp()?;
    let hour = scan.fixed_digits(2, EXPECTED)?;
    scan.expect(b':', EXPECTED)?;
    let minute = scan.fixed_digits(2, EXPECTED)?;
    scan.expect(b':', EXPECTED)?;
    let second = scan.fixed_digits(2, EXPECTED)?;
    scan.sp()?;
    let east = scan.eat(b'+');
    if !east {
        scan.expect(b'-', EXPECTED)?;
    }
    let (zone_hours, zone_minutes) = (scan.fixed_digits(2, EXPECTED)?, scan.fixed_digits(2, EXPECTED)?);
    scan.expect(b'"', EXPECTED)?;
    if zone_minutes > 59 {
        return before.error(EXPECTED);
    }
    // Two digits each: at most 99 * 60 + 59.
    let offset = (zone_hours * 60 + zone_minutes) as i16;
    let offset = if east { offset } else { -offset };
    let time = DateTime::from_civil(date, hour as u8, minute as u8, second as u8, offset);
    time.map_or_else(|| before.error(EXPECTED), Ok)
}

/// Writes a date-text: `1-Feb-1994`.
pub(crate) fn write_date(out: &mut Vec<u8>, date: CivilDate) {
    number(out, u64::from(date.day));
    write_month_and_year(out, date);
}

fn write_month_and_year(out: &mut Vec<u8>, date: CivilDate) {
    out.push(b'-');
    out.extend_from_slice(date.month_name().as_bytes());
    out.push(b'-');
    two_digits(out, date.year / 100);
    two_digits(out, date.year % 100);
}

/// Writes a date-time with its quotes: `" 1-Feb-1994 21:52:25 -0800"`.
pub fn write_date_time(out: &mut Vec<u8>, time: DateTime) {
    let (date, (hour, minute, second)) = (time.civil_date(), time.time_of_day());
    out.push(b'"');
    if date.day < 10 {
        out.push(b' ');
    }
    write_date(out, date);
    for (before, value) in [(b' ', hour), (b':', minute), (b':', second)] {
        out.push(before);
        two_digits(out, u16::from(value));
    }
    out.push(b' ');
    out.push(if time.offset_minutes < 0 { b'-' } else { b'+' });
    let offset = time.offset_minutes.unsigned_abs();
    two_digits(out, offset / 60);
    two_digits(out, offset % 60);
    out.push(b'"');
}

fn two_digits(out: &mut Vec<u8>, value: u16) {
    out.push(b'0' + (value / 10 % 10) as u8);
    out.push(b'0' + (value % 10) as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_time(input: &str) -> Option<DateTime> {
        let mut scan = Scan::new(input.as_bytes());
        let time = date_time(&mut scan).ok()?;
        scan.end().ok().map(|()| time)
    }

    #[test]
    fn dates() {
        let read = |input: &str| date(&mut Scan::new(input.as_bytes())).ok();
        assert_eq!(read("1-feb-1994"), CivilDate::new(1994, 2, 1));
        assert_eq!(read("\"01-Feb-1994\""), CivilDate::new(1994, 2, 1));
        for bad in ["30-Feb-1994", "1-Feb-94", "1-Foo-1994", "1 Feb 1994", "\"1-Feb-1994", "0-Feb-1994"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn date_times() {
        let time = read_time("\"17-Jul-1996 02:44:25 -0730\"").unwrap();
        assert_eq!((time.unix_seconds, time.offset_minutes), (837_598_465, -450));
        assert_eq!(read_time("\" 7-Jul-1996 02:44:25 +0000\""), read_time("\"07-Jul-1996 02:44:25 +0000\""));
        for bad in [
            "\"17-Jul-1996 24:44:25 -0700\"",
            "\"17-Jul-1996 02:44:25 -0760\"",
            "\"17-Jul-1996 02:44:25 +9900\"",
            "\"17-Jul-1996 02:44:25\"",
            "\"31-Jun-1996 02:44:25 +0000\"",
        ] {
            assert_eq!(read_time(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_date_time_is_read_as_written(seconds in -60_000_000_000i64..250_000_000_000, offset in -1439i16..=1439) {
            let time = DateTime { unix_seconds: seconds, offset_minutes: offset };
            let mut out = Vec::new();
            write_date_time(&mut out, time);
            let expected = format!("\"{time}\"");
            prop_assert_eq!(&out, expected.as_bytes());
            prop_assert_eq!(date_time(&mut Scan::new(&out)), Ok(time));
        }
    }
}
