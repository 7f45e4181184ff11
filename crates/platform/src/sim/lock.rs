//! Who holds the locks of a simulated file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::hold;
use super::tree::FileNode;
use crate::disk::{LockMode, LockTable};

/// The holders in one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Holders {
    #[default]
    None,
    Shared(usize),
    Exclusive,
}

/// The locks of one file. A power cut builds new files, which nobody has locked.
#[derive(Debug, Default)]
pub(super) struct Locks {
    fcntl: Holders,
    flock: Holders,
}

impl Locks {
    fn table(&mut self, table: LockTable) -> &mut Holders {
        match table {
            LockTable::Fcntl => &mut self.fcntl,
            LockTable::Flock => &mut self.flock,
        }
    }

    fn take(&mut self, table: LockTable, mode: LockMode) -> bool {
        let holders = self.table(table);
        *holders = match (*holders, mode) {
            (Holders::None, LockMode::Shared) => Holders::Shared(1),
            (Holders::Shared(count), LockMode::Shared) => Holders::Shared(count + 1),
            (Holders::None, LockMode::Exclusive) => Holders::Exclusive,
            _ => return false,
        };
        true
    }

    fn give_back(&mut self, table: LockTable) {
        let holders = self.table(table);
        *holders = match *holders {
            Holders::Shared(count) if count > 1 => Holders::Shared(count - 1),
            _ => Holders::None,
        };
    }
}

/// What is locked through one handle.
#[derive(Debug, Default)]
pub(super) struct HandleLocks {
    fcntl: AtomicBool,
    flock: AtomicBool,
}

impl HandleLocks {
    fn table(&self, table: LockTable) -> &AtomicBool {
        match table {
            LockTable::Fcntl => &self.fcntl,
            LockTable::Flock => &self.flock,
        }
    }
}

/// Holds a lock until dropped.
pub(super) struct SimLock {
    node: Arc<FileNode>,
    handle: Arc<HandleLocks>,
    table: LockTable,
}

impl SimLock {
    /// Takes a lock through a handle; none when somebody has it.
    pub(super) fn take(
        node: &Arc<FileNode>,
        handle: &Arc<HandleLocks>,
        table: LockTable,
        mode: LockMode,
    ) -> Option<Self> {
        let mut state = hold(&node.state);
        if handle.table(table).load(Ordering::Relaxed) || !state.locks.take(table, mode) {
            return None;
        }
        handle.table(table).store(true, Ordering::Relaxed);
        Some(Self { node: Arc::clone(node), handle: Arc::clone(handle), table })
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        hold(&self.node.state).locks.give_back(self.table);
        self.handle.table(self.table).store(false, Ordering::Relaxed);
    }
}
