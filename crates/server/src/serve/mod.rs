//! `mailyard serve`: from an open store to listening sockets, and back.
//!
//! Invariant: whatever ends the server ends it in the same order: no new connections, BYE to the open ones, a grace time for commands
//! under way, then the store closes.

mod maintenance;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{Error, ErrorKind, Result};
use platform::Env;
use store::format::mbox::lock::LockPolicy;
use store::{Aside, Store};
use store_sql::{CellCluster, Cells};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub use self::maintenance::Maintenance;
use crate::config::{self, Config};
use crate::net::{self, Bound, Listeners, Protocol};
use crate::server::Server;
use crate::users::Directory;
use crate::{admin, control, deliver};

/// What a server is started with.
pub struct Setup {
    /// The configuration; `server.data` is set.
    pub config: Config,
    /// The file that SIGHUP reads again.
    pub config_file: Option<PathBuf>,
    /// What the command line said to listen on, instead of the configuration.
    pub listen: Listeners,
}

/// Which addresses a server listens on, once it does.
pub struct Ready<'a> {
    /// The sockets.
    pub bound: &'a [Bound],
}

impl Ready<'_> {
    /// The addresses of a protocol, separated by commas.
    pub fn addresses(&self, protocol: Protocol) -> String {
        let of_protocol = self.bound.iter().filter(|bound| bound.protocol == protocol);
        of_protocol.map(|bound| bound.address.to_string()).collect::<Vec<_>>().join(",")
    }
}

/// Opens the store and the users, and serves until a signal ends it. `prepare` runs before anybody is let in, `ready` when everybody
/// is.
pub fn run(
    setup: Setup,
    prepare: impl FnOnce(&admin::Context) -> Result<()>,
    ready: impl FnOnce(&Ready<'_>) -> Result<()>,
) -> Result<()> {
    raise_descriptor_limit();
    let env = Env::real();
    let data = setup.config.server.data.clone();
    let steps = Arc::new(net::Steps::new(net::workers()));
    let for_long_work = Arc::clone(&steps);
    let aside = Aside::new(move |work| for_long_work.aside(work));
    let store = open_store_with(&env, &setup.config, aside).map_err(|error| {
        let hint = if error.kind() == ErrorKind::InUse { " (is a server running?)" } else { "" };
        error.context(format!("{}{hint}", data.display()))
    })?;
    store.hand_over_to(net::start_writers(&steps)?);
    let users = Arc::new(Directory::open(env.clone(), &data)?);
    let new_mail = admin::NewMailDefaults::of(&setup.config);
    let context = Arc::new(admin::Context { store: Arc::clone(&store), users: Arc::clone(&users), new_mail });
    prepare(&context)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(net::workers()).enable_all().build()?;
    let server = Server::new(env, store, &users, steps, setup.config.clone())?;
    let result = runtime.block_on(serve(&server, setup, context, ready));
    // Whoever is still at work gets no more time; a step that holds a disk is let go on until the process ends.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// Opens the store that is configured, with the database if there is one. [`ErrorKind::InUse`] when another process has it.
pub fn open_store(env: &Env, config: &Config) -> Result<Arc<Store>> {
    open_store_with(env, config, Aside::default())
}

/// Like [`open_store`], with a place for work that takes long.
fn open_store_with(env: &Env, config: &Config, aside: Aside) -> Result<Arc<Store>> {
    let cluster = match databases(env, config)? {
        Some(cells) if config.sql.cells.is_empty() => Some(Arc::clone(cells.first()?) as Arc<dyn store::Cluster>),
        cells => cells.map(|cells| Arc::new(CellCluster(cells)) as Arc<dyn store::Cluster>),
    };
    let mut options = store_options(config);
    options.mbox.aside = aside;
    Store::open_with(env.clone(), config.server.data.clone(), options, cluster)
}

/// The databases that are configured, if one is. They are not asked anything yet.
pub fn databases(env: &Env, config: &Config) -> Result<Option<Arc<Cells>>> {
    let sql = &config.sql;
    if sql.urls.is_empty() {
        return Ok(None);
    }
    let settings = |urls: Vec<String>| store_sql::Settings {
        urls,
        connections_max: sql.connections_max as usize,
        timeout: Duration::from_secs(sql.timeout_seconds.into()),
        retry: Duration::from_secs(sql.retry_seconds.into()),
        poll: Duration::from_millis(sql.poll_ms.into()),
        lease: Duration::from_secs(sql.lease_seconds.into()),
        tls: tls_to_databases(sql),
    };
    let mut others: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cell in &sql.cells {
        let invalid = || Error::new(ErrorKind::Invalid, "each of sql.cells has to be NAME=mysql://…");
        let (name, url) = cell.split_once('=').filter(|(name, _)| !name.contains(':')).ok_or_else(invalid)?;
        others.entry(name.trim().to_owned()).or_default().push(url.trim().to_owned());
    }
    let others = others.into_iter().map(|(name, urls)| (name, settings(urls))).collect();
    Cells::new(env.clone(), settings(sql.urls.clone()), others, &sql.new_accounts_cell).map(Some)
}

fn tls_to_databases(sql: &config::SqlSection) -> Option<store_sql::Tls> {
    let is_named = |path: &PathBuf| !path.as_os_str().is_empty();
    let identity = Some((sql.tls_certificate_file.clone(), sql.tls_key_file.clone()));
    let identity = identity.filter(|(certificate, key)| is_named(certificate) && is_named(key));
    is_named(&sql.tls_ca_file).then(|| store_sql::Tls { ca_file: sql.tls_ca_file.clone(), identity })
}

/// The store as it is configured.
fn store_options(config: &Config) -> store::Options {
    let mut log = store::Options::default().log;
    log.retention_seconds = u64::from(config.store.expunged_kept_days) * 86_400;
    log.body_level = i32::try_from(config.store.compression_level).unwrap_or(i32::MAX);
    store::Options {
        message_bytes_max: config.store.message_bytes_max,
        account_idle_seconds: config.store.account_idle_seconds,
        log,
        quota: store::QuotaLimits {
            storage_kib: limit(config.quota.storage_bytes_max).map(|octets| octets.div_ceil(store::STORAGE_UNIT_BYTES)),
            messages: limit(config.quota.messages_max),
        },
        mbox: mbox_options(&config.mbox),
        maildir: store::MaildirOptions {
            idle_seconds: config.maildir.idle_seconds.into(),
            uid_lists: match config.maildir.uid_lists {
                config::UidLists::Auto => store::UidLists::Auto,
                config::UidLists::Always => store::UidLists::Always,
                config::UidLists::Never => store::UidLists::Never,
            },
        },
        ..store::Options::default()
    }
}

/// 0 stands for no limit.
fn limit(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

fn mbox_options(config: &config::MboxSection) -> store::MboxOptions {
    let moments = config.write_back;
    store::MboxOptions {
        locks: LockPolicy {
            read: config.read_locks.0.clone(),
            write: config.write_locks.0.clone(),
            wait_max: Duration::from_secs(config.lock_seconds_max.into()),
            dotlock_stale_after: Duration::from_secs(config.dotlock_stale_seconds.into()),
        },
        write_back: store::WriteBack {
            check: moments.check,
            close: moments.close,
            logout: moments.logout,
            idle: moments.idle,
        },
        idle_seconds: config.idle_seconds.into(),
        padding_bytes: config.padding_bytes as usize,
        jobs: config.scan_jobs as usize,
        ..store::MboxOptions::default()
    }
}

async fn serve(
    server: &Arc<Server>,
    setup: Setup,
    context: Arc<admin::Context>,
    ready: impl FnOnce(&Ready<'_>) -> Result<()>,
) -> Result<()> {
    // Before anybody can send one.
    let mut signals = Signals::new()?;
    let data = &setup.config.server.data;
    let bound = net::bind(&listeners(&setup)?).await?;
    if server.current().tls.is_none()
        && let Some(bound) = bound.iter().find(|bound| bound.protocol.is_tls())
    {
        let text = format!("{} needs tls.certificate_file and tls.key_file", bound.protocol);
        return Err(Error::new(ErrorKind::Invalid, text));
    }
    let socket =
        control::bind(data).map_err(|error| Error::from(error).context(control::socket_path(data).display()))?;
    {
        let ready_line = Ready { bound: &bound };
        let [imap, imaps, pop3, pop3s, lmtp, metrics] = Protocol::ALL.map(|protocol| ready_line.addresses(protocol));
        ready(&ready_line)?;
        tracing::info!(imap, imaps, pop3, pop3s, lmtp, metrics, data = %data.display(), pid = std::process::id(), "ready");
    }
    let mut sockets = deliver::bind(&setup.config)?;
    let maintenance = Maintenance::start(Arc::clone(&server.store))?;
    tokio::spawn(control::serve_control(socket, context, server.stopping()));
    for socket in &mut sockets {
        drop(tokio::spawn(net::serve_socket(Arc::clone(server), socket.listener()?, socket.door())));
    }
    for bound in bound {
        match bound.protocol {
            Protocol::Imap | Protocol::Imaps | Protocol::Pop3 | Protocol::Pop3s | Protocol::Lmtp => {
                drop(tokio::spawn(net::serve_mail(Arc::clone(server), bound)));
            }
            Protocol::Metrics => {
                drop(tokio::spawn(net::serve_metrics(bound.listener, Arc::clone(&server.metrics))));
            }
        }
    }
    while signals.next().await == Wish::Reload {
        reload(server, &setup);
    }
    stop(server, &mut signals).await;
    drop(sockets);
    let _ = std::fs::remove_file(control::socket_path(data));
    maintenance.stop();
    tracing::info!("stopped");
    Ok(())
}

/// What the command line says, or what the configuration says.
fn listeners(setup: &Setup) -> Result<Listeners> {
    if !setup.listen.is_empty() {
        return Ok(setup.listen.clone());
    }
    let listen = &setup.config.listen;
    let all = [
        (Protocol::Imap, &listen.imap),
        (Protocol::Imaps, &listen.imaps),
        (Protocol::Pop3, &listen.pop3),
        (Protocol::Pop3s, &listen.pop3s),
        (Protocol::Lmtp, &listen.lmtp),
        (Protocol::Metrics, &listen.metrics),
    ];
    let listeners: Listeners =
        all.into_iter().flat_map(|(protocol, addresses)| addresses.iter().map(move |a| (protocol, *a))).collect();
    if listeners.is_empty() && listen.lmtp_socket.as_os_str().is_empty() {
        return Err(Error::new(
            ErrorKind::Invalid,
            "nothing to listen on: give --listen imap=127.0.0.1:1143, or configure the section [listen]",
        ));
    }
    Ok(listeners)
}

/// Reads the configuration and the certificate again; on an error the old ones stay.
fn reload(server: &Server, setup: &Setup) {
    let read = || -> Result<Config> {
        let mut config = match &setup.config_file {
            Some(file) => config::load(file).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?,
            None => setup.config.clone(),
        };
        config.server.data.clone_from(&setup.config.server.data);
        Ok(config)
    };
    match read().and_then(|config| server.reload(config)) {
        Ok(()) => tracing::info!("reloaded"),
        Err(error) => tracing::error!(%error, "reload failed; the old configuration stays"),
    }
}

async fn stop(server: &Server, signals: &mut Signals) {
    let grace = Duration::from_secs(server.current().config.server.shutdown_grace_seconds.into());
    tracing::info!(grace_seconds = grace.as_secs(), "stopping");
    server.stop();
    tokio::select! {
        () = server.everybody_gone() => {}
        () = tokio::time::sleep(grace) => tracing::warn!("the grace time is over; connections are cut"),
        () = signals.stop_again() => tracing::warn!("a second signal; connections are cut"),
    }
}

/// What a signal asks for.
#[derive(PartialEq, Eq)]
enum Wish {
    Reload,
    Stop,
}

struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        Ok(Signals {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.hangup.recv() => Wish::Reload,
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.interrupt.recv() => Wish::Stop,
        }
    }

    async fn stop_again(&mut self) {
        while self.next().await != Wish::Stop {}
    }
}

/// Each connection is a descriptor: as many as the administrator allows the process.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_store() {
        let (ours, theirs) = (store_options(&Config::default()), store::Options::default());
        assert_eq!(ours.message_bytes_max, theirs.message_bytes_max);
        assert_eq!(ours.account_idle_seconds, theirs.account_idle_seconds);
        assert_eq!(ours.log, theirs.log);
        assert_eq!(ours.quota, theirs.quota);
        assert_eq!(format!("{:?}", ours.mbox), format!("{:?}", theirs.mbox));
        assert_eq!(format!("{:?}", ours.maildir), format!("{:?}", theirs.maildir));
    }
}
