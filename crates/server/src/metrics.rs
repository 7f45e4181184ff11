//! What the server counts, in Prometheus' words: `mailyard_…`.
//!
//! The list of metrics is in `docs/administration.md`. Nothing here names a user, so that the endpoint may be read by a monitor.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use sessions::{Connection, Observer};
use store::Store;

/// Upper ends of the buckets of command times, seconds: a cached answer to a sync of a slow disk and beyond.
const SECONDS: [f64; 11] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Labels of a listener's connections.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Listener {
    /// `imap` or `imaps`.
    pub listener: &'static str,
}

/// Labels of a command.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Command {
    /// As the standard writes it.
    pub command: &'static str,
    /// `ok` or `failed`.
    pub result: &'static str,
}

/// Labels of a login.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Login {
    /// `ok` or `failed`.
    pub result: &'static str,
}

/// The metrics; counting is lock-free or nearly so.
pub struct Metrics {
    registry: Registry,
    /// Connections that are open.
    pub connections_open: Family<Listener, Gauge>,
    /// Connections that were taken.
    pub connections: Family<Listener, Counter>,
    /// Connections that were turned away because of a limit.
    pub connections_refused: Counter,
    /// TLS handshakes that failed.
    pub tls_failures: Counter,
    /// Logins.
    pub logins: Family<Login, Counter>,
    /// Commands.
    pub commands: Family<Command, Counter>,
    /// How long commands took, from their last octet to the last octet of the answer handed to the network.
    pub command_seconds: Histogram,
    /// Messages that were appended.
    pub appends: Counter,
    /// Copies of messages that were delivered.
    pub deliveries: Counter,
    /// Octets received.
    pub bytes_in: Counter<u64, AtomicU64>,
    /// Octets sent.
    pub bytes_out: Counter<u64, AtomicU64>,
    /// Errors of the store that clients were told little of.
    pub errors: Counter,
}

impl Metrics {
    /// All zero.
    pub fn new() -> Self {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("mailyard"),
            connections_open: Family::default(),
            connections: Family::default(),
            connections_refused: Counter::default(),
            tls_failures: Counter::default(),
            logins: Family::default(),
            commands: Family::default(),
            command_seconds: Histogram::new(SECONDS),
            appends: Counter::default(),
            deliveries: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            errors: Counter::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("connections_open", "Connections that are open", metrics.connections_open.clone());
        registry.register("connections", "Connections that were taken", metrics.connections.clone());
        registry.register(
            "connections_refused",
            "Connections that were turned away because of a limit",
            metrics.connections_refused.clone(),
        );
        registry.register("tls_failures", "TLS handshakes that failed", metrics.tls_failures.clone());
        registry.register("logins", "Logins by result", metrics.logins.clone());
        registry.register("commands", "Commands by name and result", metrics.commands.clone());
        registry.register(
            "command_seconds",
            "Time from a command's arrival to its completion",
            metrics.command_seconds.clone(),
        );
        registry.register("appends", "APPEND commands that were completed", metrics.appends.clone());
        registry.register("deliveries", "Copies of messages that were delivered", metrics.deliveries.clone());
        registry.register("received_bytes", "Octets received", metrics.bytes_in.clone());
        registry.register("sent_bytes", "Octets sent", metrics.bytes_out.clone());
        registry.register("errors", "Errors that clients were told little of; see the log", metrics.errors.clone());
        metrics
    }

    /// Shows what `store` counts itself.
    pub fn watch(&mut self, store: Arc<Store>) {
        self.registry.register_collector(Box::new(Watched(store)));
    }

    /// Everything as OpenMetrics text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).expect("a String takes everything");
        text
    }
}

/// A store whose counts are asked for at each scrape.
struct Watched(Arc<Store>);

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watched")
    }
}

impl Collector for Watched {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let store::WriteCounts { syncs, commits } = self.0.writes();
        for (name, help, value) in [
            ("log_syncs", "Batches of commits that were written to a log and synced.", syncs),
            ("log_commits", "Commits; those that came while a sync ran shared the next one.", commits),
        ] {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}

thread_local! {
    /// When the command that the running step works on arrived, and what time it is now: [`platform::Clock::monotonic`].
    static COMMAND_BEGAN: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Runs a step of a session, so that [`Observer::command`] can tell how long the command took. `began` is when the command arrived;
/// a command that is completed within the step lets the next one begin then.
pub fn timed_step<T>(began: &mut Duration, step: impl FnOnce() -> T) -> T {
    COMMAND_BEGAN.set(Some(*began));
    let result = step();
    *began = COMMAND_BEGAN.take().unwrap_or(*began);
    result
}

/// The observer of all sessions: counts, and writes the log.
pub struct Observing {
    /// Where it counts.
    pub metrics: Arc<Metrics>,
    /// Where the time comes from.
    pub clock: Arc<dyn platform::Clock>,
}

impl Observer for Observing {
    fn command(&self, connection: &Connection, name: &'static str, ok: bool) {
        let result = if ok { "ok" } else { "failed" };
        self.metrics.commands.get_or_create(&Command { command: name, result }).inc();
        if ok && name == "APPEND" {
            self.metrics.appends.inc();
        }
        if matches!(name, "LOGIN" | "AUTHENTICATE") && !ok {
            self.metrics.logins.get_or_create(&Login { result }).inc();
            tracing::info!(connection = connection.id, peer = peer(connection), command = name, "login failed");
        }
        let now = self.clock.monotonic();
        if let Some(began) = COMMAND_BEGAN.get() {
            // IDLE lasts as long as its client likes.
            if name != "IDLE" {
                self.metrics.command_seconds.observe(now.saturating_sub(began).as_secs_f64());
            }
            COMMAND_BEGAN.set(Some(now));
        }
        tracing::debug!(connection = connection.id, command = name, ok, "command");
    }

    fn error(&self, connection: &Connection, doing: &'static str, error: &model::Error) {
        use model::ErrorKind::{Corrupt, DiskFull, Io, ReadOnlyAfterFailure};
        if matches!(error.kind(), Corrupt | DiskFull | Io | ReadOnlyAfterFailure) {
            self.metrics.errors.inc();
            tracing::error!(connection = connection.id, command = doing, kind = ?error.kind(), %error, "command failed");
        } else {
            tracing::debug!(connection = connection.id, command = doing, kind = ?error.kind(), %error, "command refused");
        }
    }

    fn delivery(&self, connection: &Connection, account: &model::AccountName, octets: u64) {
        self.metrics.deliveries.inc();
        tracing::info!(connection = connection.id, user = %account, octets, "delivered");
    }

    fn login(&self, connection: &Connection, account: &model::AccountName, mechanism: &'static str) {
        self.metrics.logins.get_or_create(&Login { result: "ok" }).inc();
        tracing::info!(
            connection = connection.id,
            peer = peer(connection),
            user = %account,
            mechanism,
            tls = connection.tls,
            "login"
        );
    }
}

fn peer(connection: &Connection) -> String {
    connection.peer.map(|address| address.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_is_counted_and_shown() {
        let metrics = Arc::new(Metrics::new());
        let observing = Observing { metrics: metrics.clone(), clock: platform::Env::real().clock };
        let connection = Connection::default();
        let mut began = Duration::ZERO;
        timed_step(&mut began, || {
            observing.command(&connection, "LOGIN", false);
            observing.command(&connection, "APPEND", true);
            observing.command(&connection, "IDLE", true);
        });
        assert!(began > Duration::ZERO, "the next command begins where the last one ended");
        observing.delivery(&connection, &model::AccountName::new("ann").unwrap(), 7);
        observing.login(&connection, &model::AccountName::new("ann").unwrap(), "PLAIN");
        let text = metrics.text();
        for line in [
            "mailyard_commands_total{command=\"LOGIN\",result=\"failed\"} 1",
            "mailyard_logins_total{result=\"failed\"} 1",
            "mailyard_logins_total{result=\"ok\"} 1",
            "mailyard_appends_total 1",
            "mailyard_deliveries_total 1",
            "mailyard_command_seconds_count 2",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
        assert!(!text.contains("ann"), "no user is named");
    }
}
