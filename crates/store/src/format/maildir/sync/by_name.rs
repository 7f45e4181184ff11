//! Looking at the names only of which the system has told: what a change costs does not depend on how large the mailbox is.
//!
//! A message whose known file is not there any more, and that no name leads to of which was told, is gone for certain only when the
//! system has told of a removal, or when a file with the same stem has come. Else it may be on its way to a name that is told in a moment:
//! then only a listing helps.

use std::collections::BTreeMap;
use std::io;

use platform::NameChange;

use super::diff::Diff;
use crate::format::maildir::listing::{Listed, Stamp, Subdir};
use crate::format::maildir::map::Position;
use crate::format::maildir::name::Name;
use crate::format::maildir::news::Told;

/// What was told of the names of one base.
#[derive(Default)]
struct OfBase {
    /// Names that it got, and was not told to have lost.
    came: Vec<Listed>,
    is_removed: bool,
}

/// Gives the file of a base, and where it is.
type FileOf<'a> = dyn FnMut(&[u8]) -> Option<(Position, Listed)> + 'a;

/// What is different, as far as was told; `None`: the directories have to be listed. `stamp` was taken after the news; `known` gives the file of
/// a base.
pub(super) fn look(
    told: &Told,
    stamp: Stamp,
    known: &mut FileOf<'_>,
    is_there: &mut dyn FnMut(Subdir, &[u8]) -> io::Result<bool>,
) -> io::Result<Option<Diff>> {
    let mut bases: BTreeMap<&[u8], OfBase> = BTreeMap::new();
    for ((subdir, name), change) in &told.names {
        let Some(parsed) = Name::parse(name) else { continue };
        let base = bases.entry(parsed.base).or_default();
        match change {
            NameChange::Came => {
                base.came.push(Listed { subdir: *subdir, name: name.clone(), base_len: parsed.base.len() });
            }
            NameChange::Removed => base.is_removed = true,
            NameChange::Left => {}
        }
    }
    let mut diff = Diff::at(stamp);
    let mut gone: Vec<(Position, &[u8], bool)> = Vec::new();
    for (base, news) in &bases {
        let known = known(base);
        // Our own changes, for the most part.
        if let ([came], Some((_, known))) = (news.came.as_slice(), &known)
            && came == known
        {
            continue;
        }
        let mut found: Option<&Listed> = None;
        for file in known.iter().map(|(_, file)| file).chain(&news.came) {
            // Of two files the one in `cur`.
            let is_better = found.is_none_or(|found| found.subdir == Subdir::New);
            if is_better && is_there(file.subdir, &file.name)? {
                found = Some(file);
            }
        }
        match (known.as_ref(), found) {
            (None, None) => {}
            (None, Some(file)) => diff.unknown.push(file.clone()),
            (Some((position, was)), Some(file)) if was != file => {
                diff.moved(was.letters(), *position, file.clone());
            }
            (Some(_), Some(_)) => {}
            (Some((position, _)), None) => gone.push((*position, base, news.is_removed)),
        }
    }
    let stem = |name: &[u8]| Name::parse(name).map(|name| name.stem().to_vec());
    for (position, base, is_removed) in gone {
        let is_renamed = diff.unknown.iter().any(|file| stem(&file.name) == stem(base));
        if !is_removed && !is_renamed {
            return Ok(None);
        }
        diff.missing.push(position);
    }
    Ok(Some(diff))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use model::EmailId;

    use super::*;
    use crate::format::maildir::listing::listed;
    use crate::format::maildir::map::Map;

    fn map() -> Map {
        let mut map = Map::default();
        for (uid, name) in [(1, "a:2,"), (2, "b:2,S"), (3, "c:2,")] {
            map.insert(uid, EmailId(u64::from(uid)), &listed(Subdir::Cur, name));
        }
        map
    }

    /// What is found out when `told` was told and `there` is there: `+new`, `UID>name`, `-UID`, `?`.
    fn found(told: &[(&str, NameChange)], there: &[&str]) -> String {
        let names = told.iter().map(|(path, change)| {
            let (subdir, name) = path.split_once('/').unwrap();
            let subdir = if subdir == "new" { Subdir::New } else { Subdir::Cur };
            ((subdir, name.as_bytes().to_vec()), *change)
        });
        let told = Told { names: names.collect(), ..Told::default() };
        let there: BTreeSet<String> = there.iter().map(|path| (*path).to_owned()).collect();
        let mut is_there = |subdir: Subdir, name: &[u8]| {
            Ok(there.contains(&format!("{}/{}", subdir.as_str(), String::from_utf8_lossy(name))))
        };
        let mut map = map();
        let stamp = Diff::default().stamp;
        let mut known = |base: &[u8]| map.file_of_base(base);
        let Some(diff) = look(&told, stamp, &mut known, &mut is_there).unwrap() else { return "?".to_owned() };
        let text = |file: &Listed| format!("{}/{}", file.subdir.as_str(), String::from_utf8_lossy(&file.name));
        let uid = |position: &Position| map.at(*position).unwrap().uid;
        let mut out: Vec<String> = diff.unknown.iter().map(|file| format!("+{}", text(file))).collect();
        out.extend(diff.moved.iter().map(|(position, file)| format!("{}>{}", uid(position), text(file))));
        out.extend(diff.missing.iter().map(|position| format!("-{}", uid(position))));
        out.join(" ")
    }

    #[test]
    fn what_was_told_and_what_is_there() {
        use NameChange::{Came, Left, Removed};
        assert_eq!(found(&[("new/d", Came), ("new/.x", Came)], &["new/d"]), "+new/d");
        assert_eq!(found(&[("new/d", Left), ("cur/d:2,", Came)], &["cur/d:2,"]), "+cur/d:2,");
        // Delivered, and gone again.
        assert_eq!(found(&[("new/d", Removed)], &[]), "");
        // Ours: nothing has to be asked.
        assert_eq!(found(&[("cur/a:2,", Came), ("cur/a:2,F", Left)], &[]), "");
        assert_eq!(found(&[("cur/a:2,", Left), ("cur/a:2,F", Came)], &["cur/a:2,F"]), "1>cur/a:2,F");
        assert_eq!(found(&[("cur/a:2,", Left), ("new/a", Came)], &["new/a"]), "1>new/a");
        assert_eq!(found(&[("cur/b:2,S", Removed)], &[]), "-2");
        // Moved away, or on its way: nobody knows.
        assert_eq!(found(&[("cur/b:2,S", Left)], &[]), "?");
        assert_eq!(found(&[("cur/b:2,S", Left), ("cur/b:2,", Came)], &[]), "?");
        // mbsync adds a field.
        assert_eq!(found(&[("cur/b:2,S", Left), ("cur/b,U=1:2,S", Came)], &["cur/b,U=1:2,S"]), "+cur/b,U=1:2,S -2");
        // Linked, and then removed: the other name stays, whichever was told first.
        assert_eq!(found(&[("new/c", Removed)], &["cur/c:2,"]), "");
        assert_eq!(found(&[("new/c", Came), ("cur/c:2,", Removed)], &["new/c"]), "3>new/c");
        assert_eq!(found(&[("new/c", Came)], &["new/c", "cur/c:2,"]), "");
    }
}
