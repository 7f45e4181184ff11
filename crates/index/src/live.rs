//! What the account still needs: which messages have an entry or can be brought back, and which records say something that
//! no later one has overtaken.

use std::collections::BTreeMap;

use model::{EmailId, MailboxId, ModSeq, Uid};

use crate::state::{Mailbox, Row, State};

/// The states that must stay readable: the newest and the durable one.
#[derive(Debug)]
pub(crate) struct Live {
    states: [State; 2],
    /// Entries that can be brought back, of each state.
    restorable: [BTreeMap<(MailboxId, u32), ModSeq>; 2],
}

/// Where a message lies first, in the order of a segment.
pub(crate) type Position = (MailboxId, u32);

fn all_mailboxes(state: &State) -> impl Iterator<Item = &Mailbox> {
    let deleted = state.deleted.values().map(|deleted| &*deleted.mailbox);
    state.mailboxes.values().map(|mailbox| &**mailbox).chain(deleted)
}

impl Live {
    pub(crate) fn new(states: [State; 2]) -> Self {
        let restorable = [0, 1].map(|n| {
            let mut rows = BTreeMap::new();
            for mailbox in states.get(n).into_iter().flat_map(all_mailboxes) {
                for batch in mailbox.history.batches() {
                    rows.extend(batch.rows().map(|row| ((mailbox.id, row.uid.get()), row.modseq)));
                }
            }
            rows
        });
        Live { states, restorable }
    }

    /// Of the messages with ids from `first` on, `count` of them: where each that is needed lies first.
    pub(crate) fn positions(&self, first: u64, count: u64) -> Vec<Option<Position>> {
        let mut positions: Vec<Option<Position>> = vec![None; usize::try_from(count).unwrap_or(0)];
        let mut note = |email_id: u64, position: Position| {
            let index = email_id.checked_sub(first).and_then(|index| usize::try_from(index).ok());
            if let Some(place) = index.and_then(|index| positions.get_mut(index)) {
                *place = Some(place.map_or(position, |old| old.min(position)));
            }
        };
        // The second state adds little, usually nothing: it is the durable one, the first what is queued as well.
        for state in &self.states {
            for mailbox in all_mailboxes(state) {
                for chunk in mailbox.chunks() {
                    for index in 0..chunk.len() {
                        note(chunk.email_id(index), (mailbox.id, chunk.uid(index)));
                    }
                }
                for row in mailbox.history.batches().flat_map(|batch| batch.rows()) {
                    note(row.email_id.0, (mailbox.id, row.uid.get()));
                }
            }
        }
        positions
    }

    fn mailboxes(&self, id: MailboxId) -> impl Iterator<Item = &Mailbox> {
        self.states.iter().filter_map(move |state| {
            let deleted = || state.deleted.get(&id).map(|deleted| &deleted.mailbox);
            state.mailboxes.get(&id).or_else(deleted).map(|mailbox| &**mailbox)
        })
    }

    /// Whether the entry is there or can be brought back; `with`: and was last changed at that modseq.
    pub(crate) fn has_entry(&self, id: MailboxId, uid: u32, with: Option<ModSeq>) -> bool {
        let fits = |modseq: ModSeq| with.is_none_or(|with| with == modseq);
        let is_here = |mailbox: &Mailbox| {
            let row: Option<Row> = Uid::new(uid).and_then(|uid| mailbox.row_of(uid)).map(|(_, row)| row);
            row.is_some_and(|row| fits(row.modseq))
        };
        self.mailboxes(id).any(is_here)
            || self.restorable.iter().any(|rows| rows.get(&(id, uid)).is_some_and(|modseq| fits(*modseq)))
    }

    /// Whether a mailbox's annotation or the account's has this value.
    pub(crate) fn has_annotation(&self, id: Option<MailboxId>, key: &str, value: &[u8]) -> bool {
        match id {
            Some(id) => self.mailboxes(id).any(|mailbox| mailbox.annotation(key) == Some(value)),
            None => self.states.iter().any(|state| state.annotation(key) == Some(value)),
        }
    }

    /// Whether this is where a mailbox's \Recent begins.
    pub(crate) fn has_recent_floor(&self, id: MailboxId, uid: u32) -> bool {
        self.mailboxes(id).any(|mailbox| mailbox.recent_floor == uid)
    }
}

/// The messages of a segment in the making, in the order in which they will lie.
pub(crate) fn in_order<T>(
    mut messages: Vec<T>,
    id: impl Fn(&T) -> EmailId,
    first: u64,
    positions: &[Option<Position>],
) -> Vec<T> {
    let position = |message: &T| {
        let index = usize::try_from(id(message).0.wrapping_sub(first)).ok();
        index.and_then(|index| positions.get(index).copied().flatten())
    };
    messages.retain(|message| position(message).is_some());
    messages.sort_by_key(|message| (position(message), id(message)));
    messages
}
