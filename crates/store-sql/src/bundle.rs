//! Statements that go to the database together: one question and one answer in the place of one for each.
//!
//! A commit of one message has about seven statements. Sent one by one, each costs the way there and back, with the account's row locked
//! meanwhile. Small statements are therefore written as text and sent as one; what is large goes as a prepared statement, where octets are
//! sent as they are.
//!
//! Values in text are written by [`push_value`]. It relies on what each connection sets ([`crate::pool`]): the character set utf8mb4 and a
//! backslash that quotes.

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use crate::failure::Failure;
use crate::rows::Insert;

/// Octets of values of one statement up to which it is written as text.
const VALUE_BYTES_MAX: usize = 256 << 10;
/// A bundle that has so many octets is sent. With a last statement of values that all need two digits an octet it stays below the smallest
/// packet that servers take by default (4 MiB).
const TEXT_BYTES: usize = 1 << 20;

/// Runs statements, apart by `;`. The rows of all their answers; an error of any of them, after which the others were not run.
pub(crate) fn ask(connection: &mut Conn, statements: &str) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut answers = connection.query_iter(statements)?;
    while let Some(answer) = answers.iter() {
        for row in answer {
            rows.push(row?);
        }
    }
    Ok(rows)
}

/// Statements on their way, run in the order in which they are given, the last ones by [`Bundle::finish`].
pub(crate) struct Bundle<'c> {
    connection: &'c mut Conn,
    text: String,
}

impl<'c> Bundle<'c> {
    pub(crate) fn new(connection: &'c mut Conn) -> Self {
        Bundle { connection, text: String::new() }
    }

    /// A statement without values that came from outside.
    pub(crate) fn text(&mut self, statement: &str) -> Result<(), Failure> {
        if !self.text.is_empty() {
            self.text.push(';');
        }
        self.text.push_str(statement);
        self.send_if_large()
    }

    /// Rows into one table.
    pub(crate) fn rows(&mut self, rows: &Insert) -> Result<(), Failure> {
        if rows.bytes() > VALUE_BYTES_MAX {
            self.send()?;
            return rows.run(self.connection);
        }
        if !rows.is_empty() {
            if !self.text.is_empty() {
                self.text.push(';');
            }
            rows.write(&mut self.text);
        }
        self.send_if_large()
    }

    /// Gives rows away that are many; they are gone then.
    pub(crate) fn rows_if_many(&mut self, rows: &mut Insert) -> Result<(), Failure> {
        if rows.is_large() {
            self.rows(rows)?;
            rows.clear();
        }
        Ok(())
    }

    fn send_if_large(&mut self) -> Result<(), Failure> {
        if self.text.len() >= TEXT_BYTES { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), Failure> {
        if self.text.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.text);
        ask(self.connection, &text).map(drop)
    }

    /// Runs what is left.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.send()
    }
}

/// Writes a value as a literal: text quoted by the driver, octets that are no text as digits.
pub(crate) fn push_value(text: &mut String, value: &Value) {
    match value {
        Value::Bytes(octets) if octets.is_empty() => text.push_str("''"),
        Value::Bytes(octets) if std::str::from_utf8(octets).is_err() => {
            const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
            text.push_str("0x");
            for octet in octets {
                text.push(DIGITS[usize::from(octet >> 4)]);
                text.push(DIGITS[usize::from(octet & 15)]);
            }
        }
        value => text.push_str(&value.as_sql(false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_literals() {
        let written = |value: Value| {
            let mut text = String::new();
            push_value(&mut text, &value);
            text
        };
        assert_eq!(written(Value::NULL), "NULL");
        assert_eq!(written(Value::UInt(u64::MAX)), u64::MAX.to_string());
        assert_eq!(written(Value::Int(-7)), "-7");
        assert_eq!(written(Value::Bytes(Vec::new())), "''");
        assert_eq!(written(Value::Bytes(b"a'b\\c\n".to_vec())), r"'a\'b\\c\n'");
        assert_eq!(written(Value::Bytes(b"'\xff\x00".to_vec())), "0x27FF00");
    }
}
