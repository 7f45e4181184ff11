//! The `From ` line that begins each message of an mbox (RFC 4155 appendix A, and what real writers make of it).
//!
//! Decision: a line is a separator when it begins with `From ` and has a date and time in one of the forms that are found in old
//! mail; whether an empty line stands before it does not matter (mutt and Dovecot decide so too). Text that merely begins with
//! `From ` has no such date.

use model::{CivilDate, DateTime};

/// What every separator begins with.
pub(super) const PREFIX: &[u8] = b"From ";
/// Longer lines are no separators, octets.
pub(super) const LINE_BYTES_MAX: usize = 1000;

/// The date of a separator line (given without its line end); `None` when the line is no separator.
///
/// A date without a zone counts as UTC, which is what RFC 4155 wants and what cannot be known better.
pub(super) fn parse_from_line(line: &[u8]) -> Option<DateTime> {
    let line = std::str::from_utf8(line.strip_prefix(PREFIX)?.trim_ascii())
        .ok()
        .map_or_else(|| String::from_utf8_lossy(line).into_owned(), str::to_owned);
    let words: Vec<&str> = line.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
    // The sender may hold anything, a month's name included: the last month that makes a date is the one.
    (0..words.len()).rev().find_map(|at| date_around(&words, at))
}

/// The date whose month is the word at `at`: `Aug 22 12:36:23 [zone] 2002 [zone]` or `22 Aug 2002 12:36:23 [zone]`.
fn date_around(words: &[&str], at: usize) -> Option<DateTime> {
    let month = words.get(at).copied().and_then(month)?;
    let before = at.checked_sub(1).and_then(|n| words.get(n)).copied();
    let after = words.get(at + 1..)?;
    if let (Some(day), Some(time)) = (after.first().and_then(|w| day(w)), after.get(1).and_then(|w| time(w))) {
        let rest = after.get(2..)?;
        let (year_at, year) = rest.iter().take(3).enumerate().find_map(|(n, word)| Some((n, year(word)?)))?;
        let zones = rest.iter().enumerate().filter(|(n, _)| *n < 4 && *n != year_at);
        let offset = zones.filter_map(|(_, word)| zone(word)).next().unwrap_or(0);
        return make(year, month, day, time, offset);
    }
    let (day, year, time) = (day(before?)?, year(after.first()?)?, time(after.get(1)?)?);
    make(year, month, day, time, after.get(2).and_then(|word| zone(word)).unwrap_or(0))
}

fn make(year: u16, month: u8, day: u8, (hour, minute, second): (u8, u8, u8), offset: i16) -> Option<DateTime> {
    DateTime::from_civil(CivilDate::new(year, month, day)?, hour, minute, second, offset)
}

fn month(word: &str) -> Option<u8> {
    (word.len() == 3).then(|| CivilDate::month_from_name(word)).flatten()
}

fn number(word: &str, digits_max: usize) -> Option<u16> {
    let fine = (1..=digits_max).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
    fine.then(|| word.parse().ok()).flatten()
}

fn day(word: &str) -> Option<u8> {
    number(word, 2).and_then(|day| u8::try_from(day).ok())
}

/// Four digits; or two, of this or the last century (RFC 5322 §4.3).
fn year(word: &str) -> Option<u16> {
    match (word.len(), number(word, 4)?) {
        (4, year) if year >= 1970 => Some(year),
        (2, year) if year < 50 => Some(2000 + year),
        (2, year) => Some(1900 + year),
        _ => None,
    }
}

/// `12:36`, `12:36:23`.
fn time(word: &str) -> Option<(u8, u8, u8)> {
    let mut pieces = word.split(':').map(|piece| number(piece, 2).and_then(|n| u8::try_from(n).ok()));
    let (hour, minute) = (pieces.next()??, pieces.next()??);
    let second = match pieces.next() {
        None => 0,
        Some(second) => second?,
    };
    pieces.next().is_none().then_some((hour, minute, second))
}

/// Minutes east: `+0200`, and the names that RFC 5322 §4.3 gives a meaning; any other name counts as none.
fn zone(word: &str) -> Option<i16> {
    if let Some(digits) = word.strip_prefix(['+', '-']) {
        let value = (digits.len() == 4).then(|| number(digits, 4)).flatten()?;
        let minutes = i16::try_from(value / 100 * 60 + value % 100).ok()?;
        return Some(if word.starts_with('-') { -minutes } else { minutes });
    }
    let hours = match word {
        "UT" | "UTC" | "GMT" | "Z" => 0,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        "MET" | "CET" | "BST" => 1,
        "CEST" | "MEST" => 2,
        _ => return None,
    };
    Some(hours * 60)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parsed(line: &str) -> Option<String> {
        parse_from_line(line.as_bytes()).map(|date| date.to_string())
    }

    #[test]
    fn forms_of_real_writers() {
        for (line, date) in [
            ("From a@b  Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
            ("From - Thu Aug  2 12:36:23 2002", " 2-Aug-2002 12:36:23 +0000"),
            ("From a Thu Aug 22 12:36 2002", "22-Aug-2002 12:36:00 +0000"),
            ("From a@b Thu Aug 22 12:36:23 EDT 2002", "22-Aug-2002 12:36:23 -0400"),
            ("From a@b Thu Aug 22 12:36:23 2002 +0200", "22-Aug-2002 12:36:23 +0200"),
            ("From a@b Thu Aug 22 12:36:23 +0200 2002", "22-Aug-2002 12:36:23 +0200"),
            ("From a@b Thu, 22 Aug 2002 12:36:23 -0130", "22-Aug-2002 12:36:23 -0130"),
            ("From \"May Jun 1\"@b Thu Aug 22 12:36:23 2002 remote from uunet", "22-Aug-2002 12:36:23 +0000"),
            ("From a@b Thu Aug 22 12:36:23 XYZ 98", "22-Aug-1998 12:36:23 +0000"),
        ] {
            assert_eq!(parsed(line).as_deref(), Some(date), "{line}");
        }
    }

    #[test]
    fn text_is_no_separator() {
        for line in [
            "From here on",
            "From May to June",
            "From a@b Thu Aug 42 12:36:23 2002",
            "From a@b Thu Aug 22 12:36:23:11 2002",
            "From a@b Thu Aug 22 25:36:23 2002",
            "From a@b Thu Aug 22 12:36:23",
            "from a@b Thu Aug 22 12:36:23 2002",
            "From: a@b Thu Aug 22 12:36:23 2002",
            "From ",
            "",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(line in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            let _ = parse_from_line(&line);
            let _ = parse_from_line(&[PREFIX, &line].concat());
        }
    }
}
