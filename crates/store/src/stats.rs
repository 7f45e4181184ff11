//! What an account consists of, in numbers.

use std::path::Path;

use model::{EmailId, Result};
use platform::Disk;

use crate::account::Account;

/// An account in numbers. Bytes on disk are those of the files' blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Mailboxes.
    pub mailboxes: u64,
    /// Entries in all mailboxes.
    pub entries: u64,
    /// Messages that have an entry.
    pub messages: u64,
    /// Their octets.
    pub message_bytes: u64,
    /// Entries that were expunged and can still be brought back.
    pub restorable: u64,
    /// Bytes on disk of sealed segments.
    pub segment_disk_bytes: u64,
    /// Bytes on disk of tails.
    pub tail_disk_bytes: u64,
    /// Bytes on disk of what can be derived.
    pub index_disk_bytes: u64,
    /// Bytes on disk of anything else: messages on their way in, files that are none of ours.
    pub other_disk_bytes: u64,
    /// Sealed segments.
    pub segments: u64,
    /// Octets of the messages in segments, before compression.
    pub sealed_bytes: u64,
    /// Of these, octets of messages that nobody needs any more: compaction gives their space back.
    pub dead_bytes: u64,
}

impl Account {
    /// Counts. Reads the rows of every mailbox and segment, no message.
    pub fn stats(&self) -> Result<Stats> {
        let mut stats = Stats::default();
        let state = self.inner.state();
        let mut messages: Vec<(EmailId, u32)> = Vec::new();
        for mailbox in state.mailboxes() {
            stats.mailboxes += 1;
            stats.entries += u64::from(mailbox.exists());
            stats.restorable += mailbox.expunged_since(i64::MIN).count() as u64;
            messages.extend(mailbox.all_rows().map(|(_, row)| (row.email_id, row.size)));
        }
        messages.sort_unstable();
        messages.dedup();
        stats.messages = messages.len() as u64;
        stats.message_bytes = messages.iter().map(|(_, size)| u64::from(*size)).sum();
        let space = self.inner.log().space()?;
        (stats.segments, stats.sealed_bytes, stats.dead_bytes) =
            (space.segments, space.message_bytes, space.dead_bytes);
        count_files(&*self.inner.env().disk, self.inner.log().dir(), &mut stats)?;
        Ok(stats)
    }
}

/// Adds up the files below `dir` by kind: by the directory they are in, and in `log` by their names.
fn count_files(disk: &dyn Disk, dir: &Path, stats: &mut Stats) -> Result<()> {
    for entry in disk.list(dir)? {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            count_files(disk, &path, stats)?;
            continue;
        }
        let bytes = match disk.metadata(&path) {
            Ok(metadata) => metadata.allocated_bytes,
            // Sealed, compacted or delivered since the directory was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        let name = entry.name.to_string_lossy();
        let kind = match dir.file_name().and_then(|name| name.to_str()) {
            Some("index") => &mut stats.index_disk_bytes,
            Some("log") if name.starts_with("segment-") => &mut stats.segment_disk_bytes,
            Some("log") if name.starts_with("tail-") => &mut stats.tail_disk_bytes,
            _ => &mut stats.other_disk_bytes,
        };
        *kind += bytes;
    }
    Ok(())
}
