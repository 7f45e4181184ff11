//! Loading a checkpoint: mapping the file, verifying its checksum, and building the state around the mapped columns.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use model::{Keyword, KeywordTable, MailboxId, MailboxName, ModSeq, UidSet, UidValidity};
use platform::{Env, Mapped};

use super::{CHECKPOINT_FILE, CHECKPOINT_HEADER_BYTES, CHECKPOINT_MAGIC, CHECKPOINT_MAGIC_1};
use crate::check::Finding;
use crate::codec::Input;
use crate::state::{
    Batch, CHUNK_ROWS_MAX, Chunk, DeletedMailbox, ForeignBlock, ForeignTable, History, Mailbox, Part, Slot, State,
    Summary, Usage,
};

/// The state of the checkpoint, or that of an empty log when there is none that can be used. Damage is noted.
pub(crate) fn load(env: &Env, index_dir: &Path, findings: &mut Vec<Finding>) -> State {
    let path = index_dir.join(CHECKPOINT_FILE);
    let mut note = |what: String| {
        findings.push(Finding { file: path.clone(), offset: 0, email_id: None, what });
    };
    let bytes = match env.disk.map(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return State::default(),
        Err(error) => {
            note(format!("the checkpoint cannot be read: {error}"));
            return State::default();
        }
    };
    if bytes.starts_with(&CHECKPOINT_MAGIC_1.to_le_bytes()) {
        return State::default();
    }
    match verified(&bytes).then(|| read(&bytes)).flatten() {
        Some(state) => state,
        None => {
            note("the checkpoint is damaged; the state is rebuilt from the log".to_owned());
            State::default()
        }
    }
}

/// Whether the file is a checkpoint of this version and matches its checksum.
fn verified(bytes: &[u8]) -> bool {
    let Some((body, crc)) = bytes.split_last_chunk::<4>() else { return false };
    body.starts_with(&CHECKPOINT_MAGIC.to_le_bytes()) && crc32c::crc32c(body) == u32::from_le_bytes(*crc)
}

fn read(bytes: &Mapped) -> Option<State> {
    let mut header = Input(bytes.get(8..CHECKPOINT_HEADER_BYTES)?);
    let frame = header.u64()?;
    let modseq = ModSeq(header.u64()?);
    let email_id_next = header.u64()?;
    let mailbox_id_next = header.u64()?;
    let uidvalidity_last = header.u32()?;
    let chain = header.u32()?;
    let end = bytes.len().checked_sub(12)?;
    let meta_at = usize::try_from(Input(bytes.get(end..)?).u64()?).ok()?;
    let mut input = Input(bytes.get(meta_at..end)?);
    let mut mailboxes = BTreeMap::new();
    let mut names = BTreeMap::new();
    for _ in 0..input.varint()? {
        let mailbox = read_mailbox(bytes, &mut input)?;
        names.insert(mailbox.name.clone(), mailbox.id);
        mailboxes.insert(mailbox.id, Arc::new(mailbox));
    }
    let mut deleted = BTreeMap::new();
    for _ in 0..input.varint()? {
        let deleted_at = input.signed()?;
        let mailbox = Arc::new(read_mailbox(bytes, &mut input)?);
        deleted.insert(mailbox.id, DeletedMailbox { mailbox, deleted_at });
    }
    let mut subscriptions = BTreeSet::new();
    for _ in 0..input.varint()? {
        subscriptions.insert(MailboxName::new(input.text()?).ok()?);
    }
    let annotations = read_annotations(&mut input)?;
    let mut blocks = Vec::new();
    for _ in 0..input.varint()? {
        let at = usize::try_from(input.varint()?).ok()?;
        let rows = usize::try_from(input.varint()?).ok()?;
        blocks.push(ForeignBlock::mapped(bytes.clone(), at, rows)?);
    }
    let foreign = ForeignTable::load(blocks)?;
    let usage = mailboxes.values().fold(Usage::default(), |usage, mailbox| usage.with(mailbox.usage()));
    input.is_empty().then_some(State {
        usage,
        mailboxes: Arc::new(mailboxes),
        names: Arc::new(names),
        deleted: Arc::new(deleted),
        subscriptions: Arc::new(subscriptions),
        annotations: Arc::new(annotations),
        foreign,
        modseq,
        email_id_next,
        mailbox_id_next,
        uidvalidity_last,
        frame,
        chain,
    })
}

fn read_annotations(input: &mut Input<'_>) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut annotations = BTreeMap::new();
    for _ in 0..input.varint()? {
        let key = input.text()?.to_owned();
        annotations.insert(key, input.bytes()?.to_vec());
    }
    Some(annotations)
}

fn read_mailbox(bytes: &Mapped, input: &mut Input<'_>) -> Option<Mailbox> {
    let mut mailbox = Mailbox {
        id: MailboxId(input.varint()?),
        name: MailboxName::stored(input.text()?).ok()?,
        uidvalidity: UidValidity::new(input.varint32()?)?,
        uidnext: input.varint()?,
        highest_modseq: ModSeq(input.varint()?),
        created: input.signed()?,
        special_use: u16::try_from(input.varint()?).ok()?,
        recent_floor: input.varint32()?,
        keywords: Arc::default(),
        annotations: Arc::default(),
        slots: Vec::new(),
        exists: 0,
        unseen: 0,
        deleted: 0,
        octets: 0,
        history: History::default(),
    };
    let mut keywords = KeywordTable::default();
    for _ in 0..input.varint()? {
        keywords.insert(Keyword::new(input.text()?).ok()?).ok()?;
    }
    mailbox.keywords = Arc::new(keywords);
    mailbox.annotations = Arc::new(read_annotations(input)?);
    for _ in 0..input.varint()? {
        let at = usize::try_from(input.varint()?).ok()?;
        let summary = Summary {
            rows: input.varint32()?,
            uid_first: input.varint32()?,
            uid_last: input.varint32()?,
            unseen: input.varint32()?,
            deleted: input.varint32()?,
            octets: input.varint()?,
            modseq_last: input.varint()?,
        };
        // Rows, whose UIDs rise: there is one at least, and no more than there are numbers.
        summary.uid_last.checked_sub(summary.uid_first).filter(|more| *more >= summary.rows.wrapping_sub(1))?;
        let chunk = Chunk::mapped(bytes.clone(), at, summary.rows as usize)?;
        mailbox.slots.push(Slot { summary, before: 0, chunk: Arc::new(chunk) });
    }
    mailbox.recount();
    let floor = ModSeq(input.varint()?);
    let mut batches = Vec::new();
    for _ in 0..input.varint()? {
        batches.push(read_batch(bytes, input)?);
    }
    mailbox.history = History::load(batches, floor);
    Some(mailbox)
}

fn read_batch(bytes: &Mapped, input: &mut Input<'_>) -> Option<Batch> {
    let modseq = ModSeq(input.varint()?);
    let time = input.signed()?;
    let mut uids = UidSet::new();
    let mut from = 0u32;
    for _ in 0..input.varint()? {
        let first = from.checked_add(input.varint32()?)?;
        from = first.checked_add(input.varint32()?)?;
        uids.insert_range(first, from);
    }
    let mut left = usize::try_from(input.varint()?).ok()?;
    let mut parts = Vec::new();
    while left > 0 {
        let count = left.min(CHUNK_ROWS_MAX);
        parts.push(Part::Many(Chunk::mapped(bytes.clone(), usize::try_from(input.varint()?).ok()?, count)?));
        left -= count;
    }
    Some(Batch { modseq, time, uids, parts })
}
