//! What the database's errors mean: whether it is worth trying again, and what a caller hears.

use std::fmt::Display;

use model::{Error, ErrorKind};

/// Server errors after which the same statement may succeed: on this connection, on another, or on another server.
///
/// 1040 too many connections, 1047 not (yet) part of the cluster, 1053 shutting down, 1152/1158-1161 network, 1180 commit failed, 1203/1226
/// limits of a user, 1205 lock wait timeout, 1213 deadlock or lost certification, 1290/1792/1836 read-only, 1317/1969 interrupted,
/// 1927 killed, 3024 took too long.
const TRANSIENT: [u16; 21] = [
    1040, 1047, 1053, 1152, 1158, 1159, 1160, 1161, 1180, 1203, 1205, 1213, 1226, 1290, 1317, 1792, 1836, 1927, 1969,
    3024, 4031,
];
/// Those that say that there is no space: 1021 disk full, 1114 table full.
const FULL: [u16; 2] = [1021, 1114];
/// Those after which the connection is as good as before.
const HARMLESS: [u16; 3] = [1205, 1213, 1180];

/// Something that went wrong between us and the database.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database's, or the connection's.
    Sql(mysql::Error),
    /// Ours: it has its kind already.
    Ours(Error),
}

impl From<mysql::Error> for Failure {
    fn from(error: mysql::Error) -> Self {
        Failure::Sql(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Ours(error)
    }
}

impl Failure {
    /// Whether trying again may help.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Failure::Sql(mysql::Error::MySqlError(error)) => TRANSIENT.contains(&error.code),
            Failure::Sql(
                mysql::Error::UrlError(_) | mysql::Error::FromValueError(_) | mysql::Error::FromRowError(_),
            ) => false,
            // The connection's: another one may be better.
            Failure::Sql(_) => true,
            Failure::Ours(_) => false,
        }
    }

    /// Whether the connection can be used on.
    pub(crate) fn keeps_connection(&self) -> bool {
        match self {
            Failure::Sql(mysql::Error::MySqlError(error)) => HARMLESS.contains(&error.code),
            Failure::Sql(_) => false,
            Failure::Ours(_) => true,
        }
    }

    /// What the caller hears.
    pub(crate) fn into_error(self, doing: impl Display) -> Error {
        match self {
            Failure::Ours(error) => error,
            Failure::Sql(mysql::Error::MySqlError(error)) if FULL.contains(&error.code) => {
                Error::new(ErrorKind::DiskFull, format!("{doing}: {error}"))
            }
            Failure::Sql(error) => Error::new(ErrorKind::Io, format!("{doing}: the database: {error}")),
        }
    }
}

/// What rows say cannot be: somebody else changed them, or they were damaged.
pub(crate) fn damaged(what: impl Display) -> Failure {
    Failure::Ours(Error::new(ErrorKind::Corrupt, format!("the database has rows that cannot be: {what}")))
}
