//! A client of a protocol of lines, without a socket: it hands in what it sends in pieces, and hears what is answered.

#![allow(dead_code, reason = "each test file uses a part")]

use std::time::Duration;

use mailyard_sessions::{Now, Output, ProtocolSession, Step};

/// The time, which stands still.
pub const NOW: Now = Now { monotonic: Duration::ZERO, unix_seconds: 1_000_000_000 };

/// How conversations are cut: octets that are handed in at a time, and octets that the output holds.
pub const CUTS: [(usize, usize); 3] = [WHOLE, (1, 1 << 20), (7, 1)];
pub const WHOLE: (usize, usize) = (1 << 20, 1 << 20);

pub struct Client<S> {
    pub session: S,
    pub now: Now,
    pub is_closed: bool,
    out: Output,
    piece: usize,
}

impl<S: ProtocolSession> Client<S> {
    pub fn new(session: S, (piece, output): (usize, usize)) -> Self {
        Client { session, now: NOW, is_closed: false, out: Output::new(output), piece }
    }

    /// What the session says by itself.
    pub fn said(&mut self) -> String {
        let mut said = Vec::new();
        loop {
            let step = self.session.step(self.now, &mut self.out);
            said.extend_from_slice(self.out.pending());
            self.out.consume(usize::MAX);
            match step {
                Step::Output => {}
                Step::NeedInput { .. } => break,
                Step::StartTls => self.session.tls_started(Default::default()),
                Step::Close => {
                    self.is_closed = true;
                    break;
                }
            }
        }
        String::from_utf8(said).unwrap()
    }

    /// What it answers.
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> String {
        let mut said = String::new();
        for piece in bytes.as_ref().chunks(self.piece) {
            let mut rest = piece;
            while !rest.is_empty() && !self.is_closed {
                rest = &rest[self.session.receive(rest)..];
                said += &self.said();
            }
        }
        said
    }
}
