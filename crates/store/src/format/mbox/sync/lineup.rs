//! Which messages of the log the messages of a file are: by their digests, each of the log for one of the file.
//!
//! Most files are in the order in which they were last seen, so the next expected message is tried first; only when it is another one a table
//! of the digests of all the others is made. Messages that are the same to the octet are as many in the log as there are in the file, and
//! which is which does not matter.

use model::{EmailId, Result};

/// Gives the digest of a message of the log; `None`: it is not to be looked for.
pub(super) type DigestOf<'d> = dyn FnMut(EmailId) -> Result<Option<u64>> + 'd;

/// How many of those that are the same are looked at for one that suits.
const NEAR: usize = 64;

/// The messages that are expected in a file, and which of them were found.
pub(super) struct Lineup {
    expected: Vec<EmailId>,
    found: Vec<bool>,
    /// The place where the next one of the file should be.
    next: usize,
    table: Option<Table>,
}

/// Digest and position of all that were not found when it was made.
struct Table {
    /// Sorted.
    rows: Vec<(u64, u32)>,
    /// For each row the first at or behind it that may not be found yet, as far as is known: runs of equal digests are passed over quickly.
    skip: Vec<u32>,
}

impl Lineup {
    /// `expected` in the order in which they should come.
    pub(super) fn new(expected: Vec<EmailId>) -> Self {
        let found = vec![false; expected.len()];
        Lineup { expected, found, next: 0, table: None }
    }

    fn is_found(&self, position: usize) -> bool {
        self.found.get(position).copied().unwrap_or(true)
    }

    /// The file has a message of this digest: the position of the one that it is. Of several that are the same one that `suits` is taken, if there
    /// is one near.
    pub(super) fn take(
        &mut self,
        digest: u64,
        suits: &dyn Fn(usize) -> bool,
        digest_of: &mut DigestOf<'_>,
    ) -> Result<Option<(usize, EmailId)>> {
        while self.next < self.expected.len() && self.is_found(self.next) {
            self.next += 1;
        }
        if let Some(expected) = self.expected.get(self.next).filter(|_| suits(self.next))
            && digest_of(*expected)? == Some(digest)
        {
            return Ok(self.set_found(self.next));
        }
        self.look_up(digest, suits, digest_of)
    }

    fn set_found(&mut self, position: usize) -> Option<(usize, EmailId)> {
        *self.found.get_mut(position)? = true;
        self.next = position + 1;
        Some((position, *self.expected.get(position)?))
    }

    fn look_up(
        &mut self,
        digest: u64,
        suits: &dyn Fn(usize) -> bool,
        digest_of: &mut DigestOf<'_>,
    ) -> Result<Option<(usize, EmailId)>> {
        let mut table = match self.table.take() {
            Some(table) => table,
            None => self.table(digest_of)?,
        };
        let position = table.find(digest, suits, &self.found);
        self.table = Some(table);
        Ok(position.and_then(|position| self.set_found(position)))
    }

    fn table(&self, digest_of: &mut DigestOf<'_>) -> Result<Table> {
        let mut rows = Vec::new();
        for (position, id) in self.expected.iter().enumerate().filter(|(position, _)| !self.is_found(*position)) {
            if let Some(digest) = digest_of(*id)? {
                rows.push((digest, position as u32));
            }
        }
        rows.sort_unstable();
        let skip = (0..rows.len() as u32).collect();
        Ok(Table { rows, skip })
    }

    /// Those that were not found, with their positions.
    pub(super) fn missing(&self) -> impl Iterator<Item = (usize, EmailId)> + '_ {
        let rows = self.expected.iter().copied().enumerate();
        rows.filter(|(position, _)| !self.is_found(*position))
    }
}

impl Table {
    /// A position with this digest that was not found.
    fn find(&mut self, digest: u64, suits: &dyn Fn(usize) -> bool, found: &[bool]) -> Option<usize> {
        let first = self.rows.partition_point(|row| row.0 < digest);
        let mut at = first;
        let position = loop {
            let row = self.rows.get(at).filter(|row| row.0 == digest)?;
            let skip = *self.skip.get(at)? as usize;
            let position = row.1 as usize;
            if skip > at {
                at = skip;
            } else if found.get(position) == Some(&true) {
                at += 1;
            } else {
                break position;
            }
            // Whoever comes next begins where this one ends.
            if let Some(skip) = self.skip.get_mut(first) {
                *skip = at as u32;
            }
        };
        let near = self.rows.get(at..)?.iter().take(NEAR).take_while(|row| row.0 == digest).map(|row| row.1 as usize);
        let mut open = near.filter(|position| found.get(*position) == Some(&false));
        open.find(|position| suits(*position)).or(Some(position))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashMap;

    use super::*;

    fn positions(expected: &[u64], file: &[u64]) -> (Vec<Option<usize>>, Vec<usize>) {
        // Ids that say nothing of the digests.
        let digests: HashMap<EmailId, u64> =
            expected.iter().enumerate().map(|(n, digest)| (EmailId(n as u64 + 100), *digest)).collect();
        let mut lineup = Lineup::new((0..expected.len()).map(|n| EmailId(n as u64 + 100)).collect());
        let mut digest_of = |id: EmailId| Ok(digests.get(&id).copied().filter(|digest| *digest != 0));
        let found = file.iter().map(|digest| lineup.take(*digest, &|_| true, &mut digest_of).unwrap());
        let found = found.map(|found| found.map(|(position, _)| position)).collect();
        (found, lineup.missing().map(|(position, _)| position).collect())
    }

    #[test]
    fn known_answers() {
        let some = |list: &[usize]| list.iter().map(|n| Some(*n)).collect::<Vec<_>>();
        assert_eq!(positions(&[1, 2, 3], &[1, 2, 3]), (some(&[0, 1, 2]), vec![]));
        assert_eq!(positions(&[1, 2, 3], &[1, 3]), (some(&[0, 2]), vec![1]));
        assert_eq!(positions(&[1, 2], &[9, 1, 2]), (vec![None, Some(0), Some(1)], vec![]));
        assert_eq!(positions(&[1, 2, 3], &[3, 2, 1]), (some(&[2, 1, 0]), vec![]));
        assert_eq!(positions(&[1, 1, 1], &[1, 1]), (some(&[0, 1]), vec![2]));
        assert_eq!(positions(&[1, 1], &[1, 1, 1]), (vec![Some(0), Some(1), None], vec![]));
        // Those without a digest are not looked for.
        assert_eq!(positions(&[0, 1], &[1, 0]), (vec![Some(1), None], vec![0]));
    }

    #[test]
    fn many_that_are_the_same() {
        let (mut expected, mut file) = (vec![7; 100_000], vec![7; 100_000]);
        expected.insert(0, 1);
        file.push(1);
        let (found, missing) = positions(&expected, &file);
        assert!(found.iter().all(Option::is_some) && missing.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn as_many_as_there_are(
            expected in proptest::collection::vec(1u64..5, 0..20),
            file in proptest::collection::vec(1u64..5, 0..20),
        ) {
            let (found, missing) = positions(&expected, &file);
            for digest in 1..5 {
                let count = |list: &[u64]| list.iter().filter(|one| **one == digest).count();
                let pairs = found.iter().zip(&file).filter(|(found, one)| found.is_some() && **one == digest).count();
                proptest::prop_assert_eq!(pairs, count(&expected).min(count(&file)));
                let left = missing.iter().filter(|position| expected[**position] == digest).count();
                proptest::prop_assert_eq!(left, count(&expected) - pairs);
            }
            for (position, digest) in found.iter().zip(&file).filter_map(|(found, one)| found.map(|p| (p, *one))) {
                proptest::prop_assert_eq!(expected[position], digest);
            }
        }
    }
}
