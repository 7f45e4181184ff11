//! Protocol sessions as state machines: no sockets, no clock, no threads, no async.
//!
//! A session takes bytes ([`imap::ImapSession::receive`]) and the time, and gives bytes ([`Output`]) and a [`Step`] that says what it
//! waits for. Deadlines are values, so that half an hour passes in a test as fast as a number is added.
//!
//! Invariants, for every protocol here:
//! * What a session holds is bounded, whatever the other side sends or fails to read: input that does not fit is refused until there
//!   is room, and answers are produced piece by piece as the output drains.
//! * A session asks the store and the [`Authenticator`], which may block (a disk, a password hash); so `step` is for a thread that may.
//! * Nothing that a client sends makes a session panic.

mod auth;
mod connection;
pub mod imap;
mod lines;
pub mod lmtp;
mod output;
pub mod pop3;
pub mod sasl;

pub(crate) use auth::open_account;
pub use auth::{Authenticator, Refusal, ScramCredentials};
pub use connection::{ChannelBinding, Connection, Now, Observer, ProtocolSession, Step, Waker, Work};
pub use output::Output;
