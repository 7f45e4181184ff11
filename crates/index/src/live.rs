//! What the account still needs: which messages have an entry or can be brought back, and which records say something that
//! no later one has overtaken.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use model::{EmailId, MailboxId, ModSeq, Uid};

use crate::state::{Mailbox, Row, State};

/// The states that must stay readable: the newest and the durable one.
#[derive(Debug)]
pub(crate) struct Live {
    states: [State; 2],
    /// Entries that can be brought back, of each state.
    restorable: [BTreeMap<(MailboxId, u32), ModSeq>; 2],
    /// The ids of all messages that have an entry or can be brought back, rising; made when it is first asked for.
    ids: OnceCell<Vec<u64>>,
}

/// Where a message lies first, in the order of a segment.
pub(crate) type Position = (MailboxId, u32);

/// Where the messages of a segment in the making lie first; see [`Live::positions`].
#[derive(Debug)]
pub(crate) struct Positions {
    first: u64,
    /// Of the ids from `first` on.
    own: Vec<Option<Position>>,
    /// Of other messages, by id.
    late: Vec<(u64, Option<Position>)>,
}

impl Positions {
    fn place(&mut self, id: u64) -> Option<&mut Option<Position>> {
        let own = id.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        match own.filter(|index| *index < self.own.len()) {
            Some(index) => self.own.get_mut(index),
            None => {
                let at = self.late.binary_search_by_key(&id, |(id, _)| *id).ok()?;
                self.late.get_mut(at).map(|(_, position)| position)
            }
        }
    }

    fn note(&mut self, id: u64, position: Position) {
        if let Some(place) = self.place(id) {
            *place = Some(place.map_or(position, |old| old.min(position)));
        }
    }

    fn forget(&mut self, id: EmailId) {
        if let Some(place) = self.place(id.0) {
            *place = None;
        }
    }

    /// Where a message lies first; `None`: its bytes are not needed.
    pub(crate) fn find(&self, id: EmailId) -> Option<Position> {
        let own = id.0.checked_sub(self.first).and_then(|index| self.own.get(usize::try_from(index).ok()?));
        match own {
            Some(position) => *position,
            None => {
                let at = self.late.binary_search_by_key(&id.0, |(id, _)| *id).ok()?;
                self.late.get(at).and_then(|(_, position)| *position)
            }
        }
    }
}

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
        Live { states, restorable, ids: OnceCell::new() }
    }

    /// Of the messages with ids from `first` on, `count` of them, and of the `late` ones: where each whose bytes are needed lies first.
    pub(crate) fn positions(&self, first: u64, count: u64, late: impl IntoIterator<Item = EmailId>) -> Positions {
        let mut late: Vec<(u64, Option<Position>)> = late.into_iter().map(|id| (id.0, None)).collect();
        late.sort_unstable();
        late.dedup();
        let own = vec![None; usize::try_from(count).unwrap_or(0)];
        let mut positions = Positions { first, own, late };
        // The second state adds little, usually nothing: it is the durable one, the first what is queued as well.
        for state in &self.states {
            for mailbox in all_mailboxes(state) {
                for chunk in mailbox.chunks() {
                    for index in 0..chunk.len() {
                        positions.note(chunk.email_id(index), (mailbox.id, chunk.uid(index)));
                    }
                }
                for row in mailbox.history.batches().flat_map(|batch| batch.rows()) {
                    positions.note(row.email_id.0, (mailbox.id, row.uid.get()));
                }
            }
        }
        let [a, b] = &self.states;
        // Whose bytes are elsewhere, in both states, has no need of those that are here.
        for (id, _) in a.foreign.range(first, first.saturating_add(count)).filter(|(id, _)| b.foreign.has(*id)) {
            positions.forget(id);
        }
        for at in 0..positions.late.len() {
            let id = EmailId(positions.late[at].0);
            if a.foreign.has(id) && b.foreign.has(id) {
                positions.late[at].1 = None;
            }
        }
        positions
    }

    /// Whether anything needs a message: an entry that is there, or one that can be brought back.
    pub(crate) fn has_message(&self, id: EmailId) -> bool {
        let ids = self.ids.get_or_init(|| {
            let mailboxes = self.states.iter().flat_map(all_mailboxes);
            let mut ids: Vec<u64> = Vec::new();
            for mailbox in mailboxes {
                for chunk in mailbox.chunks() {
                    ids.extend((0..chunk.len()).map(|index| chunk.email_id(index)));
                }
                ids.extend(mailbox.history.batches().flat_map(|batch| batch.rows()).map(|row| row.email_id.0));
            }
            ids.sort_unstable();
            ids.dedup();
            ids
        });
        ids.binary_search(&id.0).is_ok()
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

    /// Whether an entry has this foreign message.
    pub(crate) fn has_foreign(&self, id: EmailId) -> bool {
        self.states.iter().any(|state| state.foreign.has(id))
    }

    /// How many foreign messages with ids of `first..end` have an entry.
    pub(crate) fn foreign_count(&self, first: u64, end: u64) -> u64 {
        self.states.iter().map(|state| state.foreign.count(first, end)).max().unwrap_or(0)
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

/// The messages of a segment in the making, in the order in which they will lie. Of those that are there twice, because their bytes
/// left the log and came back, the last one.
pub(crate) fn in_order<T>(messages: Vec<T>, id: impl Fn(&T) -> EmailId, positions: &Positions) -> Vec<T> {
    let placed = messages.into_iter().enumerate().filter_map(|(number, message)| {
        let position = positions.find(id(&message))?;
        Some((position, id(&message), std::cmp::Reverse(number), message))
    });
    let mut placed: Vec<_> = placed.collect();
    placed.sort_unstable_by_key(|(position, id, number, _)| (*position, *id, *number));
    placed.dedup_by_key(|(_, id, _, _)| *id);
    placed.into_iter().map(|(_, _, _, message)| message).collect()
}
