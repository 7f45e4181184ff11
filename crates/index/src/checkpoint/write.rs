//! Writing a checkpoint: columns first, then the description of everything else, then the checksum of all of it.

use std::path::Path;

use model::Result;
use platform::{Env, OpenMode};

use super::{CHECKPOINT_FILE, CHECKPOINT_HEADER_BYTES, CHECKPOINT_MAGIC};
use crate::codec::{put_bytes, put_signed, put_varint};
use crate::segment::column::Output;
use crate::state::{Batch, CHUNK_ROWS_MAX, Chunk, Mailbox, State};

/// An output with the checksum of what went through it.
struct Checked {
    out: Output,
    crc: u32,
}

impl Checked {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        Ok(self.out.put(bytes)?)
    }
}

/// Writes the checkpoint of a durable state; replaces the one before atomically. Bytes of the file.
pub(crate) fn save(env: &Env, index_dir: &Path, state: &State) -> Result<u64> {
    env.disk.create_dir_all_durable(index_dir)?;
    let path = index_dir.join(CHECKPOINT_FILE);
    let temporary = path.with_extension("new");
    let file = env.disk.open(&temporary, OpenMode::Create)?;
    file.set_len(0)?;
    let mut out = Checked { out: Output::new(file), crc: 0 };
    write(&mut out, state)?;
    let crc = out.crc.to_le_bytes();
    out.put(&crc)?;
    out.out.flush()?;
    out.out.file.sync_data()?;
    env.disk.rename(&temporary, &path)?;
    env.disk.sync_dir(index_dir)?;
    Ok(out.out.position())
}

/// The first bytes of the checkpoint of a state.
pub(crate) fn header(state: &State) -> Vec<u8> {
    let mut header = Vec::with_capacity(CHECKPOINT_HEADER_BYTES);
    header.extend_from_slice(&CHECKPOINT_MAGIC.to_le_bytes());
    header.extend_from_slice(&state.frame.to_le_bytes());
    header.extend_from_slice(&state.modseq.0.to_le_bytes());
    header.extend_from_slice(&state.email_id_next.to_le_bytes());
    header.extend_from_slice(&state.mailbox_id_next.to_le_bytes());
    header.extend_from_slice(&state.uidvalidity_last.to_le_bytes());
    header.extend_from_slice(&state.chain.to_le_bytes());
    header.resize(CHECKPOINT_HEADER_BYTES, 0);
    header
}

fn write(out: &mut Checked, state: &State) -> Result<()> {
    out.put(&header(state))?;
    let mut meta = Vec::new();
    put_varint(&mut meta, state.mailboxes.len() as u64);
    for mailbox in state.mailboxes.values() {
        write_mailbox(out, &mut meta, mailbox)?;
    }
    put_varint(&mut meta, state.deleted.len() as u64);
    for deleted in state.deleted.values() {
        put_signed(&mut meta, deleted.deleted_at);
        write_mailbox(out, &mut meta, &deleted.mailbox)?;
    }
    put_varint(&mut meta, state.subscriptions.len() as u64);
    for name in state.subscriptions.iter() {
        put_bytes(&mut meta, name.as_str().as_bytes());
    }
    put_annotations(&mut meta, &state.annotations);
    let meta_at = out.out.position();
    out.put(&meta)?;
    out.put(&meta_at.to_le_bytes())
}

fn put_annotations(out: &mut Vec<u8>, annotations: &std::collections::BTreeMap<String, Vec<u8>>) {
    put_varint(out, annotations.len() as u64);
    for (key, value) in annotations {
        put_bytes(out, key.as_bytes());
        put_bytes(out, value);
    }
}

fn write_mailbox(out: &mut Checked, meta: &mut Vec<u8>, mailbox: &Mailbox) -> Result<()> {
    put_varint(meta, mailbox.id.0);
    put_bytes(meta, mailbox.name.as_str().as_bytes());
    put_varint(meta, u64::from(mailbox.uidvalidity.get()));
    put_varint(meta, mailbox.uidnext);
    put_varint(meta, mailbox.highest_modseq.0);
    put_signed(meta, mailbox.created);
    put_varint(meta, u64::from(mailbox.special_use));
    put_varint(meta, u64::from(mailbox.recent_floor));
    put_varint(meta, mailbox.keywords.len() as u64);
    for keyword in mailbox.keywords.iter() {
        put_bytes(meta, keyword.as_str().as_bytes());
    }
    put_annotations(meta, &mailbox.annotations);
    put_varint(meta, mailbox.slots.len() as u64);
    for slot in &mailbox.slots {
        put_varint(meta, write_chunk(out, &slot.chunk)?);
        let summary = &slot.summary;
        put_varint(meta, u64::from(summary.rows));
        put_varint(meta, u64::from(summary.uid_first));
        put_varint(meta, u64::from(summary.uid_last));
        put_varint(meta, u64::from(summary.unseen));
        put_varint(meta, u64::from(summary.deleted));
        put_varint(meta, summary.octets);
        put_varint(meta, summary.modseq_last);
    }
    put_varint(meta, mailbox.history.floor.0);
    put_varint(meta, mailbox.history.batches().count() as u64);
    for batch in mailbox.history.batches() {
        write_batch(out, meta, batch)?;
    }
    Ok(())
}

fn write_batch(out: &mut Checked, meta: &mut Vec<u8>, batch: &Batch) -> Result<()> {
    put_varint(meta, batch.modseq.0);
    put_signed(meta, batch.time);
    put_varint(meta, batch.uids.ranges().len() as u64);
    let mut from = 0;
    for &(first, last) in batch.uids.ranges() {
        put_varint(meta, u64::from(first - from));
        put_varint(meta, u64::from(last - first));
        from = last;
    }
    // In chunks that are full but for the last one.
    put_varint(meta, batch.rows().count() as u64);
    let mut rows = batch.rows();
    loop {
        let chunk: Chunk = rows.by_ref().take(CHUNK_ROWS_MAX).collect();
        if chunk.len() == 0 {
            return Ok(());
        }
        put_varint(meta, write_chunk(out, &chunk)?);
    }
}

/// Writes a chunk's columns; where they are in the file.
fn write_chunk(out: &mut Checked, chunk: &Chunk) -> Result<u64> {
    let at = out.out.position();
    let mut bytes = Vec::new();
    chunk.write(&mut bytes);
    out.put(&bytes)?;
    Ok(at)
}
