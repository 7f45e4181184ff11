//! A machine whose processes start and end when a test says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::clock::SIM_START;
use super::hold;
use crate::clock::Timestamp;
use crate::host::Host;

/// The number that the process of a new [`super::SimEnv`] has.
const FIRST_PROCESS: u32 = 1000;

/// The simulated machine, as one of its processes sees it. Clones are the same process.
#[derive(Debug, Clone)]
pub struct SimHost {
    name: String,
    process: u32,
    running: Arc<Mutex<BTreeMap<u32, Timestamp>>>,
}

impl Default for SimHost {
    fn default() -> Self {
        let running = Arc::new(Mutex::new(BTreeMap::from([(FIRST_PROCESS, SIM_START)])));
        Self { name: "simulated".to_owned(), process: FIRST_PROCESS, running }
    }
}

impl SimHost {
    /// Another process of this machine; it runs since the machine does.
    pub fn as_process(&self, process: u32) -> Self {
        self.start(process, SIM_START);
        Self { process, ..self.clone() }
    }

    /// This process on a machine of another name, whose processes are others.
    pub fn on_machine(&self, name: &str) -> Self {
        let running = Arc::new(Mutex::new(BTreeMap::from([(self.process, SIM_START)])));
        Self { name: name.to_owned(), process: self.process, running }
    }

    /// Lets a process of this number run since then.
    pub fn start(&self, process: u32, since: Timestamp) {
        hold(&self.running).insert(process, since);
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

    fn running_since(&self, process: u32) -> Option<Timestamp> {
        hold(&self.running).get(&process).copied()
    }
}
