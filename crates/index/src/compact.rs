//! Compaction: segments with much that is dead are rewritten without it, small neighbours are merged, and a segment with a
//! damaged copy of what it has twice is written anew from the whole one.
//!
//! A record is dropped only when the states (the newest and the durable one) show that it says nothing any more:
//! - an entry that is neither there nor can be brought back: its expunge record stays, and its UID and modseq in a counter;
//! - flags of an entry that a later record set again;
//! - a foreign message that no entry has any more, or whose bytes came into the log;
//! - bytes of a message that are elsewhere by now;
//! - annotations and \Recent floors that are no longer so.
//!
//! Records about mailboxes and expunges always stay: they are small, and numbers are never reused because of them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use model::{EmailId, ErrorKind, Result, UidSet};

use crate::layout::LOG_DIR;
use crate::live::{Live, in_order};
use crate::log::Log;
use crate::reader::Block;
use crate::record::Event;
use crate::segment::build::{Incoming, Plan, build};
use crate::segment::format::{SegmentRow, Trailer};
use crate::segment::{Segment, put_frame};
use crate::state::Frame;

/// What the segments of an account hold; see [`Log::space`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Segments.
    pub segments: u64,
    /// Octets of the messages in them, before compression.
    pub message_bytes: u64,
    /// Of these, octets of messages that nobody needs any more.
    pub dead_bytes: u64,
}

/// What the records of one foreign message and its entry take in a segment, about: they are there twice.
const FOREIGN_RECORD_BYTES: u64 = 32;

/// Octets of a segment's messages that nobody needs.
fn dead_bytes(segment: &Segment, live: &Live) -> Result<u64> {
    let trailer = &segment.trailer;
    if trailer.rows == 0 {
        return Ok(0);
    }
    let rows = segment.rows()?;
    let positions = live.positions(trailer.first_id, u64::from(trailer.ids), late_ids(&rows, trailer));
    let needed = rows.iter().flatten().filter(|row| positions.find(row.email_id).is_some());
    Ok(trailer.message_bytes.saturating_sub(needed.map(|row| u64::from(row.len)).sum()))
}

impl Log {
    /// Rewrites the first group of neighbouring segments that is worth it, as one segment. `None`: there is none. Otherwise
    /// the bytes that the old files had and the new one has. Segments in which damage is met are noted in `damaged` and not
    /// looked at again. The caller holds the maintenance lock.
    pub(crate) fn compact_one(&self, damaged: &mut BTreeSet<PathBuf>) -> Result<Option<(u64, u64)>> {
        let layout = self.layout();
        if layout.segments.is_empty() {
            return Ok(None);
        }
        let live = Live::new(self.live_states());
        let Some(group) = self.group(&layout.segments, &live, damaged)? else { return Ok(None) };
        let segment = match self.rewrite(&group, &live) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                damaged.extend(group.iter().map(|segment| segment.path.clone()));
                return Ok(Some((0, 0)));
            }
            result => Arc::new(result?),
        };
        let new_bytes = segment.file_len;
        let is_old = |other: &Arc<Segment>| group.iter().any(|old| Arc::ptr_eq(old, other));
        self.change_layout(|layout| {
            if let Some(at) = layout.segments.iter().position(is_old) {
                layout.segments.retain(|other| !is_old(other));
                layout.segments.insert(at, segment);
            }
        });
        for old in &group {
            self.env.disk.remove(&old.path)?;
            crate::cache::remove(&self.env, &self.dir, old);
        }
        Ok(Some((group.iter().map(|old| old.file_len).sum(), new_bytes)))
    }

    /// The neighbours to rewrite together: one with too much that is dead or a damaged copy, or small ones that fit into one file.
    fn group(
        &self,
        segments: &[Arc<Segment>],
        live: &Live,
        damaged: &BTreeSet<PathBuf>,
    ) -> Result<Option<Vec<Arc<Segment>>>> {
        for (n, segment) in segments.iter().enumerate() {
            if damaged.contains(&segment.path) {
                continue;
            }
            let mut sum = segment.file_len;
            let small = segments.get(n + 1..).unwrap_or_default().iter().take_while(|next| {
                sum += next.file_len;
                sum <= self.options.merge_bytes_max && !damaged.contains(&next.path)
            });
            let end = n + 1 + small.count();
            let is_dead = self.dead_percent(segment, live)? >= u64::from(self.options.dead_percent_max.max(1));
            // Only when the others together are as large as the first: so each byte is rewritten a few times, not always again.
            let others: u64 = segments.get(n + 1..end).unwrap_or_default().iter().map(|next| next.file_len).sum();
            if others >= segment.file_len || is_dead || segment.is_worn() {
                let group = segments.get(n..end).unwrap_or_default().to_vec();
                for old in &group {
                    // Readers that still have the old layout go on with this handle when the name is gone.
                    old.file()?;
                }
                return Ok(Some(group));
            }
        }
        Ok(None)
    }

    /// What the sealed part of the log holds. Reads every segment's rows.
    pub fn space(&self) -> Result<Space> {
        let layout = self.layout();
        let live = Live::new(self.live_states());
        let mut space = Space::default();
        for segment in &layout.segments {
            space.segments += 1;
            space.message_bytes += segment.trailer.message_bytes;
            space.dead_bytes += dead_bytes(segment, &live)?;
        }
        Ok(space)
    }

    /// How much of a segment nobody needs, percent of the bytes of its messages and of the records of foreign ones.
    fn dead_percent(&self, segment: &Segment, live: &Live) -> Result<u64> {
        let trailer = &segment.trailer;
        let alive = live.foreign_count(trailer.first_id, trailer.first_id + u64::from(trailer.ids));
        let foreign = u64::from(trailer.foreign);
        let dead = dead_bytes(segment, live)? + foreign.saturating_sub(alive) * FOREIGN_RECORD_BYTES;
        let all = trailer.message_bytes + foreign * FOREIGN_RECORD_BYTES;
        Ok((dead * 100).checked_div(all).unwrap_or(0))
    }

    fn rewrite(&self, group: &[Arc<Segment>], live: &Live) -> Result<Segment> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            return Err(model::Error::new(model::ErrorKind::Invalid, "nothing to rewrite"));
        };
        let first_id = first.trailer.first_id;
        let end_id = last.trailer.first_id + u64::from(last.trailer.ids);
        let mut messages: Vec<(usize, SegmentRow)> = Vec::new();
        let mut events = Vec::new();
        let mut foreign = 0;
        for (n, segment) in group.iter().enumerate() {
            for row in segment.rows()? {
                messages.push((n, row?));
            }
            let last_frame = last.trailer.last_frame;
            segment.events(&mut |frame, old| {
                let kept = keep(&frame, old, live, &mut foreign);
                // The last mark stays: it has the modseq that the next transaction follows.
                if !kept.is_empty() || frame.number == last_frame {
                    put_frame(&mut events, &frame, &kept);
                }
                Ok(())
            })?;
        }
        let id = |message: &(usize, SegmentRow)| -> EmailId { message.1.email_id };
        let messages = if messages.is_empty() {
            messages
        } else {
            let late = messages.iter().map(id).filter(|id| !(first_id..end_id).contains(&id.0));
            let positions = live.positions(first_id, end_id - first_id, late);
            in_order(messages, id, &positions)
        };
        let incoming: Vec<Incoming> = messages.iter().map(|(_, row)| Incoming::from(row)).collect();
        let plan = Plan {
            first_frame: first.trailer.first_frame,
            last_frame: last.trailer.last_frame,
            generation: group.iter().map(|segment| segment.trailer.generation).max().unwrap_or(0) + 1,
            chain: last.trailer.chain,
            ids: (first_id, end_id),
            messages: &incoming,
            events: &events,
            foreign,
            body_level: self.options.body_level,
        };
        // One block of each column of each old segment: they are in the new order already, but for messages that moved.
        let mut blocks: Vec<(Block<Segment>, Block<Segment>)> = group.iter().map(|_| Default::default()).collect();
        build(&self.env.disk, &self.dir.join(LOG_DIR), &plan, &mut |n, from, to, sink| {
            let Some((old, row)) = messages.get(n) else { return Ok(()) };
            match (group.get(*old), blocks.get_mut(*old)) {
                (Some(segment), Some((heads, bodies))) => {
                    crate::reader::stream_message(segment, row, from..to, heads, bodies, sink)
                }
                _ => Ok(()),
            }
        })
    }
}

/// The ids of rows that were given before the segment's frames.
fn late_ids<'a>(rows: &'a [Result<SegmentRow>], trailer: &'a Trailer) -> impl Iterator<Item = EmailId> + 'a {
    let own = trailer.first_id..trailer.first_id.saturating_add(u64::from(trailer.ids));
    rows.iter().flatten().map(|row| row.email_id).filter(move |id| !own.contains(&id.0))
}

/// The records of a frame that still say something, written; counters stand for those that do not. Adds to `foreign` the foreign
/// messages among them.
fn keep(frame: &Frame, events: Vec<Event>, live: &Live, foreign: &mut u32) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        match event {
            Event::Entries { mailbox, rows } => {
                let uid_last = rows.last().map_or(0, |row| u64::from(row.uid.get()));
                let count = rows.len();
                let rows: Vec<_> =
                    rows.into_iter().filter(|row| live.has_entry(mailbox, row.uid.get(), None)).collect();
                if rows.len() < count {
                    let highest_modseq = frame.modseq.0;
                    Event::MailboxCounters { mailbox, uidnext: uid_last + 1, highest_modseq }
                        .write(&mut out, frame.time);
                }
                if !rows.is_empty() {
                    Event::Entries { mailbox, rows }.write(&mut out, frame.time);
                }
            }
            Event::FlagsSet { mailbox, flags, uids } => {
                let kept: UidSet =
                    uids.iter().filter(|uid| live.has_entry(mailbox, *uid, Some(frame.modseq))).collect();
                let is_less = kept != uids;
                if is_less {
                    let highest_modseq = frame.modseq.0;
                    Event::MailboxCounters { mailbox, uidnext: 1, highest_modseq }.write(&mut out, frame.time);
                }
                if !kept.is_empty() {
                    Event::FlagsSet { mailbox, flags, uids: kept }.write(&mut out, frame.time);
                }
            }
            Event::ForeignMessages { mut messages } => {
                messages.retain(|(id, _)| live.has_foreign(*id));
                *foreign += messages.len() as u32;
                if !messages.is_empty() {
                    Event::ForeignMessages { messages }.write(&mut out, frame.time);
                }
            }
            // As long as there is the message: an earlier record may say that it is foreign.
            Event::BytesHere { mut ids } => {
                ids.retain(|id| live.has_message(*id));
                if !ids.is_empty() {
                    Event::BytesHere { ids }.write(&mut out, frame.time);
                }
            }
            // The entries stay as they are named: an older record may still have one that was discarded later, and is let go of then.
            Event::BytesElsewhere { mut messages, entries } => {
                messages.retain(|(id, _)| live.has_foreign(*id));
                if !messages.is_empty() {
                    Event::BytesElsewhere { messages, entries }.write(&mut out, frame.time);
                }
            }
            Event::RecentFloor { mailbox, uid } if !live.has_recent_floor(mailbox, uid) => {}
            Event::MailboxAnnotated { mailbox, ref key, value: Some(ref value) }
                if !live.has_annotation(Some(mailbox), key, value) => {}
            Event::AccountAnnotated { ref key, value: Some(ref value) } if !live.has_annotation(None, key, value) => {}
            event => event.write(&mut out, frame.time),
        }
    }
    out
}
