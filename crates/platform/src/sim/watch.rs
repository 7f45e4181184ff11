//! Who watches which paths of the simulated disk. Every change is told, once, when the operation that made it is over.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::SimDisk;
use super::tree::{Edit, FileNode, Node, Tree};
use crate::watch::{NameChange, NameNews, OnChange, OnNames};

/// What is called.
pub(super) enum Listener {
    /// See [`crate::Watch::watch`].
    Path(OnChange),
    /// See [`crate::Watch::watch_names`].
    Names(OnNames),
}

/// The listeners of a disk.
#[derive(Default)]
pub(super) struct Listeners {
    next: u64,
    all: BTreeMap<u64, (PathBuf, Listener)>,
    /// Those that the operation under way concerns.
    due: BTreeSet<u64>,
    /// What it did to names that somebody wants to know by name.
    due_names: Vec<(u64, OsString, NameChange)>,
}

impl Listeners {
    pub(super) fn add(&mut self, path: &Path, listener: Listener) -> u64 {
        self.next += 1;
        self.all.insert(self.next, (path.to_owned(), listener));
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
    pub(super) fn entry_changed(&mut self, tree: &Tree, edit: &Edit, is_rename: bool) {
        for (number, (path, listener)) in &self.all {
            let is_entry =
                matches!(tree.find_parent(path), Ok((dir, name)) if dir.inode == edit.dir.inode && name == edit.name);
            let is_dir = matches!(tree.find(path), Ok(Node::Dir(dir)) if dir.inode == edit.dir.inode);
            match listener {
                Listener::Path(_) if is_entry || is_dir => {
                    self.due.insert(*number);
                }
                Listener::Names(_) if is_dir => {
                    let change = match (&edit.node, is_rename) {
                        (Some(_), _) => NameChange::Came,
                        (None, true) => NameChange::Left,
                        (None, false) => NameChange::Removed,
                    };
                    self.due_names.push((*number, edit.name.clone(), change));
                }
                _ => {}
            }
        }
    }

    /// Those that are to be called now.
    pub(super) fn take_called(&mut self) -> Vec<OnChange> {
        let due = std::mem::take(&mut self.due);
        let of_paths = due.iter().filter_map(|number| match self.all.get(number) {
            Some((_, Listener::Path(on_change))) => Some(OnChange::clone(on_change)),
            _ => None,
        });
        let mut called: Vec<OnChange> = of_paths.collect();
        for (number, name, change) in std::mem::take(&mut self.due_names) {
            if let Some((_, Listener::Names(on_names))) = self.all.get(&number) {
                let on_names = OnNames::clone(on_names);
                called.push(Arc::new(move || on_names(NameNews::Name(&name, change))));
            }
        }
        called
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
