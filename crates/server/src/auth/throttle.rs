//! Slowing down those who guess passwords: failures are counted per user and per address.
//!
//! Invariants: the work and the memory are bounded whoever attacks ([`ENTRIES_MAX`]); a user that nobody attacks never waits; time is
//! handed in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Users and addresses with failures that are remembered. When there are more, those that failed longest ago are forgotten.
pub const ENTRIES_MAX: usize = 100_000;

/// See the keys of the section `[login]` of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct ThrottleLimits {
    /// Failures in a row for one user before it waits.
    pub failures_per_user_max: u32,
    /// Failures in a row from one address before it waits.
    pub failures_per_address_max: u32,
    /// The first wait.
    pub wait_min: Duration,
    /// The longest wait.
    pub wait_max: Duration,
}

/// An address as far as its owner cannot change it at will: of IPv4 the address, of IPv6 the /64 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network(IpAddr);

impl Network {
    /// The network of `address`; `None` for a loopback address, behind which stands no single person.
    pub fn of(address: IpAddr) -> Option<Self> {
        let address = address.to_canonical();
        if address.is_loopback() {
            return None;
        }
        Some(Network(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from(u128::from(v6) >> 64 << 64)),
        }))
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    User(String),
    Network(Network),
}

struct Failures {
    count: u32,
    last: Duration,
    waits_until: Duration,
}

/// The failures so far.
pub struct Throttle {
    limits: ThrottleLimits,
    failures: HashMap<Key, Failures>,
    entries_max: usize,
}

impl Throttle {
    /// Nothing has failed yet.
    pub fn new(limits: ThrottleLimits) -> Self {
        Throttle { limits, failures: HashMap::new(), entries_max: ENTRIES_MAX }
    }

    /// Takes new limits; what was counted stays.
    pub fn set_limits(&mut self, limits: ThrottleLimits) {
        self.limits = limits;
    }

    /// How long `user` from `network` has to wait before its password is looked at; zero for nearly everybody.
    pub fn wait(&self, now: Duration, user: &str, network: Option<Network>) -> Duration {
        keys(user, network)
            .filter_map(|key| self.failures.get(&key))
            .map(|failures| failures.waits_until.saturating_sub(now))
            .max()
            .unwrap_or_default()
    }

    /// A login failed. Returns how long the next one will have to wait.
    pub fn failed(&mut self, now: Duration, user: &str, network: Option<Network>) -> Duration {
        self.make_room(now);
        let limits = self.limits;
        for key in keys(user, network) {
            let max = match key {
                Key::User(_) => limits.failures_per_user_max,
                Key::Network(_) => limits.failures_per_address_max,
            };
            let failures = self.failures.entry(key).or_insert(Failures { count: 0, last: now, waits_until: now });
            if limits.forgiven(failures, now) {
                failures.count = 0;
            }
            failures.count = failures.count.saturating_add(1);
            failures.last = now;
            failures.waits_until = now.saturating_add(limits.wait_after(failures.count, max));
        }
        self.wait(now, user, network)
    }

    /// A login succeeded: the user is forgiven. The address is not, or one known password would buy any number of guesses.
    pub fn succeeded(&mut self, user: &str) {
        self.failures.remove(&Key::User(user.to_owned()));
    }

    fn make_room(&mut self, now: Duration) {
        // Each failure adds two entries at most.
        if self.failures.len() + 2 <= self.entries_max {
            return;
        }
        let limits = self.limits;
        self.failures.retain(|_, failures| !limits.forgiven(failures, now));
        if self.failures.len() + 2 > self.entries_max {
            // Still full, so this is an attack with many names or addresses: drop the older half, so that the sort is paid seldom.
            let mut lasts: Vec<Duration> = self.failures.values().map(|failures| failures.last).collect();
            let middle = lasts.len() / 2;
            let (_, median, _) = lasts.select_nth_unstable(middle);
            let median = *median;
            self.failures.retain(|_, failures| failures.last > median);
        }
    }
}

impl ThrottleLimits {
    /// Whether the failures lie so far back that they count no longer.
    fn forgiven(&self, failures: &Failures, now: Duration) -> bool {
        now.saturating_sub(failures.last) > self.wait_max.saturating_mul(2)
    }

    fn wait_after(&self, count: u32, max: u32) -> Duration {
        match count.checked_sub(max) {
            None => Duration::ZERO,
            Some(over) => self.wait_min.saturating_mul(1u32.checked_shl(over).unwrap_or(u32::MAX)).min(self.wait_max),
        }
    }
}

fn keys(user: &str, network: Option<Network>) -> impl Iterator<Item = Key> {
    std::iter::once(Key::User(user.to_owned())).chain(network.map(Key::Network))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn throttle() -> Throttle {
        Throttle::new(ThrottleLimits {
            failures_per_user_max: 3,
            failures_per_address_max: 5,
            wait_min: SECOND,
            wait_max: 8 * SECOND,
        })
    }

    fn network(last: u8) -> Option<Network> {
        Network::of(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn waits_begin_at_the_limit_and_double() {
        let mut throttle = throttle();
        let waits: Vec<u64> = (0..8).map(|n| throttle.failed(SECOND * n, "ann", None).as_secs()).collect();
        assert_eq!(waits, [0, 0, 1, 2, 4, 8, 8, 8]);
        assert_eq!(throttle.wait(SECOND * 10, "ann", None), 5 * SECOND);
        assert_eq!(throttle.wait(SECOND * 15, "ann", None), Duration::ZERO);
        assert_eq!(throttle.wait(SECOND * 10, "bob", None), Duration::ZERO, "others do not wait");
    }

    #[test]
    fn one_address_with_many_names_waits_too() {
        let mut throttle = throttle();
        for n in 0..4 {
            assert_eq!(throttle.failed(Duration::ZERO, &format!("user{n}"), network(1)), Duration::ZERO);
        }
        assert_eq!(throttle.failed(Duration::ZERO, "user5", network(1)), SECOND);
        assert_eq!(throttle.wait(Duration::ZERO, "anybody", network(1)), SECOND);
        assert_eq!(throttle.wait(Duration::ZERO, "anybody", network(2)), Duration::ZERO);
    }

    #[test]
    fn success_forgives_the_user_and_time_forgives_everybody() {
        let mut throttle = throttle();
        for _ in 0..4 {
            throttle.failed(Duration::ZERO, "ann", network(1));
        }
        throttle.succeeded("ann");
        assert_eq!(throttle.wait(Duration::ZERO, "ann", None), Duration::ZERO);
        assert_eq!(throttle.failed(Duration::ZERO, "ann", network(1)), SECOND, "the address is not forgiven");
        assert_eq!(throttle.failed(17 * SECOND, "ann", network(1)), Duration::ZERO, "everything is forgiven by now");
    }

    #[test]
    fn memory_is_bounded_and_the_latest_are_kept() {
        let mut throttle = throttle();
        throttle.entries_max = 100;
        for n in 0..10_000u32 {
            throttle.failed(Duration::from_micros(n.into()), &format!("user{n}"), None);
            assert!(throttle.failures.len() <= 100);
        }
        assert!(throttle.failures.contains_key(&Key::User("user9999".into())));
    }

    #[test]
    fn networks() {
        let of = |text: &str| Network::of(text.parse().unwrap());
        assert_eq!(of("127.0.0.1"), None);
        assert_eq!(of("::1"), None);
        assert_eq!(of("::ffff:127.0.0.1"), None);
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
