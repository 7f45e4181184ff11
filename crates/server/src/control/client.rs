//! The command line's end of the control socket.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use model::{Error, ErrorKind, Result};
use serde_json::Value;

use super::{Answer, short_path};
use crate::admin::{Progress, Request};

/// Has the server that holds `data` run a command. [`ErrorKind::NotFound`] when no server answers there.
pub fn ask(data: &Path, request: &Request, progress: &mut dyn Progress) -> Result<Value> {
    let connect = || UnixStream::connect(short_path(&File::open(data)?, "control.sock"));
    let mut stream = connect().map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::ConnectionRefused => ErrorKind::NotFound,
            _ => Error::from(std::io::Error::from(error.kind())).kind(),
        };
        Error::new(kind, format!("{}: {error}", super::socket_path(data).display()))
    })?;
    let mut line = serde_json::to_string(request).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    for line in BufReader::new(stream).lines() {
        let answer = serde_json::from_str(&line?).map_err(|error| {
            Error::new(ErrorKind::Invalid, format!("the server's answer is not understood: {error}"))
        })?;
        match answer {
            Answer::Progress { done, total, unit } => progress.advanced(done, total, known_unit(&unit)),
            Answer::Notice(notice) => progress.notice(notice),
            Answer::Done(result) => return Ok(result),
            Answer::Failed(text) => return Err(Error::new(ErrorKind::Invalid, text)),
        }
    }
    Err(Error::new(ErrorKind::Io, "the server ended before the command did"))
}

fn known_unit(unit: &str) -> &'static str {
    ["bytes", "messages", "accounts"].into_iter().find(|known| *known == unit).unwrap_or("items")
}
