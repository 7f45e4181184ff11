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
//! - `listing`: looking at a Maildir; `news`: what the system tells of it; `map` (with `by_base`): what was there at the last look.
//! - `sync`: from the files into the log; `project`: from the log into the files, with `compose` (new files) and `keyword_file`.
//! - `shared_uids`: the UIDs that Dovecot gives to the same files, and ours for it.
//! - `sizes`: what the files hold, for those who look at quotas.
//! - `background`: what nobody waits for.
//! - `sources`: where the octets of a new file come from; `check`: files and log held against each other.
//! - `discard`: removing the files of an account that has left them.
//! - `serve`: messages of the files for readers of the log.

pub(crate) mod account;
mod background;
mod by_base;
mod check;
mod compose;
pub(crate) mod courier;
pub(crate) mod discard;
mod keyword_file;
pub(crate) mod keywords;
pub(crate) mod layout;
mod listing;
mod map;
pub(crate) mod name;
mod news;
mod project;
mod serve;
pub(crate) mod shared_uids;
mod size_file;
mod sizes;
mod sources;
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
