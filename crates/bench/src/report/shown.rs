//! Figures as a person reads them: three digits that mean something, and a unit.

use crate::results::{State, Unit};

/// The value with its unit.
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ms => scaled(value, &[(1e3, "s"), (1.0, "ms"), (1e-3, "µs")]),
        Unit::Bytes => scaled(value, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]),
        Unit::BytesPerSecond => scaled(value, &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")]),
        Unit::PerSecond => scaled(value, &[(1e6, "M/s"), (1.0, "/s")]),
        Unit::Count => digits(value),
    }
}

/// The largest step that the value reaches; the last one otherwise.
fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    let step = steps.iter().find(|(size, _)| value.abs() >= *size).or(steps.last());
    match step {
        Some((size, unit)) if value != 0.0 => format!("{} {unit}", digits(value / size)),
        _ => "0".to_string(),
    }
}

/// Three digits, thousands apart.
pub fn digits(value: f64) -> String {
    let places = match value.abs() {
        0.0 => 0,
        small if small < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::new();
    for (number, digit) in whole.chars().enumerate() {
        if number > 0 && (whole.len() - number) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    rest.map_or(format!("{sign}{grouped}"), |rest| format!("{sign}{grouped}.{rest}"))
}

/// A heading for what was counted.
pub fn measure(name: &str) -> String {
    let text = match name {
        "time" => "Time",
        "rate" => "Rate",
        "bytes_read" => "Bytes read",
        "bytes_written" => "Bytes written",
        "disk_written" => "Bytes that the disk was given",
        "cpu_user" => "Processor time, user",
        "cpu_system" => "Processor time, system",
        "peak_memory" => "Peak memory",
        "peak_anonymous" => "Peak memory that is no mapped file",
        "p50" => "Latency, median",
        "p99" => "Latency, 99th percentile",
        other => return other.replace('_', " "),
    };
    text.to_string()
}

/// One word.
pub fn state(state: State) -> &'static str {
    match state {
        State::Cold => "cold",
        State::Warm => "warm",
    }
}

/// An instant as RFC 3339 writes it, in UTC.
pub fn instant(seconds: u64) -> String {
    // Days to a date in the proleptic Gregorian calendar, years that begin in March, as leap days then come last.
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", second / 3_600, second / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::{digits, instant, value};
    use crate::results::Unit;

    #[test]
    fn units() {
        assert_eq!(value(0.0331, Unit::Ms), "33.1 µs");
        assert_eq!(value(39.6, Unit::Ms), "39.6 ms");
        assert_eq!(value(12_345.0, Unit::Ms), "12.3 s");
        assert_eq!(value(1.4e9, Unit::Bytes), "1.40 GB");
        assert_eq!(value(12_345.0, Unit::PerSecond), "12,345 /s");
        assert_eq!(value(0.0, Unit::Bytes), "0");
    }

    #[test]
    fn thousands() {
        assert_eq!(digits(1_234_567.0), "1,234,567");
        assert_eq!(digits(-1_234.0), "-1,234");
        assert_eq!(digits(99.96), "100.0");
        assert_eq!(digits(0.5), "0.50");
    }

    #[test]
    fn dates() {
        assert_eq!(instant(0), "1970-01-01 00:00 UTC");
        assert_eq!(instant(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(instant(1_793_404_799), "2026-10-30 23:59 UTC");
    }
}
