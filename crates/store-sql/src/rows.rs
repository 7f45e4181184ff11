//! Statements with many rows, and sets of UIDs as conditions.

use model::UidSet;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};

use crate::failure::Failure;

/// Rows in one statement, largest first: few sizes, so that the prepared statements are few.
const SIZES: [usize; 3] = [64, 8, 1];
/// Bytes of values in one statement, about: below the smallest packet that servers take by default.
const BYTES_MAX: usize = 3 << 20;
/// Ranges of UIDs in one statement. Above 1000 MariaDB makes a table of a list.
const RANGES_MAX: usize = 900;

/// Rows on their way into one table.
#[derive(Debug)]
pub(crate) struct Insert {
    /// `INSERT INTO t (a, b)`.
    head: &'static str,
    /// What follows the rows.
    tail: &'static str,
    columns: usize,
    values: Vec<Value>,
    bytes: usize,
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.len(),
        _ => 8,
    }
}

impl Insert {
    pub(crate) fn new(head: &'static str, columns: usize) -> Self {
        Self::or_else(head, columns, "")
    }

    /// With an `ON DUPLICATE KEY …` behind the rows.
    pub(crate) fn or_else(head: &'static str, columns: usize, tail: &'static str) -> Self {
        Insert { head, tail, columns, values: Vec::new(), bytes: 0 }
    }

    pub(crate) fn head(&self) -> &'static str {
        self.head
    }

    /// Adds a row of as many values as there are columns.
    pub(crate) fn row(&mut self, values: impl IntoIterator<Item = Value>) {
        let from = self.values.len();
        self.values.extend(values);
        debug_assert_eq!(self.values.len() - from, self.columns, "{}", self.head);
        self.bytes += self.values.get(from..).unwrap_or_default().iter().map(bytes_of).sum::<usize>();
    }

    /// Inserts all when they are many.
    pub(crate) fn flush_if_large(&mut self, connection: &mut Conn) -> Result<(), Failure> {
        if self.bytes >= BYTES_MAX || self.values.len() >= self.columns * SIZES[0] {
            self.flush(connection)?;
        }
        Ok(())
    }

    /// Inserts all, which are gone then.
    pub(crate) fn flush(&mut self, connection: &mut Conn) -> Result<(), Failure> {
        self.run(connection)?;
        self.values.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Inserts all.
    pub(crate) fn run(&self, connection: &mut Conn) -> Result<(), Failure> {
        let mut rest = self.values.as_slice();
        while !rest.is_empty() {
            let rows = rest.len() / self.columns;
            let fits = |size: &&usize| {
                let values = rest.get(..**size * self.columns);
                **size <= rows && values.is_some_and(|values| values.iter().map(bytes_of).sum::<usize>() <= BYTES_MAX)
            };
            let size = SIZES.iter().find(fits).copied().unwrap_or(1);
            let (now, later) = rest.split_at(size * self.columns);
            let row = format!("({})", vec!["?"; self.columns].join(", "));
            let statement = format!("{} VALUES {}{}", self.head, vec![row.as_str(); size].join(", "), self.tail);
            connection.exec_drop(statement, Params::Positional(now.to_vec()))?;
            rest = later;
        }
        Ok(())
    }
}

/// Conditions on `uid` that together say that it is one of `uids`, each short enough for a statement.
pub(crate) fn conditions(uids: &UidSet) -> impl Iterator<Item = String> {
    uids.ranges().chunks(RANGES_MAX).map(|ranges| {
        let singles: Vec<String> =
            ranges.iter().filter(|(first, last)| first == last).map(|(uid, _)| uid.to_string()).collect();
        let wide = ranges.iter().filter(|(first, last)| first < last);
        let mut pieces: Vec<String> = wide.map(|(first, last)| format!("uid BETWEEN {first} AND {last}")).collect();
        if !singles.is_empty() {
            pieces.push(format!("uid IN ({})", singles.join(",")));
        }
        format!("({})", pieces.join(" OR "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_become_conditions() {
        let set: UidSet = [1, 2, 3, 7, 9].into_iter().collect();
        assert_eq!(conditions(&set).collect::<Vec<_>>(), ["(uid BETWEEN 1 AND 3 OR uid IN (7,9))"]);
        let many: UidSet = (1..=1000).map(|n| n * 2).collect();
        assert_eq!(conditions(&many).count(), 2);
        assert_eq!(conditions(&UidSet::new()).count(), 0);
    }
}
