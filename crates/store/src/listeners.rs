//! Who is told when an account has changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Called after every published change of the account, from whichever thread made it; must be quick and must not call back.
pub type Listener = Arc<dyn Fn() + Send + Sync>;

/// The listeners of one account.
#[derive(Default)]
pub(crate) struct Listeners {
    by_number: Mutex<(u64, BTreeMap<u64, Listener>)>,
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listeners")
    }
}

impl Listeners {
    pub(crate) fn add(self: &Arc<Self>, listener: Listener) -> ListenerGuard {
        let mut all = self.by_number.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 += 1;
        let number = all.0;
        all.1.insert(number, listener);
        ListenerGuard { listeners: Arc::clone(self), number }
    }

    /// Calls everyone, with no lock held.
    pub(crate) fn call(&self) {
        let all: Vec<Listener> = {
            let all = self.by_number.lock().unwrap_or_else(PoisonError::into_inner);
            all.1.values().cloned().collect()
        };
        for listener in all {
            listener();
        }
    }
}

/// Keeps a [`Listener`] registered while it lives.
#[must_use = "the listener is called only while the guard lives"]
pub struct ListenerGuard {
    listeners: Arc<Listeners>,
    number: u64,
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        let mut all = self.listeners.by_number.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.remove(&self.number);
    }
}
