//! Who may log in: the seam between the SASL mechanisms and whoever keeps the users.

use std::sync::Arc;
use std::time::Duration;

use model::{AccountName, ErrorKind};
use store::{Account, Store};

use crate::Connection;

/// Keeps the users. Implemented by the server over its user file.
///
/// Invariant: an unknown user, a wrong password and a locked account look the same, in the answer and in the time that it takes.
pub trait Authenticator: Send + Sync {
    /// Whether `password` is the password of `user`; both are UTF-8 as they came. May block for
    /// as long as a password hash takes.
    fn verify_password(&self, connection: &Connection, user: &str, password: &str) -> Result<AccountName, Refusal>;

    /// What SCRAM-SHA-256 needs to know of `user` (RFC 5802 §3). For an unknown user: a decoy, the same every time that the same name
    /// is asked for, that no password fits.
    fn scram_credentials(&self, connection: &Connection, user: &str) -> ScramCredentials;

    /// How a SCRAM exchange for `user` ended: the client has `proven` that it has the key, or not.
    fn scram_finished(&self, connection: &Connection, user: &str, proven: bool) -> Result<AccountName, Refusal>;
}

/// The account of a user; made at the first login.
pub(crate) fn open_account(store: &Store, name: &AccountName) -> model::Result<Arc<Account>> {
    match store.account(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => match store.create_account(name) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => store.account(name),
        },
        opened => opened,
    }
}

/// A login that was refused.
#[derive(Debug)]
pub struct Refusal {
    /// Why, for the log; the client hears its kind only. [`model::ErrorKind::AuthenticationFailed`] unless something is broken.
    pub error: model::Error,
    /// The session keeps its answer back for so long (and takes no other command meanwhile): throttling without a thread that sleeps.
    pub wait: Duration,
}

impl Refusal {
    /// A wrong user or a wrong password, answered after `wait`.
    pub fn wrong_credentials(wait: Duration) -> Self {
        Refusal { error: model::Error::new(model::ErrorKind::AuthenticationFailed, "wrong user or password"), wait }
    }
}

/// A user's SCRAM-SHA-256 secrets (RFC 5802 §3, RFC 7677). They let nobody log in, but let somebody guess offline.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramCredentials {
    /// Random octets, at least 16.
    pub salt: Vec<u8>,
    /// Rounds of PBKDF2; RFC 7677 §4 asks for at least 4096.
    pub iterations: u32,
    /// H(HMAC(SaltedPassword, "Client Key")).
    pub stored_key: [u8; 32],
    /// HMAC(SaltedPassword, "Server Key").
    pub server_key: [u8; 32],
}

/// Without the secrets, so that no log has them.
impl std::fmt::Debug for ScramCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScramCredentials").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}
