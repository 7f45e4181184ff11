//! Who may log in: the file `users` in the data directory.
//!
//! Invariants: a password is never stored, only an argon2id hash of it and the SCRAM-SHA-256 keys; the file is replaced as a whole,
//! durably, so that a power cut leaves the old one or the new one; a line that cannot be read locks out its user and nobody else.

mod credentials;
mod directory;
mod file;

pub use credentials::{Credentials, ScramSecrets, hmac};
pub use directory::Directory;
pub use file::{User, UserFile};
