//! What the sessions of all protocols of lines have in common (POP3, LMTP): what was received, when the client was last heard, and the
//! order in which a driver's calls are answered.
//!
//! Invariant: what a client sent before a TLS handshake is not heard after it (RFC 3207 §6).

use std::time::Duration;

use model::AccountName;

use crate::{ChannelBinding, Connection, Now, Output, ProtocolSession, Step, Work};

/// A line that is longer than it may be. What is left of it is thrown away as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineTooLong;

/// The client's side of a session.
pub(crate) struct Lines {
    /// The connection.
    pub connection: Connection,
    /// The time of this step.
    pub now: Now,
    /// When something last came from the client; a session that worked long on its own moves it.
    pub last_heard: Duration,
    /// Commands that were none.
    pub bad_commands: u32,
    /// The server stops.
    pub is_shutting_down: bool,
    received: Vec<u8>,
    /// So much of `received` was read.
    read: usize,
    input_bytes_max: usize,
    /// A line was too long: what is left of it is thrown away.
    is_skipping: bool,
    handshake_due: bool,
    was_heard: bool,
}

impl Lines {
    /// `input_bytes_max`: octets that are held while they wait.
    pub fn new(connection: Connection, now: Now, input_bytes_max: usize) -> Self {
        Lines {
            connection,
            now,
            last_heard: now.monotonic,
            bad_commands: 0,
            is_shutting_down: false,
            received: Vec::new(),
            read: 0,
            input_bytes_max,
            is_skipping: false,
            handshake_due: false,
            was_heard: false,
        }
    }

    /// What was received and not read.
    pub fn pending(&self) -> &[u8] {
        self.received.get(self.read..).unwrap_or_default()
    }

    /// The first `octets` of [`Lines::pending`] were read.
    pub fn consume(&mut self, octets: usize) {
        self.read = self.read.saturating_add(octets).min(self.received.len());
        if self.read == self.received.len() {
            self.received.clear();
            self.read = 0;
        }
    }

    /// The next line without its end; with it, it may have `bytes_max` octets.
    pub fn line(&mut self, bytes_max: usize) -> Option<Result<Vec<u8>, LineTooLong>> {
        let end = memchr::memchr(b'\n', self.pending());
        if self.is_skipping {
            self.consume(end.map_or(usize::MAX, |end| end + 1));
            end?;
            self.is_skipping = false;
            return self.line(bytes_max);
        }
        match end {
            Some(end) if end < bytes_max => {
                let line = self.pending().get(..end).unwrap_or_default();
                let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
                self.consume(end + 1);
                Some(Ok(line))
            }
            None if self.pending().len() < bytes_max => None,
            _ => {
                self.is_skipping = true;
                Some(Err(LineTooLong))
            }
        }
    }

    /// TLS is negotiated next; what was received in the clear is forgotten.
    pub fn begin_tls(&mut self) -> Step {
        self.consume(usize::MAX);
        self.handshake_due = true;
        Step::StartTls
    }

    fn receive(&mut self, bytes: &[u8]) -> usize {
        if self.handshake_due {
            return bytes.len();
        }
        let room = self.input_bytes_max.saturating_sub(self.pending().len());
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        // Once in a buffer, not with every line that is taken out of it.
        if self.read > 0 && self.received.len().saturating_add(taken.len()) > self.received.capacity() {
            self.received.drain(..self.read);
            self.read = 0;
        }
        self.received.extend_from_slice(taken);
        self.was_heard |= !taken.is_empty();
        taken.len()
    }
}

/// A protocol of lines: what [`ProtocolSession`] asks for beyond [`Lines`].
pub(crate) trait LineProtocol: Send {
    /// What was received.
    fn lines(&mut self) -> &mut Lines;

    /// One piece of work; `Some`: it is the driver's turn.
    fn go_on(&mut self, out: &mut Output) -> Option<Step>;

    /// Whether nothing is left to do but to close.
    fn is_closed(&self) -> bool;

    /// Who is logged in.
    fn account(&self) -> Option<&AccountName>;

    /// What the next step may take.
    fn work(&self) -> Work;
}

impl<P: LineProtocol> ProtocolSession for P {
    fn receive(&mut self, bytes: &[u8]) -> usize {
        self.lines().receive(bytes)
    }

    fn step(&mut self, now: Now, out: &mut Output) -> Step {
        let lines = self.lines();
        lines.now = now;
        if std::mem::take(&mut lines.was_heard) {
            lines.last_heard = now.monotonic;
        }
        if lines.handshake_due {
            return Step::StartTls;
        }
        loop {
            if out.is_full() && !self.is_closed() {
                return Step::Output;
            }
            if let Some(step) = self.go_on(out) {
                return step;
            }
        }
    }

    fn tls_started(&mut self, channel_binding: ChannelBinding) {
        let lines = self.lines();
        lines.handshake_due = false;
        lines.connection.tls = true;
        lines.connection.channel_binding = channel_binding;
    }

    fn shut_down(&mut self) {
        self.lines().is_shutting_down = true;
    }

    fn account(&self) -> Option<&AccountName> {
        LineProtocol::account(self)
    }

    fn work(&self) -> Work {
        LineProtocol::work(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now { monotonic: Duration::ZERO, unix_seconds: 0 };

    #[test]
    fn lines_in_any_cut() {
        let text = b"a\r\nbc\n\r\n1234567\r\nover the limit\r\nd\r\n";
        for piece in 1..=text.len() {
            let mut lines = Lines::new(Connection::default(), NOW, 20);
            let mut found = Vec::new();
            for mut rest in text.chunks(piece) {
                while !rest.is_empty() {
                    rest = rest.get(lines.receive(rest)..).unwrap_or_default();
                    found.extend(std::iter::from_fn(|| lines.line(9)));
                }
            }
            let ok = |text: &[u8]| Ok(text.to_vec());
            assert_eq!(found, [ok(b"a"), ok(b"bc"), ok(b""), ok(b"1234567"), Err(LineTooLong), ok(b"d")], "{piece}");
        }
    }

    #[test]
    fn what_does_not_fit_stays_outside() {
        let mut lines = Lines::new(Connection::default(), NOW, 4);
        assert_eq!((lines.receive(b"ab\ncd\n"), lines.line(9)), (4, Some(Ok(b"ab".to_vec()))));
        assert_eq!((lines.receive(b"d\ne"), lines.line(9)), (3, Some(Ok(b"cd".to_vec()))));
        assert_eq!(lines.pending(), b"e");
        lines.begin_tls();
        assert_eq!(lines.pending(), b"");
        assert_eq!(lines.receive(b"x\n"), 2);
    }
}
