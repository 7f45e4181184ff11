//! Flags as they are written (RFC 9051 §9 flag).

use model::{Keyword, SystemFlag};

/// The name of a flag, in a command or in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagName {
    /// One of the five that every mailbox has.
    System(SystemFlag),
    /// A keyword.
    Keyword(Keyword),
    /// `\Recent`: RFC 3501 §2.3.2 lets no client set it, so a session answers BAD or leaves it out.
    Recent,
    /// Another name with a backslash (flag-extension); kept as written, with the backslash.
    Extension(String),
}
