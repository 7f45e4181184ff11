//! What a look at a Maildir shows that the map does not know. Decides, and touches nothing.

use std::collections::{BTreeMap, HashSet};

use crate::format::maildir::listing::{Listed, Look, Stamp, Subdir};
use crate::format::maildir::map::{Map, Position};
use crate::format::maildir::name::Letters;
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
    /// None yet.
    pub(super) fn at(stamp: Stamp) -> Diff {
        Diff { stamp, ..Diff::default() }
    }

    /// Holds a look against the map. Of two files with the same base the later counts: the one in `cur`.
    pub(super) fn new(map: &mut Map, look: Look) -> Diff {
        let mut diff =
            Diff { is_stable: look.is_stable, is_whole: look.read.len() == Subdir::ALL.len(), ..Diff::at(look.stamp) };
        let mut seen: HashSet<Position> = HashSet::with_capacity(map.records().len());
        let mut unknown: BTreeMap<Vec<u8>, Listed> = BTreeMap::new();
        for file in look.files {
            let found = map.find_base(file.base()).and_then(|position| Some((position, map.at(position)?)));
            let Some((position, record)) = found else {
                unknown.insert(file.base().to_vec(), file);
                continue;
            };
            if !seen.insert(position) {
                diff.moved.retain(|(other, _)| *other != position);
            }
            if map.name(&record) != file.name || record.subdir != file.subdir {
                diff.moved(map.letters(&record), position, file);
            }
        }
        diff.unknown.extend(unknown.into_values());
        let should_be =
            |position: &Position| map.at(*position).is_some_and(|record| look.read.contains(&record.subdir));
        diff.missing.extend(map.positions().filter(|position| !seen.contains(position) && should_be(position)));
        diff
    }

    /// A file that is known has another name now.
    pub(super) fn moved(&mut self, was: Letters, position: Position, file: Listed) {
        let is = file.letters();
        self.changed_letters = self.changed_letters.union(was.difference(is)).union(is.difference(was));
        self.moved.push((position, file));
    }

    /// All files are gone, with their directories.
    pub(super) fn all_gone(map: &Map) -> Diff {
        Diff { missing: map.positions().collect(), ..Diff::default() }
    }

    /// Whether keywords are concerned.
    pub(super) fn has_keywords(&self) -> bool {
        self.changed_letters.keywords().next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use model::EmailId;

    use super::*;
    use crate::format::maildir::listing::listed;

    #[test]
    fn a_base_counts_once() {
        let mut map = Map::default();
        map.insert(1, EmailId(1), &listed(Subdir::New, "a"));
        map.insert(2, EmailId(2), &listed(Subdir::Cur, "b:2,"));
        let files = [(Subdir::New, "a"), (Subdir::New, "c"), (Subdir::Cur, "a:2,S"), (Subdir::Cur, "c:2,")];
        let files = files.map(|(subdir, name)| listed(subdir, name)).to_vec();
        let look = Look { stamp: Diff::default().stamp, is_stable: true, read: Subdir::ALL.to_vec(), files };
        let diff = Diff::new(&mut map, look);
        assert_eq!(diff.moved, [(Position::Live(0), listed(Subdir::Cur, "a:2,S"))]);
        assert_eq!((diff.unknown, diff.missing), (vec![listed(Subdir::Cur, "c:2,")], vec![Position::Live(1)]));
    }
}
