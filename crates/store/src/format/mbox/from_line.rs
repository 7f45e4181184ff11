//! The `From ` line that begins each message of an mbox (RFC 4155 appendix A, and what real writers make of it).
//!
//! Decision: a line is a separator
//! - when it begins with `From ` and has, somewhere behind that, a day of the week and a date and time in one of the forms that are found
//!   in old mail, whatever stands before and behind the date and whether an empty line stands before it or not (as mutt and Dovecot
//!   decide, too);
//! - or when it has no date, but an empty line before it, one word behind `From ` and two header fields below it (as formail
//!   decides).
//!
//! Text that merely begins with `From ` has neither. The forms are listed, with the programs that write or read them, in
//! `docs/format-mbox.md`.
//!
//! Invariant: the answer depends on [`LOOK_AHEAD_BYTES`] at most behind the line's start and on three octets before it. That is what
//! lets a scan be cut anywhere.

use model::{CivilDate, DateTime};

/// What every separator begins with.
pub const PREFIX: &[u8] = b"From ";
/// Longer lines are no separators, octets.
pub const LINE_BYTES_MAX: usize = 1000;
/// How much of the file is looked at to tell whether a line is a separator, octets.
pub const LOOK_AHEAD_BYTES: usize = 4096;
/// Header fields that a separator without a date must have below it (formail's default).
const FIELDS_BELOW: usize = 2;
/// Longest field name of these, octets. RFC 5322 §2.1.1 leaves no more on a line.
const FIELD_NAME_BYTES_MAX: usize = 77;

/// Whether a line is a separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is.
    Separator,
    /// It is not.
    Text,
    /// That cannot be said without the octets that follow.
    More,
}

/// Judges the line at the start of `bytes`. `before` is what stands before it in the file, the last three octets at least (fewer at
/// the start of the file); `is_all` says that the file ends with `bytes`.
pub(super) fn judge(before: &[u8], bytes: &[u8], is_all: bool) -> Verdict {
    let is_enough = is_all || bytes.len() >= LOOK_AHEAD_BYTES;
    let bytes = bytes.get(..LOOK_AHEAD_BYTES).unwrap_or(bytes);
    if !bytes.starts_with(PREFIX) {
        let may_become = !is_all && PREFIX.starts_with(bytes);
        return if may_become { Verdict::More } else { Verdict::Text };
    }
    let looked_at = bytes.get(..LINE_BYTES_MAX).unwrap_or(bytes);
    let Some(end) = memchr::memchr(b'\n', looked_at) else {
        return match (looked_at.len() < LINE_BYTES_MAX, is_all) {
            (true, false) => Verdict::More,
            (true, true) if parse_from_line(bytes).is_some() || has_odd_date(bytes) => Verdict::Separator,
            _ => Verdict::Text,
        };
    };
    let (line, below) = (bytes.get(..end).unwrap_or_default(), bytes.get(end + 1..).unwrap_or_default());
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if parse_from_line(line).is_some() || has_odd_date(line) {
        return Verdict::Separator;
    }
    if !(is_after_empty_line(before) && is_one_word(line)) {
        return Verdict::Text;
    }
    match has_fields(below, FIELDS_BELOW) {
        Some(true) => Verdict::Separator,
        None if !is_enough => Verdict::More,
        _ => Verdict::Text,
    }
}

/// Whether what stands before a line ends with an empty line, or the line is the file's first.
pub(super) fn is_after_empty_line(before: &[u8]) -> bool {
    matches!(before, [] | [b'\n'] | [b'\r', b'\n'] | [.., b'\n', b'\n'] | [.., b'\n', b'\r', b'\n'])
}

/// `From MAILER-DAEMON`, `From a@b`: an address and nothing else.
fn is_one_word(line: &[u8]) -> bool {
    let word = line.strip_prefix(PREFIX).unwrap_or_default().trim_ascii();
    !word.is_empty() && word.iter().all(u8::is_ascii_graphic)
}

/// Whether `bytes` begins with so many header fields; `None` when they end too early to say.
fn has_fields(bytes: &[u8], count: usize) -> Option<bool> {
    let mut rest = bytes;
    for n in 0..count {
        let looked_at = rest.get(..FIELD_NAME_BYTES_MAX + 1).unwrap_or(rest);
        let name = looked_at.iter().take_while(|byte| byte.is_ascii_graphic() && **byte != b':').count();
        match looked_at.get(name) {
            Some(b':') if name > 0 => {}
            None if looked_at.len() <= FIELD_NAME_BYTES_MAX => return None,
            _ => return Some(false),
        }
        if n + 1 == count {
            break;
        }
        // The fields in between may be folded; of the last one the name is enough.
        loop {
            let end = memchr::memchr(b'\n', rest)?;
            rest = rest.get(end + 1..).unwrap_or_default();
            match rest.first() {
                Some(b' ' | b'\t') => {}
                Some(_) => break,
                None => return None,
            }
        }
    }
    Some(true)
}

/// The date of a separator line (given without its line end); `None` when the line has none that can be read.
///
/// A date without a zone counts as UTC, which is what RFC 4155 wants and what cannot be known better.
pub fn parse_from_line(line: &[u8]) -> Option<DateTime> {
    let rest = line.strip_prefix(PREFIX)?;
    if let Some(date) = ctime_at_end(rest) {
        return Some(date);
    }
    let line = String::from_utf8_lossy(rest.trim_ascii());
    let words: Vec<&str> = line.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
    // The sender may hold anything, a month's name included: the last month that makes a date is the one.
    (0..words.len()).rev().find_map(|at| date_around(&words, at))
}

/// `Thu Aug 22 12:36:23 2002` as the last 24 octets: what nearly all separators are, read without looking at the rest.
fn ctime_at_end(rest: &[u8]) -> Option<DateTime> {
    let at = rest.len().checked_sub(24)?;
    let date: &[u8; 24] = rest.get(at..)?.try_into().ok()?;
    let is_apart = at == 0 || rest.get(at - 1) == Some(&b' ');
    let &[w0, w1, w2, b' ', m0, m1, m2, b' ', d0, d1, b' ', h0, h1, b':', i0, i1, b':', s0, s1, b' ', y0, y1, y2, y3] =
        date
    else {
        return None;
    };
    if !is_apart || !is_weekday(&[w0, w1, w2]) {
        return None;
    }
    let two = |tens: u8, ones: u8| {
        (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| (tens - b'0') * 10 + (ones - b'0'))
    };
    let month = month(std::str::from_utf8(&[m0, m1, m2]).ok()?)?;
    let day = two(if d0 == b' ' { b'0' } else { d0 }, d1)?;
    let year = u16::from(two(y0, y1)?) * 100 + u16::from(two(y2, y3)?);
    let time = (two(h0, h1)?, two(i0, i1)?, two(s0, s1)?);
    (year >= YEAR_MIN).then(|| make(year, month, day, time, 0)).flatten()
}

/// A date with `???` for the month: one of the writers that Dovecot knows did not know better. It says no time, but it separates.
fn has_odd_date(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    words.windows(5).any(|found| match found {
        [weekday, "???", day_of_month, time_of_day, year_number] => {
            (is_weekday(weekday.as_bytes()) || *weekday == "???")
                && day(day_of_month).is_some()
                && time(time_of_day).is_some()
                && year(year_number).is_some()
        }
        _ => false,
    })
}

/// The date whose month is the word at `at`: `Thu Aug 22 12:36:23 [zone] 2002 [zone]` or `Thu[,] 22 Aug 2002 12:36:23 [zone]`.
fn date_around(words: &[&str], at: usize) -> Option<DateTime> {
    let month = words.get(at).copied().and_then(month)?;
    let before = |n: usize| at.checked_sub(n).and_then(|at| words.get(at)).copied();
    let is_weekday_before = |n: usize| before(n).is_some_and(|word| is_weekday(word.as_bytes()));
    let after = words.get(at + 1..)?;
    if is_weekday_before(1)
        && let (Some(day), Some(time)) = (after.first().and_then(|w| day(w)), after.get(1).and_then(|w| time(w)))
    {
        let rest = after.get(2..)?;
        let (year_at, year) = rest.iter().take(3).enumerate().find_map(|(n, word)| Some((n, year(word)?)))?;
        let zones = rest.iter().enumerate().filter(|(n, _)| *n < 4 && *n != year_at);
        let offset = zones.filter_map(|(_, word)| zone(word)).next().unwrap_or(0);
        return make(year, month, day, time, offset);
    }
    if !is_weekday_before(2) {
        return None;
    }
    let (day, year, time) = (day(before(1)?)?, year(after.first()?)?, time(after.get(1)?)?);
    make(year, month, day, time, after.get(2).and_then(|word| zone(word)).unwrap_or(0))
}

fn is_weekday(word: &[u8]) -> bool {
    [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"].iter().any(|name| word.eq_ignore_ascii_case(*name))
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

/// Years before are no years of mail.
const YEAR_MIN: u16 = 1970;

/// Four digits; or two, of this or the last century (RFC 5322 §4.3).
fn year(word: &str) -> Option<u16> {
    match (word.len(), number(word, 4)?) {
        (4, year) if year >= YEAR_MIN => Some(year),
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
#[path = "from_line_tests.rs"]
mod tests;
