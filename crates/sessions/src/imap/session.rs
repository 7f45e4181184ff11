//! The session as its driver sees it: the machine, with COMPRESS (RFC 4978) around it.

use std::sync::Arc;

use model::{AccountName, Result};

use super::Context;
use super::compress::{Deflater, Inflater};
use super::machine::{Machine, Wait};
use crate::{ChannelBinding, Connection, Now, Output, ProtocolSession, Step, Waker};

/// One IMAP connection.
///
/// ```text
/// loop {
///     match session.step(now, &mut out) {
///         Step::Output => send some of out.pending(), out.consume(sent)
///         Step::NeedInput { deadline } => send all; out.rest(); wait for bytes, the waker, or the deadline
///         Step::StartTls => send all; handshake; session.tls_started(binding)
///         Step::Close => send all; close
///     }
///     taken = session.receive(bytes); keep the rest and read no more until the next step
/// }
/// ```
///
/// COMPRESS=DEFLATE needs nothing of the driver: once it is on, `receive` takes and [`Output`] holds compressed octets. A client
/// that does not read what it is sent is the driver's to time out.
pub struct ImapSession {
    machine: Machine,
    /// Received and not yet taken.
    received: Vec<u8>,
    received_bytes_max: usize,
    /// [`Step::StartTls`] was said and the handshake is not done: what comes in the clear is thrown away.
    handshake_due: bool,
    compressed: Option<Box<Compressed>>,
}

/// Both directions of a compressed connection.
struct Compressed {
    inflater: Inflater,
    deflater: Deflater,
    input: Vec<u8>,
    output: Output,
    /// Whether the other side cannot read all that was written yet.
    held_back: bool,
}

/// Octets on either plain side of the compression.
const PLAIN_BYTES_MAX: usize = 32 * 1024;

impl ImapSession {
    /// A session that will greet. `waker` is called from other threads when something changed that the client should hear of.
    pub fn new(context: Arc<Context>, connection: Connection, waker: Waker, now: Now) -> Self {
        let received_bytes_max = context.settings.limits.input_bytes_max.max(1);
        let machine = Machine::new(context, connection, waker, now);
        ImapSession { machine, received: Vec::new(), received_bytes_max, handshake_due: false, compressed: None }
    }

    /// Takes bytes from the other side; returns how many. Fewer than given means that there is no room until the next `step`: the
    /// driver keeps the rest, and stops reading from the network.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        if self.handshake_due {
            return bytes.len();
        }
        let room = self.received_bytes_max.saturating_sub(self.received.len());
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.received.extend_from_slice(taken);
        if !taken.is_empty() {
            self.machine.heard();
        }
        taken.len()
    }

    /// Goes on until the output is full or there is nothing to do. May block on a disk or on a password hash.
    pub fn step(&mut self, now: Now, out: &mut Output) -> Step {
        if self.handshake_due {
            return Step::StartTls;
        }
        loop {
            let wait = match &mut self.compressed {
                None => {
                    let mut input = self.received.as_slice();
                    let wait = self.machine.step(now, &mut input, out);
                    let taken = self.received.len() - input.len();
                    drop_front(&mut self.received, taken);
                    wait
                }
                Some(compressed) => match compressed.step(&mut self.machine, &mut self.received, now, out) {
                    Ok(wait) => wait,
                    Err(_not_deflate) => {
                        self.machine.abandon();
                        Wait::Close
                    }
                },
            };
            return match wait {
                Wait::Output => Step::Output,
                Wait::Input(deadline) => Step::NeedInput { deadline: Some(deadline) },
                Wait::StartTls => {
                    // RFC 9051 §6.2.1: whoever slipped in commands before the handshake is not heard after it.
                    self.received.clear();
                    self.handshake_due = true;
                    Step::StartTls
                }
                Wait::Compress => {
                    self.compressed = Some(Box::new(Compressed::new()));
                    continue;
                }
                Wait::Close => Step::Close,
            };
        }
    }

    /// The handshake that [`Step::StartTls`] asked for is done.
    pub fn tls_started(&mut self, channel_binding: ChannelBinding) {
        self.handshake_due = false;
        self.machine.tls_started(channel_binding);
    }

    /// The server stops: the next `step` says BYE, after the answer that is being sent, and asks to close.
    pub fn shut_down(&mut self) {
        self.machine.shut_down();
    }

    /// Who is logged in.
    pub fn account(&self) -> Option<&AccountName> {
        self.machine.session.login.as_ref().map(|login| &login.name)
    }

    /// Whether the client waits in IDLE.
    pub fn is_idle(&self) -> bool {
        self.machine.session.idle
    }
}

impl ProtocolSession for ImapSession {
    fn receive(&mut self, bytes: &[u8]) -> usize {
        ImapSession::receive(self, bytes)
    }

    fn step(&mut self, now: Now, out: &mut Output) -> Step {
        ImapSession::step(self, now, out)
    }

    fn tls_started(&mut self, channel_binding: ChannelBinding) {
        ImapSession::tls_started(self, channel_binding);
    }

    fn shut_down(&mut self) {
        ImapSession::shut_down(self);
    }

    fn account(&self) -> Option<&AccountName> {
        ImapSession::account(self)
    }
}

impl Compressed {
    fn new() -> Self {
        Compressed {
            inflater: Inflater::new(),
            deflater: Deflater::new(),
            input: Vec::new(),
            output: Output::new(PLAIN_BYTES_MAX),
            held_back: false,
        }
    }

    fn step(&mut self, machine: &mut Machine, received: &mut Vec<u8>, now: Now, out: &mut Output) -> Result<Wait> {
        loop {
            if out.is_full() {
                return Ok(Wait::Output);
            }
            let room = PLAIN_BYTES_MAX.saturating_sub(self.input.len());
            let before = self.input.len();
            let taken = self.inflater.read(received, &mut self.input, room)?;
            drop_front(received, taken);
            let inflated = self.input.len() > before;

            let mut input = self.input.as_slice();
            let wait = machine.step(now, &mut input, &mut self.output);
            let read = self.input.len() - input.len();
            drop_front(&mut self.input, read);

            // What is said is readable at once when nothing more is coming right away.
            let flush = !matches!(wait, Wait::Output);
            let plain = self.output.pending();
            if !plain.is_empty() || flush && self.held_back {
                self.deflater.write(plain, flush, out.bytes_mut())?;
                self.held_back = !flush;
                let written = plain.len();
                self.output.consume(written);
            }
            if flush {
                self.output.rest();
            }
            match wait {
                // There may be more in the inflater or in what was received.
                Wait::Input(_) if inflated && read > 0 => {}
                wait => return Ok(wait),
            }
        }
    }
}

/// Removes the first `count` octets; an empty buffer gives its memory back when it was large.
fn drop_front(buffer: &mut Vec<u8>, count: usize) {
    if count >= buffer.len() {
        buffer.clear();
        if buffer.capacity() > 4096 {
            buffer.shrink_to(0);
        }
    } else {
        buffer.drain(..count);
    }
}
