//! Passwords that were right a short while ago, so that a client that logs in every minute does not cost a password hash each time.
//!
//! Invariants: what is kept is a keyed hash, with a key that exists in this process only; an entry fits one user, one stored hash
//! (a changed password forgets it), one network and one password; entries end by time and by number.

use std::collections::HashMap;
use std::time::Duration;

use model::AccountName;
use platform::Random;
use subtle::ConstantTimeEq;

use super::throttle::Network;
use crate::users::{User, hmac};

/// Entries that are kept. When there are more, all are forgotten, which costs a password hash each.
pub const ENTRIES_MAX: usize = 10_000;

/// The passwords, keyed by user and network: an attacker elsewhere has no entry to try its guesses on.
pub struct Remembered {
    key: [u8; 32],
    entries: HashMap<(AccountName, Option<Network>), Entry>,
}

struct Entry {
    proof: [u8; 32],
    until: Duration,
}

impl Remembered {
    /// Nothing yet; draws the key.
    pub fn new(random: &dyn Random) -> Self {
        let mut key = [0; 32];
        random.fill(&mut key);
        Remembered { key, entries: HashMap::new() }
    }

    /// Whether this password was right a short while ago and still is.
    pub fn knows(&self, now: Duration, user: &User, network: Option<Network>, password: &str) -> bool {
        let proof = self.proof(user, password);
        self.entries
            .get(&(user.name.clone(), network))
            .is_some_and(|entry| now < entry.until && bool::from(entry.proof.ct_eq(&proof)))
    }

    /// Remembers a password that was right.
    pub fn remember(&mut self, now: Duration, keep: Duration, user: &User, network: Option<Network>, password: &str) {
        if keep.is_zero() {
            return;
        }
        if self.entries.len() >= ENTRIES_MAX {
            self.entries.retain(|_, entry| now < entry.until);
            if self.entries.len() >= ENTRIES_MAX {
                self.entries.clear();
            }
        }
        let entry = Entry { proof: self.proof(user, password), until: now.saturating_add(keep) };
        self.entries.insert((user.name.clone(), network), entry);
    }

    fn proof(&self, user: &User, password: &str) -> [u8; 32] {
        // Neither a name nor a PHC string has a NUL, so that the three parts cannot run into each other.
        hmac(&self.key, format!("{}\0{}\0{password}", user.name, user.credentials.argon2id).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::{Credentials, ScramSecrets};

    fn user(name: &str, hash: &str) -> User {
        let credentials = Credentials { argon2id: hash.into(), scram: ScramSecrets::decoy(b"", name) };
        User { name: AccountName::new(name).unwrap(), credentials }
    }

    #[test]
    fn only_the_same_login_is_known() {
        let second = Duration::from_secs(1);
        let here = Network::of([192, 0, 2, 1].into());
        let mut remembered = Remembered::new(&platform::real::RealRandom);
        let ann = user("ann", "$1");
        remembered.remember(second, 10 * second, &ann, here, "secret");
        assert!(remembered.knows(10 * second, &ann, here, "secret"));
        assert!(!remembered.knows(11 * second, &ann, here, "secret"), "time is over");
        assert!(!remembered.knows(second, &ann, here, "other"));
        assert!(!remembered.knows(second, &ann, None, "secret"), "from elsewhere");
        assert!(!remembered.knows(second, &user("ann", "$2"), here, "secret"), "the password was changed");
        assert!(!remembered.knows(second, &user("bob", "$1"), here, "secret"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut remembered = Remembered::new(&platform::real::RealRandom);
        for n in 0..=ENTRIES_MAX {
            let name = format!("user{n}");
            remembered.remember(Duration::ZERO, Duration::from_secs(1), &user(&name, "$"), None, "x");
        }
        assert!(remembered.entries.len() <= ENTRIES_MAX);
        remembered.remember(Duration::ZERO, Duration::ZERO, &user("last", "$"), None, "x");
        assert!(!remembered.knows(Duration::ZERO, &user("last", "$"), None, "x"), "zero is never");
    }
}
