//! A sync of everything on the simulated disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::disk::{Course, SimDisk};
use super::faults::Operation;
use super::hold;
use super::tree::{FileNode, Node};
use crate::disk::Batch;

/// The only file system, since some moment.
#[derive(Debug)]
pub(super) struct SimBatch {
    pub(super) disk: SimDisk,
    /// For traces.
    pub(super) path: PathBuf,
    pub(super) boot: u64,
}

impl Batch for SimBatch {
    fn sync(&self) -> io::Result<()> {
        let mut machine = self.disk.machine();
        machine.check_power()?;
        if machine.boot != self.boot {
            return Err(io::Error::other("a batch from before the power cut"));
        }
        let course = machine.begin(Operation::SyncAll, &self.path)?;
        machine.stats.batch_syncs += 1;
        let mut files: Vec<Arc<FileNode>> = Vec::new();
        let mut dirs = vec![Arc::clone(&machine.tree.root)];
        while let Some(dir) = dirs.pop() {
            for node in hold(&dir.state).visible.values() {
                match node {
                    Node::Dir(below) => dirs.push(Arc::clone(below)),
                    Node::File(file) => files.push(Arc::clone(file)),
                }
            }
        }
        for file in files {
            let mut state = hold(&file.state);
            match course {
                Course::Done => {
                    let mark = state.image.sync_mark();
                    state.image.sync(mark);
                }
                Course::Fails => state.image.sync_failed(&mut machine.prng),
                Course::Dies => {} // the power cut decides
            }
        }
        // Names are in the journal, so nothing of them is forgotten.
        if course == Course::Done || (course == Course::Fails && machine.prng.one_in(2)) {
            machine.tree.sync_all();
        }
        course.result()
    }
}
