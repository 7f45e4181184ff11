//! What a session knows of the connection that it stands behind, and what it tells whoever drives it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The time, handed in with every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since some fixed instant of this process; never goes back. Deadlines are counted in it.
    pub monotonic: Duration,
    /// Calendar time, seconds since 1970-01-01T00:00:00Z. Dates are counted in it.
    pub unix_seconds: i64,
}

/// Called by the store, from any thread, when [`Step::NeedInput`] may be over because an account changed. Must be quick, and must
/// only cause `step` to be called again.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// The connection behind a session.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// A number for the log, unique in the process.
    pub id: u64,
    /// The other side; `None` in tests and for Unix sockets.
    pub peer: Option<IpAddr>,
    /// Whether TLS protects it.
    pub tls: bool,
    /// Whether both ends are on this machine: then plain text is as good as TLS.
    pub loopback: bool,
    /// Whether [`Step::StartTls`] would be obeyed.
    pub starttls_available: bool,
    /// What the TLS layer knows of the channel.
    pub channel_binding: ChannelBinding,
}

impl Connection {
    /// Whether a password may cross it in the clear (RFC 9051 §11.1).
    pub fn is_secure(&self) -> bool {
        self.tls || self.loopback
    }
}

/// Channel binding data (RFC 5056) of a TLS connection.
#[derive(Clone, Debug, Default)]
pub struct ChannelBinding {
    /// `tls-exporter` (RFC 9266): 32 octets exported under the label `EXPORTER-Channel-Binding` with no context.
    pub tls_exporter: Option<[u8; 32]>,
    /// `tls-server-end-point` (RFC 5929 §4): the hash of the server's certificate.
    pub tls_server_end_point: Option<Vec<u8>>,
}

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send what is in the output, then step again: there is more to do.
    Output,
    /// Send what is in the output; step again after `receive` took something, after the [`Waker`] was called, or at the deadline
    /// (in [`Now::monotonic`]), whichever is first. `None`: no deadline.
    NeedInput {
        /// When to step again at the latest.
        deadline: Option<Duration>,
    },
    /// Send what is in the output, then negotiate TLS as the server, then call `tls_started`. Bytes that were received in the clear
    /// and not yet taken must be thrown away (RFC 3207 §6: whoever injected them must not be heard after the handshake).
    StartTls,
    /// Send what is in the output and close the connection.
    Close,
}

/// A session of any protocol, as its driver sees it; see [`crate::imap::ImapSession`] for the order of calls.
pub trait ProtocolSession: Send {
    /// Takes bytes from the other side; returns how many. Fewer than given means that there is no room until the next `step`.
    fn receive(&mut self, bytes: &[u8]) -> usize;

    /// Goes on until the output is full or there is nothing to do. May block on a disk or on a password hash.
    fn step(&mut self, now: Now, out: &mut crate::Output) -> Step;

    /// The handshake that [`Step::StartTls`] asked for is done.
    fn tls_started(&mut self, channel_binding: ChannelBinding);

    /// The server stops: the next `step` says so, after the answer that is being sent, and asks to close.
    fn shut_down(&mut self);

    /// Who is logged in.
    fn account(&self) -> Option<&model::AccountName>;

    /// What the next step may take.
    fn work(&self) -> Work {
        match self.account() {
            None => Work::Login,
            Some(_) => Work::Ordinary,
        }
    }
}

/// What a step may take, so that a driver can choose where and when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A password hash: much time and memory.
    Login,
    /// At most a disk.
    Ordinary,
    /// Several accounts are changed: their logs are better written side by side than one after another by the step itself.
    SeveralAccounts,
}

/// Is told what happens, for logs and metrics. Every method has a default that does nothing.
pub trait Observer: Send + Sync {
    /// A command was completed: its name as the standard writes it, and whether the answer was OK.
    fn command(&self, _connection: &Connection, _name: &'static str, _ok: bool) {}

    /// An error that the client was told little of: damage, disks, refusals. `doing` is the command's name.
    fn error(&self, _connection: &Connection, _doing: &'static str, _error: &model::Error) {}

    /// A message of so many octets was delivered to an account, durably.
    fn delivery(&self, _connection: &Connection, _account: &model::AccountName, _octets: u64) {}

    /// Somebody logged in.
    fn login(&self, _connection: &Connection, _account: &model::AccountName, _mechanism: &'static str) {}
}

/// An observer that looks away.
impl Observer for () {}
