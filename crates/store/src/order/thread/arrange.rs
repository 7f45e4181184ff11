//! Steps 2 to 6 of REFERENCES, and what REFS and ORDEREDSUBJECT do instead (RFC 5256 §3): from links between messages to threads.
//!
//! Each function is one pass over everything, and no pass recurses. Members of the final threads are the messages, numbered from 0 as
//! they came, and then the dummies, which only stand at the top level and have nothing but messages below them.

use super::Message;
use super::forest::{Forest, NONE};
use super::tokens::Threads;

/// Threads in the making.
pub(super) struct Arrangement {
    /// The members above the messages, by message; [`NONE`] at the top level.
    parents: Vec<u32>,
    /// How many dummies there are; some may have lost all that was below them.
    dummies: u32,
    /// For dummies that were merged into another: which. By dummy, from 0.
    merged: Vec<u32>,
}

/// What is above a node once dummies are gone.
#[derive(Clone, Copy)]
enum Above {
    Unknown,
    /// This message.
    Message(u32),
    /// No message; the topmost node is this.
    Top(u32),
}

impl Arrangement {
    /// ORDEREDSUBJECT.
    ///
    /// "The searched messages are sorted by base subject and then by the sent date. The messages are then split into separate threads":
    /// of all messages with the same subject the first in `order` is the parent of the others.
    pub(super) fn by_subject(messages: &[Message], subjects: usize, order: &[u32]) -> Self {
        let mut firsts = vec![NONE; subjects];
        let mut parents = vec![NONE; messages.len()];
        for &member in order {
            let message = &messages[member as usize];
            let first = &mut firsts[message.subject as usize];
            if *first == NONE {
                *first = member;
            } else {
                parents[member as usize] = *first;
            }
        }
        Arrangement { parents, dummies: 0, merged: Vec::new() }
    }

    /// Steps 2 and 3: dummies are left out, and what was below them moves up, but only one child may come to the top level.
    ///
    /// `message_of` tells the message of a node, or [`NONE`] for a dummy.
    pub(super) fn by_references(messages: &[Message], forest: &Forest, message_of: &[u32]) -> Self {
        let mut above = vec![Above::Unknown; forest.len()];
        let mut path = Vec::new();
        let mut find = |node: u32| {
            let mut at = forest.parent(node);
            if at == NONE {
                return Above::Top(node);
            }
            path.clear();
            let found = loop {
                let known = match message_of[at as usize] {
                    NONE => above[at as usize],
                    message => Above::Message(message),
                };
                if !matches!(known, Above::Unknown) {
                    break known;
                }
                path.push(at);
                match forest.parent(at) {
                    NONE => break Above::Top(at),
                    parent => at = parent,
                }
            };
            for &node in &path {
                above[node as usize] = found;
            }
            found
        };
        let mut parents = vec![NONE; messages.len()];
        // By node: the first message that came to the top below it, then the dummy that stands for it.
        let mut firsts = vec![NONE; forest.len()];
        let mut dummy_of = vec![NONE; forest.len()];
        let mut dummies = 0;
        let base = members(messages);
        for (member, message) in messages.iter().enumerate() {
            match find(message.node) {
                Above::Message(parent) => parents[member] = parent,
                Above::Top(top) if top == message.node => {}
                Above::Top(top) => {
                    let first = &mut firsts[top as usize];
                    if *first == NONE {
                        *first = member as u32;
                        continue;
                    }
                    if dummy_of[top as usize] == NONE {
                        dummy_of[top as usize] = base + dummies;
                        dummies += 1;
                        parents[*first as usize] = dummy_of[top as usize];
                    }
                    parents[member] = dummy_of[top as usize];
                }
                Above::Unknown => {}
            }
        }
        Arrangement { parents, dummies, merged: vec![NONE; dummies as usize] }
    }

    /// Members at the top level in the order of their dates, a dummy at the place of its first child (steps 4 and 6); and the first
    /// child of each dummy.
    fn tops(&self, order: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let base = self.parents.len() as u32;
        let mut firsts = vec![NONE; self.dummies as usize];
        let mut tops = Vec::new();
        for &member in order {
            match self.parents[member as usize] {
                NONE => tops.push(member),
                dummy if dummy >= base => {
                    let first = &mut firsts[(dummy - base) as usize];
                    if *first == NONE {
                        *first = member;
                        tops.push(dummy);
                    }
                }
                _ => {}
            }
        }
        (tops, firsts)
    }

    /// Step 5: threads with the same base subject become one. Subject 0 is the empty one.
    pub(super) fn merge_subjects(&mut self, messages: &[Message], subjects: usize, order: &[u32]) {
        let base = members(messages);
        let (tops, firsts) = self.tops(order);
        // "using the base subject from either the current message or its first child if the current message is a dummy"
        let speaker = |member: u32| {
            let member = if member < base { member } else { firsts[(member - base) as usize] };
            &messages[member as usize]
        };
        let is_reply = |member: u32| member < base && messages[member as usize].is_reply_or_forward;
        let mut table = vec![NONE; subjects];
        // (B)
        for &current in &tops {
            let entry = &mut table[speaker(current).subject as usize];
            let replaces = *entry < base && (current >= base || is_reply(*entry) && !is_reply(current));
            if *entry == NONE || replaces {
                *entry = current;
            }
        }
        // (C)
        for &current in &tops {
            let subject = speaker(current).subject as usize;
            let entry = table[subject];
            if subject == 0 || entry == current || current < base && self.parents[current as usize] != NONE {
                // Empty; itself; or no child of the root any more, because it was put below a new dummy.
                continue;
            }
            if entry >= base && current >= base {
                self.merged[(current - base) as usize] = entry;
            } else if entry >= base || is_reply(current) && !is_reply(entry) {
                self.parents[current as usize] = entry;
            } else {
                let dummy = base + self.dummies;
                self.dummies += 1;
                self.merged.push(NONE);
                self.parents[current as usize] = dummy;
                self.parents[entry as usize] = dummy;
                table[subject] = dummy;
            }
        }
        for parent in self.parents.iter_mut().filter(|parent| (base..NONE).contains(parent)) {
            let into = self.merged[(*parent - base) as usize];
            if into != NONE {
                *parent = into;
            }
        }
    }

    /// The members at the top level in the order of their dates, and for each the latest internal date in its thread with its place
    /// among them: what REFS sorts by. Threads that arrived in the same second so stay in the order of their dates.
    pub(super) fn by_arrival(&self, messages: &[Message], order: &[u32]) -> (Vec<u32>, Vec<(i64, u32)>) {
        let base = members(messages);
        let mut top_of = vec![NONE; messages.len()];
        let mut latest = vec![i64::MIN; messages.len() + self.dummies as usize];
        let mut path = Vec::new();
        for (member, message) in messages.iter().enumerate() {
            path.clear();
            let mut at = member as u32;
            let top = loop {
                let parent = if at < base { self.parents[at as usize] } else { NONE };
                if parent == NONE {
                    break at;
                }
                if top_of[at as usize] != NONE {
                    break top_of[at as usize];
                }
                path.push(at);
                at = parent;
            };
            for &node in &path {
                top_of[node as usize] = top;
            }
            let latest = &mut latest[top as usize];
            *latest = message.arrival.max(*latest);
        }
        let (tops, _) = self.tops(order);
        let keys = tops.iter().zip(0..).map(|(top, place)| (latest[*top as usize], place)).collect();
        (tops, keys)
    }

    /// Step 6: the threads, with all siblings in the order of their dates. `tops` are the members of the top level in an order of
    /// their own, for REFS.
    pub(super) fn finish(self, messages: &[Message], order: &[u32], tops: Option<Vec<u32>>) -> Threads {
        let tops = tops.unwrap_or_else(|| self.tops(order).0);
        let mut ends = vec![0u32; messages.len() + self.dummies as usize + 1];
        for &parent in self.parents.iter().filter(|parent| **parent != NONE) {
            ends[parent as usize + 1] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        // Filled in the order of dates, so that siblings stand in it.
        let mut next = ends.clone();
        let mut children = vec![0; sum as usize];
        for &member in order {
            let parent = self.parents[member as usize];
            if parent != NONE {
                let at = &mut next[parent as usize];
                children[*at as usize] = member;
                *at += 1;
            }
        }
        let seqs = messages.iter().map(|message| message.seq).collect();
        Threads { seqs, tops, children, starts: ends }
    }
}

/// How many messages there are: the number of the first dummy. Bounded by `thread_nodes_max`.
fn members(messages: &[Message]) -> u32 {
    u32::try_from(messages.len()).unwrap_or(NONE)
}
