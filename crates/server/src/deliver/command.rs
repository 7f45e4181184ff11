//! `mailyard deliver`: a message from standard input into a mailbox, for `/etc/aliases`, procmail and the like.
//!
//! Exit codes are those of sysexits.h, which mail transfer agents understand.

use std::fs::File;
use std::io::{self, BufRead, ErrorKind as IoErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::Env;
use sessions::lmtp::Context;

use super::conversation::{Local, Peer, Remote, Reply};
use super::{Named, SOCKET, settings};
use crate::config::Config;
use crate::control::short_path;
use crate::serve::open_store;
use crate::users::Directory;

/// The command line is wrong.
pub const EX_USAGE: u8 = 64;
/// There is no such user.
const EX_NOUSER: u8 = 67;
/// The message cannot be put where it should go, and never will.
const EX_CANTCREAT: u8 = 73;
/// Not now: to be tried again.
pub const EX_TEMPFAIL: u8 = 75;

/// Octets of a chunk, about.
const CHUNK_BYTES: usize = 64 << 10;

/// Octets of a `From ` line; a longer one is part of the message.
const FROM_LINE_BYTES_MAX: u64 = 1000;

/// What to deliver to whom.
#[derive(Debug, clap::Args)]
pub struct Deliver {
    /// Whose mail it is
    #[arg(long)]
    user: String,
    /// The mailbox to put it in, which has to be there; without it, INBOX
    #[arg(long)]
    mailbox: Option<String>,
    /// The sender, for Return-Path; without it, nobody (`<>`)
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
}

/// Runs the command; says what went wrong on standard error.
pub fn run(config: &Config, deliver: &Deliver) -> ExitCode {
    let result = peer(config).and_then(|mut peer| converse(&mut *peer, deliver, &mut io::stdin().lock()));
    let (code, text) = match result {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some((code, reply))) => (code, format!("{} {}", reply.code, reply.text)),
        // Whatever it is, mail is not sent back because of it.
        Err(error) => (EX_TEMPFAIL, error.to_string()),
    };
    let _ = writeln!(io::stderr(), "mailyard: {text}");
    ExitCode::from(code)
}

/// The server that holds the store, or the store itself.
fn peer(config: &Config) -> Result<Box<dyn Peer>> {
    let data = &config.server.data;
    let env = Env::real();
    match open_store(&env, config) {
        Ok(store) => {
            let recipients = Arc::new(Named::new(Arc::new(Directory::open(env, data)?)));
            let context = Context { store, recipients, observer: Arc::new(()), settings: settings(config) };
            Ok(Box::new(Local::new(Arc::new(context))))
        }
        Err(error) if error.kind() == ErrorKind::InUse => {
            let connect = || UnixStream::connect(short_path(&File::open(data)?, SOCKET));
            let stream = connect().map_err(|error| match error.kind() {
                IoErrorKind::NotFound | IoErrorKind::ConnectionRefused => {
                    Error::new(ErrorKind::InUse, format!("{}: another mailyard command works on it", data.display()))
                }
                _ => Error::from(error).context(data.join(SOCKET).display()),
            })?;
            Ok(Box::new(Remote::new(stream)))
        }
        Err(error) => Err(error.context(data.display())),
    }
}

/// Delivers; `Some`: what was refused, and the exit code of that.
fn converse(peer: &mut dyn Peer, deliver: &Deliver, input: &mut dyn BufRead) -> Result<Option<(u8, Reply)>> {
    let refused =
        |reply: Reply, permanent: u8| Ok(Some((if reply.code >= 500 { permanent } else { EX_TEMPFAIL }, reply)));
    let greeting = peer.reply()?;
    if greeting.code != 220 {
        return refused(greeting, EX_TEMPFAIL);
    }
    let hello = peer.ask("LHLO localhost")?;
    if hello.code != 250 {
        return refused(hello, EX_TEMPFAIL);
    }
    let from = deliver.from.as_deref().unwrap_or_default().trim_matches(['<', '>']);
    let mail = peer.ask(&format!("MAIL FROM:<{}> SMTPUTF8", one_line(from)))?;
    if mail.code != 250 {
        return refused(mail, EX_USAGE);
    }
    let to = match &deliver.mailbox {
        Some(mailbox) => format!("{}/{mailbox}", deliver.user),
        None => deliver.user.clone(),
    };
    let rcpt = peer.ask(&format!("RCPT TO:<{}>", quoted(&to)))?;
    if rcpt.code != 250 {
        return refused(rcpt, EX_NOUSER);
    }
    let mut chunk = Vec::new();
    let mut lines = Lines::default();
    while lines.next(input, &mut chunk)? {
        let reply = send_chunk(peer, &chunk, "")?;
        if reply.code != 250 {
            return refused(reply, EX_CANTCREAT);
        }
    }
    let reply = send_chunk(peer, &[], " LAST")?;
    if reply.code != 250 {
        return refused(reply, EX_CANTCREAT);
    }
    // The message is delivered, whatever becomes of the farewell.
    let _ = peer.send(b"QUIT\r\n");
    Ok(None)
}

fn send_chunk(peer: &mut dyn Peer, chunk: &[u8], last: &str) -> Result<Reply> {
    peer.send(format!("BDAT {}{last}\r\n", chunk.len()).as_bytes())?;
    peer.send(chunk)?;
    peer.reply()
}

/// A Quoted-string (RFC 5321 §4.1.2).
fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Line ends, which no address has, become something that is refused.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], "\u{7f}")
}

/// A message as programs of this machine write it: lines that end with LF, perhaps with an mbox's `From ` line on top.
#[derive(Default)]
struct Lines {
    is_past_start: bool,
    /// A CR came last.
    after_cr: bool,
}

impl Lines {
    /// The next octets into `chunk`, with CRLF for each LF; false when there are none.
    fn next(&mut self, input: &mut dyn BufRead, chunk: &mut Vec<u8>) -> Result<bool> {
        chunk.clear();
        if !self.is_past_start {
            self.is_past_start = true;
            let mut first = Vec::new();
            input.take(FROM_LINE_BYTES_MAX).read_until(b'\n', &mut first)?;
            if !(first.starts_with(b"From ") && first.ends_with(b"\n")) {
                self.convert(&first, chunk);
            }
        }
        while chunk.len() < CHUNK_BYTES {
            let read = input.fill_buf()?;
            if read.is_empty() {
                break;
            }
            self.convert(read, chunk);
            let octets = read.len();
            input.consume(octets);
        }
        Ok(!chunk.is_empty())
    }

    fn convert(&mut self, bytes: &[u8], chunk: &mut Vec<u8>) {
        for byte in bytes {
            if *byte == b'\n' && !self.after_cr {
                chunk.push(b'\r');
            }
            chunk.push(*byte);
            self.after_cr = *byte == b'\r';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_this_machine_become_lines_of_mail() {
        for (written, expected) in [
            (&b"From ann Thu Jan  1 00:00:00 1970\nSubject: x\n\ny\n"[..], &b"Subject: x\r\n\r\ny\r\n"[..]),
            (b"a\r\nb\n\rc\r", b"a\r\nb\r\n\rc\r"),
            (b"From nobody", b"From nobody"),
            (b"", b""),
        ] {
            for size in 1..=written.len().max(1) {
                let mut input = io::BufReader::with_capacity(size, written);
                let (mut lines, mut chunk, mut all) = (Lines::default(), Vec::new(), Vec::new());
                while lines.next(&mut input, &mut chunk).unwrap() {
                    all.extend_from_slice(&chunk);
                }
                assert_eq!(all, expected, "{size} octets at a time");
            }
        }
    }

    #[test]
    fn names_become_local_parts() {
        assert_eq!(quoted("ann/a \"b\"\\"), "\"ann/a \\\"b\\\"\\\\\"");
        assert!(quoted("ann>\r\nRCPT TO:<bob").contains(char::is_control));
    }
}
