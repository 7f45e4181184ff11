//! One mail connection: drives a session over a socket.
//!
//! Invariants: a connection that waits holds no buffer in the clear and a small one over TLS; a session is stepped only when its
//! output was sent, so that a slow reader holds one full output and nothing of the store; what arrives while the session has no room
//! stays in the kernel.

use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sessions::imap::ImapSession;
use sessions::lmtp::LmtpSession;
use sessions::pop3::Pop3Session;
use sessions::{Connection, Output, ProtocolSession, Step, Work};
use tokio::net::{TcpStream, UnixListener};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::counts::Refused;
use super::listener::{Bound, Protocol};
use super::stream::Stream;
use super::tls::Tls;
use crate::metrics::{self, timed_step};
use crate::server::{Current, Server};

/// Capacity that the input buffer of a waiting connection may keep, octets.
const IDLE_CAPACITY: usize = 4096;

/// After a step that took so long the others get their turn.
const LONG_STEP: Duration = Duration::from_micros(500);

/// Takes connections until the server stops.
pub async fn serve_mail(server: Arc<Server>, bound: Bound) {
    let mut stopping = server.stopping();
    loop {
        let accepted = tokio::select! {
            accepted = bound.listener.accept() => accepted,
            () = stopping.wait() => return,
        };
        match accepted {
            Ok((tcp, peer)) => take(&server, bound.protocol.into(), tcp, peer),
            Err(error) => after_accept_error(&error).await,
        }
    }
}

/// What stands behind a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// A protocol on a port.
    Port(Protocol),
    /// LMTP on the socket that is configured.
    Lmtp,
    /// LMTP on the socket of `mailyard deliver`.
    Deliver,
}

impl From<Protocol> for Door {
    fn from(protocol: Protocol) -> Self {
        Door::Port(protocol)
    }
}

impl Door {
    fn name(self) -> &'static str {
        match self {
            Door::Port(protocol) => protocol.name(),
            Door::Lmtp => "lmtp-socket",
            Door::Deliver => "deliver-socket",
        }
    }

    fn is_tls(self) -> bool {
        matches!(self, Door::Port(protocol) if protocol.is_tls())
    }
}

/// Takes connections of a Unix socket until the server stops.
pub async fn serve_socket(server: Arc<Server>, listener: UnixListener, door: Door) {
    let mut stopping = server.stopping();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopping.wait() => return,
        };
        match accepted {
            Ok((unix, _)) => take_stream(&server, door, Stream::Unix(unix), None),
            Err(error) => after_accept_error(&error).await,
        }
    }
}

/// An error of accept is the system's (no more descriptors): taking a breath lets connections end meanwhile.
pub async fn after_accept_error(error: &io::Error) {
    const BREATH: Duration = Duration::from_millis(100);
    tracing::error!(%error, "a connection could not be taken");
    tokio::time::sleep(BREATH).await;
}

fn take(server: &Arc<Server>, door: Door, tcp: TcpStream, peer: SocketAddr) {
    let peer = peer.ip().to_canonical();
    if door == Door::Port(Protocol::Lmtp) && !server.current().config.delivery.networks.contains(peer) {
        server.metrics.connections_refused.inc();
        tracing::warn!(%peer, limit = "delivery.networks", "connection refused");
        // RFC 5321 §3.1.
        let _ = tcp.try_write(b"554 5.7.1 This network is not trusted\r\n");
        return;
    }
    if tcp.set_nodelay(true).is_ok() {
        take_stream(server, door, Stream::Plain(tcp), Some(peer));
    }
}

fn take_stream(server: &Arc<Server>, door: Door, stream: Stream, peer: Option<IpAddr>) {
    let current = server.current();
    let limits = &current.config.limits;
    let counted = server.counts.admit(
        peer.unwrap_or(Ipv4Addr::LOCALHOST.into()),
        limits.connections_max,
        limits.connections_per_address_max,
    );
    match counted {
        Ok(counted) => {
            let server = Arc::clone(server);
            tokio::spawn(async move {
                let id = server.connection_ids.fetch_add(1, Ordering::Relaxed);
                let open = Open::new(&server, door, id);
                tracing::debug!(connection = id, ?peer, listener = door.name(), "connected");
                let result = converse(&server, current, door, stream, peer, id).await;
                drop((open, counted));
                match result {
                    Ok(()) => tracing::debug!(connection = id, "closed"),
                    Err(error) => tracing::debug!(connection = id, %error, "connection lost"),
                }
            });
        }
        Err(Refused(limit)) => {
            server.metrics.connections_refused.inc();
            tracing::warn!(?peer, limit, "connection refused");
            // RFC 9051 §7.1.5: BYE as a greeting; RFC 3206 §4. The socket's buffer is empty, so this never waits.
            let words: &[u8] = match door {
                Door::Port(Protocol::Imap) => b"* BYE [UNAVAILABLE] too many connections\r\n",
                Door::Port(Protocol::Pop3) => b"-ERR [SYS/TEMP] too many connections\r\n",
                Door::Port(Protocol::Lmtp) | Door::Lmtp | Door::Deliver => b"421 4.3.2 too many connections\r\n",
                Door::Port(Protocol::Imaps | Protocol::Pop3s | Protocol::Metrics) => b"",
            };
            stream.say_at_once(words);
        }
    }
}

/// A connection that is open: what was counted in is counted out, however it ends.
struct Open<'a> {
    server: &'a Server,
    listener: metrics::Listener,
    id: u64,
}

impl<'a> Open<'a> {
    fn new(server: &'a Server, door: Door, id: u64) -> Self {
        let listener = metrics::Listener { listener: door.name() };
        server.metrics.connections.get_or_create(&listener).inc();
        server.metrics.connections_open.get_or_create(&listener).inc();
        Open { server, listener, id }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.server.logins.closed(self.id);
        self.server.metrics.connections_open.get_or_create(&self.listener).dec();
    }
}

async fn converse(
    server: &Arc<Server>,
    current: Arc<Current>,
    door: Door,
    mut stream: Stream,
    peer: Option<IpAddr>,
    id: u64,
) -> io::Result<()> {
    let loopback = peer.is_none_or(|peer| peer.is_loopback());
    let mut connection = Connection { id, peer, tls: false, loopback, ..Connection::default() };
    match &current.tls {
        Some(tls) if door.is_tls() => {
            (stream, connection.channel_binding) = handshake(server, &current, stream, tls).await?;
            connection.tls = true;
        }
        None if door.is_tls() => return Err(io::Error::other("no certificate is configured")),
        tls => connection.starttls_available = tls.is_some() && matches!(door, Door::Port(_)),
    }
    let wake = Arc::new(Notify::new());
    let waker = Arc::clone(&wake);
    let output_bytes_max = usize::try_from(current.config.limits.output_bytes_max).unwrap_or(usize::MAX);
    let (waker, now): (sessions::Waker, _) = (Arc::new(move || waker.notify_one()), server.now());
    let session: Box<dyn ProtocolSession> = match door {
        Door::Port(Protocol::Lmtp) | Door::Lmtp => {
            Box::new(LmtpSession::new(Arc::clone(&current.lmtp), connection, waker, now))
        }
        Door::Deliver => Box::new(LmtpSession::new(Arc::clone(&current.deliver), connection, waker, now)),
        Door::Port(Protocol::Pop3 | Protocol::Pop3s) => {
            Box::new(Pop3Session::new(Arc::clone(&current.pop3), connection, waker, now))
        }
        Door::Port(Protocol::Imap | Protocol::Imaps | Protocol::Metrics) => {
            Box::new(ImapSession::new(Arc::clone(&current.imap), connection, waker, now))
        }
    };
    let driver = Driver {
        server,
        current,
        session,
        input: Input::default(),
        output: Output::new(output_bytes_max),
        wake,
        began: server.now().monotonic,
    };
    driver.run(stream).await
}

async fn handshake(
    server: &Server,
    current: &Current,
    stream: Stream,
    tls: &Tls,
) -> io::Result<(Stream, sessions::ChannelBinding)> {
    let time = Duration::from_secs(current.config.tls.handshake_seconds.into());
    let result = timeout(time, stream.start_tls(tls)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    result.inspect_err(|_| {
        server.metrics.tls_failures.inc();
    })
}

/// Octets that arrived and that the session has not taken yet.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    taken: usize,
}

impl Input {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    fn take(&mut self, octets: usize) {
        self.taken = self.taken.saturating_add(octets).min(self.bytes.len());
        if self.taken == self.bytes.len() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.taken = 0;
        if self.bytes.capacity() > IDLE_CAPACITY {
            self.bytes = Vec::new();
        }
    }
}

struct Driver<'a> {
    server: &'a Arc<Server>,
    current: Arc<Current>,
    session: Box<dyn ProtocolSession>,
    input: Input,
    output: Output,
    wake: Arc<Notify>,
    /// When the command that is being worked on arrived.
    began: Duration,
}

impl Driver<'_> {
    async fn run(mut self, mut stream: Stream) -> io::Result<()> {
        let mut stopping = self.server.stopping();
        let mut told_to_stop = false;
        loop {
            self.feed();
            let step = self.step().await;
            let is_silent = self.output.is_empty();
            self.send(&mut stream).await?;
            match step {
                // A long search writes nothing for a while, and nobody may be left to read what it finds. That the other side only
                // sends no more is no reason to stop: it may still read.
                Step::Output if is_silent => stream.check()?,
                Step::Output => {}
                // It had no room for everything before the step, and has now.
                Step::NeedInput { .. } if self.feed() > 0 => {}
                Step::NeedInput { deadline } => {
                    self.output.rest();
                    tokio::select! {
                        // A session that takes nothing (it keeps an answer back) is not given more.
                        read = stream.read(&mut self.input.bytes), if self.input.rest().is_empty() => {
                            let octets = read?;
                            if octets == 0 {
                                return Ok(());
                            }
                            self.server.metrics.bytes_in.inc_by(octets as u64);
                            self.began = self.server.now().monotonic;
                        }
                        () = self.wake.notified() => {}
                        () = at(self.server, deadline) => {}
                        () = stopping.wait(), if !told_to_stop => {
                            told_to_stop = true;
                            self.session.shut_down();
                        }
                    }
                }
                Step::StartTls => {
                    // RFC 3207 §6: what was sent in the clear after STARTTLS is not heard.
                    self.input.clear();
                    let tls =
                        self.current.tls.clone().ok_or_else(|| io::Error::other("no certificate is configured"))?;
                    let (encrypted, binding) = handshake(self.server, &self.current, stream, &tls).await?;
                    stream = encrypted;
                    self.session.tls_started(binding);
                }
                Step::Close => {
                    let time = Duration::from_secs(self.current.config.limits.write_seconds_max.into());
                    return timeout(time, stream.shut_down()).await?;
                }
            }
            if !told_to_stop && stopping.is_now() {
                told_to_stop = true;
                self.session.shut_down();
            }
        }
    }

    /// Gives the session what it has room for; how many octets.
    fn feed(&mut self) -> usize {
        let took = self.session.receive(self.input.rest());
        self.input.take(took);
        took
    }

    /// One step of the session, on this thread; it may read from the disk.
    ///
    /// Before login it waits for a permit: a password hash is much work, and a crowd that logs in must neither use all threads nor all
    /// memory. The runtime is told of it, so that it is in nobody's way.
    async fn step(&mut self) -> Step {
        let work = self.session.work();
        let permit = match work {
            Work::Login => self.server.login_permits.acquire().await.ok(),
            Work::Ordinary | Work::SeveralAccounts => None,
        };
        let now = self.server.now();
        let Driver { session, output, began, server, .. } = self;
        let run = || timed_step(began, || session.step(now, output));
        let step = match permit {
            // The permits bound the threads that this makes.
            Some(_permit) => tokio::task::block_in_place(run),
            None if work == Work::SeveralAccounts => server.steps.run_for_several(run).await,
            None => server.steps.run(run).await,
        };
        if self.server.now().monotonic.saturating_sub(now.monotonic) >= LONG_STEP {
            // Whom the step woke may be queued behind this task.
            tokio::task::yield_now().await;
        }
        step
    }

    async fn send(&mut self, stream: &mut Stream) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let time = Duration::from_secs(self.current.config.limits.write_seconds_max.into());
        while !self.output.is_empty() {
            let sent = timeout(time, stream.write(self.output.pending())).await??;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.output.consume(sent);
            self.server.metrics.bytes_out.inc_by(sent as u64);
        }
        timeout(time, stream.flush()).await?
    }
}

/// Waits until `deadline`, in the time of [`sessions::Now::monotonic`]; without one for ever.
async fn at(server: &Server, deadline: Option<Duration>) {
    match deadline {
        Some(deadline) => {
            let left = deadline.saturating_sub(server.now().monotonic);
            tokio::time::sleep_until(Instant::now() + left).await;
        }
        None => pending().await,
    }
}
