//! A machine whose processes start and end when a test says so.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::hold;
use crate::host::Host;

/// The number that the process of a new [`super::SimEnv`] has.
const FIRST_PROCESS: u32 = 1000;

/// The simulated machine, as one of its processes sees it. Clones are the same process.
#[derive(Debug, Clone)]
pub struct SimHost {
    name: String,
    process: u32,
    running: Arc<Mutex<BTreeSet<u32>>>,
}

impl Default for SimHost {
    fn default() -> Self {
        let running = Arc::new(Mutex::new(BTreeSet::from([FIRST_PROCESS])));
        Self { name: "simulated".to_owned(), process: FIRST_PROCESS, running }
    }
}

impl SimHost {
    /// Another process of this machine; it runs from now on.
    pub fn as_process(&self, process: u32) -> Self {
        hold(&self.running).insert(process);
        Self { process, ..self.clone() }
    }

    /// This process on a machine of another name, whose processes are others.
    pub fn on_machine(&self, name: &str) -> Self {
        let running = Arc::new(Mutex::new(BTreeSet::from([self.process])));
        Self { name: name.to_owned(), process: self.process, running }
    }

    /// Ends a process.
    pub fn end(&self, process: u32) {
        hold(&self.running).remove(&process);
    }
}

impl Host for SimHost {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn process(&self) -> u32 {
        self.process
    }

    fn is_running(&self, process: u32) -> bool {
        hold(&self.running).contains(&process)
    }
}
