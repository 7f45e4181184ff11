//! The schema and its versions.
//!
//! Each version is a file of statements that brings a database from the one before to it; a file that was released never changes. What MySQL
//! cannot do in a transaction (every CREATE) is done statement by statement, and the version is written last: an update that was
//! interrupted is told by the version that is missing, and what it made already is passed over.

use model::{Error, ErrorKind, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::failure::Failure;
use crate::pool::Pool;

/// The statements of each version, from 1 on.
const VERSIONS: [&str; 2] = [include_str!("../schema/0001.sql"), include_str!("../schema/0002.sql")];

/// The version that this program needs.
pub(crate) fn newest() -> u32 {
    VERSIONS.len() as u32
}

/// "Table/view/column/key exists already".
const EXISTS: [u16; 3] = [1050, 1060, 1061];
/// "No such table".
const NO_TABLE: u16 = 1146;

/// The statements of a file: each ends with `;` at the end of a line; lines of comments count for nothing.
fn statements(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let text: Vec<&str> = lines.collect();
    let pieces: Vec<String> = text.join("\n").split(";\n").map(|piece| piece.trim().to_owned()).collect();
    pieces.into_iter().map(|piece| piece.trim_end_matches(';').to_owned()).filter(|piece| !piece.is_empty())
}

/// The version of a database; 0: an empty one.
fn version(connection: &mut Conn) -> Result<u32, Failure> {
    match connection.query_first("SELECT MAX(version) FROM schema_version") {
        Ok(version) => Ok(version.flatten().unwrap_or(0)),
        Err(mysql::Error::MySqlError(error)) if error.code == NO_TABLE => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// An error unless the database has the version that is needed.
pub(crate) fn check(pool: &Pool) -> Result<()> {
    let found = pool.run("asking for the version of the schema", version)?;
    if found == newest() {
        return Ok(());
    }
    let what = match found {
        0 => "has no tables of Mailyard".to_owned(),
        older if older < newest() => format!("has version {older} of the schema, this program needs {}", newest()),
        newer => format!("has version {newer} of the schema, which is newer than this program ({})", newest()),
    };
    Err(Error::new(ErrorKind::Io, format!("the database {what}; `mailyard sql update` brings it up to date")))
}

/// Brings the database up to date; the version before. [`ErrorKind::Io`] when it is newer than this program.
pub(crate) fn update(pool: &Pool) -> Result<u32> {
    let before = pool.run("asking for the version of the schema", version)?;
    if before > newest() {
        return check(pool).map(|()| before);
    }
    pool.run("updating the schema", |connection| {
        exec(connection, "CREATE TABLE schema_version (version INT UNSIGNED NOT NULL, PRIMARY KEY (version))")?;
        for (number, text) in (1u32..).zip(VERSIONS) {
            if number <= version(connection)? {
                continue;
            }
            for statement in statements(text) {
                exec(connection, &statement)?;
            }
            connection.exec_drop("INSERT INTO schema_version (version) VALUES (?)", (number,))?;
        }
        Ok(())
    })?;
    Ok(before)
}

fn exec(connection: &mut Conn, statement: &str) -> Result<(), Failure> {
    match connection.query_drop(statement) {
        Err(mysql::Error::MySqlError(error)) if EXISTS.contains(&error.code) => Ok(()),
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_cut_into_statements() {
        let text = "-- a comment; with one\nCREATE TABLE a (\n  b INT -- not a line of its own\n);\n\nSELECT 1;\n";
        let found: Vec<String> = statements(text).collect();
        assert_eq!(found, ["CREATE TABLE a (\n  b INT -- not a line of its own\n)", "SELECT 1"]);
        assert_eq!(statements(VERSIONS[0]).count(), 14);
    }
}
