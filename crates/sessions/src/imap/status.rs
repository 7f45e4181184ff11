//! Why a client gets NO or BAD: the only place that turns an [`ErrorKind`] into words of IMAP (RFC 9051 §7.1, RFC 5530).
//!
//! The client hears the kind; the details are for the log (see [`crate::Observer::error`]).

use model::{Error, ErrorKind};

use super::reply::{Done, Stop};

/// The answer to a command that failed with `error`.
pub(crate) fn answer(error: &Error) -> Done {
    match error.kind() {
        // RFC 5530 §3 NONEXISTENT; "not there" and "not yours to see" sound the same.
        ErrorKind::NotFound => Done::no("There is no such mailbox").with_code("NONEXISTENT"),
        ErrorKind::AlreadyExists => Done::no("There is a mailbox of that name").with_code("ALREADYEXISTS"),
        ErrorKind::Invalid => {
            Done::no("That cannot be done: the name or the request breaks a rule").with_code("CANNOT")
        }
        ErrorKind::NotPermitted => Done::no("That is not allowed").with_code("CANNOT"),
        ErrorKind::Limit if error.limit() == Some("message_bytes_max") => {
            // RFC 4469 §5 TOOBIG, RFC 7889 §3.
            Done::no("The message is too large (limit message_bytes_max)").with_code("TOOBIG")
        }
        ErrorKind::Limit => {
            let name = error.limit().map(|name| format!(" (limit {name})")).unwrap_or_default();
            Done::no(format!("A limit was met{name}")).with_code("LIMIT")
        }
        ErrorKind::OverQuota => Done::no("The account is full").with_code("OVERQUOTA"),
        ErrorKind::InUse => Done::no("Something else is using it").with_code("INUSE"),
        ErrorKind::Expunged => Done::no("Some of the messages were expunged").with_code("EXPUNGEISSUED"),
        ErrorKind::Corrupt => {
            Done::no("What is stored is damaged; the administrator can see where").with_code("CORRUPTION")
        }
        ErrorKind::DiskFull => Done::no("The server's storage is full").with_code("UNAVAILABLE"),
        ErrorKind::ReadOnlyAfterFailure => {
            Done::no("Nothing can be written after a failure of the storage").with_code("UNAVAILABLE")
        }
        ErrorKind::TakenOver => {
            Done::no("Another node writes to the account all the time; try again").with_code("UNAVAILABLE")
        }
        ErrorKind::Io => Done::no("The server's storage failed").with_code("UNAVAILABLE"),
        ErrorKind::AuthenticationFailed => Done::no("Wrong user or password").with_code("AUTHENTICATIONFAILED"),
    }
}

/// Whether an administrator wants to hear of this error: the machine is at fault, not the client.
pub(crate) fn is_ours(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Corrupt
        | ErrorKind::DiskFull
        | ErrorKind::ReadOnlyAfterFailure
        | ErrorKind::TakenOver
        | ErrorKind::Io => true,
        ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Invalid
        | ErrorKind::NotPermitted
        | ErrorKind::Limit
        | ErrorKind::OverQuota
        | ErrorKind::InUse
        | ErrorKind::Expunged
        | ErrorKind::AuthenticationFailed => false,
    }
}

/// For APPEND, COPY and MOVE: a destination that is not there is worth a CREATE (RFC 9051 §6.3.12, §6.4.7).
pub(crate) fn try_create(error: Error) -> Stop {
    match error.kind() {
        ErrorKind::NotFound => Done::no("There is no such mailbox; create it first").with_code("TRYCREATE").into(),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_code() {
        for kind in [
            ErrorKind::NotFound,
            ErrorKind::AlreadyExists,
            ErrorKind::Invalid,
            ErrorKind::NotPermitted,
            ErrorKind::Limit,
            ErrorKind::OverQuota,
            ErrorKind::InUse,
            ErrorKind::Expunged,
            ErrorKind::Corrupt,
            ErrorKind::DiskFull,
            ErrorKind::ReadOnlyAfterFailure,
            ErrorKind::TakenOver,
            ErrorKind::Io,
            ErrorKind::AuthenticationFailed,
        ] {
            let done = answer(&Error::new(kind, "secret details"));
            assert!(done.code.is_some(), "{kind:?}");
            assert!(!done.text.contains("secret"), "{kind:?}");
        }
        let done = answer(&Error::over_limit("message_bytes_max", ""));
        assert_eq!(done.code.as_deref(), Some("TOOBIG"));
    }
}
