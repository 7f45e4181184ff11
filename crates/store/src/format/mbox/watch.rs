//! Hearing of what other programs do to the files of an open account.
//!
//! Whoever is told only wakes the sessions; those in IDLE look themselves, on threads that may wait for a disk.

use std::sync::Arc;

use super::account::{FileBox, MboxAccount};

impl MboxAccount {
    /// Watches the file of a mailbox from now on.
    pub(super) fn watch(&self, file_box: &FileBox) {
        file_box.watch.get_or_init(|| {
            let path = self.path_of(file_box.id)?;
            let listeners = Arc::clone(&self.listeners);
            // Without a watch the file is looked at when a client asks for news.
            self.env.watch.watch(&path, Arc::new(move || listeners.call())).ok()
        });
    }
}
