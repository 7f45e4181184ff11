//! Flags of an entry: the system flags of RFC 9051 §2.3.2 and the keywords of one mailbox, as bits.
//!
//! Which keyword a bit stands for is the [`KeywordTable`] of the entry's mailbox; a bit never changes its meaning.

use std::fmt;

use crate::{Error, ErrorKind, Result, limits};

/// The system flags, by their bit in [`Flags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SystemFlag {
    /// `\Answered`
    Answered = 0,
    /// `\Flagged`
    Flagged = 1,
    /// `\Deleted`
    Deleted = 2,
    /// `\Seen`
    Seen = 3,
    /// `\Draft`
    Draft = 4,
}

/// All system flags, in the order of their bits.
pub const SYSTEM_FLAGS: [SystemFlag; 5] =
    [SystemFlag::Answered, SystemFlag::Flagged, SystemFlag::Deleted, SystemFlag::Seen, SystemFlag::Draft];

impl SystemFlag {
    /// The name with its backslash.
    pub const fn as_str(self) -> &'static str {
        match self {
            SystemFlag::Answered => "\\Answered",
            SystemFlag::Flagged => "\\Flagged",
            SystemFlag::Deleted => "\\Deleted",
            SystemFlag::Seen => "\\Seen",
            SystemFlag::Draft => "\\Draft",
        }
    }

    /// Reads a name with its backslash, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        SYSTEM_FLAGS.into_iter().find(|flag| flag.as_str().eq_ignore_ascii_case(name))
    }
}

/// A set of flags of one entry. Bits 0 to 4 are system flags, 5 to 7 are kept free, 8 to 127 are keywords of the mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flags(pub u128);

impl Flags {
    /// No flag at all.
    pub const NONE: Flags = Flags(0);
    const KEYWORD_BIT_FIRST: usize = 8;

    /// Just this system flag.
    pub const fn system(flag: SystemFlag) -> Flags {
        Flags(1 << flag as u8)
    }

    /// Just the keyword at `index` in the mailbox's table.
    pub fn keyword(index: usize) -> Flags {
        assert!(index < limits::KEYWORDS_PER_MAILBOX_MAX, "the table has no such index");
        Flags(1 << (Self::KEYWORD_BIT_FIRST + index))
    }

    /// Whether any of `other` is set here.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether this system flag is set.
    pub const fn has(self, flag: SystemFlag) -> bool {
        self.intersects(Flags::system(flag))
    }

    /// These and those.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These without those.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// The system flags that are set.
    pub fn system_flags(self) -> impl Iterator<Item = SystemFlag> + 'static {
        SYSTEM_FLAGS.into_iter().filter(move |flag| self.has(*flag))
    }

    /// The indexes of the keywords that are set.
    pub fn keyword_indexes(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0 >> Self::KEYWORD_BIT_FIRST;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let index = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(index)
        })
    }
}

/// How STORE changes flags (RFC 9051 §6.4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagChange {
    /// `FLAGS`: these and no others.
    Replace(Flags),
    /// `+FLAGS`
    Add(Flags),
    /// `-FLAGS`
    Remove(Flags),
}

impl FlagChange {
    /// What an entry with `flags` has afterwards.
    #[must_use]
    pub const fn apply(self, flags: Flags) -> Flags {
        match self {
            FlagChange::Replace(new) => new,
            FlagChange::Add(more) => flags.with(more),
            FlagChange::Remove(less) => flags.without(less),
        }
    }
}

/// A keyword: an atom (RFC 9051 §9 flag-keyword), compared without regard to case, kept as first written.
#[derive(Clone, Debug)]
pub struct Keyword(String);

impl Keyword {
    /// Checks that `name` is an atom of at most [`limits::KEYWORD_BYTES_MAX`] octets.
    pub fn new(name: &str) -> Result<Self> {
        if name.len() > limits::KEYWORD_BYTES_MAX {
            return Err(Error::over_limit("keyword_bytes_max", "the keyword is too long"));
        }
        // RFC 9051 §9 atom-specials: ( ) { SP CTL % * " \ ]
        let is_atom_char = |b: u8| (0x21..0x7f).contains(&b) && !b"(){%*\"\\]".contains(&b);
        if name.is_empty() || !name.bytes().all(is_atom_char) {
            return Err(Error::new(ErrorKind::Invalid, format!("{name:?} is no keyword")));
        }
        Ok(Keyword(name.to_owned()))
    }

    /// The keyword as it was first written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Keyword {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}
impl Eq for Keyword {}

impl fmt::Display for Keyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keywords of one mailbox, by bit. It only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeywordTable(Vec<Keyword>);

impl KeywordTable {
    /// The keywords in the order of their indexes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Keyword> {
        self.0.iter()
    }

    /// The keyword at `index`.
    pub fn name(&self, index: usize) -> Option<&Keyword> {
        self.0.get(index)
    }

    /// The index of `keyword`, if the mailbox has it.
    pub fn find(&self, keyword: &Keyword) -> Option<usize> {
        self.0.iter().position(|known| known == keyword)
    }

    /// The index of `keyword`, which is added when it is new.
    pub fn insert(&mut self, keyword: Keyword) -> Result<usize> {
        if let Some(index) = self.find(&keyword) {
            return Ok(index);
        }
        if self.0.len() >= limits::KEYWORDS_PER_MAILBOX_MAX {
            return Err(Error::over_limit(
                "keywords_per_mailbox_max",
                "the mailbox has all the keywords that it can have",
            ));
        }
        self.0.push(keyword);
        Ok(self.0.len() - 1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of `flags`, system flags first: `\Seen`, `$Junk`.
    pub fn names(&self, flags: Flags) -> impl Iterator<Item = &str> + '_ {
        let system = flags.system_flags().map(|flag| flag.as_str());
        system.chain(flags.keyword_indexes().filter_map(|index| self.name(index).map(Keyword::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyword_characters_are_those_of_an_atom() {
        for byte in 0..=255u8 {
            let name = char::from(byte).to_string();
            let expected = byte > 0x20 && byte < 0x7f && !"(){%*\"\\]".contains(char::from(byte));
            assert_eq!(Keyword::new(&name).is_ok(), expected, "byte {byte}");
        }
    }

    #[test]
    fn a_table_keeps_bits_and_ends() {
        let mut table = KeywordTable::default();
        for n in 0..limits::KEYWORDS_PER_MAILBOX_MAX {
            assert_eq!(table.insert(Keyword::new(&format!("k{n}")).unwrap()).unwrap(), n);
        }
        assert_eq!(table.insert(Keyword::new("K7").unwrap()).unwrap(), 7);
        let error = table.insert(Keyword::new("more").unwrap()).unwrap_err();
        assert_eq!(error.limit(), Some("keywords_per_mailbox_max"));
        let flags = Flags::system(SystemFlag::Seen).with(Flags::keyword(0)).with(Flags::keyword(119));
        assert_eq!(table.names(flags).collect::<Vec<_>>(), ["\\Seen", "k0", "k119"]);
    }

    #[test]
    fn changes_apply() {
        let (seen, deleted) = (Flags::system(SystemFlag::Seen), Flags::system(SystemFlag::Deleted));
        assert_eq!(FlagChange::Add(deleted).apply(seen), seen.with(deleted));
        assert_eq!(FlagChange::Remove(seen).apply(seen.with(deleted)), deleted);
        assert_eq!(FlagChange::Replace(deleted).apply(seen), deleted);
    }
}
