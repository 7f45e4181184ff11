//! An mbox file with UIDs in it: Dovecot and c-client keep them in the messages' header fields ([`crate::format::mbox::values`]).

use std::path::Path;

use model::{Result, SystemFlag, Uid, UidValidity};
use platform::{Disk, OpenMode};

use super::listed::{Content, Listed, ListedMessage};
use crate::FlagNames;
use crate::format::mbox::intake::intake;
use crate::format::mbox::place::{FileFlags, Found};
use crate::format::mbox::scan::{Reader, Scanner};

/// What the flags of a file are in IMAP; that a message is old is no flag there.
const FLAGS: [(FileFlags, SystemFlag); 5] = [
    (FileFlags::SEEN, SystemFlag::Seen),
    (FileFlags::ANSWERED, SystemFlag::Answered),
    (FileFlags::FLAGGED, SystemFlag::Flagged),
    (FileFlags::DRAFT, SystemFlag::Draft),
    (FileFlags::DELETED, SystemFlag::Deleted),
];

/// Lists the messages of an mbox. `None`: its first message does not say UIDVALIDITY, so that there are no UIDs to keep; or something stands before it.
pub(super) fn list(disk: &dyn Disk, path: &Path) -> Result<Option<Listed>> {
    let file = disk.open(path, OpenMode::Read)?;
    // Most files have none: they are not read twice for it.
    let mut reader = Reader::new(&*file, 0)?;
    if !reader.preamble()?.is_some_and(|text| text.is_empty()) {
        return Ok(None);
    }
    let mut listed: Option<Listed> = None;
    let (mut last, mut broken, mut is_first) = (0, 0_u64, true);
    let mut take = |found: Found| {
        if is_first {
            is_first = false;
            listed = found.meta.base.as_ref().and_then(|base| {
                Some(Listed {
                    uid_validity: UidValidity::new(base.uid_validity)?,
                    next_uid: base.last_uid.saturating_add(1),
                    modseq: 0,
                    messages: Vec::new(),
                    notes: Vec::new(),
                })
            });
        }
        let Some(listed) = &mut listed else { return Err(no_uids()) };
        if found.meta.is_pseudo {
            return Ok(());
        }
        let uid = found.meta.uid.filter(|uid| *uid > last).and_then(Uid::new);
        broken += u64::from(uid.is_none() && found.meta.uid.is_some());
        last = uid.map_or(last, Uid::get);
        listed.next_uid = listed.next_uid.max(last.saturating_add(1));
        let message = &found.message;
        let system = FLAGS.iter().filter(|(bit, _)| found.meta.flags.has(*bit)).map(|(_, flag)| *flag).collect();
        listed.messages.push(ListedMessage {
            uid,
            name: found.digest.to_le_bytes().to_vec(),
            path: path.to_owned(),
            content: Content::Mbox {
                header: message.header..message.body,
                body: message.body..message.end,
                form: message.form(),
            },
            flags: FlagNames { system, keywords: found.meta.keywords },
            internal_date: found.date,
            save_date: None,
        });
        Ok(())
    };
    match intake(&*file, Scanner::new(0), &mut take) {
        Err(_) if listed.is_none() => return Ok(None),
        result => result.map(drop)?,
    }
    if let Some(listed) = &mut listed
        && broken > 0
    {
        listed
            .notes
            .push((path.to_owned(), format!("{broken} messages have an X-UID that does not rise: they get new UIDs")));
    }
    Ok(listed)
}

/// Ends the reading of a file that has none.
fn no_uids() -> model::Error {
    model::Error::new(model::ErrorKind::NotFound, "the file has no UIDs")
}
