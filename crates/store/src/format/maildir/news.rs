//! What the system has told of names in a Maildir since somebody looked last: so that a look need not list what has not changed.
//!
//! Invariants:
//! - What was told is kept until a look takes it, and a look that fails gives back that anything may have happened.
//! - At most [`NAMES_MAX`] names are kept: with more, listing is cheaper.

use std::collections::BTreeMap;
use std::sync::Mutex;

use platform::{NameChange, NameNews};

use super::account::lock;
use super::listing::Subdir;

/// So many names are kept; `docs/limits.md`.
const NAMES_MAX: usize = 10_000;

/// See the module.
#[derive(Debug)]
pub(super) struct News {
    told: Mutex<Told>,
}

/// What was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Anything may have happened.
    pub(super) is_any: bool,
    /// The system does not tell of names.
    pub(super) is_blind: bool,
    /// What became of each name last.
    pub(super) names: BTreeMap<(Subdir, Vec<u8>), NameChange>,
}

impl Told {
    /// Whether there is nothing to look at.
    pub(super) fn is_nothing(&self) -> bool {
        !self.is_any && self.names.is_empty()
    }
}

impl Default for News {
    /// Before anybody listens nothing is known.
    fn default() -> Self {
        News { told: Mutex::new(Told { is_any: true, is_blind: true, names: BTreeMap::new() }) }
    }
}

impl News {
    /// The system tells from now on; what happened before is not known.
    pub(super) fn begin(&self) {
        *lock(&self.told) = Told { is_any: true, ..Told::default() };
    }

    /// The system has told something.
    pub(super) fn tell(&self, subdir: Subdir, news: NameNews<'_>) {
        let mut told = lock(&self.told);
        match news {
            NameNews::Name(name, change) if !told.is_any => {
                told.names.insert((subdir, name.as_encoded_bytes().to_vec()), change);
                if told.names.len() > NAMES_MAX {
                    told.is_any = true;
                }
            }
            NameNews::Name(..) => {}
            NameNews::Any => told.is_any = true,
            NameNews::Blind => (told.is_any, told.is_blind) = (true, true),
        }
        if told.is_any {
            told.names.clear();
        }
    }

    /// A look could not be finished.
    pub(super) fn lose(&self) {
        let mut told = lock(&self.told);
        told.is_any = true;
        told.names.clear();
    }

    /// Takes what was told; whether the system tells at all stays.
    pub(super) fn take(&self) -> Told {
        let mut told = lock(&self.told);
        let rest = Told { is_blind: told.is_blind, ..Told::default() };
        std::mem::replace(&mut *told, rest)
    }

    /// Whether nothing was told since somebody looked last.
    pub(super) fn is_nothing(&self) -> bool {
        lock(&self.told).is_nothing()
    }

    /// Whether nothing happens of which the system does not tell.
    pub(super) fn is_all_told(&self) -> bool {
        !lock(&self.told).is_blind
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn kept_until_taken() {
        let news = News::default();
        assert!(!news.is_all_told() && news.take().is_any);
        news.begin();
        assert!(news.is_all_told() && news.take().is_any && news.is_nothing());
        let tell = |name: &str, change| news.tell(Subdir::Cur, NameNews::Name(OsStr::new(name), change));
        tell("a", NameChange::Came);
        tell("a", NameChange::Removed);
        let told = news.take();
        assert_eq!(told.names, [((Subdir::Cur, b"a".to_vec()), NameChange::Removed)].into());
        assert!(news.is_nothing());
        for n in 0..=NAMES_MAX {
            tell(&n.to_string(), NameChange::Came);
        }
        assert_eq!(news.take(), Told { is_any: true, ..Told::default() });
        news.tell(Subdir::New, NameNews::Blind);
        assert!(!news.is_all_told() && news.take().is_any && !news.is_all_told());
    }
}
