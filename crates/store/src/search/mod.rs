//! Search: which entries of a view match (RFC 9051 §6.4.4). Exact always (invariant 7): what the index answers equals what a scan
//! answers ([`Search::scanning`]).
//!
//! A query is compiled into a tree whose conjunctions and disjunctions are sorted by cost: columns, then header, then body. First the
//! index is asked about each text key (`plan`); what it rules out for the whole query is passed over, and of the other entries each
//! pays only for what its answer needs: most often the index has answered already, and messages that must be read are read by several
//! threads (`verify`). The work is cut into steps by entries and octets, never by time, so that a search does the same steps on every run.
//!
//! The index is kept by the maintenance (`upkeep`): messages that it does not know yet are scanned, so that a message acknowledged a
//! moment ago is found.
//!
//! Damage is confined to the message that it hit (invariant 3). A key that needs the damaged octets can be answered neither by yes nor by no,
//! so that the message matches neither `BODY x` nor `NOT BODY x`; keys that do not need them are answered as ever, and where those
//! decide (`OR BODY x SEEN` of a message that is seen), the message is found. That there was damage is [`Search::damage`].

mod check;
mod compile;
mod fields;
mod gather;
mod parts;
mod plan;
mod text;
mod texts;
mod upkeep;
mod verify;

use model::{CivilDate, EmailId, Error, Flags, ModSeq, NumSet, Result, ThreadId, UidSet};

pub(crate) use self::upkeep::SearchIndex;

use self::compile::{Answer, Node};
use self::plan::{Candidates, Leaf, Plan};
use self::verify::{Pending, Verifier};
use crate::{Reader, View};

/// What is looked for. Strings are UTF-8 needles: substrings, case-folded (invariant 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Every entry.
    All,
    /// Both and more.
    And(Vec<Query>),
    /// Either.
    Or(Box<Query>, Box<Query>),
    /// The others.
    Not(Box<Query>),
    /// Any of these flags is set.
    HasFlag(Flags),
    /// \Recent for this view.
    Recent,
    /// These sequence numbers.
    Seqs(NumSet),
    /// These UIDs.
    Uids(UidSet),
    /// Internal date, day as written.
    Internal(DateTest),
    /// Date header field, day as written.
    Sent(DateTest),
    /// Save date (RFC 8514), day in UTC.
    Saved(DateTest),
    /// Internal date not older than so many seconds (RFC 5032).
    Younger(u32),
    /// Internal date older, or as old (RFC 5032 §2).
    Older(u32),
    /// More octets than this.
    Larger(u64),
    /// Fewer octets.
    Smaller(u64),
    /// The header field has the text; an empty text: the field is there.
    Header(String, String),
    /// A decoded text part has the text.
    Body(String),
    /// Header or body.
    Text(String),
    /// A modseq at least this (RFC 7162 §3.1.5).
    ModSeq(ModSeq),
    /// This message.
    EmailId(EmailId),
    /// This thread (RFC 8474 §5.2).
    ThreadId(ThreadId),
}

/// A day compared with a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateTest {
    /// Earlier.
    Before(CivilDate),
    /// That day.
    On(CivilDate),
    /// That day or later.
    Since(CivilDate),
}

impl DateTest {
    /// Whether `day` passes.
    pub(crate) fn passes(self, day: CivilDate) -> bool {
        match self {
            DateTest::Before(than) => day < than,
            DateTest::On(that) => day == that,
            DateTest::Since(from) => day >= from,
        }
    }
}

/// What one step may cost, octets. An entry that reads a header counts as [`HEADER_COST`], octets of bodies count as they are.
const STEP_COST_MAX: u64 = 4 << 20;
/// The cost of looking at columns, in octets of body scanned in the same time.
const ROW_COST: u64 = 16;
/// The cost of reading and parsing a header or what was derived from it.
const HEADER_COST: u64 = 4096;

/// A search that is under way; made of bounded steps, so that a session can be cancelled and others get their turn.
///
/// A step looks at many entries or, when a message is large, at one message.
pub struct Search {
    view: View,
    verifier: Verifier,
    root: Node,
    /// What the index says; `None` when it is not asked.
    plan: Option<Plan>,
    /// When the index has been asked: the messages that can match.
    candidates: Option<Candidates>,
    now_unix_seconds: i64,
    /// Sequence numbers that are still to be looked at.
    todo: NumSet,
    /// Where in `todo`.
    next_range: usize,
    next_seq: u32,
    /// Sequence numbers, in the order in which they were found.
    found: Vec<u32>,
    highest: Option<ModSeq>,
    damage: Option<Error>,
}

impl Search {
    /// Starts it. `now_unix_seconds` is what YOUNGER and OLDER count from.
    pub fn new(view: View, reader: Reader, query: Query, now_unix_seconds: i64) -> Self {
        let (mut search, leaves) = Self::begin(view, reader, query, now_unix_seconds);
        search.plan = Plan::new(&search.view, leaves, search.todo.len());
        search
    }

    /// Like [`Search::new`], without the index: what its answers are compared with.
    pub fn scanning(view: View, reader: Reader, query: Query, now_unix_seconds: i64) -> Self {
        Self::begin(view, reader, query, now_unix_seconds).0
    }

    fn begin(view: View, reader: Reader, query: Query, now_unix_seconds: i64) -> (Self, Vec<Leaf>) {
        let (root, leaves) = compile::compile(query, &view);
        let all = if view.exists() > 0 { NumSet::range(1, view.exists()) } else { NumSet::new() };
        let todo = match root.only_seqs() {
            Some(only) => all.intersection(&only),
            None => all,
        };
        let (found, highest, damage) = (Vec::new(), None, None);
        let (plan, candidates) = (None, None);
        let (next_range, next_seq) = (0, 0);
        let search = Search {
            view,
            verifier: Verifier::new(reader),
            root,
            plan,
            candidates,
            now_unix_seconds,
            todo,
            next_range,
            next_seq,
            found,
            highest,
            damage,
        };
        (search, leaves)
    }

    /// Does a bounded piece of work; `Some` when finished: the sequence numbers that match, and the highest modseq among them.
    ///
    /// A message that turns out to be damaged is passed over (see the head of this module); when finished, ask [`Search::damage`]
    /// whether the answer is complete. Errors are those of the machine ([`model::ErrorKind::Io`]).
    pub fn step(&mut self) -> Result<Option<(NumSet, Option<ModSeq>)>> {
        let mut cost = 0;
        if let Some(plan) = &mut self.plan
            && self.candidates.is_none()
        {
            while let Some(more) = plan.step(&self.view)? {
                cost += more;
                if cost >= STEP_COST_MAX {
                    return Ok(None);
                }
            }
            self.candidates = Some(plan.candidates(&self.root));
        }
        let mut pending = Pending::default();
        let is_done = self.pass(&mut cost, &mut pending);
        let plan = self.plan.as_ref();
        let verified = self.verifier.look(&mut pending, &self.root, plan, self.now_unix_seconds, &self.view)?;
        self.found.extend(verified.found);
        self.highest = self.highest.max(verified.highest);
        if self.damage.is_none() {
            self.damage = verified.damage;
        }
        if !is_done {
            return Ok(None);
        }
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable();
        Ok(Some((found.into_iter().collect(), self.highest)))
    }

    /// Goes on through the entries until all are done, which it says, or until the step has cost enough. Those whose messages have to
    /// be read become pending.
    fn pass(&mut self, cost: &mut u64, pending: &mut Pending) -> bool {
        let plan = self.plan.as_ref();
        while let Some(&(first, last)) = self.todo.ranges().get(self.next_range) {
            let from = first.max(self.next_seq);
            for entry in self.view.rows(from..=last) {
                self.next_seq = entry.seq.get().saturating_add(1);
                *cost += ROW_COST;
                if self.candidates.as_ref().is_some_and(|candidates| !candidates.contains(entry.email_id)) {
                    continue;
                }
                match self.root.known(&entry, self.now_unix_seconds, plan) {
                    Some(Answer::Yes) => {
                        self.found.push(entry.seq.get());
                        self.highest = self.highest.max(Some(entry.modseq));
                    }
                    Some(Answer::No | Answer::Unknown) => {}
                    None => {
                        let reading = self.root.reading_cost(&entry, self.now_unix_seconds, plan);
                        pending.push(entry, reading);
                        *cost += reading;
                    }
                }
                if *cost >= STEP_COST_MAX {
                    return false;
                }
            }
            self.next_range += 1;
        }
        true
    }

    /// The first damage that left a message out of the answer ([`model::ErrorKind::Corrupt`], with file and offset).
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Runs all steps. Damage is an error here, since nobody can ask for it any more.
    pub fn finish(mut self) -> Result<(NumSet, Option<ModSeq>)> {
        loop {
            if let Some(answer) = self.step()? {
                return match self.damage {
                    Some(damage) => Err(damage),
                    None => Ok(answer),
                };
            }
        }
    }
}
