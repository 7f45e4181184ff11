//! Statements with many rows, and sets of UIDs as conditions.

use model::UidSet;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};

use crate::bundle::push_value;
use crate::failure::Failure;

/// Rows in one statement, largest first: few sizes, so that the prepared statements are few.
const SIZES: [usize; 3] = [64, 8, 1];
/// Bytes of values in one statement, about: below the smallest packet that servers take by default.
const BYTES_MAX: usize = 3 << 20;
/// UIDs that are listed in one statement, but for those of the last range. From 1000 on MariaDB makes a table of a list.
const LISTED_MAX: usize = 900;
/// Ranges of UIDs in one statement.
const RANGES_MAX: usize = 32;
/// A range is written as one when its last UID is so far from its first.
const WIDE: u32 = 32;

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

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Octets of the values, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is time to insert what there is.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes >= BYTES_MAX || self.values.len() >= self.columns * SIZES[0]
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.bytes = 0;
    }

    /// Inserts all when they are many.
    pub(crate) fn flush_if_large(&mut self, connection: &mut Conn) -> Result<(), Failure> {
        if self.is_large() { self.flush(connection) } else { Ok(()) }
    }

    /// Inserts all, which are gone then.
    pub(crate) fn flush(&mut self, connection: &mut Conn) -> Result<(), Failure> {
        self.run(connection)?;
        self.clear();
        Ok(())
    }

    /// Appends it to `text`, as one statement. There is a row.
    pub(crate) fn write(&self, text: &mut String) {
        text.push_str(self.head);
        text.push_str(" VALUES ");
        for (number, row) in self.values.chunks(self.columns).enumerate() {
            text.push_str(if number == 0 { "(" } else { ",(" });
            for (column, value) in row.iter().enumerate() {
                if column > 0 {
                    text.push(',');
                }
                push_value(text, value);
            }
            text.push(')');
        }
        text.push_str(self.tail);
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
///
/// A list is searched for each row; ranges are looked at one after the other. So few are left as ranges.
pub(crate) fn conditions(uids: &UidSet) -> Vec<String> {
    let mut found = Vec::new();
    let (mut wide, mut listed) = (Vec::new(), Vec::new());
    for &(first, last) in uids.ranges() {
        if last - first >= WIDE {
            wide.push(format!("uid BETWEEN {first} AND {last}"));
        } else {
            listed.extend((first..=last).map(|uid| uid.to_string()));
        }
        if wide.len() >= RANGES_MAX || listed.len() >= LISTED_MAX {
            found.extend(condition(&mut wide, &mut listed));
        }
    }
    found.extend(condition(&mut wide, &mut listed));
    found
}

/// One condition of what there is, which is gone then.
fn condition(wide: &mut Vec<String>, listed: &mut Vec<String>) -> Option<String> {
    let mut pieces = std::mem::take(wide);
    if !listed.is_empty() {
        pieces.push(format!("uid IN ({})", std::mem::take(listed).join(",")));
    }
    (!pieces.is_empty()).then(|| format!("({})", pieces.join(" OR ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_one_statement() {
        let mut insert = Insert::or_else("INSERT INTO t (a, b)", 2, " ON DUPLICATE KEY UPDATE b = VALUES(b)");
        insert.row([1.into(), "x".into()]);
        insert.row([2.into(), Value::NULL]);
        let mut text = String::new();
        insert.write(&mut text);
        assert_eq!(text, "INSERT INTO t (a, b) VALUES (1,'x'),(2,NULL) ON DUPLICATE KEY UPDATE b = VALUES(b)");
    }

    #[test]
    fn sets_become_conditions() {
        let conditions_of = |uids: &mut dyn Iterator<Item = u32>| conditions(&uids.collect::<UidSet>());
        assert_eq!(conditions_of(&mut [1, 2, 3, 7, 9].into_iter()), ["(uid IN (1,2,3,7,9))"]);
        assert_eq!(conditions_of(&mut (1..=40).chain([50])), ["(uid BETWEEN 1 AND 40 OR uid IN (50))"]);
        assert_eq!(conditions_of(&mut (1..=1000).map(|n| n * 2)).len(), 2);
        assert_eq!(conditions_of(&mut (1..=6400).filter(|n| n % 50 > 0)).len(), 4);
        assert!(conditions(&UidSet::new()).is_empty());
    }
}
