//! The account as a few maps: what the log must agree with, computed in the simplest way there is.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use mailyard_index::{Foreign, ForeignMessage, Log, Mailbox, State};
use model::{EmailId, Error, ErrorKind, Flags, ModSeq, UidSet};

/// The bytes of foreign messages, with the octets of their headers, by id.
#[derive(Debug, Default)]
pub struct Files(Mutex<BTreeMap<u64, (Vec<u8>, usize)>>);

/// The digest of a foreign message here.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(7, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

impl Files {
    /// Puts a message where the log says that it is.
    pub fn insert(&self, id: EmailId, bytes: &[u8], header_len: u32) {
        self.0.lock().unwrap().insert(id.0, (bytes.to_vec(), header_len as usize));
    }

    /// Loses everything.
    pub fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// All ids that ever were here.
    pub fn ids(&self) -> Vec<EmailId> {
        self.0.lock().unwrap().keys().map(|id| EmailId(*id)).collect()
    }

    fn find(&self, id: EmailId) -> model::Result<(Vec<u8>, usize)> {
        let gone = || Error::new(ErrorKind::Expunged, "the message is not in its file");
        self.0.lock().unwrap().get(&id.0).cloned().ok_or_else(gone)
    }
}

impl Foreign for Files {
    fn header(&self, id: EmailId, _: &ForeignMessage, out: &mut Vec<u8>) -> model::Result<()> {
        let (bytes, header_len) = self.find(id)?;
        out.extend_from_slice(&bytes[..header_len]);
        Ok(())
    }

    fn range(
        &self,
        id: EmailId,
        _: &ForeignMessage,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> model::Result<()>,
    ) -> model::Result<()> {
        let (bytes, _) = self.find(id)?;
        bytes[range.start as usize..range.end as usize].chunks(100).try_for_each(sink)
    }
}

/// Derives two blobs from a message: its header's length as text, and its last ten bytes.
#[derive(Debug)]
pub struct Ends;

impl mailyard_index::Derive for Ends {
    fn version(&self) -> u32 {
        7
    }

    fn columns(&self) -> usize {
        2
    }

    fn derive(&self, message: &mut mailyard_index::MessageBytes<'_>) -> model::Result<Vec<Vec<u8>>> {
        let mut last = Vec::new();
        let len = u64::from(message.info().len);
        message.range(len.saturating_sub(10)..len, &mut |piece| {
            last.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(vec![message.header()?.len().to_string().into_bytes(), last])
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub flags: u128,
    pub modseq: u64,
    pub date: i64,
    pub size: u32,
    pub email: u64,
    /// What is known of its message when that is foreign.
    pub foreign: Option<ForeignMessage>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Expected {
    pub name: String,
    pub uidvalidity: u32,
    pub uidnext: u64,
    pub modseq: u64,
    pub keywords: Vec<String>,
    pub special: Vec<String>,
    pub note: Option<Vec<u8>>,
    pub entries: BTreeMap<u32, Entry>,
    pub vanished: BTreeMap<u32, u64>,
    /// Expunged entries and when that was.
    pub expunged: BTreeMap<u32, (Entry, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Account {
    pub mailboxes: BTreeMap<u64, Expected>,
    pub deleted: BTreeMap<u64, (Expected, i64)>,
    pub subscriptions: BTreeSet<String>,
    pub note: Option<Vec<u8>>,
    pub modseq: u64,
}

fn observe_mailbox(state: &State, mailbox: &Mailbox, since: i64) -> Expected {
    let entry = |row: &mailyard_index::Row| Entry {
        flags: row.flags.0,
        modseq: row.modseq.0,
        date: row.internal_date.unix_seconds,
        size: row.size,
        email: row.email_id.0,
        foreign: state.foreign(row.email_id),
    };
    Expected {
        name: mailbox.name().to_string(),
        uidvalidity: mailbox.uidvalidity().get(),
        uidnext: mailbox.uidnext().map_or(0, |uid| u64::from(uid.get())),
        modseq: mailbox.highest_modseq().0,
        keywords: mailbox.keywords().iter().map(ToString::to_string).collect(),
        special: mailbox.special_uses().map(|attribute| attribute.as_str().to_owned()).collect(),
        note: mailbox.annotation("note").map(<[u8]>::to_vec),
        entries: mailbox.all_rows().map(|(_, row)| (row.uid.get(), entry(&row))).collect(),
        vanished: BTreeMap::new(),
        expunged: mailbox.expunged_since(since).map(|e| (e.row.uid.get(), (entry(&e.row), e.expunged_at))).collect(),
    }
}

/// The account as the log shows it; of expunged entries those since `since`.
pub fn observe(state: &State, since: i64) -> Account {
    let counted = state.mailboxes().fold((0, 0), |(messages, octets), mailbox| {
        (messages + u64::from(mailbox.exists()), octets + mailbox.octets())
    });
    assert_eq!((state.usage().messages, state.usage().octets), counted, "the usage is what is there");
    Account {
        mailboxes: state.mailboxes().map(|mailbox| (mailbox.id().0, observe_mailbox(state, mailbox, since))).collect(),
        deleted: state
            .deleted_mailboxes()
            .filter(|deleted| deleted.deleted_at >= since)
            .map(|deleted| {
                (deleted.mailbox.id().0, (observe_mailbox(state, &deleted.mailbox, since), deleted.deleted_at))
            })
            .collect(),
        subscriptions: state.subscriptions().iter().map(ToString::to_string).collect(),
        note: state.annotation("note").map(<[u8]>::to_vec),
        modseq: state.modseq().0,
    }
}

impl Account {
    /// Without what [`observe`] does not show.
    pub fn visible(&self, since: i64) -> Account {
        let mut account = self.clone();
        account.deleted.retain(|_, (_, time)| *time >= since);
        let mailboxes =
            account.mailboxes.values_mut().chain(account.deleted.values_mut().map(|(expected, _)| expected));
        for expected in mailboxes {
            expected.vanished.clear();
            expected.expunged.retain(|_, (_, time)| *time >= since);
        }
        account
    }
}

/// What is inside a mailbox agrees with itself and with the model.
pub fn check_mailbox(mailbox: &Mailbox, expected: &Expected) {
    let count = |bit: u128| expected.entries.values().filter(|e| e.flags & bit != 0).count() as u32;
    let (deleted, seen) = (Flags::system(model::SystemFlag::Deleted).0, Flags::system(model::SystemFlag::Seen).0);
    let exists = expected.entries.len() as u32;
    assert_eq!(mailbox.exists(), exists);
    assert_eq!(mailbox.deleted(), count(deleted));
    assert_eq!(mailbox.unseen(), exists - count(seen));
    assert_eq!(mailbox.octets(), expected.entries.values().map(|e| u64::from(e.size)).sum::<u64>());
    let first_unseen = expected.entries.iter().find(|(_, e)| e.flags & seen == 0).map(|(uid, _)| *uid);
    assert_eq!(mailbox.first_unseen().map(|(_, row)| row.uid.get()), first_unseen);
    for (n, uid) in expected.entries.keys().enumerate() {
        let seq = n as u32 + 1;
        let uid = model::Uid::new(*uid).unwrap();
        assert_eq!(mailbox.uid_of(seq), Some(uid));
        assert_eq!(mailbox.seq_of(uid).map(model::SeqNum::get), Some(seq));
    }
    assert_eq!(mailbox.uid_of(exists + 1), None);
    for since in [0, expected.modseq / 2, expected.modseq] {
        let vanished: UidSet =
            expected.vanished.iter().filter(|(_, modseq)| **modseq > since).map(|(uid, _)| *uid).collect();
        assert_eq!(mailbox.vanished_since(ModSeq(since)), vanished, "vanished since {since}");
        let changed: Vec<u32> =
            expected.entries.iter().filter(|(_, e)| e.modseq > since).map(|(uid, _)| *uid).collect();
        assert!(mailbox.changed_since(ModSeq(since)).map(|(_, row)| row.uid.get()).eq(changed));
    }
}

/// The foreign messages of a mailbox are those of its entries; of all that ever were, those without an entry are forgotten.
pub fn check_foreign(state: &State, account: &Account, files: &Files) {
    let mailboxes = account.mailboxes.values().chain(account.deleted.values().map(|(expected, _)| expected));
    let used: BTreeSet<u64> =
        mailboxes.flat_map(|expected| expected.entries.values()).map(|entry| entry.email).collect();
    for id in files.ids().into_iter().filter(|id| !used.contains(&id.0)) {
        assert_eq!(state.foreign(id), None, "message {id} has no entry");
    }
    for mailbox in state.mailboxes() {
        let expected = account.mailboxes[&mailbox.id().0].entries.iter();
        let expected = expected.filter_map(|(uid, entry)| Some((*uid, entry.email, entry.foreign?)));
        let found = mailbox.foreign(state).map(|(row, message)| (row.uid.get(), row.email_id.0, message));
        assert!(found.eq(expected), "the foreign messages of {}", mailbox.name());
    }
}

/// Every message of the account reads back as it was stored.
pub fn check_messages(log: &Arc<Log>, account: &Account, bytes: &BTreeMap<u64, Arc<Vec<u8>>>) {
    let mut reader = log.reader();
    let mailboxes = account.mailboxes.values().chain(account.deleted.values().map(|(expected, _)| expected));
    let ids: BTreeSet<u64> = mailboxes
        .flat_map(|expected| expected.entries.values().chain(expected.expunged.values().map(|(entry, _)| entry)))
        .map(|entry| entry.email)
        .collect();
    for id in ids {
        let expected = &bytes[&id];
        let whole = reader.whole(EmailId(id)).unwrap_or_else(|error| panic!("message {id}: {error}"));
        assert_eq!(whole, **expected, "message {id}");
        let info = reader.info(EmailId(id)).unwrap();
        assert_eq!(info.len as usize, expected.len());
        assert_eq!(reader.header(EmailId(id)).unwrap(), &expected[..info.header_len as usize], "header of {id}");
        assert_eq!(reader.derived(EmailId(id), 0).unwrap(), info.header_len.to_string().as_bytes());
        assert_eq!(reader.derived(EmailId(id), 1).unwrap(), &expected[expected.len().saturating_sub(10)..]);
        let (from, to) = (expected.len() / 3, expected.len() * 2 / 3 + 1);
        let mut part = Vec::new();
        let sink = &mut |piece: &[u8]| {
            part.extend_from_slice(piece);
            Ok(())
        };
        reader.range(EmailId(id), from as u64..to as u64, sink).unwrap();
        assert_eq!(part, expected[from..to.min(expected.len())], "part of {id}");
    }
}
