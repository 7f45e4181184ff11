//! The limits of the store that hold whatever the configuration says. Each has a name, which is what an error shows.
//! Limits that an administrator may set are configuration keys of the server and are documented from there.

/// Longest mailbox name, octets of UTF-8, all levels together.
pub const MAILBOX_NAME_BYTES_MAX: usize = 1000;
/// Levels of hierarchy in a mailbox name.
pub const MAILBOX_LEVELS_MAX: usize = 50;
/// Mailboxes in an account.
pub const MAILBOXES_MAX: usize = 100_000;
/// Keywords in use in one mailbox: bits 8 to 127 of a [`crate::Flags`].
pub const KEYWORDS_PER_MAILBOX_MAX: usize = 120;
/// Longest keyword, octets.
pub const KEYWORD_BYTES_MAX: usize = 128;
/// Longest account name, octets.
pub const ACCOUNT_NAME_BYTES_MAX: usize = 200;
/// Largest message that any configuration can allow, octets.
pub const MESSAGE_BYTES_MAX: u64 = 1 << 30;
