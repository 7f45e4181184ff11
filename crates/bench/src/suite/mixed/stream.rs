//! A connection that never blocks: whatever has come is taken apart into lines, whatever cannot be sent yet waits.

use crate::error::{Doing, Error, Result};
use crate::wire::{Connection, literal_at_end};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

/// One connection.
pub struct Stream {
    socket: TcpStream,
    input: Vec<u8>,
    /// What of the input was looked at.
    at: usize,
    /// Bytes of a literal that are still to come.
    literal_left: u64,
    /// Whether the next line begins a response, rather than going on after a literal.
    begins: bool,
    output: Vec<u8>,
    sent: usize,
}

/// A line of a response.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'i> {
    /// With its line end.
    pub bytes: &'i [u8],
    /// Whether it begins a response.
    pub begins: bool,
    /// The length of the literal that follows.
    pub literal: u64,
}

impl Stream {
    /// Goes on with a connection that waited for its answers so far.
    pub fn new(connection: Connection) -> Result<Stream> {
        let (socket, input) = connection.into_stream();
        socket.set_nonblocking(true).doing("connection")?;
        Ok(Stream { socket, input, at: 0, literal_left: 0, begins: true, output: Vec::new(), sent: 0 })
    }

    /// To wait on.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads once, through `chunk`; nothing when nothing is there.
    pub fn receive(&mut self, chunk: &mut [u8]) -> Result<()> {
        match self.socket.read(chunk) {
            Ok(0) => Err(Error::new("the server closed the connection")),
            Ok(count) => {
                self.input.drain(..self.at);
                self.at = 0;
                self.input.extend_from_slice(chunk.get(..count).unwrap_or_default());
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(error).doing("reading"),
        }
    }

    /// The next whole line, literals passed over.
    pub fn line(&mut self) -> Option<Line<'_>> {
        let here = self.literal_left.min((self.input.len() - self.at) as u64);
        self.at += here as usize;
        self.literal_left -= here;
        if self.literal_left > 0 {
            return None;
        }
        let rest = self.input.get(self.at..)?;
        let bytes = rest.get(..=memchr::memchr(b'\n', rest)?)?;
        self.at += bytes.len();
        let literal = literal_at_end(bytes);
        self.literal_left = literal.unwrap_or(0);
        let begins = std::mem::replace(&mut self.begins, literal.is_none());
        Some(Line { bytes, begins, literal: self.literal_left })
    }

    /// Sends as much as goes; the rest waits for [`Stream::flush`].
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.extend_from_slice(bytes);
        self.flush()
    }

    /// Sends what waits.
    pub fn flush(&mut self) -> Result<()> {
        while let Some(rest) = self.output.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.socket.write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).doing("sending"),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(())
    }

    /// Whether something waits to be sent.
    pub fn waits_to_send(&self) -> bool {
        !self.output.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Stream};
    use crate::wire::Connection;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn lines_however_they_come() {
        let text = b"* 1 FETCH (BODY[] {5}\r\nB OK\n UID 1)\r\n* 2 EXISTS\r\nB OK done\r\n";
        for size in 1..text.len() {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let client = TcpStream::connect(listener.local_addr().expect("a port")).expect("connected");
            let (mut server, _) = listener.accept().expect("accepted");
            let mut stream = Stream::new(Connection::over(client).expect("open")).expect("a stream");
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                server.write_all(piece).expect("sent");
                let mut left = piece.len();
                while left > 0 {
                    let before = stream.input.len() - stream.at;
                    let mut chunk = [0; 100];
                    stream.receive(&mut chunk).expect("received");
                    left -= stream.input.len() - before;
                    while let Some(Line { bytes, begins, literal }) = stream.line() {
                        found.push((String::from_utf8_lossy(bytes).into_owned(), begins, literal));
                    }
                }
            }
            let expected = [
                ("* 1 FETCH (BODY[] {5}\r\n", true, 5),
                (" UID 1)\r\n", false, 0),
                ("* 2 EXISTS\r\n", true, 0),
                ("B OK done\r\n", true, 0),
            ];
            let expected = expected.map(|(line, begins, literal)| (line.to_string(), begins, literal));
            assert_eq!(found, expected, "pieces of {size}");
            drop(server);
            while stream.receive(&mut [0; 10]).is_ok() {}
        }
    }
}
