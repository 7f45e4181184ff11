//! Sealing: a frozen tail becomes a segment.
//!
//! The order is the safety: the segment is complete and durable under its name before the tail's name is removed, and both at
//! once mean the same as the segment alone.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use model::{EmailId, ErrorKind, Result};

use crate::layout::{LOG_DIR, Layout};
use crate::live::{Live, in_order};
use crate::log::Log;
use crate::record::Event;
use crate::segment::build::{Incoming, Plan, build};
use crate::segment::put_frame;
use crate::state::chain;
use crate::tail::{Tail, TailMessage, TailScan, is_message_whole, messages, read_events};

/// Bytes copied at once.
const PIECE_BYTES: u64 = 128 << 10;

/// What a tail holds, taken apart.
struct Parts {
    messages: Vec<(Incoming, TailMessage)>,
    events: Vec<u8>,
    chain: u32,
    /// One more than the largest id.
    ids_end: u64,
    foreign: u32,
    last_frame: u64,
}

fn take_apart(tail: &Tail, mut chain_before: u32, ids_first: u64) -> Result<Parts> {
    let scan = TailScan::run(&tail.path, &tail.file, tail.first_frame, None)?;
    let mut parts = Parts {
        messages: Vec::new(),
        events: Vec::new(),
        chain: 0,
        ids_end: ids_first,
        foreign: 0,
        last_frame: tail.last_frame(),
    };
    for scanned in &scan.frames {
        chain_before = chain(chain_before, scanned.header.events_crc);
        let Some(events) = read_events(scanned, &*tail.file)? else { continue };
        for (email_id, message) in messages(scanned, &events) {
            let is_damaged = !is_message_whole(&*tail.file, &message).or_else(|error| match error.kind() {
                ErrorKind::Io => Ok(false),
                _ => Err(error),
            })?;
            let TailMessage { len, header_len, crc, .. } = message;
            parts.messages.push((Incoming { email_id, len, header_len, crc, is_damaged }, message));
            parts.ids_end = parts.ids_end.max(email_id.0 + 1);
        }
        let time = scanned.header.frame.time;
        let mut bytes = Vec::new();
        for event in events.iter().filter(|event| !matches!(event, Event::Message { .. })) {
            if let Event::ForeignMessages { messages } = event {
                parts.foreign += messages.len() as u32;
                parts.ids_end = parts.ids_end.max(messages.last().map_or(0, |(id, _)| id.0 + 1));
            }
            event.write(&mut bytes, time);
        }
        put_frame(&mut parts.events, &scanned.header.frame, &bytes);
    }
    parts.chain = chain_before;
    Ok(parts)
}

impl Log {
    /// Seals the oldest frozen tail. `None`: there is none. Otherwise the bytes read. The caller holds the maintenance lock.
    pub(crate) fn seal_oldest(&self) -> Result<Option<u64>> {
        let layout = self.layout();
        let [tail, _, ..] = layout.tails.as_slice() else { return Ok(None) };
        let before = layout.segments.last().map(|segment| segment.trailer).unwrap_or_default();
        let ids_first = if layout.segments.is_empty() { 1 } else { before.first_id + u64::from(before.ids) };
        let parts = take_apart(tail, before.chain, ids_first)?;
        let positions = if parts.messages.is_empty() {
            None
        } else {
            let late = parts.messages.iter().map(|(message, _)| message.email_id).filter(|id| id.0 < ids_first);
            Some(Live::new(self.live_states()).positions(ids_first, parts.ids_end - ids_first, late))
        };
        let id = |message: &(Incoming, TailMessage)| -> EmailId { message.0.email_id };
        let messages = positions.map_or_else(Vec::new, |positions| in_order(parts.messages, id, &positions));
        let incoming: Vec<Incoming> = messages.iter().map(|(incoming, _)| *incoming).collect();
        let plan = Plan {
            first_frame: tail.first_frame,
            last_frame: parts.last_frame,
            generation: 1,
            chain: parts.chain,
            ids: (ids_first, parts.ids_end),
            messages: &incoming,
            events: &parts.events,
            foreign: parts.foreign,
            body_level: self.options.body_level,
        };
        let mut piece = Vec::new();
        let segment = build(&self.env.disk, &self.dir.join(LOG_DIR), &plan, &mut |n, from, to, sink| {
            let mut at = from;
            while let Some((_, message)) = messages.get(n).filter(|_| at < to) {
                piece.resize((to - at).min(PIECE_BYTES) as usize, 0);
                tail.file.read_exact_at(&mut piece, message.at + at)?;
                sink(&piece)?;
                at += piece.len() as u64;
            }
            Ok(())
        })?;
        self.change_layout(|layout| {
            layout.segments.push(Arc::new(segment));
            layout.tails.retain(|other| !Arc::ptr_eq(other, tail));
        });
        self.env.disk.remove(&tail.path)?;
        Ok(Some(tail.end()))
    }

    /// Puts other files in use, for everybody who looks from now on.
    pub(crate) fn change_layout(&self, change: impl FnOnce(&mut Layout)) {
        let mut layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = Layout::clone(&layout);
        change(&mut new);
        *layout = Arc::new(new);
        self.layout_version.fetch_add(1, Ordering::Release);
    }
}
