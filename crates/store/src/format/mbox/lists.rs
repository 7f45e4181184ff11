//! What another server kept beside mbox files: which mailboxes its user had subscribed. Taken over when the account is first opened.

use std::path::Path;

use model::{MailboxName, Result};
use platform::{Disk, parent_of};

use crate::format::adoption::{mailbox_names, read_if_there};
use crate::import::subscriptions;

/// Dovecot's lists, in the directory of the mailboxes: what it is called there, and what some set-ups call it.
const DOVECOT: [&str; 2] = [".subscriptions", "subscriptions"];
/// That of UW-IMAP, in the home directory: the directory of the mailboxes, or the one above it.
const UW: &str = ".mailboxlist";

/// The names that are subscribed according to all lists that are there; `root`: the directory of the mailboxes.
pub(super) fn subscribed(disk: &dyn Disk, root: &Path) -> Result<Vec<MailboxName>> {
    let mut levels = Vec::new();
    for name in DOVECOT {
        if let Some(bytes) = read_list(disk, &root.join(name))? {
            levels.extend(subscriptions::dovecot(&bytes, '/'));
        }
    }
    let dir_name = root.file_name().unwrap_or_default().to_string_lossy();
    for home in [root, parent_of(root)] {
        if let Some(bytes) = read_list(disk, &home.join(UW))? {
            levels.extend(subscriptions::uw(&bytes, &dir_name));
        }
    }
    Ok(mailbox_names(&levels))
}

/// `None` as well when a directory, a mailbox perhaps, is called so.
fn read_list(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>> {
    match disk.metadata(path) {
        Ok(found) if !found.is_file => Ok(None),
        _ => read_if_there(disk, path),
    }
}
