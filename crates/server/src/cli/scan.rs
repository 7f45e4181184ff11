//! `mailyard scan`: the messages of mbox files as a table.
//!
//! It reads files directly and needs neither a store nor a server. Each file stands for itself: one that cannot be read is told on
//! standard error, the others are shown, and the exit code is 1.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use mime::{HeaderBlock, decode_unstructured};
use model::{DateTime, Error, ErrorKind, Result};
use platform::{Env, File, OpenMode};
use serde_json::json;
use store::format::mbox::from_line::{LINE_BYTES_MAX, parse_from_line};
use store::format::mbox::scan::{Message, Table, scan_parallel};

/// Octets of a header that are looked at for From and Subject.
const HEADER_BYTES_MAX: u64 = 256 << 10;
/// Characters of a column, so that a line fits a wide terminal.
const FROM_WIDTH: usize = 28;
const SUBJECT_WIDTH: usize = 60;

/// What to scan, and how to show it.
pub struct Scan {
    pub files: Vec<PathBuf>,
    pub jobs: usize,
    pub json: bool,
    pub count: bool,
    pub quiet: bool,
}

/// Runs the command.
pub fn run(scan: &Scan) -> Result<ExitCode> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let (mut failed, mut messages, mut bytes, mut seconds) = (false, 0, 0, 0.0);
    for path in &scan.files {
        let began = Instant::now();
        let result = open(path).and_then(|file| {
            let table = scan_parallel(&*file, scan.jobs)?;
            seconds += began.elapsed().as_secs_f64();
            Ok((file, table))
        });
        match result {
            Ok((file, table)) => {
                messages += table.messages().len();
                bytes += table.file_bytes();
                match show(scan, path, &*file, &table, &mut out) {
                    // A reader that has gone away (`| head`) is no error.
                    Err(Shown::Unwritten(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                        return Ok(ExitCode::SUCCESS);
                    }
                    Err(Shown::Unwritten(error)) => return Err(error.into()),
                    Err(Shown::Unread(error)) => failed |= complain(path, error),
                    Ok(()) => {}
                }
            }
            Err(error) => failed |= complain(path, error),
        }
    }
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    if !scan.quiet && bytes > 0 {
        let rate = bytes as f64 / f64::max(seconds, 1e-9) / 1e9;
        let _ = writeln!(io::stderr(), "{messages} messages, {bytes} bytes in {seconds:.3} s, {rate:.2} GB/s");
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn complain(path: &Path, error: Error) -> bool {
    let _ = writeln!(io::stderr(), "mailyard: {}", error.context(path.display()));
    true
}

fn open(path: &Path) -> Result<std::sync::Arc<dyn File>> {
    let disk = Env::real().disk;
    // Opening a pipe or a device could wait for ever.
    if !disk.metadata(path)?.is_file {
        return Err(Error::new(ErrorKind::Invalid, "no plain file"));
    }
    Ok(disk.open(path, OpenMode::Read)?)
}

/// Why a table was not shown to its end.
enum Shown {
    Unread(Error),
    Unwritten(io::Error),
}

impl From<io::Error> for Shown {
    fn from(error: io::Error) -> Self {
        Shown::Unwritten(error)
    }
}

fn show(
    scan: &Scan,
    path: &Path,
    file: &dyn File,
    table: &Table,
    out: &mut impl Write,
) -> std::result::Result<(), Shown> {
    let name = path.to_string_lossy();
    let count = table.messages().len();
    match (scan.count, scan.json) {
        (true, true) => {
            let line = json!({ "file": name, "messages": count, "bytes": table.file_bytes() });
            return Ok(writeln!(out, "{line}")?);
        }
        (true, false) => return Ok(writeln!(out, "{name}: {count}")?),
        (false, true) => {}
        (false, false) => {
            if scan.files.len() > 1 {
                writeln!(out, "{name}")?;
            }
            let (from, subject) = ("from", "subject");
            writeln!(out, "{:>12} {:>10}  {from:FROM_WIDTH$}  {:26}  {subject}", "offset", "size", "date")?;
        }
    }
    let mut headers = Headers { file, file_bytes: table.file_bytes(), start: 0, bytes: Vec::new() };
    for message in table.messages() {
        let row = Row::read(&mut headers, message).map_err(Shown::Unread)?;
        if scan.json {
            writeln!(out, "{}", row.json(&name, message))?;
        } else {
            writeln!(out, "{}", row.text(message))?;
        }
    }
    Ok(())
}

/// Reads headers that come in the order of the file: many with one call.
struct Headers<'a> {
    file: &'a dyn File,
    file_bytes: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Headers<'_> {
    /// The octets of a message from its `From ` line to its body, or as many as are looked at.
    fn of(&mut self, message: &Message) -> Result<&[u8]> {
        let len = (message.body - message.start).min(HEADER_BYTES_MAX) as usize;
        let end = self.start + self.bytes.len() as u64;
        if message.start < self.start || message.start + len as u64 > end {
            self.start = message.start;
            self.bytes.resize(self.file_bytes.saturating_sub(message.start).min(HEADER_BYTES_MAX) as usize, 0);
            self.file.read_exact_at(&mut self.bytes, message.start)?;
        }
        let at = (message.start - self.start) as usize;
        Ok(self.bytes.get(at..at + len).unwrap_or_default())
    }
}

/// What is shown of a message beside its place.
struct Row {
    from: String,
    subject: String,
    date: Option<DateTime>,
}

impl Row {
    fn read(headers: &mut Headers<'_>, message: &Message) -> Result<Row> {
        let bytes = headers.of(message)?;
        let (line, header) = bytes.split_at(bytes.len().min((message.header - message.start) as usize));
        let line = line.get(..LINE_BYTES_MAX).unwrap_or(line).trim_ascii_end();
        let fields = HeaderBlock::new(header);
        let text = |name| decode_unstructured(fields.first(name).unwrap_or_default()).trim().to_owned();
        let sent = || fields.first("Date").and_then(mime::parse_date);
        let date = parse_from_line(line).or_else(|| {
            sent().map(|date| DateTime { unix_seconds: date.unix_seconds(), offset_minutes: date.offset_minutes })
        });
        Ok(Row { from: text("From"), subject: text("Subject"), date })
    }

    fn json(&self, file: &str, message: &Message) -> serde_json::Value {
        json!({
            "file": file,
            "offset": message.start,
            "header": message.header,
            "body": message.body,
            "end": message.end,
            "size": message.end - message.header,
            "from": self.from,
            "date": self.date.map(|date| date.to_string().trim().to_owned()),
            "subject": self.subject,
            "dialect": message.dialect().name(),
            "flags": message.flags.names().collect::<Vec<_>>(),
        })
    }

    fn text(&self, message: &Message) -> String {
        let size = message.end - message.header;
        let date = self.date.map(|date| date.to_string()).unwrap_or_default();
        let (from, subject) = (one_line(&self.from, FROM_WIDTH), one_line(&self.subject, SUBJECT_WIDTH));
        let line = format!("{:>12} {size:>10}  {from:FROM_WIDTH$}  {date:26}  {subject}", message.start);
        line.trim_end().to_owned()
    }
}

/// At most so many characters; what could move the cursor is shown as a space.
fn one_line(text: &str, width: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(width).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rows_are_decoded_and_on_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mbox");
        let mbox = "From a@b Thu Aug 22 12:36:23 2002\nFrom: =?utf-8?q?J=C3=B6?= <j@x>\nSubject: a\n\x1b[1m b\nDate: x\n\nx\n\n\
                    From nowhere\nA: b\nDate: Fri, 2 Jan 2004 00:00:00 +0100\n\ny\n";
        std::fs::write(&path, mbox).unwrap();
        let file = open(&path).unwrap();
        let table = scan_parallel(&*file, 1).unwrap();
        let mut headers = Headers { file: &*file, file_bytes: table.file_bytes(), start: 0, bytes: Vec::new() };
        let rows: Vec<String> = table.messages().iter().map(|m| Row::read(&mut headers, m).unwrap().text(m)).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].contains("Jö <j@x>") && rows[0].contains("22-Aug-2002 12:36:23 +0000"), "{rows:?}");
        assert!(!rows[0].contains('\x1b') && !rows[0].contains('\n'), "{rows:?}");
        assert!(rows[1].contains(" 2-Jan-2004 00:00:00 +0100"), "{rows:?}");
    }
}
