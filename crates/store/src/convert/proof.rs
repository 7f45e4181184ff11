//! The proof that nothing has changed: every entry of every mailbox, with its bytes read twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use index::{ForeignMessage, Journal, Log, Mailbox, Row, State};
use model::{EmailId, ErrorKind, MailboxId, ModSeq, Result, Uid};
use sha2::{Digest, Sha256};

use super::{ConvertReport, Stayed, Watcher};
use crate::account::Account;
use crate::format::files::Files;

/// What was compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Mailboxes.
    pub mailboxes: u64,
    /// Their entries: UID, flags, keywords, internal date, save date, modseq and bytes of each.
    pub entries: u64,
    /// Octets of their messages.
    pub bytes: u64,
    /// Entries whose bytes were read from the files and from the log, and were the same.
    pub equal: u64,
    /// SHA-256 over all of it, in the order of names and UIDs, hexadecimal: the same account says the same in every format.
    pub sha256: String,
}

/// How a message came out of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// Log and files have the same bytes, and the log may know the message by this.
    Equal(ForeignMessage),
    /// The bytes are in the files alone.
    Foreign,
    /// The files have other bytes, or none.
    Differs,
    /// It is gone meanwhile.
    Gone,
}

/// Where the other copy of each message is.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// In the files of its mailbox.
    Files(&'a dyn Files),
    /// In a database.
    Journal(&'a dyn Journal),
    /// In another log.
    Log(&'a Arc<Log>),
}

impl Place<'_> {
    fn digest(&self, octets: &[u8]) -> u64 {
        match self {
            Place::Files(files) => files.digest(octets),
            Place::Journal(_) | Place::Log(_) => u64::from(crc32c::crc32c(octets)),
        }
    }

    /// See [`Files::read_back`].
    fn read_back(
        &self,
        mailbox: MailboxId,
        id: EmailId,
        known: &ForeignMessage,
        header: &mut Vec<u8>,
        octets: &mut Vec<u8>,
    ) -> Result<bool> {
        if let Place::Files(files) = self {
            return files.read_back(mailbox, id, known, header, octets);
        }
        header.clear();
        octets.clear();
        let mut sink = |piece: &[u8]| {
            octets.extend_from_slice(piece);
            Ok(())
        };
        match self {
            Place::Files(_) => Ok(false),
            Place::Journal(journal) => {
                let Some(found) = journal.message(id)? else { return Ok(false) };
                journal.header(id, &found, header)?;
                journal.range(id, &found, 0..u64::from(found.octets), &mut sink)?;
                Ok(found == *known)
            }
            Place::Log(log) => {
                let mut reader = log.reader();
                match reader.range(id, 0..u64::MAX, &mut sink) {
                    Err(error) if error.kind() == ErrorKind::Expunged => return Ok(false),
                    read => read?,
                }
                header.extend_from_slice(reader.header(id)?);
                Ok(true)
            }
        }
    }
}

/// Compares messages of the log with what is elsewhere.
pub(super) struct Comparer<'a> {
    files: Option<Place<'a>>,
    reader: index::Reader,
    /// The octets of the message that was compared last.
    pub(super) octets: Vec<u8>,
    other: Vec<u8>,
    header: Vec<u8>,
}

impl<'a> Comparer<'a> {
    pub(super) fn new(account: &Account, files: Option<Place<'a>>) -> Self {
        let reader = account.inner.log().reader();
        Comparer { files, reader, octets: Vec::new(), other: Vec::new(), header: Vec::new() }
    }

    /// Reads the message of an entry, and the copy that is in the files of its mailbox.
    pub(super) fn compare(&mut self, state: &State, mailbox: MailboxId, row: &Row) -> Result<Compared> {
        let id = row.email_id;
        self.octets.clear();
        let octets = &mut self.octets;
        let read = self.reader.range(id, 0..u64::MAX, &mut |piece| {
            octets.extend_from_slice(piece);
            Ok(())
        });
        match read {
            Err(error) if error.kind() == ErrorKind::Expunged => return Ok(Compared::Gone),
            read => read?,
        }
        let Some(files) = self.files else { return Ok(Compared::Differs) };
        if state.foreign(id).is_some() {
            return Ok(Compared::Foreign);
        }
        let info = self.reader.info(id)?;
        let known =
            ForeignMessage { octets: info.len, header_octets: info.header_len, digest: files.digest(&self.octets) };
        if !files.read_back(mailbox, id, &known, &mut self.header, &mut self.other)? {
            return Ok(Compared::Differs);
        }
        let header = self.octets.get(..info.header_len as usize).unwrap_or_default();
        let is_equal = self.octets == self.other && header == self.header;
        Ok(if is_equal { Compared::Equal(known) } else { Compared::Differs })
    }
}

/// A proof in the making.
pub(super) struct Prover {
    proof: Proof,
    sha256: Sha256,
    /// Up to which modseq each mailbox was compared.
    upto: BTreeMap<MailboxId, ModSeq>,
}

impl Prover {
    /// Compares everything as it is in `state`. `None`: whoever watched has ended it.
    pub(super) fn run(
        account: &Account,
        state: &Arc<State>,
        files: Option<Place<'_>>,
        watcher: &mut Watcher<'_>,
        report: &mut ConvertReport,
    ) -> Result<Option<Prover>> {
        let mut prover = Prover { proof: Proof::default(), sha256: Sha256::new(), upto: BTreeMap::new() };
        let total: u64 = state.mailboxes().map(|mailbox| mailbox.octets()).sum();
        let mut comparer = Comparer::new(account, files);
        report.stayed.clear();
        for mailbox in state.mailboxes() {
            prover.mailbox(mailbox);
            for (_, row) in mailbox.all_rows() {
                if watcher(prover.proof.bytes, total).is_break() {
                    report.was_stopped = true;
                    return Ok(None);
                }
                prover.entry(state, mailbox, &row, &mut comparer, report)?;
            }
        }
        Ok(Some(prover))
    }

    fn mailbox(&mut self, mailbox: &Arc<Mailbox>) {
        self.proof.mailboxes += 1;
        self.upto.insert(mailbox.id(), mailbox.highest_modseq());
        let head = format!("{}\n{}\n", mailbox.name(), mailbox.uidvalidity());
        self.sha256.update(head.as_bytes());
    }

    fn entry(
        &mut self,
        state: &State,
        mailbox: &Mailbox,
        row: &Row,
        comparer: &mut Comparer<'_>,
        report: &mut ConvertReport,
    ) -> Result<()> {
        let compared = comparer.compare(state, mailbox.id(), row)?;
        match compared {
            Compared::Gone => return Ok(()),
            Compared::Equal(_) => self.proof.equal += 1,
            Compared::Foreign => {}
            Compared::Differs => report.stayed.push(Stayed { mailbox: mailbox.name().clone(), uid: row.uid }),
        }
        self.proof.entries += 1;
        self.proof.bytes += comparer.octets.len() as u64;
        self.sha256.update(described(mailbox, row).as_bytes());
        self.sha256.update(&comparer.octets);
        Ok(())
    }

    /// Compares what has changed since, and what is new, as it is in `state`; how much that was.
    pub(super) fn catch_up(
        &mut self,
        account: &Account,
        state: &Arc<State>,
        files: Option<Place<'_>>,
        report: &mut ConvertReport,
    ) -> Result<u64> {
        let mut comparer = Comparer::new(account, files);
        let mut count = 0;
        for mailbox in state.mailboxes() {
            let since = self.upto.get(&mailbox.id()).copied();
            if since == Some(mailbox.highest_modseq()) {
                continue;
            }
            if since.is_none() {
                self.mailbox(mailbox);
            }
            for (_, row) in mailbox.changed_since(since.unwrap_or(ModSeq(0))) {
                // One that was compared already has the same bytes for ever.
                report.stayed.retain(|stayed| (&stayed.mailbox, stayed.uid) != (mailbox.name(), row.uid));
                self.entry(state, mailbox, &row, &mut comparer, report)?;
                count += 1;
            }
            self.upto.insert(mailbox.id(), mailbox.highest_modseq());
        }
        Ok(count)
    }

    /// Whether nothing has changed since it was compared.
    pub(super) fn is_current(&self, state: &State) -> bool {
        state.mailboxes().all(|mailbox| self.upto.get(&mailbox.id()) == Some(&mailbox.highest_modseq()))
    }

    pub(super) fn finish(self) -> Proof {
        let sha256 = self.sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Proof { sha256, ..self.proof }
    }
}

/// An entry in words: everything about it but its bytes.
fn described(mailbox: &Mailbox, row: &Row) -> String {
    let mut keywords: Vec<String> = row
        .flags
        .keyword_indexes()
        .filter_map(|index| mailbox.keywords().name(index))
        .map(ToString::to_string)
        .collect();
    keywords.sort();
    let system: Vec<String> = row.flags.system_flags().map(|flag| format!("{flag:?}")).collect();
    let uid: Uid = row.uid;
    format!(
        "{uid} {} {} {} {} {} {} {}\n",
        system.join(","),
        keywords.join(","),
        row.internal_date.unix_seconds,
        row.internal_date.offset_minutes,
        row.save_date,
        row.modseq,
        row.size
    )
}
