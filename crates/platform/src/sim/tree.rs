//! The names of the simulated disk: directories as programs see them and as the journal has them.
//!
//! Every change of names is one [`Change`]: a few entries in one or two directories, put or taken together. Programs
//! see it at once; the disk has it after a sync of one of its directories. Changes in one directory become durable
//! in their order, and a change in two directories (a rename between them) in the order of both, so that what a power
//! cut leaves in a directory is always something that the directory once was.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;

use super::faults::Stats;
use super::hold;
use super::image::Image;
use super::lock::Locks;
use super::space::Space;
use crate::clock::Timestamp;
use crate::disk::Metadata;
use crate::random::Prng;

/// The number of the only file system.
pub(super) const SIM_DEVICE: u64 = 1;

/// The names in a directory.
pub(super) type Entries = BTreeMap<OsString, Node>;

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Node {
    File(Arc<FileNode>),
    Dir(Arc<DirNode>),
}

impl Node {
    pub(super) fn inode(&self) -> u64 {
        match self {
            Node::File(file) => file.inode,
            Node::Dir(dir) => dir.inode,
        }
    }
}

/// A file, whatever its names are.
pub(super) struct FileNode {
    pub(super) inode: u64,
    pub(super) state: Mutex<FileState>,
}

/// The changing part of a file.
pub(super) struct FileState {
    pub(super) image: Image,
    pub(super) modified: Timestamp,
    pub(super) changed: Timestamp,
    /// How many visible names it has.
    pub(super) links: u64,
    pub(super) stats: Stats,
    pub(super) locks: Locks,
    /// Shared with every map of the file, so that its count tells whether there are any.
    pub(super) maps: Arc<()>,
}

impl FileNode {
    pub(super) fn new(inode: u64, image: Image, modified: Timestamp) -> Arc<Self> {
        let state = FileState {
            image,
            modified,
            changed: modified,
            links: 0,
            stats: Stats::default(),
            locks: Locks::default(),
            maps: Arc::new(()),
        };
        Arc::new(Self { inode, state: Mutex::new(state) })
    }

    pub(super) fn metadata(&self) -> Metadata {
        let state = hold(&self.state);
        Metadata {
            len: state.image.len() as u64,
            allocated_bytes: state.image.allocated_bytes(),
            is_dir: false,
            is_file: true,
            modified: state.modified,
            inode: self.inode,
            device: SIM_DEVICE,
            links: state.links,
            changed: state.changed,
        }
    }
}

/// A directory.
pub(super) struct DirNode {
    pub(super) inode: u64,
    pub(super) state: Mutex<DirState>,
}

/// The changing part of a directory.
pub(super) struct DirState {
    pub(super) visible: Entries,
    durable: Entries,
    pub(super) modified: Timestamp,
}

impl DirNode {
    pub(super) fn new(inode: u64, modified: Timestamp) -> Arc<Self> {
        Self::with_entries(inode, Entries::new(), modified)
    }

    fn with_entries(inode: u64, entries: Entries, modified: Timestamp) -> Arc<Self> {
        let state = DirState { visible: entries.clone(), durable: entries, modified };
        Arc::new(Self { inode, state: Mutex::new(state) })
    }

    pub(super) fn entry(&self, name: &OsStr) -> Option<Node> {
        hold(&self.state).visible.get(name).cloned()
    }
}

/// One entry of one directory, put or (with no node) taken.
#[derive(Clone)]
pub(super) struct Edit {
    pub(super) dir: Arc<DirNode>,
    pub(super) name: OsString,
    pub(super) node: Option<Node>,
}

/// Edits that the disk gets together or not at all.
pub(super) type Change = Vec<Edit>;

/// All names of a disk.
pub(super) struct Tree {
    pub(super) root: Arc<DirNode>,
    /// Visible, but not durable yet, oldest first.
    pending: Vec<Change>,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({} pending)", self.pending.len())
    }
}

impl Tree {
    pub(super) fn new(root_inode: u64, now: Timestamp) -> Self {
        Self { root: DirNode::new(root_inode, now), pending: Vec::new() }
    }

    /// What a path leads to.
    pub(super) fn find(&self, path: &Path) -> Result<Node, Errno> {
        let mut node = Node::Dir(Arc::clone(&self.root));
        for name in names(path)? {
            let Node::Dir(dir) = node else { return Err(Errno::NOTDIR) };
            node = dir.entry(name).ok_or(Errno::NOENT)?;
        }
        Ok(node)
    }

    pub(super) fn find_dir(&self, path: &Path) -> Result<Arc<DirNode>, Errno> {
        match self.find(path)? {
            Node::Dir(dir) => Ok(dir),
            Node::File(_) => Err(Errno::NOTDIR),
        }
    }

    /// The directory of a path's last name, and that name; `EBUSY` for the root.
    pub(super) fn find_parent<'a>(&self, path: &'a Path) -> Result<(Arc<DirNode>, &'a OsStr), Errno> {
        let mut names = names(path)?;
        let last = names.pop().ok_or(Errno::BUSY)?;
        let mut dir = Arc::clone(&self.root);
        for name in names {
            match dir.entry(name).ok_or(Errno::NOENT)? {
                Node::Dir(next) => dir = next,
                Node::File(_) => return Err(Errno::NOTDIR),
            }
        }
        Ok((dir, last))
    }

    /// Makes a change visible; it is pending from now on.
    pub(super) fn change(&mut self, change: Change, now: Timestamp) {
        for edit in &change {
            let mut dir = hold(&edit.dir.state);
            let old = edit_entries(&mut dir.visible, edit);
            dir.modified = now;
            if let Some(Node::File(file)) = old {
                let mut state = hold(&file.state);
                state.links -= 1;
                state.changed = now;
            }
            if let Some(Node::File(file)) = &edit.node {
                let mut state = hold(&file.state);
                state.links += 1;
                state.changed = now;
            }
        }
        self.pending.push(change);
    }

    /// Makes the changes of a directory durable, and those others that stand before them in the order of a
    /// directory that they share.
    pub(super) fn sync_dir(&mut self, inode: u64) {
        let mut dirs = HashSet::from([inode]);
        let mut chosen = vec![false; self.pending.len()];
        for (change, chosen) in self.pending.iter().zip(&mut chosen).rev() {
            if change.iter().any(|edit| dirs.contains(&edit.dir.inode)) {
                *chosen = true;
                dirs.extend(change.iter().map(|edit| edit.dir.inode));
            }
        }
        let mut chosen = chosen.into_iter();
        self.pending.retain(|change| {
            let chosen = chosen.next().unwrap_or(false);
            if chosen {
                for edit in change {
                    edit_entries(&mut hold(&edit.dir.state).durable, edit);
                }
            }
            !chosen
        });
    }

    /// Makes all changes durable.
    pub(super) fn sync_all(&mut self) {
        for edit in self.pending.drain(..).flatten() {
            edit_entries(&mut hold(&edit.dir.state).durable, &edit);
        }
    }

    /// The tree as it is found after a power cut at this moment.
    pub(super) fn after_crash(&self, prng: &mut Prng, space: &Arc<Space>) -> Self {
        let mut survivors: HashMap<u64, Entries> = HashMap::new();
        for change in self.choose_changes(prng) {
            for edit in change {
                let entries = survivors.entry(edit.dir.inode).or_insert_with(|| hold(&edit.dir.state).durable.clone());
                edit_entries(entries, edit);
            }
        }
        let mut rebuild = Rebuild { survivors, files: HashMap::new(), prng, space };
        Self { root: rebuild.dir(&self.root), pending: Vec::new() }
    }

    /// Draws the pending changes that survive: in each directory the first few.
    fn choose_changes(&self, prng: &mut Prng) -> Vec<&Change> {
        let mood = prng.below(4);
        let mut cut = HashSet::new();
        let mut kept = Vec::new();
        for change in &self.pending {
            let survives = match mood {
                0 => false,
                1 => true,
                _ => !prng.one_in(4),
            };
            if survives && !change.iter().any(|edit| cut.contains(&edit.dir.inode)) {
                kept.push(change);
            } else {
                cut.extend(change.iter().map(|edit| edit.dir.inode));
            }
        }
        kept
    }
}

/// Builds the tree of after a power cut beside the old one, which the handles from before still hold.
struct Rebuild<'a> {
    survivors: HashMap<u64, Entries>,
    /// Files built already: a file with two names stays one file.
    files: HashMap<u64, Arc<FileNode>>,
    prng: &'a mut Prng,
    space: &'a Arc<Space>,
}

impl Rebuild<'_> {
    fn dir(&mut self, old: &Arc<DirNode>) -> Arc<DirNode> {
        let (durable, modified) = {
            let state = hold(&old.state);
            (self.survivors.remove(&old.inode).unwrap_or_else(|| state.durable.clone()), state.modified)
        };
        let entries = durable.into_iter().map(|(name, node)| (name, self.node(&node))).collect();
        DirNode::with_entries(old.inode, entries, modified)
    }

    fn node(&mut self, old: &Node) -> Node {
        match old {
            Node::Dir(dir) => Node::Dir(self.dir(dir)),
            Node::File(file) => {
                if let Some(built) = self.files.get(&file.inode) {
                    hold(&built.state).links += 1;
                    return Node::File(Arc::clone(built));
                }
                let state = hold(&file.state);
                let image = state.image.after_crash(self.prng, Arc::clone(self.space));
                let built = FileNode::new(file.inode, image, state.modified);
                hold(&built.state).changed = state.changed;
                hold(&built.state).links = 1;
                self.files.insert(file.inode, Arc::clone(&built));
                Node::File(built)
            }
        }
    }
}

/// Puts or takes one entry; gives what stood there.
fn edit_entries(entries: &mut Entries, edit: &Edit) -> Option<Node> {
    match &edit.node {
        Some(node) => entries.insert(edit.name.clone(), node.clone()),
        None => entries.remove(&edit.name),
    }
}

/// The names along a path from the root; relative paths start there too. `..` is refused: the store makes no such
/// paths, and one that turns up came from a name that should have been checked.
pub(super) fn names(path: &Path) -> Result<Vec<&OsStr>, Errno> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => names.push(name),
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL),
        }
    }
    Ok(names)
}
