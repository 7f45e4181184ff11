//! Where the octets of a message that is to get a file come from, and when it is certain that nobody has them any more.
//!
//! Invariant: an entry without a file is expunged only when every Maildir of the account was looked at without an error, those of mailboxes that
//! are gone included, and none has the message, nor another one of the same octets. A directory that is not mounted, or that somebody is at,
//! takes nothing with it.

use std::cell::OnceCell;
use std::collections::HashMap;

use index::State;
use model::{EmailId, ErrorKind, Result, UidSet};

use super::account::{DirBox, MaildirAccount, lock};
use super::compose::Source;
use super::listing;
use super::project::to_be_added;
use super::serve::files_of;

/// Which messages have the same octets, asked for while one is missing.
pub(super) struct Sources<'s> {
    state: &'s State,
    /// By length and digest.
    twins: OnceCell<HashMap<(u32, u64), Vec<EmailId>>>,
}

impl<'s> Sources<'s> {
    pub(super) fn new(state: &'s State) -> Self {
        Sources { state, twins: OnceCell::new() }
    }

    /// The other messages with the octets of this one.
    fn twins(&self, id: EmailId) -> Vec<EmailId> {
        let Some(wanted) = self.state.foreign(id) else { return Vec::new() };
        let twins = self.twins.get_or_init(|| {
            let mut twins: HashMap<(u32, u64), Vec<EmailId>> = HashMap::new();
            for (row, known) in self.state.mailboxes().flat_map(|mailbox| mailbox.foreign(self.state)) {
                twins.entry((known.octets, known.digest)).or_default().push(row.email_id);
            }
            twins
        });
        let same = twins.get(&(wanted.octets, wanted.digest)).into_iter().flatten();
        same.copied().filter(|other| *other != id).collect()
    }
}

impl MaildirAccount {
    /// Sees to it that messages of other Maildirs that are to be copied into this one can be read; those that nobody has any more lose their entries.
    pub(super) fn find_sources(&self, dir_box: &DirBox) -> Result<()> {
        {
            let mut turn = lock(&dir_box.turn);
            if !turn.is_settled {
                self.sync(dir_box, &mut turn)?;
            }
        }
        if self.without_source(dir_box)?.is_empty() {
            return Ok(());
        }
        self.look_everywhere()?;
        let lost = self.without_source(dir_box)?;
        if lost.is_empty() {
            return Ok(());
        }
        self.log.commit(|transaction| transaction.expunge(dir_box.id, &lost).map(drop))
    }

    /// The entries that are to get a file and whose message no known file has.
    fn without_source(&self, dir_box: &DirBox) -> Result<UidSet> {
        let state = self.state();
        let mut lost = UidSet::new();
        let Some(mailbox) = state.mailbox(dir_box.id) else { return Ok(lost) };
        let sources = Sources::new(&state);
        for row in to_be_added(dir_box, mailbox).iter().filter(|row| state.foreign(row.email_id).is_some()) {
            if self.source_of(&sources, row.email_id)?.is_none() {
                lost.insert(row.uid.get());
            }
        }
        Ok(lost)
    }

    /// Brings the log up to date with every Maildir of the account. While no turn is held.
    fn look_everywhere(&self) -> Result<()> {
        self.open_doomed();
        let ids: Vec<_> = self.state().mailboxes().map(|mailbox| mailbox.id()).collect();
        for id in ids {
            match self.dir_box(id) {
                Ok(dir_box) => self.sync(&dir_box, &mut lock(&dir_box.turn)).map_err(|error| error.context(id))?,
                // It never had a directory.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A file that has the message, or the same octets: the map that knew it may have been lost with its mailbox.
    pub(super) fn source_of(&self, sources: &Sources<'_>, id: EmailId) -> Result<Option<Source>> {
        if let Some(found) = self.file_of(id)? {
            return Ok(Some(found));
        }
        if let Some(opened) = self.served.ghost(id) {
            return Ok(Some(Source::Open(opened)));
        }
        for twin in sources.twins(id) {
            if let Some(found) = self.file_of(twin)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A file that has the message, in whichever mailbox.
    fn file_of(&self, id: EmailId) -> Result<Option<Source>> {
        for dir_box in self.open_boxes() {
            let Some(maildir) = self.path_of(dir_box.id) else { continue };
            for file in files_of(&dir_box, id) {
                if let Some(opened) = self.open_file(&maildir, &file)? {
                    return Ok(Some(Source::File {
                        path: listing::path(&maildir, file.subdir, &file.name),
                        base: file.base().to_vec(),
                        opened,
                    }));
                }
            }
        }
        Ok(None)
    }
}
