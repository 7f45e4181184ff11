//! THREAD (RFC 5256 §3): REFERENCES, ORDEREDSUBJECT, and REFS (draft-ietf-morg-inthread).
//!
//! Messages are gathered and linked one after the other, then sorted by date, then arranged in a few passes. Each pass is a step; the
//! gathering and the sorting are cut into smaller ones.

mod arrange;
mod forest;
mod tokens;

use std::collections::HashMap;

use model::{Error, ErrorKind, NumSet, Result};

use self::arrange::Arrangement;
use self::forest::{Forest, NONE};
use super::keys;
use super::merge::MergeSort;
use super::message_id::Key;
use super::sort::SORT_BYTES_MAX;
use crate::view::Entry;
use crate::{Reader, View};

pub use tokens::{Threads, Token, Tokens};

/// How messages are put into threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5256 §3 ORDEREDSUBJECT.
    OrderedSubject,
    /// RFC 5256 §3 REFERENCES.
    References,
    /// draft-ietf-morg-inthread-01 §4: as REFERENCES, but subjects play no part, and the thread that got the latest message (by its
    /// internal date) is the last.
    Refs,
}

/// Messages and distinct references that one THREAD may have: about 100 octets of memory each. Over it, the limit `thread_nodes_max` is
/// met.
pub const THREAD_NODES_MAX: usize = 4_000_000;

/// Entries, and references, that are gathered in one step.
const STEP_ENTRIES: usize = 4096;
const STEP_REFERENCES: usize = 1 << 16;

/// A threading that is under way; made of bounded steps, so that a session can be cancelled and others get their turn.
pub struct Thread {
    view: View,
    reader: Reader,
    algorithm: Algorithm,
    /// The sequence numbers to gather, the next range last.
    seqs: Vec<(u32, u32)>,
    gathered: Gathered,
    phase: Phase,
    damage: Option<Error>,
}

enum Phase {
    /// Gathering; then sorting by sent date and number.
    Sorting(MergeSort<(i64, u32)>),
    /// Links are made threads; the messages in the order of their dates.
    Arranging(Vec<u32>),
    /// Step 5.
    Subjects(Arrangement, Vec<u32>),
    /// REFS: the top level is sorted.
    SortingTops(Arrangement, Vec<u32>, Vec<u32>, MergeSort<(i64, u32)>),
    Finishing(Arrangement, Vec<u32>, Option<Vec<u32>>),
}

/// What is known of a message.
struct Message {
    seq: u32,
    /// RFC 5256 §2.2, Unix seconds.
    date: i64,
    /// The internal date, Unix seconds.
    arrival: i64,
    /// The number of its base subject; 0 for the empty one.
    subject: u32,
    is_reply_or_forward: bool,
    /// Its node in the forest.
    node: u32,
}

/// Everything that is remembered of the messages.
struct Gathered {
    messages: Vec<Message>,
    /// Distinct base subjects by their collation keys, numbered.
    subjects: HashMap<Box<[u8]>, u32>,
    subject_octets: usize,
    /// The nodes of message ids.
    ids: HashMap<Key, u32>,
    forest: Forest,
    /// The message of each node; [`NONE`] for a dummy.
    message_of: Vec<u32>,
}

impl Thread {
    /// Starts it for `seqs` of `view`.
    pub fn new(view: View, reader: Reader, algorithm: Algorithm, seqs: &NumSet) -> Self {
        let mut seqs = seqs.ranges().to_vec();
        seqs.reverse();
        let phase = Phase::Sorting(MergeSort::new());
        Thread { view, reader, algorithm, seqs, gathered: Gathered::new(), phase, damage: None }
    }

    /// Does a bounded piece of work; `Some` when finished.
    ///
    /// A damaged message is threaded as if its header were empty; see [`Thread::damage`]. Other errors are those of the machine, and
    /// the limits `thread_nodes_max` and `sort_bytes_max`.
    pub fn step(&mut self) -> Result<Option<Threads>> {
        if self.gather()? {
            return Ok(None);
        }
        let messages = &self.gathered.messages;
        let subjects = self.gathered.subjects.len();
        // A phase that was taken out is put back, or followed by the next.
        self.phase = match std::mem::replace(&mut self.phase, Phase::Sorting(MergeSort::new())) {
            Phase::Sorting(mut sort) => match sort.step(Ord::cmp) {
                Some(sorted) => Phase::Arranging(sorted.into_iter().map(|(_, member)| member).collect()),
                None => Phase::Sorting(sort),
            },
            Phase::Arranging(order) => match self.algorithm {
                Algorithm::OrderedSubject => {
                    Phase::Finishing(Arrangement::by_subject(messages, subjects, &order), order, None)
                }
                Algorithm::References => Phase::Subjects(self.gathered.arranged(), order),
                Algorithm::Refs => {
                    let arrangement = self.gathered.arranged();
                    let (tops, keys) = arrangement.by_arrival(messages, &order);
                    let mut sort = MergeSort::new();
                    for key in keys {
                        sort.push(key, Ord::cmp);
                    }
                    Phase::SortingTops(arrangement, order, tops, sort)
                }
            },
            Phase::Subjects(mut arrangement, order) => {
                arrangement.merge_subjects(messages, subjects, &order);
                Phase::Finishing(arrangement, order, None)
            }
            Phase::SortingTops(arrangement, order, tops, mut sort) => match sort.step(Ord::cmp) {
                Some(sorted) => {
                    let sorted = sorted.iter().filter_map(|(_, place)| tops.get(*place as usize).copied()).collect();
                    Phase::Finishing(arrangement, order, Some(sorted))
                }
                None => Phase::SortingTops(arrangement, order, tops, sort),
            },
            Phase::Finishing(arrangement, order, tops) => return Ok(Some(arrangement.finish(messages, &order, tops))),
        };
        Ok(None)
    }

    /// Gathers some more; false when there is nothing left.
    fn gather(&mut self) -> Result<bool> {
        let Phase::Sorting(sort) = &mut self.phase else { return Ok(false) };
        let Some((first, last)) = self.seqs.pop() else { return Ok(false) };
        let view = self.view.clone();
        let (mut entries, mut references) = (0, 0);
        for entry in view.rows(first..=last) {
            if entries >= STEP_ENTRIES || references >= STEP_REFERENCES {
                self.seqs.push((entry.seq.get(), last));
                break;
            }
            entries += 1;
            match self.gathered.add(&entry, self.algorithm, &mut self.reader) {
                Ok(count) => references += count,
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    self.gathered.add_unread(&entry);
                    self.damage.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
            if let (Some(message), Ok(number)) =
                (self.gathered.messages.last(), u32::try_from(self.gathered.messages.len() - 1))
            {
                sort.push((message.date, number), Ord::cmp);
            }
        }
        Ok(true)
    }

    /// The first damage that left a message without its header ([`model::ErrorKind::Corrupt`]).
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Runs all steps. Damage is an error here, since nobody can ask for it any more.
    pub fn finish(mut self) -> Result<Threads> {
        loop {
            if let Some(threads) = self.step()? {
                return match self.damage {
                    Some(damage) => Err(damage),
                    None => Ok(threads),
                };
            }
        }
    }
}

impl Gathered {
    fn new() -> Self {
        Gathered {
            messages: Vec::new(),
            subjects: HashMap::from([(Box::default(), 0)]),
            subject_octets: 0,
            ids: HashMap::new(),
            forest: Forest::default(),
            message_of: Vec::new(),
        }
    }

    fn arranged(&self) -> Arrangement {
        Arrangement::by_references(&self.messages, &self.forest, &self.message_of)
    }

    /// Takes the next message; returns how many references it has. When there is an error nothing is taken.
    fn add(&mut self, entry: &Entry, algorithm: Algorithm, reader: &mut Reader) -> Result<usize> {
        let arrival = entry.internal_date.unix_seconds;
        let date = keys::sent_time(reader.sent_time(entry.email_id)?).unwrap_or(arrival);
        let (mut subject, mut is_reply_or_forward) = (0, false);
        if algorithm != Algorithm::Refs {
            let (is_reply, key) = keys::subject(reader.base_subject(entry.email_id)?)?;
            subject = self.subject(key)?;
            is_reply_or_forward = is_reply;
        }
        let message = Message { seq: entry.seq.get(), date, arrival, subject, is_reply_or_forward, node: NONE };
        if algorithm == Algorithm::OrderedSubject {
            self.messages.push(message);
            return Ok(0);
        }
        let (own, references) = keys::references(reader.references(entry.email_id)?)?;
        let count = references.size_hint().0;
        self.room_for(count)?;
        self.link(message, own, references);
        Ok(count)
    }

    /// Whether a message with so many references may be taken.
    fn room_for(&self, references: usize) -> Result<()> {
        if self.message_of.len().saturating_add(references) >= THREAD_NODES_MAX {
            return Err(Error::over_limit("thread_nodes_max", "there are too many messages and references to thread"));
        }
        Ok(())
    }

    /// Takes a message of which nothing can be read.
    fn add_unread(&mut self, entry: &Entry) {
        let arrival = entry.internal_date.unix_seconds;
        let seq = entry.seq.get();
        let message = Message { seq, date: arrival, arrival, subject: 0, is_reply_or_forward: false, node: NONE };
        self.link(message, None, std::iter::empty());
    }

    /// The number of a base subject.
    fn subject(&mut self, key: &[u8]) -> Result<u32> {
        if let Some(number) = self.subjects.get(key) {
            return Ok(*number);
        }
        self.subject_octets += key.len();
        if self.subject_octets > SORT_BYTES_MAX {
            return Err(Error::over_limit("sort_bytes_max", "the subjects take too much memory"));
        }
        let number = u32::try_from(self.subjects.len()).unwrap_or(NONE);
        self.subjects.insert(key.into(), number);
        Ok(number)
    }

    /// Step 1 of REFERENCES for one message.
    fn link(&mut self, mut message: Message, own: Option<Key>, references: impl Iterator<Item = Key>) {
        // (A) Each reference is the parent of the next one, unless that has a parent or a loop would arise.
        let mut last = NONE;
        for id in references {
            let node = self.node(id);
            if last != NONE && self.forest.parent(node) == NONE {
                self.forest.link(node, last);
            }
            last = node;
        }
        // "If two or more messages have the same Message ID, then only use that Message ID in the first": the others, and those
        // without one, have nodes that no id leads to.
        let number = u32::try_from(self.messages.len()).unwrap_or(NONE);
        let known = own.map(|id| self.node(id)).filter(|node| self.message_of[*node as usize] == NONE);
        let node = known.unwrap_or_else(|| self.new_node());
        self.message_of[node as usize] = number;
        message.node = node;
        self.messages.push(message);
        // (B) The last reference is the parent, whatever was guessed before.
        self.forest.cut(node);
        if last != NONE {
            self.forest.link(node, last);
        }
    }

    /// The node of an id; a dummy until its message comes.
    fn node(&mut self, id: Key) -> u32 {
        if let Some(node) = self.ids.get(&id) {
            return *node;
        }
        let node = self.new_node();
        self.ids.insert(id, node);
        node
    }

    fn new_node(&mut self) -> u32 {
        self.message_of.push(NONE);
        self.forest.add()
    }
}

#[cfg(test)]
mod tests;
