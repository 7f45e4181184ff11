//! What another server kept beside the messages: UIDs and UIDVALIDITY (`dovecot-uidlist`, `courierimapuiddb`), Courier's keywords, subscriptions.
//! Taken over when a mailbox is adopted and when files are new to us, so that clients of that server need not download anything again.

use std::collections::HashMap;
use std::path::Path;

use index::State;
use model::{Keyword, MailboxName, Result};
use platform::Disk;

use super::arrivals::Newcomer;
use crate::format::MaildirLayout;
use crate::format::adoption::{mailbox_names, read_if_there};
use crate::format::maildir::account::{DirBox, MaildirAccount, lock};
use crate::format::maildir::courier;
use crate::format::maildir::uidlist::UidList;
use crate::import::subscriptions;

/// Lists of UIDs; the first that is there counts.
const UID_LISTS: [&str; 2] = ["dovecot-uidlist", "courierimapuiddb"];
/// Courier's directory of keywords.
const COURIER_KEYWORDS: &str = "courierimapkeywords";

/// What the lists of a mailbox say of files that are new to us.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Of those files only.
    uids: HashMap<Vec<u8>, u32>,
    /// The highest UID that the other server may have given; 0: none.
    pub(super) last_uid: u32,
    keywords: courier::Keywords,
}

impl Lists {
    pub(super) fn uid(&self, base: &[u8]) -> Option<u32> {
        self.uids.get(base).copied()
    }

    pub(super) fn keywords(&self, base: &[u8]) -> &[Keyword] {
        self.keywords.of(base)
    }
}

fn read_uid_list(disk: &dyn Disk, maildir: &Path) -> Result<Option<Vec<u8>>> {
    for name in UID_LISTS {
        let bytes = read_if_there(disk, &maildir.join(name))?;
        if let Some(bytes) = bytes.filter(|bytes| UidList::parse(bytes).is_some()) {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// The UIDVALIDITY that another server gave to a Maildir.
pub(in crate::format::maildir) fn uid_validity(disk: &dyn Disk, maildir: &Path) -> Result<Option<u32>> {
    let bytes = read_uid_list(disk, maildir)?.unwrap_or_default();
    Ok(UidList::parse(&bytes).map(|list| list.uid_validity))
}

/// The names that another server's user had subscribed.
pub(in crate::format::maildir) fn subscribed(
    disk: &dyn Disk,
    root: &Path,
    layout: MaildirLayout,
) -> Result<Vec<MailboxName>> {
    let separator = if layout == MaildirLayout::Fs { '/' } else { '.' };
    let mut levels = match read_if_there(disk, &root.join("subscriptions"))? {
        Some(bytes) => subscriptions::dovecot(&bytes, separator),
        None => Vec::new(),
    };
    if let Some(bytes) = read_if_there(disk, &root.join("courierimapsubscribed"))? {
        levels.extend(subscriptions::courier(&bytes).0);
    }
    Ok(mailbox_names(&levels))
}

impl MaildirAccount {
    /// Reads what there is of some files.
    pub(super) fn read_lists(
        &self,
        state: &State,
        dir_box: &DirBox,
        maildir: &Path,
        news: &[Newcomer],
    ) -> Result<Lists> {
        let (disk, mut lists) = (&*self.env.disk, Lists::default());
        let Some(mailbox) = state.mailbox(dir_box.id).filter(|_| !news.is_empty()) else { return Ok(lists) };
        self.read_uids(state, dir_box, maildir)?;
        {
            let uids = lock(&dir_box.uids);
            lists.last_uid = uids.last_uid();
            let of = |base: &[u8]| Some((base.to_vec(), uids.of(base)?));
            lists.uids = news.iter().filter_map(|newcomer| of(newcomer.file.base())).collect();
        }
        let is_new = mailbox.uidnext().is_some_and(|next| next.get() == 1);
        let dir = maildir.join(COURIER_KEYWORDS);
        if is_new && disk.exists(&dir)? {
            for entry in disk.list(&dir)?.into_iter().filter(|entry| !entry.is_dir) {
                let Some(bytes) = read_if_there(disk, &dir.join(&entry.name))? else { continue };
                match entry.name.as_encoded_bytes() {
                    name if name == courier::LIST.as_bytes() => lists.keywords.read_list(&bytes),
                    name => {
                        lists.keywords.read_message(name, &bytes);
                    }
                }
            }
        }
        Ok(lists)
    }
}
