//! What all connections of a running server share.
//!
//! Invariant: a connection keeps the configuration that it began with; a reload makes a new [`Current`] for those that come.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{AccountName, Result};
use platform::Env;
use sessions::{Now, imap, lmtp, pop3};
use store::Store;
use tokio::sync::{Semaphore, watch};

use crate::auth::{LoginLimits, Logins, ThrottleLimits};
use crate::config::{Config, PlainTextLogin};
use crate::deliver::{self, Named, Routes};
use crate::metrics::{Metrics, Observing};
use crate::net::{self, ConnectionCounts, Steps};
use crate::users::Directory;

/// The shared state.
pub struct Server {
    /// The clock, the disk, randomness.
    pub env: Env,
    /// The mail.
    pub store: Arc<Store>,
    /// Who may log in.
    pub logins: Arc<Logins>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// How many connections there are.
    pub counts: Arc<ConnectionCounts>,
    /// The number of the next connection.
    pub connection_ids: AtomicU64,
    /// Sessions before login that may work at the same time (`login.hashes_at_once_max`).
    pub login_permits: Semaphore,
    /// What runs on the threads of the runtime.
    pub steps: Arc<Steps>,
    users: Arc<Directory>,
    current: Mutex<Arc<Current>>,
    stop: watch::Sender<bool>,
}

/// The part that a reload replaces.
pub struct Current {
    /// The configuration.
    pub config: Config,
    /// What IMAP sessions share.
    pub imap: Arc<imap::Context>,
    /// What POP3 sessions share.
    pub pop3: Arc<pop3::Context>,
    /// What LMTP sessions share.
    pub lmtp: Arc<lmtp::Context>,
    /// The same for those of `mailyard deliver`.
    pub deliver: Arc<lmtp::Context>,
    /// The certificate, if there is one.
    pub tls: Option<Arc<net::Tls>>,
}

/// Tells a task that the server stops, and the server that the task lives.
#[derive(Clone)]
pub struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// Ends when the server stops. Can be cancelled.
    pub async fn wait(&mut self) {
        let _ = self.0.wait_for(|stop| *stop).await;
    }

    /// Whether the server stops.
    pub fn is_now(&self) -> bool {
        *self.0.borrow()
    }
}

impl Server {
    /// A server over an open store.
    pub fn new(
        env: Env,
        store: Arc<Store>,
        users: &Arc<Directory>,
        steps: Arc<Steps>,
        config: Config,
    ) -> Result<Arc<Self>> {
        let logins = Arc::new(Logins::new(env.clone(), Arc::clone(users), login_limits(&config))?);
        let mut metrics = Metrics::new();
        metrics.watch(Arc::clone(&store));
        let metrics = Arc::new(metrics);
        let login_permits = Semaphore::new(config.login.hashes_at_once_max as usize);
        let current = Arc::new(make_current(&env, &store, users, &logins, &metrics, config)?);
        Ok(Arc::new(Server {
            env,
            store,
            logins,
            metrics,
            counts: Arc::default(),
            connection_ids: AtomicU64::new(1),
            login_permits,
            steps,
            users: Arc::clone(users),
            current: Mutex::new(current),
            stop: watch::Sender::new(false),
        }))
    }

    /// The configuration for a connection that begins.
    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a new configuration and reads the certificate again. On an error everything stays as it was.
    pub fn reload(&self, config: Config) -> Result<()> {
        let limits = login_limits(&config);
        let new = Arc::new(make_current(&self.env, &self.store, &self.users, &self.logins, &self.metrics, config)?);
        self.logins.set_limits(limits);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// The time.
    pub fn now(&self) -> Now {
        Now { monotonic: self.env.clock.monotonic(), unix_seconds: self.env.clock.now().seconds }
    }

    /// For whoever has to end when the server stops.
    pub fn stopping(&self) -> Stopping {
        Stopping(self.stop.subscribe())
    }

    /// Ends when no [`Stopping`] is left: every connection is over.
    pub async fn everybody_gone(&self) {
        self.stop.closed().await;
    }

    /// Tells everybody to stop.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

fn make_current(
    env: &Env,
    store: &Arc<Store>,
    users: &Arc<Directory>,
    logins: &Arc<Logins>,
    metrics: &Arc<Metrics>,
    config: Config,
) -> Result<Current> {
    let observing = Observing { metrics: Arc::clone(metrics), clock: Arc::clone(&env.clock) };
    let observer: Arc<dyn sessions::Observer> = Arc::new(observing);
    let administrators: Vec<AccountName> = config
        .quota
        .administrators
        .iter()
        .map(|name| AccountName::new(name).map_err(|error| error.context("quota.administrators")))
        .collect::<Result<_>>()?;
    let imap = Arc::new(imap::Context {
        store: Arc::clone(store),
        authenticator: Arc::clone(logins) as Arc<dyn sessions::Authenticator>,
        observer: Arc::clone(&observer),
        settings: imap_settings(&config, &administrators),
    });
    let pop3 = Arc::new(pop3::Context {
        store: Arc::clone(store),
        authenticator: Arc::clone(logins) as Arc<dyn sessions::Authenticator>,
        observer: Arc::clone(&observer),
        last_logins: Arc::default(),
        settings: pop3_settings(&config),
    });
    let lmtp = |recipients: Arc<dyn lmtp::Recipients>| {
        let (store, observer) = (Arc::clone(store), Arc::clone(&observer));
        Arc::new(lmtp::Context { store, recipients, observer, settings: deliver::settings(&config) })
    };
    let deliver = lmtp(Arc::new(Named::new(Arc::clone(users))));
    let lmtp = lmtp(Arc::new(Routes::new(&config.delivery, Arc::clone(users))));
    Ok(Current { imap, pop3, lmtp, deliver, tls: net::load_tls(&config.tls)?, config })
}

fn seconds(number: u32) -> Duration {
    Duration::from_secs(number.into())
}

fn login_limits(config: &Config) -> LoginLimits {
    let login = &config.login;
    LoginLimits {
        throttle: ThrottleLimits {
            failures_per_user_max: login.failures_per_user_max,
            failures_per_address_max: login.failures_per_address_max,
            wait_min: seconds(login.wait_seconds_min),
            wait_max: seconds(login.wait_seconds_max),
        },
        remembered: seconds(login.remembered_seconds),
        connections_per_user_max: config.limits.connections_per_user_max,
    }
}

fn imap_settings(config: &Config, administrators: &[AccountName]) -> imap::Settings {
    imap::Settings {
        greeting: config.server.greeting.clone(),
        plain_text_login: match config.login.plain_text {
            PlainTextLogin::SecureOnly => imap::PlainTextLogin::SecureOnly,
            PlainTextLogin::Always => imap::PlainTextLogin::Always,
        },
        administrators: administrators.to_vec(),
        compress: config.imap.compress,
        limits: imap::Limits {
            login_time_max: seconds(config.login.seconds_max),
            idle_time_max: seconds(config.imap.idle_seconds_max),
            idle_command_time_max: seconds(config.imap.idle_command_seconds_max),
            bad_commands_max: config.imap.bad_commands_max,
            bad_commands_before_login_max: config.imap.bad_commands_before_login_max,
            failed_logins_max: config.login.failures_per_connection_max,
            append_messages_max: config.imap.append_messages_max,
            input_bytes_max: config.imap.input_bytes_max as usize,
        },
        ..imap::Settings::default()
    }
}

fn pop3_settings(config: &Config) -> pop3::Settings {
    let imap::Settings { greeting, plain_text_login, limits, .. } = imap_settings(config, &[]);
    pop3::Settings {
        greeting,
        plain_text_login,
        uidl_format: config.pop3.uidl_format.clone(),
        mark_seen: config.pop3.mark_seen,
        login_delay: seconds(config.pop3.login_delay_seconds),
        keep_retrieved: config.pop3.keep_retrieved,
        limits: imap::Limits { idle_time_max: seconds(config.pop3.idle_seconds_max), ..limits },
    }
}
