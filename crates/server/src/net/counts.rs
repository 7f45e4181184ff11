//! How many connections there are, in all and by address.
//!
//! Invariant: what was counted in is counted out when its [`Counted`] is dropped, whichever way the connection ends.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::auth::Network;

/// Why a connection was turned away: the name of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

/// The counts.
#[derive(Default)]
pub struct ConnectionCounts {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    all: u32,
    by_network: HashMap<Network, u32>,
}

/// A connection that counts while this lives.
pub struct Counted {
    counts: Arc<ConnectionCounts>,
    network: Option<Network>,
}

impl ConnectionCounts {
    /// Counts a connection from `peer`, or says which limit forbids it. Loopback addresses have only the limit in all.
    pub fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        connections_max: u32,
        connections_per_address_max: u32,
    ) -> Result<Counted, Refused> {
        let network = Network::of(peer);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.all >= connections_max {
            return Err(Refused("connections_max"));
        }
        if let Some(network) = network {
            let of_network = counts.by_network.entry(network).or_default();
            if *of_network >= connections_per_address_max {
                return Err(Refused("connections_per_address_max"));
            }
            *of_network += 1;
        }
        counts.all += 1;
        Ok(Counted { counts: Arc::clone(self), network })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counts.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all -= 1;
        if let Some(network) = self.network
            && let Some(of_network) = counts.by_network.get_mut(&network)
        {
            *of_network -= 1;
            if *of_network == 0 {
                counts.by_network.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limits_and_one_over() {
        let counts = Arc::new(ConnectionCounts::default());
        let from = |last: u8| counts.admit([192, 0, 2, last].into(), 3, 2).map_err(|Refused(limit)| limit);
        let a = from(1).unwrap();
        let _b = from(1).unwrap();
        assert_eq!(from(1).err(), Some("connections_per_address_max"));
        let _c = from(2).unwrap();
        assert_eq!(from(3).err(), Some("connections_max"));
        drop(a);
        assert!(from(1).is_ok());
        let local = |_| counts.admit([127, 0, 0, 1].into(), 3, 0);
        assert!(local(()).is_ok(), "loopback has no limit of its own");
        drop(_b);
        drop(_c);
        assert!(counts.counts.lock().unwrap().by_network.is_empty());
    }
}
