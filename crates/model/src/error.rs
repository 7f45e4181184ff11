//! One error type with two voices: a closed list of kinds for the client, the whole story for the log.

use std::fmt;

/// What went wrong, as far as a client is told. Each protocol maps these to its own words in one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// There is no such thing, or it is not the caller's to see: the two sound the same.
    NotFound,
    /// A thing of that name is there already.
    AlreadyExists,
    /// The caller's input breaks a rule (a bad name, an impossible combination).
    Invalid,
    /// The operation is not allowed on this object (deleting INBOX, writing to a read-only view).
    NotPermitted,
    /// A limit with a name was met; see [`Error::limit`].
    Limit,
    /// The account's quota would be exceeded.
    OverQuota,
    /// Another process or session holds what is needed.
    InUse,
    /// The message was expunged meanwhile.
    Expunged,
    /// Stored bytes do not match their checksum; the error's text names file and offset.
    Corrupt,
    /// The storage is full. Nothing was changed.
    DiskFull,
    /// An earlier failed write or sync closed the log; it must be opened anew before anything is written.
    ReadOnlyAfterFailure,
    /// Another node of the cluster has become the writer of the account. Nothing was changed: the same can be asked for again.
    TakenOver,
    /// The operating system refused; the error's text has the details.
    Io,
    /// A wrong user or a wrong password: never told apart.
    AuthenticationFailed,
}

/// An error: the kind for clients, the details for the log.
pub struct Error {
    kind: ErrorKind,
    limit: Option<&'static str>,
    details: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`; `details` are for the log and for the administrator.
    pub fn new(kind: ErrorKind, details: impl Into<String>) -> Self {
        Error { kind, limit: None, details: details.into(), source: None }
    }

    /// The limit called `name` (a name from [`crate::limits`] or from the configuration) was met.
    pub fn over_limit(name: &'static str, details: impl Into<String>) -> Self {
        Error { kind: ErrorKind::Limit, limit: Some(name), details: details.into(), source: None }
    }

    /// Keeps the cause, for the log.
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Puts the surrounding action before the details: `importing a.mbox: …`.
    pub fn context(mut self, action: impl fmt::Display) -> Self {
        self.details = format!("{action}: {}", self.details);
        self
    }

    /// What a client may be told.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The name of the limit that was met, if it was one.
    pub fn limit(&self) -> Option<&'static str> {
        self.limit
    }

    /// The whole story, for the log.
    pub fn details(&self) -> &str {
        &self.details
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.details)?;
        if let Some(name) = self.limit {
            write!(f, " (limit {name})")?;
        }
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
            std::io::ErrorKind::WouldBlock => ErrorKind::InUse,
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ErrorKind::DiskFull,
            _ => ErrorKind::Io,
        };
        Error { kind, limit: None, details: error.to_string(), source: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_the_limit_and_the_context() {
        let error = Error::over_limit("keywords_max", "one keyword too many").context("STORE");
        assert_eq!(error.to_string(), "STORE: one keyword too many (limit keywords_max)");
        assert_eq!(error.limit(), Some("keywords_max"));
        assert_eq!(error.kind(), ErrorKind::Limit);
    }

    #[test]
    fn a_full_disk_is_told_apart() {
        let error = Error::from(std::io::Error::from(std::io::ErrorKind::StorageFull));
        assert_eq!(error.kind(), ErrorKind::DiskFull);
    }
}
