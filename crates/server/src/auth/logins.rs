//! The users as sessions see them: [`sessions::Authenticator`] over the users file, with throttling and a bound on connections.
//!
//! Invariant: an unknown user costs the same work and gets the same answers as a known one with a wrong password.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{AccountName, Error};
use platform::Env;
use sessions::{Authenticator, Connection, Refusal, ScramCredentials};

use super::remembered::Remembered;
use super::throttle::{Network, Throttle, ThrottleLimits};
use crate::users::{Credentials, Directory, ScramSecrets, User};

/// A refusal is answered after this at the latest, however long the next attempt has to wait: a longer wait would only hold the
/// connection, which counts against others.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);

/// What an administrator can choose; see the section `[login]` of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct LoginLimits {
    /// Of throttling.
    pub throttle: ThrottleLimits,
    /// How long a right password is remembered.
    pub remembered: Duration,
    /// Connections of one user that are logged in.
    pub connections_per_user_max: u32,
}

/// Decides who may log in, and knows which connection is whose.
pub struct Logins {
    env: Env,
    directory: Arc<Directory>,
    /// Credentials of nobody, for the work that an unknown user costs.
    nobody: Credentials,
    state: Mutex<State>,
}

struct State {
    limits: LoginLimits,
    throttle: Throttle,
    remembered: Remembered,
    connections: HashMap<u64, AccountName>,
    per_user: HashMap<AccountName, u32>,
}

impl Logins {
    /// Over the users of `directory`. Takes as long as a password hash.
    pub fn new(env: Env, directory: Arc<Directory>, limits: LoginLimits) -> model::Result<Self> {
        let mut password = [0; 16];
        env.random.fill(&mut password);
        let nobody = Credentials::new(&password.map(|octet| format!("{octet:02x}")).concat(), &*env.random)?;
        let state = Mutex::new(State {
            limits,
            throttle: Throttle::new(limits.throttle),
            remembered: Remembered::new(&*env.random),
            connections: HashMap::new(),
            per_user: HashMap::new(),
        });
        Ok(Logins { env, directory, nobody, state })
    }

    /// Takes new limits; what was counted stays.
    pub fn set_limits(&self, limits: LoginLimits) {
        let mut state = self.state();
        state.limits = limits;
        state.throttle.set_limits(limits.throttle);
    }

    /// A connection is over.
    pub fn closed(&self, connection_id: u64) {
        self.state().release(connection_id);
    }

    /// The user of this name as clients write it, if there is one.
    fn find(&self, name: &str) -> Option<User> {
        let name = AccountName::new(name).ok()?;
        self.directory.current().users.get(&name).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// Books the outcome of an attempt that was looked at.
    fn outcome(&self, connection: &Connection, name: &str, user: Option<User>) -> Result<AccountName, Refusal> {
        let name = folded(name);
        let mut state = self.state();
        match user {
            Some(user) => {
                state.throttle.succeeded(&name);
                state.admit(connection.id, user.name)
            }
            None => {
                let wait = state.throttle.failed(self.now(), &name, network(connection));
                Err(Refusal::wrong_credentials(wait.min(ANSWER_WAIT_MAX)))
            }
        }
    }

    /// A refusal when there were too many failures lately.
    fn throttled(&self, connection: &Connection, name: &str) -> Result<(), Refusal> {
        let wait = self.state().throttle.wait(self.now(), &folded(name), network(connection));
        if wait.is_zero() { Ok(()) } else { Err(Refusal::wrong_credentials(wait.min(ANSWER_WAIT_MAX))) }
    }
}

impl State {
    fn release(&mut self, connection_id: u64) {
        let Some(user) = self.connections.remove(&connection_id) else { return };
        if let Some(count) = self.per_user.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                self.per_user.remove(&user);
            }
        }
    }

    fn admit(&mut self, connection_id: u64, user: AccountName) -> Result<AccountName, Refusal> {
        // After UNAUTHENTICATE (RFC 8437) a connection may become another user's.
        self.release(connection_id);
        let count = self.per_user.entry(user.clone()).or_default();
        if *count >= self.limits.connections_per_user_max {
            let error = Error::over_limit("connections_per_user_max", format!("{user} has {count} connections"));
            return Err(Refusal { error, wait: Duration::ZERO });
        }
        *count += 1;
        self.connections.insert(connection_id, user.clone());
        Ok(user)
    }
}

impl Authenticator for Logins {
    fn verify_password(&self, connection: &Connection, name: &str, password: &str) -> Result<AccountName, Refusal> {
        let user = self.find(name);
        if let Some(user) = &user {
            let state = self.state();
            if state.remembered.knows(self.now(), user, network(connection), password) {
                drop(state);
                return self.outcome(connection, name, Some(user.clone()));
            }
        }
        self.throttled(connection, name)?;
        let right = user.as_ref().map_or(&self.nobody, |user| &user.credentials).verify(password);
        let user = user.filter(|_| right);
        if let Some(user) = &user {
            let mut state = self.state();
            let keep = state.limits.remembered;
            state.remembered.remember(self.now(), keep, user, network(connection), password);
        }
        self.outcome(connection, name, user)
    }

    fn scram_credentials(&self, _connection: &Connection, name: &str) -> ScramCredentials {
        let secrets = match self.find(name) {
            Some(user) => user.credentials.scram,
            None => ScramSecrets::decoy(&self.directory.current().decoy_key, &folded(name)),
        };
        ScramCredentials {
            salt: secrets.salt,
            iterations: secrets.iterations,
            stored_key: secrets.stored_key,
            server_key: secrets.server_key,
        }
    }

    fn scram_finished(&self, connection: &Connection, name: &str, proven: bool) -> Result<AccountName, Refusal> {
        self.throttled(connection, name)?;
        self.outcome(connection, name, self.find(name).filter(|_| proven))
    }
}

/// The name under which failures are counted: all spellings that lead to one account are one.
fn folded(name: &str) -> String {
    name.chars().take(model::limits::ACCOUNT_NAME_BYTES_MAX).flat_map(char::to_lowercase).collect()
}

fn network(connection: &Connection) -> Option<Network> {
    connection.peer.and_then(Network::of)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use model::ErrorKind;
    use platform::{Clock, Timestamp};

    use super::*;

    #[derive(Debug, Default)]
    struct TestClock(AtomicU64);

    impl Clock for TestClock {
        fn now(&self) -> Timestamp {
            Timestamp::default()
        }
        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
        fn sleep(&self, time: Duration) {
            self.0.fetch_add(time.as_secs(), Ordering::Relaxed);
        }
    }

    struct Bed {
        _data: tempfile::TempDir,
        clock: Arc<TestClock>,
        logins: Logins,
    }

    /// One user, `ann` with the password `secret`; three failures, two connections.
    fn bed() -> Bed {
        let data = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock::default());
        let env = Env { clock: clock.clone(), ..Env::real() };
        let directory = Arc::new(Directory::open(env.clone(), data.path()).unwrap());
        let credentials = Credentials::new("secret", &*env.random).unwrap();
        directory.put(User { name: AccountName::new("ann").unwrap(), credentials }).unwrap();
        let limits = LoginLimits {
            throttle: ThrottleLimits {
                failures_per_user_max: 3,
                failures_per_address_max: 100,
                wait_min: Duration::from_secs(4),
                wait_max: Duration::from_secs(60),
            },
            remembered: Duration::from_secs(600),
            connections_per_user_max: 2,
        };
        Bed { _data: data, clock, logins: Logins::new(env, directory, limits).unwrap() }
    }

    fn connection(id: u64, last: u8) -> Connection {
        Connection { id, peer: Some([192, 0, 2, last].into()), ..Connection::default() }
    }

    #[test]
    fn guessing_is_slowed_and_a_known_client_is_not() {
        let Bed { clock, logins, .. } = &bed();
        assert_eq!(logins.verify_password(&connection(1, 1), "Ann", "secret").unwrap().as_str(), "ann");
        logins.closed(1);
        let refused = |last: u8| logins.verify_password(&connection(2, last), "ann", "wrong").unwrap_err().wait;
        assert_eq!([refused(2), refused(2), refused(2)].map(|wait| wait.as_secs()), [0, 0, 4]);
        let early = logins.verify_password(&connection(3, 3), "ANN", "secret").unwrap_err();
        assert_eq!(early.error.kind(), ErrorKind::AuthenticationFailed, "even the right password waits");
        assert!(logins.verify_password(&connection(4, 1), "ann", "secret").is_ok(), "the client that was here before");
        logins.closed(4);
        assert_eq!([refused(2), refused(2), refused(2)].map(|wait| wait.as_secs()), [0, 0, 4]);
        clock.0.store(5, Ordering::Relaxed);
        assert!(logins.verify_password(&connection(5, 3), "ann", "secret").is_ok());
    }

    #[test]
    fn waits_grow_to_their_limit_and_answers_do_not_wait_so_long() {
        let Bed { clock, logins, .. } = &bed();
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..9 {
            let answer = logins.scram_finished(&connection(1, 1), "ann", false).unwrap_err().wait.as_secs();
            let next = logins.state().throttle.wait(logins.now(), "ann", None).as_secs();
            waits.push((answer, next));
            // To the very second at which the next attempt is looked at.
            now += next;
            clock.0.store(now, Ordering::Relaxed);
        }
        // From the third failure on, twice as long each time: 10 s at most for the answer, 60 s at most for the next attempt.
        let expected = [(0, 0), (0, 0), (4, 4), (8, 8), (10, 16), (10, 32), (10, 60), (10, 60), (10, 60)];
        assert_eq!(waits, expected);
        // One second too early, and in time.
        assert!(logins.scram_finished(&connection(1, 1), "ann", false).is_err());
        clock.0.store(now + 59, Ordering::Relaxed);
        let early = logins.scram_finished(&connection(1, 1), "ann", true).unwrap_err();
        assert_eq!((early.error.kind(), early.wait.as_secs()), (ErrorKind::AuthenticationFailed, 1));
        clock.0.store(now + 60, Ordering::Relaxed);
        assert!(logins.scram_finished(&connection(1, 1), "ann", true).is_ok());
    }

    #[test]
    fn unknown_users_look_like_wrong_passwords() {
        let Bed { logins, .. } = &bed();
        let unknown = logins.verify_password(&connection(1, 1), "nobody", "x").unwrap_err();
        let wrong = logins.verify_password(&connection(1, 1), "ann", "x").unwrap_err();
        assert_eq!(unknown.error.to_string(), wrong.error.to_string());
        let no_name = logins.verify_password(&connection(1, 1), "../..", "x").unwrap_err();
        assert_eq!(no_name.error.to_string(), wrong.error.to_string());
        let decoy = logins.scram_credentials(&connection(1, 1), "nobody");
        assert!(decoy == logins.scram_credentials(&connection(2, 2), "nobody"));
        assert_eq!(decoy.salt.len(), logins.scram_credentials(&connection(1, 1), "ann").salt.len());
        assert!(logins.scram_finished(&connection(1, 1), "nobody", true).is_err());
        assert!(logins.scram_finished(&connection(1, 1), "ann", false).is_err());
        assert!(logins.scram_finished(&connection(1, 1), "ann", true).is_ok());
    }

    #[test]
    fn scram_is_throttled_like_passwords() {
        let Bed { logins, .. } = &bed();
        for _ in 0..3 {
            assert!(logins.scram_finished(&connection(1, 1), "ann", false).is_err());
        }
        assert!(logins.scram_finished(&connection(1, 1), "ann", true).is_err());
    }

    #[test]
    fn connections_of_a_user_are_counted() {
        let Bed { logins, .. } = &bed();
        for id in [1, 2] {
            assert!(logins.verify_password(&connection(id, 1), "ann", "secret").is_ok());
        }
        let refusal = logins.verify_password(&connection(3, 1), "ann", "secret").unwrap_err();
        assert_eq!(refusal.error.limit(), Some("connections_per_user_max"));
        logins.closed(3);
        logins.closed(1);
        assert!(logins.verify_password(&connection(4, 1), "ann", "secret").is_ok());
        assert!(logins.verify_password(&connection(4, 1), "ann", "secret").is_ok(), "again on the same connection");
        assert_eq!(logins.state().per_user.values().sum::<u32>(), 2);
    }
}
