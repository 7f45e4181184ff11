//! The client side of LMTP and POP3, as far as the suites need it: everything that is sent was put together before, and of the answers only
//! what is looked at is kept.

use crate::error::{Doing, Error, Result};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// A server that says nothing for this long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// Octets that are read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// A connection to a server on this machine whose answers are lines.
pub struct LineConnection {
    stream: TcpStream,
    received: Vec<u8>,
    /// So much of `received` was looked at.
    at: usize,
}

impl LineConnection {
    /// Connects, and reads the greeting, which has to begin with `greeting`.
    pub fn open(port: u16, greeting: &str) -> Result<LineConnection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).doing(format!("port {port}"))?;
        stream.set_nodelay(true).doing("connection")?;
        stream.set_read_timeout(Some(SILENCE_MAX)).doing("connection")?;
        let mut connection = LineConnection { stream, received: Vec::new(), at: 0 };
        connection.expect(greeting)?;
        Ok(connection)
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).doing("sending")
    }

    fn fill(&mut self) -> Result<()> {
        self.received.drain(..self.at);
        self.at = 0;
        let there = self.received.len();
        self.received.resize(there + PIECE_BYTES, 0);
        let read = self.stream.read(self.received.get_mut(there..).unwrap_or_default());
        let read = read.doing("receiving").inspect_err(|_| self.received.truncate(there))?;
        self.received.truncate(there + read);
        if read == 0 { Err(Error::new("the server closed the connection")) } else { Ok(()) }
    }

    /// The next line without its end.
    pub fn line(&mut self) -> Result<String> {
        loop {
            let rest = self.received.get(self.at..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', rest) {
                let line = rest.get(..end).unwrap_or_default();
                let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
                self.at += end + 1;
                return Ok(line);
            }
            self.fill()?;
        }
    }

    /// The next line, which has to begin so.
    pub fn expect(&mut self, start: &str) -> Result<String> {
        let line = self.line()?;
        if line.starts_with(start) { Ok(line) } else { Err(Error::new(format!("{start:?} was expected: {line}"))) }
    }

    /// The last line of a reply of several (RFC 5321 §4.2.1), which has to begin so.
    pub fn reply(&mut self, start: &str) -> Result<()> {
        loop {
            let line = self.line()?;
            if line.as_bytes().get(3) != Some(&b'-') {
                return if line.starts_with(start) { Ok(()) } else { Err(Error::new(line)) };
            }
        }
    }

    /// Passes over lines up to one of nothing but a dot (RFC 1939 §3); how many octets that were, the dot's line not counted.
    pub fn to_the_dot(&mut self) -> Result<u64> {
        const END: &[u8] = b"\r\n.\r\n";
        let mut passed = 0;
        // The line before, which has been read, ends with CRLF.
        let mut is_first = true;
        loop {
            let rest = self.received.get(self.at..).unwrap_or_default();
            if is_first && rest.starts_with(b".\r\n") {
                self.at += 3;
                return Ok(passed);
            }
            if let Some(end) = memchr::memmem::find(rest, END) {
                self.at += end + END.len();
                return Ok(passed + end as u64 + 2);
            }
            // What may be the beginning of the end stays.
            let whole = rest.len().saturating_sub(END.len() - 1);
            is_first &= whole == 0;
            passed += whole as u64;
            self.at += whole;
            self.fill()?;
        }
    }
}

/// A message as DATA wants it (RFC 5321 §4.5.2), with the line that ends it. It ends with CRLF already.
pub fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(message.len() + 64);
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            data.push(b'.');
        }
        data.extend_from_slice(line);
    }
    data.extend_from_slice(b".\r\n");
    data
}

#[cfg(test)]
mod tests {
    use super::{LineConnection, stuffed};
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn dots() {
        assert_eq!(stuffed(b"a: b\r\n\r\n.\r\n..c\r\nd.\r\n"), b"a: b\r\n\r\n..\r\n...c\r\nd.\r\n.\r\n");
    }

    #[test]
    fn answers_in_any_cut() {
        let text = b"+OK hi\r\n250-a\r\n250 b\r\n+OK\r\nx\r\n..\r\n.\r\n+OK\r\n.\r\n+OK end\r\n";
        for piece in [1, 2, 3, 7, text.len()] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("bound").port();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                text.chunks(piece).for_each(|part| stream.write_all(part).expect("sent"));
            });
            let mut client = LineConnection::open(port, "+OK").expect("greeted");
            client.reply("250").expect("the last line counts");
            client.expect("+OK").expect("a list");
            assert_eq!(client.to_the_dot().expect("a dot"), 7, "{piece}");
            client.expect("+OK").expect("an empty list");
            assert_eq!(client.to_the_dot().expect("a dot"), 0, "{piece}");
            assert_eq!(client.line().expect("a line"), "+OK end");
            assert!(client.line().is_err());
            server.join().expect("it ended");
        }
    }
}
