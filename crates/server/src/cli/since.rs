//! A time in the past: RFC 3339, or so long ago.

use std::str::FromStr;

use model::{CivilDate, DateTime};

/// What `--since` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Unix seconds.
    At(i64),
    /// Seconds before now.
    Ago(i64),
}

impl Since {
    /// As Unix seconds.
    pub fn unix_seconds(self, now: i64) -> i64 {
        match self {
            Since::At(seconds) => seconds,
            Since::Ago(seconds) => now.saturating_sub(seconds),
        }
    }
}

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        ago(text).map(Since::Ago).or_else(|| rfc3339(text).map(Since::At)).ok_or(
            "expected a time such as 2026-01-31T12:00:00Z or 2026-01-31T12:00:00+01:00, or a span such as 3d, 12h or 30m",
        )
    }
}

fn ago(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        'd' => 86_400,
        'h' => 3600,
        'm' => 60,
        's' => 1,
        _ => return None,
    };
    let number: u32 = text.get(..text.len() - 1)?.parse().ok()?;
    Some(i64::from(number) * unit)
}

/// RFC 3339 §5.6 date-time; fractions of a second are read and dropped.
fn rfc3339(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<u8> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let separators = [(4, "-"), (7, "-"), (13, ":"), (16, ":")];
    if separators.iter().any(|(at, mark)| text.get(*at..at + 1) != Some(mark))
        || !matches!(text.get(10..11)?, "T" | "t" | " ")
    {
        return None;
    }
    let year = u16::from(number(0, 2)?) * 100 + u16::from(number(2, 4)?);
    let date = CivilDate::new(year, number(5, 7)?, number(8, 10)?)?;
    let rest = text.get(19..)?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            if hours.len() != 2 || minutes.len() != 2 {
                return None;
            }
            let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
            let minutes = i16::from(hours) * 60 + i16::from(minutes);
            match zone.get(..1)? {
                "+" => minutes,
                "-" => -minutes,
                _ => return None,
            }
        }
    };
    Some(DateTime::from_civil(date, number(11, 13)?, number(14, 16)?, number(17, 19)?, offset)?.unix_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_times() {
        assert_eq!("3d".parse(), Ok(Since::Ago(3 * 86_400)));
        assert_eq!("12h".parse(), Ok(Since::Ago(12 * 3600)));
        for same in ["1996-12-19T16:39:57-08:00", "1996-12-20T00:39:57Z", "1996-12-20 00:39:57.25z"] {
            assert_eq!(same.parse(), Ok(Since::At(851_042_397)), "{same}");
        }
        assert_eq!(Since::Ago(10).unix_seconds(100), 90);
        for bad in [
            "",
            "d",
            "-3d",
            "3w",
            "1996-12-19",
            "1996-13-19T16:39:57Z",
            "1996-12-19T16:39:57",
            "é3d",
            "1996-12-19T16:39:57+é:00",
            "1996-12-19T1é:39:57Z",
        ] {
            assert!(bad.parse::<Since>().is_err(), "{bad}");
        }
    }
}
