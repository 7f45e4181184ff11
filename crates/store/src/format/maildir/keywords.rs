//! `dovecot-keywords`: which keywords the letters `a` to `z` in the file names of a mailbox stand for.
//!
//! ```text
//! 0 $Junk
//! 1 $NonJunk
//! ```
//!
//! 0 is the letter `a`. Each mailbox has its own; the file is replaced as a whole, while `dovecot-uidlist` is locked.
//!
//! Invariant: a letter that has ever been taken stays taken, also by a name that is no keyword of IMAP: there may be files with that letter. Lines
//! that say no letter are kept for those who wrote them.

use model::Keyword;

use super::name::{Letters, number};
use super::uidlist::Lines;

/// Letters that names can have.
pub(crate) const LETTERS: usize = 26;

/// What the letters stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keywords {
    /// As the file has them: any octets but LF.
    names: [Option<Vec<u8>>; LETTERS],
    /// Lines that say no letter: higher numbers, and lines without one.
    others: Vec<Vec<u8>>,
}

impl Keywords {
    /// Reads a file; of a letter that is there twice the first line counts. A last line without an end counts as well: the file is never appended to.
    pub(crate) fn parse(bytes: &[u8]) -> Keywords {
        let mut keywords = Keywords::default();
        let mut lines = Lines(bytes);
        let mut read = |line: &[u8]| {
            let parsed = memchr::memchr(b' ', line).and_then(|at| {
                let name = line.get(at + 1..).filter(|name| !name.is_empty())?;
                Some((number::<usize>(line.get(..at)?)?, name))
            });
            match parsed.and_then(|(at, name)| Some((keywords.names.get_mut(at)?, name))) {
                Some((slot, name)) => {
                    slot.get_or_insert_with(|| name.to_vec());
                }
                None if line.is_empty() => {}
                None => keywords.others.push(line.to_vec()),
            }
        };
        for line in &mut lines {
            read(line);
        }
        if !lines.0.is_empty() {
            read(lines.0);
        }
        keywords
    }

    /// The file.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (at, name) in self.names.iter().enumerate() {
            if let Some(name) = name {
                out.extend_from_slice(at.to_string().as_bytes());
                out.push(b' ');
                out.extend_from_slice(name);
                out.push(b'\n');
            }
        }
        for line in &self.others {
            out.extend_from_slice(line);
            out.push(b'\n');
        }
        out
    }

    /// What `letter` stands for; `None` also for a name that IMAP cannot have.
    pub(crate) fn keyword(&self, letter: u8) -> Option<Keyword> {
        let name = self.names.get(usize::from(letter.checked_sub(b'a')?))?.as_deref()?;
        Keyword::new(std::str::from_utf8(name).ok()?).ok()
    }

    /// The keywords of some letters, each once, and how many letters stand for none.
    pub(crate) fn of(&self, letters: Letters) -> (Vec<Keyword>, usize) {
        let (mut found, mut unknown) = (Vec::new(), 0);
        for letter in letters.keywords() {
            match self.keyword(letter) {
                Some(keyword) if found.contains(&keyword) => {}
                Some(keyword) => found.push(keyword),
                None => unknown += 1,
            }
        }
        (found, unknown)
    }

    /// The letter of a keyword that has one.
    pub(crate) fn letter(&self, keyword: &Keyword) -> Option<u8> {
        let is_it = |name: &Vec<u8>| name.eq_ignore_ascii_case(keyword.as_str().as_bytes());
        let at = self.names.iter().position(|name| name.as_ref().is_some_and(is_it))?;
        letter_at(at)
    }

    /// Whether a letter is free.
    pub(crate) fn has_room(&self) -> bool {
        self.names.iter().any(Option::is_none)
    }

    /// The letter of a keyword, which gets the first free one when it has none. `None`: all are taken.
    pub(crate) fn assign(&mut self, keyword: &Keyword) -> Option<u8> {
        if let Some(letter) = self.letter(keyword) {
            return Some(letter);
        }
        let (at, slot) = self.names.iter_mut().enumerate().find(|(_, name)| name.is_none())?;
        *slot = Some(keyword.as_str().as_bytes().to_vec());
        letter_at(at)
    }
}

fn letter_at(at: usize) -> Option<u8> {
    b'a'.checked_add(u8::try_from(at).ok()?).filter(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn keyword(name: &str) -> Keyword {
        Keyword::new(name).unwrap()
    }

    #[test]
    fn dovecots_file() {
        let text = b"0 $Junk\n1 $NonJunk\n25 last\n26 $Label27\nodd\n";
        let keywords = Keywords::parse(text);
        assert_eq!(keywords.keyword(b'a'), Some(keyword("$Junk")));
        assert_eq!(keywords.keyword(b'z'), Some(keyword("last")));
        assert_eq!((keywords.letter(&keyword("$nonjunk")), keywords.letter(&keyword("$Label27"))), (Some(b'b'), None));
        assert_eq!(keywords.write(), text);
        for byte in 0..=255u8 {
            assert_eq!(keywords.keyword(byte).is_some(), matches!(byte, b'a' | b'b' | b'z'), "{byte}");
        }
    }

    #[test]
    fn a_letter_that_was_taken_stays_taken() {
        let mut keywords = Keywords::parse(b"1 a b\n0 x\n0 y\n\n3 \n2 Q");
        assert_eq!((keywords.keyword(b'b'), keywords.keyword(b'a')), (None, Some(keyword("x"))));
        assert_eq!(keywords.assign(&keyword("q")), Some(b'c'));
        assert_eq!(keywords.assign(&keyword("new")), Some(b'd'));
        assert_eq!(keywords.write(), b"0 x\n1 a b\n2 Q\n3 new\n3 \n");
        assert_eq!(keywords.of(Letters::read(b"SabdZe")), (vec![keyword("x"), keyword("new")], 2));
    }

    #[test]
    fn there_are_so_many_letters() {
        let mut keywords = Keywords::default();
        for at in 0..LETTERS {
            assert_eq!(keywords.assign(&keyword(&format!("k{at}"))), letter_at(at));
        }
        assert_eq!(keywords.assign(&keyword("more")), None);
        assert_eq!(keywords.assign(&keyword("K25")), Some(b'z'));
        assert_eq!(Keywords::parse(&keywords.write()), keywords);
    }

    proptest::proptest! {
        #[test]
        fn any_octets_come_back(text in "([0-9]{0,2} ?[a-z $\u{e9}]{0,3}\n?){0,12}") {
            let keywords = Keywords::parse(text.as_bytes());
            let written = keywords.write();
            proptest::prop_assert_eq!(Keywords::parse(&written), keywords);
        }
    }
}
