//! Hints over NATS: a node that has changed an account, or wants it, says so, and the others look at once instead of with their next poll.
//!
//! A hint is nothing but a reason to look: the database is the truth, and one that is lost costs the poll interval. Each account has a
//! subject of its own, so a node hears only of accounts that are open on it. The client connects again by itself; whoever listens looks
//! then, for what was said meanwhile.

use std::fmt;
use std::sync::Arc;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use futures_util::{FutureExt as _, StreamExt as _};
use model::{Error, ErrorKind, Result};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::runtime::Runtime;

/// Before the account's id, in hexadecimal.
const SUBJECT: &str = "mailyard.account";
/// Hints of one account that wait to be heard. More say nothing new.
const WAITING_MAX: usize = 64;

/// A connection to a NATS server, or to several that are one cluster.
pub struct Hints {
    client: Client,
    /// How often it was connected.
    connected: Arc<watch::Sender<u64>>,
    runtime: Runtime,
}

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hints")
    }
}

/// Hints of an account are heard until this is dropped.
#[derive(Debug)]
pub(crate) struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn subject(account: u64) -> String {
    format!("{SUBJECT}.{account:016x}")
}

impl Hints {
    /// Connects in the background, and again whenever the connection is lost. `urls`: `nats://USER:PASSWORD@HOST:4222`, or with `tls`; all
    /// servers know the same user. [`ErrorKind::Invalid`]: an address that cannot be one.
    pub fn connect(urls: &[String]) -> Result<Arc<Hints>> {
        let invalid = |error: std::io::Error| {
            Error::new(ErrorKind::Invalid, format!("the address of a NATS server is none: {error}"))
        };
        let servers =
            urls.iter().map(|url| url.parse::<ServerAddr>()).collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        let connected = Arc::new(watch::Sender::new(0));
        let mut options = ConnectOptions::new()
            .name("mailyard")
            .retry_on_initial_connect()
            .subscription_capacity(WAITING_MAX)
            .event_callback({
                let connected = Arc::clone(&connected);
                move |event| {
                    note(&event, &connected);
                    std::future::ready(())
                }
            });
        if let Some((user, password)) = servers.iter().find_map(|server| Some((server.username()?, server.password()?)))
        {
            options = options.user_and_password(user.to_owned(), password.to_owned());
        }
        let runtime = Runtime::new("sql-hints")?;
        let client = runtime.wait(async move {
            let failed =
                |error: async_nats::ConnectError| Error::new(ErrorKind::Io, format!("connecting to NATS: {error}"));
            options.connect(servers).await.map_err(failed)
        })?;
        Ok(Arc::new(Hints { client, connected, runtime }))
    }

    /// Says that there is something to see in an account. Waits for nothing: when too many hints wait to be sent, this one is lost.
    pub(crate) fn tell(&self, account: u64, node: u64) {
        let hint = self.client.publish(subject(account), node.to_be_bytes().to_vec().into());
        if !matches!(hint.now_or_never(), Some(Ok(()))) {
            tracing::debug!(target: "sql", "a hint was not sent");
        }
    }

    /// Calls `heard` for what other nodes than this one say of an account, and when they may have said something that was not heard.
    pub(crate) fn listen(&self, account: u64, node: u64, heard: impl Fn() + Send + 'static) -> Listening {
        let client = self.client.clone();
        let mut connected = self.connected.subscribe();
        Listening(self.runtime.spawn(async move {
            let mut hints = match client.subscribe(subject(account)).await {
                Ok(hints) => hints,
                Err(error) => return tracing::warn!(target: "sql", "hints of an account cannot be heard: {error}"),
            };
            loop {
                // Once the server has been told what we want to hear.
                let _ = client.flush().await;
                heard();
                loop {
                    tokio::select! {
                        hint = hints.next() => match hint {
                            Some(hint) if hint.payload.as_ref() != node.to_be_bytes() => heard(),
                            Some(_) => {}
                            None => return,
                        },
                        _ = connected.changed() => break,
                    }
                }
            }
        }))
    }
}

fn note(event: &Event, connected: &watch::Sender<u64>) {
    match event {
        Event::Connected => {
            tracing::info!(target: "sql", "hints of other nodes are heard");
            connected.send_modify(|count| *count += 1);
        }
        Event::Disconnected => tracing::warn!(target: "sql", "the NATS server is away: changes are seen with the poll"),
        event => tracing::debug!(target: "sql", "NATS: {event}"),
    }
}
