//! What is put on top of a message at its delivery (RFC 5321 §4.4).

use std::fmt::Write;
use std::net::IpAddr;

use model::{CivilDate, DateTime};

use crate::{Connection, Now};

/// What all recipients of a message have in common.
pub(super) struct Trace {
    return_path: String,
    received: String,
    date: String,
}

impl Trace {
    /// `from`: the reverse path, empty for `<>`. `id` is unique within the connection.
    pub(super) fn new(
        connection: &Connection,
        now: Now,
        client: &str,
        hostname: &str,
        from: &str,
        utf8: bool,
        id: u64,
    ) -> Trace {
        // TCP-info; an address within a Unix socket is none.
        let peer = match connection.peer {
            Some(IpAddr::V4(address)) => format!(" ([{address}])"),
            Some(IpAddr::V6(address)) => format!(" ([IPv6:{address}])"),
            None => String::new(),
        };
        // RFC 3848, RFC 6531 §4.3.
        let with = match (utf8, connection.tls) {
            (false, false) => "LMTP",
            (false, true) => "LMTPS",
            (true, false) => "UTF8LMTP",
            (true, true) => "UTF8LMTPS",
        };
        let received = format!(
            "Received: from {client}{peer}\r\n\tby {hostname} with {with} id {:x}.{:x}.{id:x}",
            now.unix_seconds, connection.id
        );
        Trace { return_path: from.to_owned(), received, date: date_time(now.unix_seconds) }
    }

    /// The fields for the recipient at `address`. Whom else a message went to is nobody's business (RFC 5321 §7.2): `for` stands there only
    /// for one who is alone.
    pub(super) fn fields(&self, address: &str, is_alone: bool) -> String {
        let Trace { return_path, received, date } = self;
        let mut fields = format!("Return-Path: <{return_path}>\r\nDelivered-To: {address}\r\n{received}");
        if is_alone {
            // A String takes everything.
            let _ = write!(fields, "\r\n\tfor <{address}>");
        }
        let _ = write!(fields, "; {date}\r\n");
        fields
    }
}

/// RFC 5322 §3.3 date-time, in UTC.
fn date_time(unix_seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let days = unix_seconds.div_euclid(86_400);
    let weekday = usize::try_from(days.rem_euclid(7)).ok().and_then(|at| DAYS.get(at)).unwrap_or(&"Thu");
    let date = CivilDate::from_days(days);
    let (hour, minute, second) = DateTime::utc(unix_seconds).time_of_day();
    format!("{weekday}, {} {} {:04} {hour:02}:{minute:02}:{second:02} +0000", date.day, date.month_name(), date.year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date_time(0), "Thu, 1 Jan 1970 00:00:00 +0000");
        assert_eq!(date_time(1_000_000_000), "Sun, 9 Sep 2001 01:46:40 +0000");
        assert_eq!(date_time(-1), "Wed, 31 Dec 1969 23:59:59 +0000");
    }
}
