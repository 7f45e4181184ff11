//! Messages put where a server keeps them, while it does not run: filling a mailbox over the wire takes some servers minutes, and filling
//! is nothing that is measured.
//!
//! Invariants: the same messages in the same order with the same internal dates as [`crate::fill::fill`] gives them over the wire.

use super::daemon::Site;
use crate::error::{Doing, Result};
use crate::fill::internal_seconds;
use crate::mbox::each_message;
use mail_parser::DateTime;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How the lines of a message end in the server's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnds {
    /// As on the wire.
    CrLf,
    /// As in text files of the system.
    Lf,
}

/// Writes one file a message into a folder, each with the internal date as its time of modification; names them by number, from 1, and
/// bytes. `give` makes a file the server's.
pub fn files(
    mbox: &Path,
    folder: &Path,
    ends: LineEnds,
    name: impl Fn(u32, usize) -> String,
    give: impl Fn(&Path) -> Result<()>,
) -> Result<()> {
    let mut number = 0;
    each_message(mbox, |message| {
        number += 1;
        let date = time(internal_seconds(&message));
        let bytes = with_ends(message, ends);
        let path: PathBuf = folder.join(name(number, bytes.len()));
        let mut file = File::create_new(&path).doing(path.display())?;
        file.write_all(&bytes).doing(path.display())?;
        file.set_modified(date).doing(path.display())?;
        give(&path)?;
        Ok(true)
    })
}

/// Writes the files of a Maildir into its `cur`, and says so.
pub fn maildir(mbox: &Path, maildir: &Path, give: impl Fn(&Path) -> Result<()>) -> Result<String> {
    let name = |number: u32, bytes: usize| format!("1000000000.M{number:08}.bench,S={bytes}:2,");
    files(mbox, &maildir.join("cur"), LineEnds::Lf, name, give)?;
    Ok("written as files of a Maildir".into())
}

/// Writes an mbox file whose `From ` lines have the internal dates, in UTC (RFC 4155).
pub fn one_file(site: &Site, mbox: &Path, path: &Path) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).doing(path.display())?);
    each_message(mbox, |message| {
        writeln!(file, "From bench {}", asctime(internal_seconds(&message))).doing(path.display())?;
        file.write_all(&with_ends(message, LineEnds::Lf)).doing(path.display())?;
        file.write_all(b"\n").doing(path.display())?;
        Ok(true)
    })?;
    file.flush().doing(path.display())?;
    site.give_to_owner(path)
}

fn with_ends(message: Vec<u8>, ends: LineEnds) -> Vec<u8> {
    if ends == LineEnds::CrLf {
        return message;
    }
    let mut lines = Vec::with_capacity(message.len());
    let mut rest = message.as_slice();
    while let Some(end) = memchr::memmem::find(rest, b"\r\n") {
        let (line, after) = rest.split_at(end);
        lines.extend_from_slice(line);
        lines.push(b'\n');
        rest = after.get(2..).unwrap_or_default();
    }
    lines.extend_from_slice(rest);
    lines
}

fn time(seconds: i64) -> SystemTime {
    match u64::try_from(seconds) {
        Ok(after) => UNIX_EPOCH + Duration::from_secs(after),
        Err(_) => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()),
    }
}

/// asctime(3): `Sun Oct 26 12:00:00 2003`.
fn asctime(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let date = DateTime::from_timestamp(seconds);
    let weekday = DAYS.get(usize::from(date.day_of_week())).copied().unwrap_or("Sun");
    let (month, day, year) = (crate::fill::month(date.month), date.day, date.year);
    format!("{weekday} {month} {day:2} {:02}:{:02}:{:02} {year:04}", date.hour, date.minute, date.second)
}

#[cfg(test)]
mod tests {
    use super::{LineEnds, asctime, time, with_ends};
    use std::time::UNIX_EPOCH;

    #[test]
    fn dates() {
        assert_eq!(asctime(1_067_169_600), "Sun Oct 26 12:00:00 2003");
        assert_eq!(asctime(43_200), "Thu Jan  1 12:00:00 1970");
        assert_eq!(time(1_067_169_600).duration_since(UNIX_EPOCH).expect("later").as_secs(), 1_067_169_600);
        assert!(time(-1) < UNIX_EPOCH);
    }

    #[test]
    fn line_ends() {
        let message = b"A: 1\r\n\r\na\rb\r\n".to_vec();
        assert_eq!(with_ends(message.clone(), LineEnds::CrLf), message);
        assert_eq!(with_ends(message, LineEnds::Lf), b"A: 1\n\na\rb\n");
        assert_eq!(with_ends(b"a".to_vec(), LineEnds::Lf), b"a");
    }
}
