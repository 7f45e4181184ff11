//! mbox files: finding the messages, what stands in the header fields that mail programs share, and the bytes that IMAP serves.
//!
//! `docs/format-mbox.md` says what is recognised, byte by byte; this is the only reader of mbox files in the store.
//!
//! - [`scan`]: where messages begin, where their headers and bodies are, how they are quoted, what is wrong with them.
//! - [`from_line`]: which lines separate messages.
//! - [`meta`]: `Status`, `X-UID` and the other fields in which programs keep what they know of a message, with the bytes they take.
//! - [`values`]: what these fields say; [`fields`]: hiding them.
//! - [`digest`]: what says which message a message is, and its sizes as served.
//! - [`intake`]: one reading of a file for all of this; [`intake_parallel`]: by several threads.
//! - [`place`]: what is known of a message in a file; [`map`]: all of these, on disk; [`identity`]: whether the file is still the same.
//! - [`serve`]: the octets of its messages for any number of sessions.
//! - [`lock`]: keeping others away meanwhile.
//! - [`rewrite`]: changing a file in place so that a power cut leaves the old one or the new one.
//! - [`mod@write`]: bringing a file up to date with the log.
//!
//! and how an account lives in such files (`docs/decisions/0007-mbox.md`):
//!
//! - [`account`]: which files, and who works on them; `names`, `tree`: which mailbox has which file; `kept`, `doomed`: those of mailboxes that are gone;
//!   `lists`: what another server kept beside them.
//! - `sync`: from the file into the log; `project`: from the log into the file.
//! - `idle`: what nobody waits for; `check`: holding the files against the log; `discard`: the files go when the account has left them.
//! - `foreign`: messages of the files for readers of the log; `watch`: hearing of what others do.

pub mod account;
mod check;
pub mod digest;
pub(crate) mod discard;
mod doomed;
pub mod fields;
pub(crate) mod foreign;
pub mod from_line;
pub mod identity;
mod idle;
pub mod intake;
pub mod intake_parallel;
mod kept;
mod lists;
pub mod lock;
pub mod map;
pub mod meta;
pub(crate) mod names;
pub mod place;
mod project;
pub mod rewrite;
mod rows;
pub mod scan;
pub mod serve;
mod sync;
mod tree;
pub mod values;
mod watch;
pub mod write;
