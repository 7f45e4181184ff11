//! What a look at a Maildir shows that the map does not know. Decides, and touches nothing.

use std::collections::HashSet;

use crate::format::maildir::listing::{Listed, Look, Stamp, Subdir};
use crate::format::maildir::map::{Map, Position};
use crate::format::maildir::name::{Letters, Name};
use crate::format::mbox::identity::Identity;

/// The difference.
#[derive(Clone, Debug)]
pub(super) struct Diff {
    /// Files that are known and have another name now, or are in the other directory.
    pub(super) moved: Vec<(Position, Listed)>,
    /// Files with a base that is not known.
    pub(super) unknown: Vec<Listed>,
    /// Files that were not seen and should have been.
    pub(super) missing: Vec<Position>,
    /// Letters of keywords that came or went.
    changed_letters: Letters,
    pub(super) stamp: Stamp,
    pub(super) is_stable: bool,
    /// Both directories were read.
    pub(super) is_whole: bool,
}

impl Default for Diff {
    fn default() -> Self {
        let none = Identity { device: 0, inode: 0, len: 0, modified: Default::default(), changed: Default::default() };
        Diff {
            moved: Vec::new(),
            unknown: Vec::new(),
            missing: Vec::new(),
            changed_letters: Letters::default(),
            stamp: Stamp { new: none, cur: none },
            is_stable: true,
            is_whole: true,
        }
    }
}

impl Diff {
    /// Holds a look against the map.
    pub(super) fn new(map: &Map, look: Look) -> Diff {
        let by_base = map.by_base();
        let mut diff = Diff {
            stamp: look.stamp,
            is_stable: look.is_stable,
            is_whole: look.read.len() == Subdir::ALL.len(),
            ..Diff::default()
        };
        let mut seen: HashSet<Position> = HashSet::with_capacity(by_base.len());
        for file in look.files {
            let Some(position) = by_base.get(file.base()).copied() else {
                diff.unknown.push(file);
                continue;
            };
            seen.insert(position);
            let Some(record) = map.at(position) else { continue };
            if map.name(&record) != file.name || record.subdir != file.subdir {
                let (was, is) = (map.letters(&record), letters(&file));
                diff.changed_letters = diff.changed_letters.union(was.difference(is)).union(is.difference(was));
                diff.moved.push((position, file));
            }
        }
        let should_be =
            |position: &Position| map.at(*position).is_some_and(|record| look.read.contains(&record.subdir));
        diff.missing =
            by_base.into_values().filter(|position| !seen.contains(position) && should_be(position)).collect();
        diff.missing.sort_unstable();
        diff
    }

    /// All files are gone, with their directories.
    pub(super) fn all_gone(map: &Map) -> Diff {
        Diff { missing: map.by_base().into_values().collect(), ..Diff::default() }
    }

    /// Whether keywords are concerned.
    pub(super) fn has_keywords(&self) -> bool {
        self.changed_letters.keywords().next().is_some()
    }
}

/// The flags that a file's name says.
pub(super) fn letters(file: &Listed) -> Letters {
    Name::parse(&file.name).map(|name| name.letters()).unwrap_or_default()
}
