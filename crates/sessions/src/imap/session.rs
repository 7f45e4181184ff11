//! The session as its driver sees it.

use std::sync::Arc;

use model::AccountName;

use super::Context;
use crate::{ChannelBinding, Connection, Now, Output, Step, Waker};

/// One IMAP connection.
///
/// ```text
/// loop {
///     match session.step(now, &mut out) {
///         Step::Output => send some of out.pending(), out.consume(sent)
///         Step::NeedInput { deadline } => send all; wait for bytes, the waker, or the deadline
///         Step::StartTls => send all; handshake; session.tls_started(binding)
///         Step::Close => send all; close
///     }
///     taken = session.receive(bytes); keep the rest and read no more until the next step
/// }
/// ```
///
/// COMPRESS=DEFLATE needs nothing of the driver: once it is on, `receive` takes and [`Output`] holds compressed octets.
pub struct ImapSession {
    _context: Arc<Context>,
}

impl ImapSession {
    /// A session that will greet. `waker` is called from other threads when something changed that the client should hear of.
    pub fn new(_context: Arc<Context>, _connection: Connection, _waker: Waker, _now: Now) -> Self {
        todo!()
    }

    /// Takes bytes from the other side; returns how many. Fewer than given means that there is no room until the next `step`: the
    /// driver keeps the rest, and stops reading from the network.
    pub fn receive(&mut self, _bytes: &[u8]) -> usize {
        todo!()
    }

    /// Goes on until the output is full or there is nothing to do. May block on a disk or on a password hash.
    pub fn step(&mut self, _now: Now, _out: &mut Output) -> Step {
        todo!()
    }

    /// The handshake that [`Step::StartTls`] asked for is done.
    pub fn tls_started(&mut self, _channel_binding: ChannelBinding) {
        todo!()
    }

    /// The server stops: the next `step` says BYE, after the answer that is being sent, and asks to close.
    pub fn shut_down(&mut self) {
        todo!()
    }

    /// Who is logged in.
    pub fn account(&self) -> Option<&AccountName> {
        todo!()
    }

    /// Whether the client waits in IDLE.
    pub fn is_idle(&self) -> bool {
        todo!()
    }
}
