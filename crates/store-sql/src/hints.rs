//! Hints over NATS: a node that has changed an account, or wants it, says so, and the others look at once instead of with their next poll.
//!
//! A hint is nothing but a reason to look: the database is the truth, and one that is lost costs the poll interval. Each account has a
//! subject of its own, so a node hears only of accounts that are open on it. The client connects again by itself.

use std::fmt;
use std::sync::Arc;

use async_nats::{Client, ServerAddr};
use futures_util::StreamExt as _;
use model::{Error, ErrorKind, Result};
use tokio::task::JoinHandle;

use crate::runtime::Runtime;

/// Before the account's id, in hexadecimal.
const SUBJECT: &str = "mailyard.account";

/// A connection to a NATS server, or to several that are one cluster.
pub struct Hints {
    client: Client,
    runtime: Runtime,
}

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hints")
    }
}

/// Hints of an account are heard until this is dropped.
#[derive(Debug)]
pub(crate) struct Listening(Option<JoinHandle<()>>);

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

fn subject(account: u64) -> String {
    format!("{SUBJECT}.{account:016x}")
}

impl Hints {
    /// Connects in the background, and again whenever the connection is lost. `urls`: `nats://HOST:4222`. [`ErrorKind::Invalid`]: an address
    /// that cannot be one.
    pub fn connect(urls: &[String]) -> Result<Arc<Hints>> {
        let invalid = |error: std::io::Error| {
            Error::new(ErrorKind::Invalid, format!("the address of a NATS server is none: {error}"))
        };
        let servers =
            urls.iter().map(|url| url.parse::<ServerAddr>()).collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        let runtime = Runtime::new("sql-hints")?;
        let client = runtime.wait(async move {
            let options = async_nats::ConnectOptions::new().name("mailyard").retry_on_initial_connect();
            let failed =
                |error: async_nats::ConnectError| Error::new(ErrorKind::Io, format!("connecting to NATS: {error}"));
            options.connect(servers).await.map_err(failed)
        })?;
        Ok(Arc::new(Hints { client, runtime }))
    }

    /// Says that there is something to see in an account. Waits for nothing.
    pub(crate) fn tell(&self, account: u64, node: u64) {
        let client = self.client.clone();
        self.runtime.spawn(async move {
            if let Err(error) = client.publish(subject(account), node.to_be_bytes().to_vec().into()).await {
                tracing::debug!(target: "sql", "a hint was not sent: {error}");
            }
        });
    }

    /// Calls `heard` for what other nodes than this one say of an account.
    pub(crate) fn listen(&self, account: u64, node: u64, heard: impl Fn() + Send + 'static) -> Listening {
        let client = self.client.clone();
        Listening(self.runtime.spawn(async move {
            let mut hints = match client.subscribe(subject(account)).await {
                Ok(hints) => hints,
                Err(error) => return tracing::warn!(target: "sql", "hints of an account cannot be heard: {error}"),
            };
            while let Some(hint) = hints.next().await {
                if hint.payload.as_ref() != node.to_be_bytes() {
                    heard();
                }
            }
        }))
    }
}
