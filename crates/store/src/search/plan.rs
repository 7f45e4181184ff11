//! What the index says of a query: for each text key the messages that may have it, and for the whole query those that it can be true of.
//!
//! Of a message that the index does not cover it says nothing: such a message is looked at. Of one that it covers, a key that the
//! index answers exactly is answered by it, and otherwise the index rules out.

use model::{EmailId, ErrorKind, Result};
use search::{DocSet, Needle};

use super::compile::{Answer, Node};
use super::fields::{self, BODY, HEADER};
use super::parts::Parts;
use crate::View;

/// Memory for the sets of messages of one search, bytes: further keys are answered by scan.
pub(crate) const SEARCH_SETS_BYTES_MAX: u64 = 64 << 20;
/// A query for so few entries is answered by looking at them.
const FEW_ENTRIES: u64 = 8;
/// What looking through a byte of a dictionary costs, in octets of body scanned in the same time: one over this.
const DICTIONARY_BYTES_PER_COST: u64 = 8;

/// A text key, as the index is asked.
#[derive(Debug)]
pub(super) struct Leaf {
    /// A message must have each needle in one of its fields.
    conditions: Vec<(&'static [usize], Needle)>,
    /// A message that has them all has what the key asks for.
    is_exact: bool,
}

const TEXT_FIELDS: &[usize] = &[HEADER, BODY];
const BODY_FIELDS: &[usize] = &[BODY];
const HEADER_FIELDS: &[usize] = &[HEADER];
/// By [`fields::named`].
const NAMED_FIELDS: [&[usize]; 5] = [&[0], &[1], &[2], &[3], &[4]];

impl Leaf {
    /// For TEXT and BODY. `folded`: the needle, not empty.
    pub(super) fn text(folded: &str, header: bool) -> Self {
        let needle = Needle::new(folded);
        let is_exact = needle.is_exact();
        Leaf { conditions: vec![(if header { TEXT_FIELDS } else { BODY_FIELDS }, needle)], is_exact }
    }

    /// For HEADER; `None` when the index does not help.
    pub(super) fn header(name: &str, folded: Option<&str>) -> Option<Self> {
        let place = fields::named(name.as_bytes()).and_then(|number| NAMED_FIELDS.get(number));
        if let (Some(place), Some(folded)) = (place, folded) {
            let needle = Needle::new(folded);
            let is_exact = needle.is_exact();
            return Some(Leaf { conditions: vec![(*place, needle)], is_exact });
        }
        let mut conditions = Vec::new();
        // The index has such fields as `name: value`; what another name looks like when it is decoded is not for here.
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            conditions.push((HEADER_FIELDS, Needle::new(&format!("{}:", name.to_ascii_lowercase()))));
        }
        conditions.extend(folded.map(|folded| (HEADER_FIELDS, Needle::new(folded))));
        (!conditions.is_empty()).then_some(Leaf { conditions, is_exact: false })
    }
}

/// The index as one search sees it. Made in steps by [`Plan::step`].
pub(super) struct Plan {
    parts: Parts,
    leaves: Vec<Leaf>,
    covered: DocSet,
    /// Ids from here on are not in the sets.
    end: u64,
    /// Of each leaf that is done: the messages that may have it.
    sets: Vec<DocSet>,
    /// How many leaves will be done.
    wanted: usize,
    /// The part that is asked next, and what the leaf has so far.
    next_part: usize,
    open: DocSet,
}

/// The messages for which something is certainly so, and those for which it can be.
struct Bounds {
    surely: DocSet,
    maybe: DocSet,
}

impl Plan {
    /// `None` when the query is answered without the index.
    pub(super) fn new(view: &View, leaves: Vec<Leaf>, entries: u64) -> Option<Self> {
        if leaves.is_empty() || entries <= FEW_ENTRIES {
            return None;
        }
        let account = view.account();
        let parts = account.search().parts();
        let end = account.state().email_ids_end();
        if parts.list.is_empty() {
            return None;
        }
        let covered = parts.covered(0..end);
        let set_bytes = (end / 8).max(1);
        let wanted = usize::try_from(SEARCH_SETS_BYTES_MAX / set_bytes).unwrap_or(usize::MAX).min(leaves.len());
        let open = covered.empty_like();
        Some(Plan { parts, leaves, covered, end, sets: Vec::new(), wanted, next_part: 0, open })
    }

    /// Asks one part about one key. `None`: all are done; otherwise what it cost, in octets of body scanned in the same time.
    pub(super) fn step(&mut self, view: &View) -> Result<Option<u64>> {
        let Some(leaf) = self.leaves.get(self.sets.len()).filter(|_| self.sets.len() < self.wanted) else {
            return Ok(None);
        };
        let Some(part) = self.parts.list.get(self.next_part) else {
            let next = self.open.empty_like();
            self.sets.push(std::mem::replace(&mut self.open, next));
            self.next_part = 0;
            return Ok(Some(0));
        };
        let mut cost = 0;
        let mut have: Option<DocSet> = None;
        for (fields, needle) in &leaf.conditions {
            let mut found = DocSet::new(0..self.end);
            cost += part.index.token_bytes(fields) / DICTIONARY_BYTES_PER_COST;
            match part.index.find(fields, needle, &mut found) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    // From the beginning, without this part.
                    view.account().search().discard(part);
                    self.parts.list.remove(self.next_part);
                    self.covered = self.parts.covered(0..self.end);
                    self.open = self.covered.empty_like();
                    self.sets.clear();
                    self.next_part = 0;
                    return Ok(Some(cost));
                }
                Err(error) => return Err(error),
            }
            if let Some(have) = &have {
                found.intersect_with(have);
            }
            have = Some(found);
        }
        if let Some(have) = have {
            self.open.union_with(&have);
        }
        self.next_part += 1;
        Ok(Some(cost))
    }

    /// What the index says of a message and a key; `None`: that it must be looked at.
    pub(super) fn answer(&self, leaf: Option<usize>, id: EmailId) -> Option<Answer> {
        let set = self.sets.get(leaf?)?;
        if !self.covered.contains(id.0) {
            None
        } else if !set.contains(id.0) {
            Some(Answer::No)
        } else {
            self.leaves.get(leaf?)?.is_exact.then_some(Answer::Yes)
        }
    }

    /// The messages that the query can be true of.
    pub(super) fn candidates(&self, root: &Node) -> Candidates {
        Candidates { maybe: self.bounds(root).maybe, end: self.end }
    }

    fn bounds(&self, node: &Node) -> Bounds {
        let anything = || Bounds { surely: self.covered.empty_like(), maybe: self.covered.full_like() };
        match node {
            Node::And(nodes) => {
                let mut all = Bounds { surely: self.covered.full_like(), maybe: self.covered.full_like() };
                for node in nodes {
                    let bounds = self.bounds(node);
                    all.surely.intersect_with(&bounds.surely);
                    all.maybe.intersect_with(&bounds.maybe);
                }
                all
            }
            Node::Or(nodes) => {
                let mut any = Bounds { surely: self.covered.empty_like(), maybe: self.covered.empty_like() };
                for node in nodes {
                    let bounds = self.bounds(node);
                    any.surely.union_with(&bounds.surely);
                    any.maybe.union_with(&bounds.maybe);
                }
                any
            }
            Node::Not(node) => {
                let Bounds { surely, maybe } = self.bounds(node);
                let without = |set: &DocSet| {
                    let mut rest = self.covered.full_like();
                    rest.subtract(set);
                    rest
                };
                Bounds { surely: without(&maybe), maybe: without(&surely) }
            }
            Node::Header { leaf, .. } | Node::Text(super::text::TextNeedle { leaf, .. }) => {
                let Some((leaf, set)) = leaf.and_then(|leaf| Some((self.leaves.get(leaf)?, self.sets.get(leaf)?)))
                else {
                    return anything();
                };
                let mut maybe = self.covered.full_like();
                maybe.subtract(&self.covered);
                maybe.union_with(set);
                let mut surely = self.covered.empty_like();
                if leaf.is_exact {
                    surely.union_with(set);
                }
                Bounds { surely, maybe }
            }
            Node::Const(true) => Bounds { surely: self.covered.full_like(), maybe: self.covered.full_like() },
            Node::Const(false) => Bounds { surely: self.covered.empty_like(), maybe: self.covered.empty_like() },
            Node::Column(_) | Node::Sent(_) => anything(),
        }
    }
}

/// The messages that a query can be true of.
pub(super) struct Candidates {
    maybe: DocSet,
    /// Ids from here on are not in the set, and can be anything.
    end: u64,
}

impl Candidates {
    pub(super) fn contains(&self, id: EmailId) -> bool {
        id.0 >= self.end || self.maybe.contains(id.0)
    }
}
