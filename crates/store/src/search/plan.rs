//! What the index says of a query: for each text key the messages that may have it, and for the whole query those that it can be true of.
//!
//! Of a message that the index does not cover it says nothing: such a message is looked at. Of one that it covers, a key that the
//! index answers exactly is answered by it, and otherwise the index rules out.

use std::ops::RangeInclusive;

use model::{EmailId, ErrorKind, Result};
use search::{DocSet, Index, Needle};

use super::compile::{Answer, Node};
use super::fields::{self, BODY, HEADER, NAMES, PARTS};
use super::parts::Parts;
use super::text::TextNeedle;
use super::texts::Place;
use super::{DateTest, HEADER_COST};
use crate::View;

/// Memory for the sets of messages of one search, bytes: further keys are answered by scan.
pub(crate) const SEARCH_SETS_BYTES_MAX: u64 = 64 << 20;
/// What looking at one entry costs, about, in octets of body: when all of them cost less than asking the index, it is not asked.
const ENTRY_COST: u64 = HEADER_COST + 4096;
/// What looking through a byte of a dictionary costs, in octets of body scanned in the same time: one over this.
const DICTIONARY_BYTES_PER_COST: u64 = 8;

/// A key, as the index is asked.
#[derive(Debug)]
pub(super) struct Leaf {
    /// A message must meet each.
    conditions: Vec<Condition>,
    /// A message that surely meets them all has what the key asks for; otherwise it must be looked at.
    is_decisive: bool,
}

/// What a message must have.
#[derive(Debug)]
enum Condition {
    /// The needle, in one of these fields.
    Needle(&'static [usize], Box<Needle>),
    /// Such a number: the day of its Date field.
    Days(RangeInclusive<i32>),
}

const BODY_FIELDS: &[usize] = &[BODY];
const HEADER_FIELDS: &[usize] = &[HEADER];
const PARTS_FIELDS: &[usize] = &[PARTS];
const NAMES_FIELDS: &[usize] = &[NAMES];
/// By [`fields::named`].
const NAMED_FIELDS: [&[usize]; 5] = [&[0], &[1], &[2], &[3], &[4]];

impl Leaf {
    /// For BODY and what TEXT asks for beside it. `folded`: the needle, not empty.
    pub(super) fn text(folded: &str, place: Place) -> Self {
        let fields = match place {
            Place::Header => HEADER_FIELDS,
            Place::PartHeader => PARTS_FIELDS,
            Place::Body => BODY_FIELDS,
        };
        Leaf { conditions: vec![Condition::Needle(fields, Box::new(Needle::new(folded)))], is_decisive: true }
    }

    /// For HEADER; `None` when the index does not help.
    pub(super) fn header(name: &str, folded: Option<&str>) -> Option<Self> {
        let place = fields::named(name.as_bytes()).and_then(|number| NAMED_FIELDS.get(number));
        if let (Some(place), Some(folded)) = (place, folded) {
            return Some(Leaf {
                conditions: vec![Condition::Needle(place, Box::new(Needle::new(folded)))],
                is_decisive: true,
            });
        }
        let mut conditions = Vec::new();
        // What is no name of a field in any standard may look different in the index.
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
            let text = fields::name_text(name.as_bytes());
            conditions.push(Condition::Needle(NAMES_FIELDS, Box::new(Needle::new(&text))));
        }
        conditions.extend(folded.map(|folded| Condition::Needle(HEADER_FIELDS, Box::new(Needle::new(folded)))));
        // That a message has the name and the text does not say that it has the text in a field of that name.
        let is_decisive = folded.is_none();
        (!conditions.is_empty()).then_some(Leaf { conditions, is_decisive })
    }

    /// For SENTBEFORE, SENTON and SENTSINCE.
    pub(super) fn sent(test: DateTest) -> Self {
        let days = |date| i32::try_from(model::days_from_civil(date)).unwrap_or(i32::MAX);
        let days = match test {
            DateTest::Before(date) => i32::MIN..=days(date).saturating_sub(1),
            DateTest::On(date) => days(date)..=days(date),
            DateTest::Since(date) => days(date)..=i32::MAX,
        };
        Leaf { conditions: vec![Condition::Days(days)], is_decisive: true }
    }
}

impl Leaf {
    /// What asking a part costs, in octets of body scanned in the same time.
    fn cost(&self, index: &Index) -> u64 {
        self.conditions.iter().map(|condition| condition.cost(index)).sum()
    }
}

impl Condition {
    /// What looking it up costs, in octets of body scanned in the same time.
    fn cost(&self, index: &Index) -> u64 {
        match self {
            Condition::Needle(fields, _) => index.token_bytes(fields) / DICTIONARY_BYTES_PER_COST,
            Condition::Days(_) => index.documents(),
        }
    }

    /// Adds the messages of a part that meet it.
    fn find(&self, index: &Index, found: &mut Bounds) -> Result<()> {
        match self {
            Condition::Needle(places, needle) => {
                index.find(places, needle, &mut found.surely, &mut found.maybe)?;
            }
            Condition::Days(days) => index.find_numbers(days.clone(), &mut found.surely)?,
        }
        found.maybe.union_with(&found.surely);
        Ok(())
    }
}

/// The index as one search sees it. Made in steps by [`Plan::step`].
pub(super) struct Plan {
    parts: Parts,
    leaves: Vec<Leaf>,
    covered: DocSet,
    /// Ids from here on are not in the sets.
    end: u64,
    /// Of each leaf that is done: the covered messages that have it.
    sets: Vec<Bounds>,
    /// How many leaves will be done.
    wanted: usize,
    /// The part that is asked next, and what the leaf has so far.
    next_part: usize,
    open: Bounds,
}

/// The messages for which something is certainly so, and those for which it can be.
#[derive(Clone)]
struct Bounds {
    surely: DocSet,
    maybe: DocSet,
}

impl Bounds {
    fn nothing(like: &DocSet) -> Self {
        Bounds { surely: like.empty_like(), maybe: like.empty_like() }
    }

    fn everything(like: &DocSet) -> Self {
        Bounds { surely: like.full_like(), maybe: like.full_like() }
    }

    fn anything(like: &DocSet) -> Self {
        Bounds { surely: like.empty_like(), maybe: like.full_like() }
    }

    fn both(&mut self, other: &Bounds) {
        self.surely.intersect_with(&other.surely);
        self.maybe.intersect_with(&other.maybe);
    }

    fn either(&mut self, other: &Bounds) {
        self.surely.union_with(&other.surely);
        self.maybe.union_with(&other.maybe);
    }

    fn neither(&self) -> Self {
        let mut not = Bounds::everything(&self.surely);
        not.surely.subtract(&self.maybe);
        not.maybe.subtract(&self.surely);
        not
    }
}

impl Plan {
    /// `None` when the query is answered without the index.
    pub(super) fn new(view: &View, leaves: Vec<Leaf>, entries: u64) -> Option<Self> {
        if leaves.is_empty() {
            return None;
        }
        let account = view.account();
        let parts = account.search().parts();
        let end = account.state().email_ids_end();
        let asking = parts.list.iter().map(|part| leaves.iter().map(|leaf| leaf.cost(&part.index)).sum::<u64>()).sum();
        if parts.list.is_empty() || entries.saturating_mul(ENTRY_COST) <= asking {
            return None;
        }
        let covered = parts.covered(0..end);
        let bounds_bytes = (end / 4).max(1);
        let wanted = usize::try_from(SEARCH_SETS_BYTES_MAX / bounds_bytes).unwrap_or(usize::MAX).min(leaves.len());
        let open = Bounds::nothing(&covered);
        Some(Plan { parts, leaves, covered, end, sets: Vec::new(), wanted, next_part: 0, open })
    }

    /// Asks one part about one key. `None`: all are done; otherwise what it cost, in octets of body scanned in the same time.
    pub(super) fn step(&mut self, view: &View) -> Result<Option<u64>> {
        let Some(leaf) = self.leaves.get(self.sets.len()).filter(|_| self.sets.len() < self.wanted) else {
            return Ok(None);
        };
        let Some(part) = self.parts.list.get(self.next_part) else {
            self.sets.push(std::mem::replace(&mut self.open, Bounds::nothing(&self.covered)));
            self.next_part = 0;
            return Ok(Some(0));
        };
        let cost = leaf.cost(&part.index);
        match ask(&part.index, leaf, &self.covered) {
            Ok(found) => {
                self.open.either(&found);
                self.next_part += 1;
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                // From the beginning, without this part.
                view.account().search().discard(part);
                self.parts.list.remove(self.next_part);
                self.covered = self.parts.covered(0..self.end);
                self.open = Bounds::nothing(&self.covered);
                self.sets.clear();
                self.next_part = 0;
            }
            Err(error) => return Err(error),
        }
        Ok(Some(cost))
    }

    /// What the index says of a message and a key; `None`: that it must be looked at.
    pub(super) fn answer(&self, leaf: Option<usize>, id: EmailId) -> Option<Answer> {
        let bounds = self.sets.get(leaf?)?;
        if !self.covered.contains(id.0) {
            None
        } else if !bounds.maybe.contains(id.0) {
            Some(Answer::No)
        } else {
            bounds.surely.contains(id.0).then_some(Answer::Yes)
        }
    }

    /// The messages that the query can be true of.
    pub(super) fn candidates(&self, root: &Node) -> Candidates {
        Candidates { maybe: self.bounds(root).maybe, end: self.end }
    }

    fn bounds(&self, node: &Node) -> Bounds {
        let combine = |nodes: &[Node], mut all: Bounds, with: fn(&mut Bounds, &Bounds)| {
            nodes.iter().for_each(|node| with(&mut all, &self.bounds(node)));
            all
        };
        match node {
            Node::And(nodes) => combine(nodes, Bounds::everything(&self.covered), Bounds::both),
            Node::Or(nodes) => combine(nodes, Bounds::nothing(&self.covered), Bounds::either),
            Node::Not(node) => self.bounds(node).neither(),
            Node::Const(true) => Bounds::everything(&self.covered),
            Node::Const(false) => Bounds::nothing(&self.covered),
            Node::Column(_) => Bounds::anything(&self.covered),
            Node::Header { leaf, .. } | Node::Sent { leaf, .. } | Node::Text(TextNeedle { leaf, .. }) => {
                let Some(known) = leaf.and_then(|leaf| self.sets.get(leaf)) else {
                    return Bounds::anything(&self.covered);
                };
                let mut bounds = known.clone();
                let mut unknown = self.covered.full_like();
                unknown.subtract(&self.covered);
                bounds.maybe.union_with(&unknown);
                bounds
            }
        }
    }
}

/// What a part says of a key.
fn ask(index: &Index, leaf: &Leaf, like: &DocSet) -> Result<Bounds> {
    let mut all: Option<Bounds> = None;
    for condition in &leaf.conditions {
        let mut found = Bounds::nothing(like);
        condition.find(index, &mut found)?;
        match &mut all {
            Some(all) => all.both(&found),
            None => all = Some(found),
        }
    }
    let mut all = all.unwrap_or_else(|| Bounds::nothing(like));
    if !leaf.is_decisive {
        all.surely = like.empty_like();
    }
    Ok(all)
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
