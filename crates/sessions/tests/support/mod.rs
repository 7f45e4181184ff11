//! A server without sockets for tests that need no dialogue: a store on a simulated disk, users who all come in, a clock that stands.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mailyard_sessions::imap::{Context, ImapSession, Settings};
use mailyard_sessions::{Authenticator, Connection, Now, Refusal, ScramCredentials};
use model::AccountName;
use platform::sim::SimEnv;
use store::{Cluster, Options, Store};

/// Lets in everybody with any password, and with SCRAM by the password `secret`.
pub struct Everybody;

impl Authenticator for Everybody {
    fn verify_password(&self, _: &Connection, user: &str, _: &str) -> Result<AccountName, Refusal> {
        AccountName::new(user).map_err(|error| Refusal { error, wait: Duration::ZERO })
    }

    fn scram_credentials(&self, _: &Connection, _: &str) -> ScramCredentials {
        ScramCredentials::derive("secret", b"0123456789abcdef".to_vec(), 4096)
    }

    fn scram_finished(&self, _: &Connection, user: &str, proven: bool) -> Result<AccountName, Refusal> {
        let account = AccountName::new(user).ok().filter(|_| proven);
        account.ok_or_else(|| Refusal::wrong_credentials(Duration::ZERO))
    }
}

/// The time, which stands still.
pub const NOW: Now = Now { monotonic: Duration::ZERO, unix_seconds: 1_000_000_000 };

/// What sessions share, with an empty store. The same seed gives the same identifiers.
#[allow(dead_code, reason = "each test file uses a part")]
pub fn context(seed: u64, settings: Settings) -> Arc<Context> {
    context_on(seed, settings, None)
}

fn context_on(seed: u64, settings: Settings, cluster: Option<Arc<dyn Cluster>>) -> Arc<Context> {
    let (env, options) = (SimEnv::new(seed).env(), Options::default());
    let store = Store::open_with(env, PathBuf::from("/store"), options, cluster).unwrap();
    Arc::new(Context { store, authenticator: Arc::new(Everybody), observer: Arc::new(()), settings })
}

/// As [`context`], with an account of a format, which may need a database.
#[allow(dead_code, reason = "not every test file has accounts of formats")]
pub fn context_with(
    seed: u64,
    settings: Settings,
    cluster: Option<Arc<dyn Cluster>>,
    name: &str,
    create: impl FnOnce(&Store, &AccountName),
) -> Arc<Context> {
    let context = context_on(seed, settings, cluster);
    create(&context.store, &AccountName::new(name).unwrap());
    context
}

/// A session on this machine.
pub fn session(context: &Arc<Context>) -> ImapSession {
    let connection = Connection { loopback: true, ..Connection::default() };
    ImapSession::new(Arc::clone(context), connection, Arc::new(|| ()), NOW)
}
