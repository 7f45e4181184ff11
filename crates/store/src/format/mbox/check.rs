//! Holding the files of an account against its log.
//!
//! What other programs did is taken into the log first. What differs then, though the system says that nobody has touched the file since, is
//! damage; what cannot be looked at is said, too.

use index::Finding;
use model::{ErrorKind, MailboxId, Result};
use std::sync::Arc;

use super::account::{FileBox, MboxAccount, Patience};
use super::identity::Identity;
use super::intake::intake;
use super::lock::Access;
use super::map::Map;
use super::place::{FileFlags, Found, Place};
use super::project::to_be_added;
use super::scan::Scanner;
use super::sync::place_of;
use crate::format::findings::Findings;

impl MboxAccount {
    /// Reads every file and says what is wrong.
    pub(crate) fn check(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let ids: Vec<MailboxId> = self.state().mailboxes().map(|mailbox| mailbox.id()).collect();
        for id in ids {
            let Some(path) = self.path_of(id) else { continue };
            let mut file = Findings::new(&path, &mut findings);
            match self.check_file(id, &mut file) {
                Ok(()) => {}
                // Deleted meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => file.add(0, None, format!("it could not be looked at: {error}")),
            }
        }
        Ok(findings)
    }

    fn check_file(&self, id: MailboxId, findings: &mut Findings<'_>) -> Result<()> {
        let file_box = self.file_box(id)?;
        self.refresh(&file_box, Patience::Wait)?;
        if file_box.map().is_some_and(|map| !map.facts().is_sure()) {
            self.look_at_all(&file_box)?;
        }
        let Some(map) = file_box.map() else { return Ok(()) };
        self.check_entries(&file_box, &map, findings);
        if map.facts().identity.inode == 0 {
            // There is no file.
            return Ok(());
        }
        let lock = self.locker.lock(findings.path(), Access::Read)?;
        let file = &**lock.file();
        if Identity::of_file(file)? != map.facts().identity {
            findings.add(0, None, "somebody has changed it just now: there is news that the log does not have yet");
            return Ok(());
        }
        let mut number = 0;
        intake(file, Scanner::new(0), &mut |found| {
            self.compare(map.place(number), &found, findings)?;
            number += 1;
            Ok(())
        })?;
        if number < map.len() {
            let text = format!("it has {number} messages, and had {} when it was read last", map.len());
            findings.add(map.place(number).map_or(0, |place| place.start), None, text);
        }
        Ok(())
    }

    /// Entries that have no octets.
    fn check_entries(&self, file_box: &FileBox, map: &Arc<Map>, findings: &mut Findings<'_>) {
        let state = self.state();
        let Some(mailbox) = state.mailbox(file_box.id) else { return };
        let pending = MboxAccount::pending_of(&state, file_box.id).map(|pending| &**pending);
        for row in to_be_added(mailbox, pending, map).iter().filter(|row| state.foreign(row.email_id).is_some()) {
            // It may be on its way from another file.
            let read = self.read(row.email_id, &mut |_, _| Ok(super::serve::Outcome::Done));
            if let Err(error) = read {
                findings.add(0, Some(row.email_id), format!("UID {} has no octets: {error}", row.uid));
            }
        }
    }

    /// Holds a message of the file against what is known of it.
    fn compare(&self, known: Option<Place>, found: &Found, findings: &mut Findings<'_>) -> Result<()> {
        let there = place_of(found);
        let at = there.start;
        let Some(known) = known else {
            findings.add(at, None, "there is a message that was not there when it was read last");
            return Ok(());
        };
        let extents = |place: &Place| (place.start, place.header, place.body, place.end, place.next, place.form);
        if extents(&known) != extents(&there) {
            findings.add(at, known.email_id, "a message is not where it was when it was read last");
            return Ok(());
        }
        let flags = |place: &Place| (place.flags.without(FileFlags::COMPLETE), place.keywords);
        if flags(&known) != flags(&there) {
            findings.add(at, known.email_id, "the fields of a message are not what they were when it was read last");
        }
        let Some(id) = known.email_id else { return Ok(()) };
        let digest = self.digest_of(&self.state(), &mut Default::default(), id)?;
        if digest.is_some_and(|digest| digest != found.digest) {
            findings.add(at, Some(id), "a message is not the one that the log knows");
        }
        Ok(())
    }
}
