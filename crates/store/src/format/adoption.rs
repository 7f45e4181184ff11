//! Taking over a mailbox that another server kept until now, as files that both know: shared by the formats.

use std::path::Path;

use index::Transaction;
use model::{Error, MailboxId, MailboxName, Result};
use platform::{Disk, Metadata};

/// Makes the mailbox in the log, with the UIDVALIDITY that the other server gave it unless a mailbox of that name that was deleted had it already; and
/// subscribes what its user had subscribed.
pub(crate) fn adopt(
    transaction: &mut Transaction,
    name: &MailboxName,
    uid_validity: Option<u32>,
    subscribed: &[MailboxName],
) -> Result<MailboxId> {
    for name in subscribed {
        transaction.subscribe(name)?;
    }
    let is_used = |validity: u32| {
        let mut deleted = transaction.state().deleted_mailboxes();
        deleted.any(|one| one.mailbox.name() == name && one.mailbox.uidvalidity().get() >= validity)
    };
    match uid_validity.filter(|validity| *validity > 0 && !is_used(*validity)) {
        Some(validity) => transaction.create_mailbox_with(name, &[], validity),
        None => transaction.create_mailbox(name, &[]),
    }
}

/// The octets of a file; `None`: it is not there.
pub(crate) fn read_if_there(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>> {
    if_there(disk.read(path), path)
}

/// What is known of a file; `None`: it is not there.
pub(crate) fn found_if_there(disk: &dyn Disk, path: &Path) -> Result<Option<Metadata>> {
    if_there(disk.metadata(path), path)
}

fn if_there<T>(result: std::io::Result<T>, path: &Path) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::from(error).context(path.display())),
    }
}

/// The names that such a list gives by their levels, as far as a mailbox can be called so.
pub(crate) fn mailbox_names(levels: &[Vec<String>]) -> Vec<MailboxName> {
    levels.iter().filter_map(|levels| MailboxName::new(&levels.join("/")).ok()).collect()
}
