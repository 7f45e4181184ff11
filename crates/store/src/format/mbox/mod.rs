//! mbox files: finding the messages, what stands in the header fields that mail programs share, and the bytes that IMAP serves.
//!
//! `docs/format-mbox.md` says what is recognised, byte by byte; this is the only reader of mbox files in the store.
//!
//! - [`scan`]: where messages begin, where their headers and bodies are, how they are quoted, what is wrong with them.
//! - [`from_line`]: which lines separate messages.
//! - [`meta`]: `Status`, `X-UID` and the other fields in which programs keep what they know of a message, with the bytes they take.
//! - [`fields`]: hiding these fields.
//! - [`place`]: what is known of a message in a file.
//! - [`lock`]: keeping others away meanwhile.
//! - [`rewrite`]: changing a file in place so that a power cut leaves the old one or the new one.
//! - [`write`]: bringing a file up to date with the log.

pub mod digest;
pub mod fields;
#[cfg(test)]
mod format_doc;
pub mod from_line;
pub mod lock;
pub mod meta;
pub mod place;
pub mod rewrite;
pub mod scan;
pub mod values;
pub mod write;
