//! The client's side of LMTP, with a server over its socket or with a session in this process.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::Env;
use sessions::lmtp::{Context, LmtpSession};
use sessions::{Connection, Now, Output, ProtocolSession, Step};

/// A reply: its code and its last line.
#[derive(Debug)]
pub struct Reply {
    /// Three digits.
    pub code: u16,
    /// What stands behind them.
    pub text: String,
}

/// Whoever takes the mail.
pub trait Peer {
    /// Sends octets.
    fn send(&mut self, bytes: &[u8]) -> Result<()>;
    /// The next line, without its end.
    fn line(&mut self) -> Result<String>;

    /// The next reply.
    fn reply(&mut self) -> Result<Reply> {
        loop {
            let line = self.line()?;
            let code = line.get(..3).and_then(|code| code.parse().ok());
            let (Some(code), Some(rest)) = (code, line.get(3..)) else {
                return Err(Error::new(ErrorKind::Io, format!("the server said {line:?}")));
            };
            if !rest.starts_with('-') {
                return Ok(Reply { code, text: rest.trim_start().to_owned() });
            }
        }
    }

    /// Says a line and takes the reply.
    fn ask(&mut self, line: &str) -> Result<Reply> {
        self.send(format!("{line}\r\n").as_bytes())?;
        self.reply()
    }
}

/// A running server.
pub struct Remote(BufReader<UnixStream>);

impl Remote {
    /// Over a connection.
    pub fn new(stream: UnixStream) -> Self {
        Remote(BufReader::new(stream))
    }
}

impl Peer for Remote {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.0.get_mut().write_all(bytes)?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(line.trim_end().to_owned())
    }
}

/// A session of this process.
pub struct Local {
    session: LmtpSession,
    env: Env,
    out: Output,
}

impl Local {
    /// Over an open store to which nobody writes but this thread: a step waits for nothing.
    pub fn new(context: Arc<Context>) -> Self {
        let env = context.store.env().clone();
        let session = LmtpSession::new(context, Connection::default(), Arc::new(|| ()), now(&env));
        Local { session, env, out: Output::new(65_536) }
    }
}

fn now(env: &Env) -> Now {
    Now { monotonic: env.clock.monotonic(), unix_seconds: env.clock.now().seconds }
}

impl Peer for Local {
    fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let taken = self.session.receive(bytes);
            bytes = bytes.get(taken..).unwrap_or_default();
            if !bytes.is_empty() && matches!(self.session.step(now(&self.env), &mut self.out), Step::Close) {
                return Err(Error::new(ErrorKind::Io, "the session is closed"));
            }
        }
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        loop {
            let pending = self.out.pending();
            if let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(pending.get(..end).unwrap_or_default()).trim_end().to_owned();
                self.out.consume(end + 1);
                return Ok(line);
            }
            let had = pending.len();
            let step = self.session.step(now(&self.env), &mut self.out);
            if self.out.pending().len() == had && !matches!(step, Step::Output) {
                return Err(Error::new(ErrorKind::Io, "the session says nothing"));
            }
        }
    }
}
