//! Who watches which paths of the simulated disk. Every change is told, once, when the operation that made it is over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::disk::SimDisk;
use super::tree::{Edit, FileNode, Node, Tree};
use crate::watch::OnChange;

/// The listeners of a disk.
#[derive(Default)]
pub(super) struct Listeners {
    next: u64,
    all: BTreeMap<u64, (PathBuf, OnChange)>,
    /// Those that the operation under way concerns.
    due: BTreeSet<u64>,
}

impl Listeners {
    pub(super) fn add(&mut self, path: &Path, on_change: OnChange) -> u64 {
        self.next += 1;
        self.all.insert(self.next, (path.to_owned(), on_change));
        self.next
    }

    /// The bytes or the length of a file changed.
    pub(super) fn file_changed(&mut self, tree: &Tree, file: &FileNode) {
        for (number, (path, _)) in &self.all {
            if matches!(tree.find(path), Ok(Node::File(found)) if found.inode == file.inode) {
                self.due.insert(*number);
            }
        }
    }

    /// A name comes, goes, or stands for something else.
    pub(super) fn entry_changed(&mut self, tree: &Tree, edit: &Edit) {
        for (number, (path, _)) in &self.all {
            let is_entry =
                matches!(tree.find_parent(path), Ok((dir, name)) if dir.inode == edit.dir.inode && name == edit.name);
            let is_dir = matches!(tree.find(path), Ok(Node::Dir(dir)) if dir.inode == edit.dir.inode);
            if is_entry || is_dir {
                self.due.insert(*number);
            }
        }
    }

    /// Those that are to be called now.
    pub(super) fn take_called(&mut self) -> Vec<OnChange> {
        let due = std::mem::take(&mut self.due);
        due.iter().filter_map(|number| self.all.get(number)).map(|(_, on_change)| OnChange::clone(on_change)).collect()
    }
}

/// A watch that lives.
pub(super) struct SimWatch {
    pub(super) disk: SimDisk,
    pub(super) number: u64,
}

impl Drop for SimWatch {
    fn drop(&mut self) {
        self.disk.machine().listeners.all.remove(&self.number);
    }
}
