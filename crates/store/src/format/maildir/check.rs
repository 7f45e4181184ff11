//! Holding the Maildirs of an account against its log.
//!
//! What other programs did is news and no damage: it is taken into the log first. What differs then is.

use std::collections::HashSet;
use std::path::Path;

use index::{Finding, Row};
use model::{EmailId, ErrorKind, Keyword, MailboxId, Result};

use super::account::{DirBox, MaildirAccount, Turn, lock};
use super::listing::{self, Listed, Look};
use super::name::Name;
use super::project::MailboxLetters;
use crate::format::findings::Findings;

/// How often it is tried to look at a Maildir while nobody changes it.
const LOOKS_MAX: usize = 5;

/// An entry and its file.
struct Held {
    row: Row,
    file: Listed,
}

impl MaildirAccount {
    /// Reads every Maildir, and says what is wrong.
    pub(crate) fn check(&self) -> Result<Vec<Finding>> {
        // From the files, and from nothing that was read before.
        self.served.forget_read();
        let mut all = Vec::new();
        let ids: Vec<MailboxId> = self.state().mailboxes().map(|mailbox| mailbox.id()).collect();
        for id in ids {
            let Some(maildir) = self.path_of(id) else { continue };
            let mut findings = Findings::new(&maildir, &mut all);
            match self.check_maildir(id, &maildir, &mut findings) {
                Ok(()) => {}
                // Deleted meanwhile, or empty: then it needs no directory.
                Err(error) if error.kind() == ErrorKind::NotFound && self.is_empty(id) => {}
                Err(error) => findings.add(0, None, format!("it could not be looked at: {error}")),
            }
        }
        Ok(all)
    }

    fn check_maildir(&self, id: MailboxId, maildir: &Path, findings: &mut Findings<'_>) -> Result<()> {
        let dir_box = self.dir_box(id)?;
        let held = {
            let mut turn = lock(&dir_box.turn);
            let Some(look) = self.look_still(&dir_box, &mut turn, maildir)? else {
                findings.add(0, None, "it changes all the time: it was not held against the log");
                return Ok(());
            };
            self.hold_names(&dir_box, maildir, look, findings)?
        };
        // Sessions go on meanwhile.
        for held in &held {
            self.check_file(&dir_box, maildir, held, findings)?;
        }
        Ok(())
    }

    fn is_empty(&self, id: MailboxId) -> bool {
        self.state().mailbox(id).is_none_or(|mailbox| mailbox.exists() == 0)
    }

    /// All files of a Maildir, of which the log has all news; `None`: others change it.
    fn look_still(&self, dir_box: &DirBox, turn: &mut Turn, maildir: &Path) -> Result<Option<Look>> {
        for _ in 0..LOOKS_MAX {
            self.sync(dir_box, turn)?;
            let look = match Look::take(&*self.env.disk, &*self.env.clock, maildir, None) {
                Ok(look) => look,
                Err(error) => return Err(model::Error::from(error).context(maildir.display())),
            };
            let known = dir_box.with_map(|map| map.stamp).flatten();
            if known == Some(look.stamp) && listing::Stamp::take(&*self.env.disk, maildir)? == look.stamp {
                return Ok(Some(look));
            }
        }
        Ok(None)
    }

    /// Holds names and entries against each other; which file each entry has.
    fn hold_names(
        &self,
        dir_box: &DirBox,
        maildir: &Path,
        look: Look,
        findings: &mut Findings<'_>,
    ) -> Result<Vec<Held>> {
        let state = self.state();
        let Some(mailbox) = state.mailbox(dir_box.id) else { return Ok(Vec::new()) };
        let keywords = self.read_keywords(maildir)?;
        let letters = MailboxLetters::new(mailbox.keywords(), &keywords, true);
        let mut held = Vec::new();
        let mut seen = HashSet::new();
        for file in look.files {
            let at = listing::path(maildir, file.subdir, &file.name);
            let known = dir_box.with_map(|map| {
                let position = map.find_base(file.base())?;
                let record = map.at(position)?;
                Some((record, map.name(&record) == file.name && record.subdir == file.subdir))
            });
            match known.flatten() {
                None => findings.add_at(
                    &at,
                    0,
                    None,
                    "there is a file that no entry has: it is no plain file, or too large",
                ),
                Some((record, false)) => {
                    findings.add_at(
                        &at,
                        0,
                        Some(record.email_id),
                        "another file has the same base name: this one is not served",
                    );
                }
                Some((record, true)) => {
                    seen.insert(record.uid);
                    let row = model::Uid::new(record.uid).and_then(|uid| mailbox.row_of(uid));
                    if let Some((_, row)) = row.filter(|(_, row)| row.email_id == record.email_id) {
                        held.push(Held { row, file });
                    }
                }
            }
        }
        for (_, row) in mailbox.all_rows().filter(|(_, row)| !seen.contains(&row.uid.get())) {
            findings.add(0, Some(row.email_id), format!("UID {} has no file", row.uid));
        }
        let (shown, forwarded) = (dir_box.shown(), Keyword::new(super::FORWARDED).ok());
        for one in held.iter().filter(|one| one.row.modseq <= shown) {
            let at = listing::path(maildir, one.file.subdir, &one.file.name);
            let said = one.file.letters();
            if letters.of(one.row.flags, said) != said {
                findings.add_at(
                    &at,
                    0,
                    Some(one.row.email_id),
                    format!("the name does not say the flags of UID {}", one.row.uid),
                );
            }
            let names = one.row.flags.keyword_indexes().filter_map(|index| mailbox.keywords().name(index));
            for keyword in names.filter(|keyword| Some(*keyword) != forwarded.as_ref()) {
                if keywords.letter(keyword).is_none() && keywords.has_room() {
                    let what = format!("the keyword {keyword} of UID {} has no letter", one.row.uid);
                    findings.add_at(&at, 0, Some(one.row.email_id), what);
                }
            }
        }
        Ok(held)
    }

    /// Holds a file against what its name and the log say of it.
    fn check_file(&self, dir_box: &DirBox, maildir: &Path, held: &Held, findings: &mut Findings<'_>) -> Result<()> {
        let id = held.row.email_id;
        let at = listing::path(maildir, held.file.subdir, &held.file.name);
        let found = match self.env.disk.metadata(&at) {
            Ok(found) => found,
            // Somebody has renamed it just now.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(model::Error::from(error).context(at.display())),
        };
        let said = Name::parse(&held.file.name);
        if said.and_then(|name| name.size()).is_some_and(|said| said != found.len) {
            findings.add_at(&at, 0, Some(id), format!("it has {} octets, and its name says another number", found.len));
        }
        if said.and_then(|name| name.crlf_size()).is_some_and(|said| said != u64::from(held.row.size)) {
            findings.add_at(
                &at,
                0,
                Some(id),
                format!("UID {} has {} octets, and the name says another number", held.row.uid, held.row.size),
            );
        }
        if self.is_read_by_the_log(id) {
            return Ok(());
        }
        let read = match self.read_file(maildir, &held.file) {
            Ok(read) => read,
            Err(error) if super::sync::is_gone(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let wanted = self.digest_of(&mut lock(&dir_box.turn), id)?;
        if let (Some(read), Some(wanted)) = (read, wanted)
            && read.contents() != wanted
        {
            findings.add_at(&at, 0, Some(id), format!("it is not the message that UID {} has", held.row.uid));
        }
        Ok(())
    }

    /// Whether the check of the log reads the octets from the only file that has them.
    fn is_read_by_the_log(&self, id: EmailId) -> bool {
        self.state().foreign_entries(id) == 1
    }
}
