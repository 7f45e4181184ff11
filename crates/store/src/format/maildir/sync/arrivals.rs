//! Files with a base that is not known: which messages they are, and entries for those that are new.
//!
//! A file may be one that is known under another base: programs add fields to it (mbsync `,U=`), or deliver a copy and remove the first. So the
//! stem of the base, and then the contents, are held against what is missing. When the map was lost, or is older than the last power cut, the
//! contents are held against all entries that have no file. Equal messages are as many as there are.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::path::Path;

use index::{ForeignMessage, NewEntry, Row, State, Ticket};
use model::{DateTime, EmailId, Error, ErrorKind, Result, Uid};
use platform::Timestamp;

use super::diff::Diff;
use super::lists::Lists;
use super::{deltas, is_gone};
use crate::format::maildir::account::{DirBox, MaildirAccount, Turn};
use crate::format::maildir::listing::Listed;
use crate::format::maildir::map::Position;
use crate::format::maildir::name::{Letters, Name, field};
use crate::format::maildir::serve::form_of;
use crate::format::mbox::digest::DigestOfServed;
use crate::format::served;
use crate::message::HeaderEnd;

/// A file that was read.
#[derive(Clone, Debug)]
pub(in crate::format::maildir) struct Newcomer {
    pub(super) file: Listed,
    message: ForeignMessage,
    modified: Timestamp,
    /// The entry that has it already: its UID, 0 for one that was expunged.
    pub(super) known: Option<(u32, EmailId)>,
}

impl Newcomer {
    pub(super) fn letters(&self) -> Letters {
        self.file.letters()
    }

    /// Size and digest of its message.
    pub(in crate::format::maildir) fn contents(&self) -> (u32, u64) {
        (self.message.octets, self.message.digest)
    }

    /// Names begin with the second of their delivery: as a number, so that years do not matter.
    pub(super) fn in_order_of_arrival(&self, other: &Newcomer) -> Ordering {
        let seconds =
            |one: &Newcomer| Name::parse(&one.file.name).and_then(|name| name.unix_seconds()).unwrap_or(u64::MAX);
        seconds(self).cmp(&seconds(other)).then_with(|| self.file.base().cmp(other.file.base()))
    }

    /// As Dovecot has it: when the file was written last. Our own names say the zone as well.
    fn internal_date(&self) -> DateTime {
        let minutes = field(self.file.base(), super::super::ZONE_FIELD)
            .and_then(|text| std::str::from_utf8(text).ok()?.parse::<i16>().ok())
            .filter(|minutes| (-1439..=1439).contains(minutes));
        DateTime { unix_seconds: self.modified.seconds, offset_minutes: minutes.unwrap_or(0) }
    }
}

impl MaildirAccount {
    /// Reads the files that are not known. What cannot be a message is left out, and what vanished since; whether any did.
    pub(super) fn read_new(&self, maildir: &Path, diff: &Diff) -> Result<(Vec<Newcomer>, bool)> {
        let mut newcomers = Vec::with_capacity(diff.unknown.len());
        let mut has_vanished = false;
        for file in &diff.unknown {
            match self.read_file(maildir, file) {
                Ok(newcomer) => newcomers.extend(newcomer),
                Err(error) if is_gone(&error) => has_vanished = true,
                Err(error) => return Err(error),
            }
        }
        Ok((newcomers, has_vanished))
    }

    pub(in crate::format::maildir) fn read_file(&self, maildir: &Path, file: &Listed) -> Result<Option<Newcomer>> {
        let path = super::super::listing::path(maildir, file.subdir, &file.name);
        let disk = &*self.env.disk;
        let wrong = |error: std::io::Error| Error::from(error).context(path.display());
        // Opening a pipe could wait for ever.
        if !disk.metadata(&path).map_err(wrong)?.is_file {
            return Ok(None);
        }
        let open = disk.open(&path, platform::OpenMode::Read).map_err(wrong)?;
        let metadata = open.metadata().map_err(wrong)?;
        let (mut digest, mut header, mut octets) = (DigestOfServed::new(), HeaderEnd::default(), 0u64);
        served::read(&*open, 0..metadata.len, form_of(file.base()), &mut |piece| {
            digest.push(piece);
            header.push(piece);
            octets += piece.len() as u64;
            Ok(())
        })?;
        let (Ok(octets), Ok(header_octets)) = (u32::try_from(octets), u32::try_from(header.len())) else {
            // Too large to be served.
            return Ok(None);
        };
        let message = ForeignMessage { octets, header_octets, digest: digest.finish() };
        Ok(Some(Newcomer { file: file.clone(), message, modified: metadata.modified, known: None }))
    }

    /// Finds out which of the files are known messages. Returns those that were missing and are here, under another base.
    pub(super) fn recognise(
        &self,
        state: &State,
        dir_box: &DirBox,
        turn: &mut Turn,
        diff: &Diff,
        newcomers: &mut Vec<Newcomer>,
    ) -> Result<Vec<(Position, Listed)>> {
        if newcomers.is_empty() {
            return Ok(Vec::new());
        }
        let mut renamed = Vec::new();
        let missing = dir_box.with_map(|map| {
            let of = |position: &Position| {
                let record = map.at(*position)?;
                let stem = Name::parse(map.name(&record)).map(|name| name.stem().to_vec());
                Some((*position, record.email_id, stem.unwrap_or_default()))
            };
            diff.missing.iter().filter_map(of).collect::<Vec<_>>()
        });
        let missing = missing.unwrap_or_default();
        let mut by_stem: HashMap<&[u8], Position> =
            missing.iter().map(|(position, _, stem)| (stem.as_slice(), *position)).collect();
        newcomers.retain(|newcomer| {
            let stem = Name::parse(&newcomer.file.name).map(|name| name.stem());
            let position = stem.and_then(|stem| by_stem.remove(stem));
            renamed.extend(position.map(|position| (position, newcomer.file.clone())));
            position.is_none()
        });
        let left = missing.iter().filter(|(_, _, stem)| by_stem.contains_key(stem.as_slice()));
        let mut by_contents = Candidates::default();
        for (position, id, _) in left {
            by_contents.add(self.contents_of(state, turn, *id, newcomers)?, Known::Missing(*position));
        }
        if !turn.is_settled {
            for (uid, id) in without_files(state, dir_box) {
                by_contents.add(self.contents_of(state, turn, id, newcomers)?, Known::Entry(uid, id));
            }
        }
        newcomers.retain_mut(|newcomer| match by_contents.take(&newcomer.message) {
            Some(Known::Missing(position)) => {
                renamed.push((position, newcomer.file.clone()));
                false
            }
            Some(Known::Entry(uid, id)) => {
                newcomer.known = Some((uid, id));
                true
            }
            None => true,
        });
        Ok(renamed)
    }

    /// Size and digest of a message, if some newcomer may be the same.
    fn contents_of(
        &self,
        state: &State,
        turn: &mut Turn,
        id: EmailId,
        newcomers: &[Newcomer],
    ) -> Result<Option<(u32, u64)>> {
        if let Some(message) = state.foreign(id) {
            return Ok(Some((message.octets, message.digest)));
        }
        let octets = match self.log.reader().info(id) {
            Ok(info) => info.len,
            // Damaged, or expunged meanwhile: whatever the file has is another message then.
            Err(error) if matches!(error.kind(), ErrorKind::Expunged | ErrorKind::Corrupt) => return Ok(None),
            Err(error) => return Err(error),
        };
        if !newcomers.iter().any(|newcomer| newcomer.message.octets == octets) {
            return Ok(None);
        }
        self.digest_of(turn, id)
    }

    /// Size and digest of a message; `None`: it is damaged, or gone.
    pub(in crate::format::maildir) fn digest_of(&self, turn: &mut Turn, id: EmailId) -> Result<Option<(u32, u64)>> {
        if let Some(message) = self.state().foreign(id) {
            return Ok(Some((message.octets, message.digest)));
        }
        if let Some(known) = turn.digests.get(&id) {
            return Ok(Some(*known));
        }
        let mut reader = self.log.reader();
        let mut octets = 0;
        let mut digest = DigestOfServed::new();
        let read = reader.range(id, 0..u64::MAX, &mut |piece| {
            digest.push(piece);
            octets += piece.len() as u32;
            Ok(())
        });
        match read {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::Expunged | ErrorKind::Corrupt) => return Ok(None),
            Err(error) => return Err(error),
        }
        let known = (octets, digest.finish());
        turn.digests.insert(id, known);
        Ok(Some(known))
    }

    /// Gives entries to new messages; UID and message of each.
    pub(super) fn tell_arrivals(
        &self,
        dir_box: &DirBox,
        turn: &Turn,
        arrivals: &[Newcomer],
        lists: &Lists,
        is_last: bool,
    ) -> Result<(Vec<(u32, EmailId)>, Ticket)> {
        let (id, mut shown) = (dir_box.id, dir_box.shown());
        let (ids, ticket) = self.log.transact(|transaction| {
            let mailbox = transaction.mailbox(id)?;
            let is_shown = mailbox.highest_modseq() <= shown || mailbox.exists() == 0;
            let mut ids = Vec::with_capacity(arrivals.len());
            for arrival in arrivals {
                let mut flags = deltas::flags(transaction, id, arrival.letters(), &turn.keywords)?;
                for keyword in lists.keywords(arrival.file.base()) {
                    match transaction.keyword(id, keyword) {
                        Ok(bit) => flags = flags.with(bit),
                        Err(error) if error.kind() == ErrorKind::Limit => {}
                        Err(error) => return Err(error),
                    }
                }
                let next = transaction.mailbox(id)?.uidnext().map_or(u32::MAX, Uid::get);
                let uid = match lists.uid(arrival.file.base()) {
                    Some(uid) if uid >= next => Some(uid),
                    // Another server may have given any UID up to its last one.
                    _ if next <= lists.last_uid => lists.last_uid.checked_add(1),
                    _ => None,
                };
                let email_id = transaction.add_foreign(arrival.message)?;
                let internal_date = arrival.internal_date();
                let entry = NewEntry { uid: uid.and_then(Uid::new), flags, internal_date, save_date: None };
                ids.push((transaction.add_entry(id, email_id, &entry)?.get(), email_id));
            }
            // The highest may have been those of messages that are gone.
            let next = transaction.mailbox(id)?.uidnext().map_or(u32::MAX, Uid::get);
            let after = lists.last_uid.checked_add(1).and_then(Uid::new);
            if let Some(after) = after.filter(|after| is_last && next < after.get()) {
                transaction.skip_uids(id, after)?;
            }
            if is_shown {
                shown = transaction.mailbox(id)?.highest_modseq();
            }
            Ok(ids)
        })?;
        dir_box.with_map(|map| map.shown = shown);
        Ok((ids, ticket))
    }
}

/// What a file may be.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// A known one, whose base was changed.
    Missing(Position),
    /// One of an entry without a file; UID 0: it was expunged.
    Entry(u32, EmailId),
}

/// What is looked for, by size and digest.
#[derive(Default)]
struct Candidates(HashMap<(u32, u64), VecDeque<Known>>);

impl Candidates {
    fn add(&mut self, contents: Option<(u32, u64)>, known: Known) {
        if let Some(contents) = contents {
            self.0.entry(contents).or_default().push_back(known);
        }
    }

    fn take(&mut self, message: &ForeignMessage) -> Option<Known> {
        self.0.get_mut(&(message.octets, message.digest))?.pop_front()
    }
}

/// The entries that no file is known of, and with UID 0 those that were expunged and may still have one.
fn without_files(state: &State, dir_box: &DirBox) -> Vec<(u32, EmailId)> {
    let found = dir_box.with_map(|map| {
        let rows = state.mailbox(dir_box.id).into_iter().flat_map(|mailbox| mailbox.all_rows());
        let is_without = |row: &Row| map.find(row.uid.get()).is_none();
        let mut found: Vec<_> =
            rows.map(|(_, row)| row).filter(is_without).map(|row| (row.uid.get(), row.email_id)).collect();
        let mut expunged =
            super::super::project::counts(MaildirAccount::pending_of(state, dir_box.id).map(|one| &**one));
        for record in map.doomed() {
            if let Some(count) = expunged.get_mut(&record.email_id) {
                *count = count.saturating_sub(1);
            }
        }
        for (id, count) in expunged {
            found.extend((0..count).map(|_| (0, id)));
        }
        found
    });
    found.unwrap_or_default()
}
