//! LOGIN-DELAY (RFC 2449 §6.5): how soon a user may come back.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::AccountName;

/// Users between two sweeps of what is over.
const SWEEP_AT: usize = 1024;

/// When each user last logged in; what all sessions share. Holds no more than those who came within the delay, and a few.
#[derive(Debug, Default)]
pub struct LastLogins {
    times: Mutex<HashMap<AccountName, Duration>>,
}

impl LastLogins {
    /// Whether a user may log in now, by the monotonic clock; who may has done so.
    pub(super) fn admit(&self, user: &AccountName, now: Duration, delay: Duration) -> bool {
        if delay.is_zero() {
            return true;
        }
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |last: &Duration| last.saturating_add(delay) <= now;
        if times.get(user).is_some_and(|last| !is_over(last)) {
            return false;
        }
        if times.len() >= SWEEP_AT && times.len().is_power_of_two() {
            times.retain(|_, last| !is_over(last));
        }
        times.insert(user.clone(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_back_too_soon_waits() {
        let logins = LastLogins::default();
        let (delay, second) = (Duration::from_secs(60), Duration::from_secs(1));
        let ann = AccountName::new("ann").expect("a name");
        let bob = AccountName::new("bob").expect("a name");
        assert!(
            logins.admit(&ann, second, delay) && !logins.admit(&ann, delay, delay) && logins.admit(&bob, delay, delay)
        );
        // From the last login that was let in.
        assert!(logins.admit(&ann, second + delay, delay) && !logins.admit(&ann, delay + delay, delay));
        assert!(logins.admit(&ann, delay + delay, Duration::ZERO));
        for n in 0..3 * SWEEP_AT as u64 {
            assert!(logins.admit(&AccountName::new(&format!("u{n}")).expect("a name"), second * n as u32, second));
        }
        assert!(logins.times.lock().expect("nobody panicked").len() <= 2 * SWEEP_AT);
    }
}
