//! Maildirs: what stands in the names of their files and in the files that other programs keep beside the messages, and accounts that live in them.
//!
//! Pure functions, which read and write octets and no files:
//!
//! - [`name`]: names of message files; [`layout`]: names of mailboxes as directories.
//! - [`uidlist`], [`keywords`], [`courier`], [`size_file`]: what Dovecot, Courier and delivery agents keep beside the messages.
//!
//! How an account lives in Maildirs (`docs/decisions/0009-maildir.md`):
//!
//! - [`account`]: which directories, and who works on them; `tree`: which mailbox has which directory.
//! - `listing`: looking at a Maildir; `map`: what was there at the last look.
//! - `sync`: from the files into the log; `project`: from the log into the files, with `compose` (new files) and `keyword_file`.
//! - `background`: what nobody waits for.
//! - `discard`: removing the files of an account that has left them.
//! - `serve`: messages of the files for readers of the log.

#![allow(dead_code, reason = "what reads Maildirs in place and what converts them use different parts")]

pub(crate) mod account;
mod background;
mod compose;
pub(crate) mod courier;
pub(crate) mod discard;
mod keyword_file;
pub(crate) mod keywords;
pub(crate) mod layout;
mod listing;
mod map;
pub(crate) mod name;
mod project;
mod serve;
pub(crate) mod size_file;
mod sync;
mod tree;
pub(crate) mod uidlist;

/// What the letters of keywords stand for.
const KEYWORDS_FILE: &str = "dovecot-keywords";
/// Who has this may write it, and the list of UIDs.
const LOCK_FILE: &str = "dovecot-uidlist.lock";
/// The keyword of the letter `P`.
const FORWARDED: &str = "$Forwarded";
/// The field of a name that says that the octets are served as they are: its value is 1.
const RAW: &str = "R";
/// The field of a name that says the zone of the internal date, minutes east of UTC.
const ZONE_FIELD: &[u8] = b"Z";
