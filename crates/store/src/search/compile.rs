//! Queries as trees that are cheap to evaluate, and their evaluation on one entry.

use std::collections::HashMap;

use mime::{HeaderBlock, Needle};
use model::{CivilDate, EmailId, Error, ErrorKind, Flags, ModSeq, NumSet, Result, ThreadId};

use super::plan::{Leaf, Plan};
use super::text::{self, TextNeedle};
use super::texts::Place;
use super::{DateTest, HEADER_COST, Query};
use crate::view::Entry;
use crate::{Reader, View};

/// A compiled [`Query`].
#[derive(Debug)]
pub(super) enum Node {
    Const(bool),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Column(Column),
    Sent {
        test: DateTest,
        /// Its number for the index.
        leaf: Option<usize>,
    },
    Header {
        name: String,
        needle: Option<Needle>,
        /// Its number for the index.
        leaf: Option<usize>,
    },
    Text(TextNeedle),
}

/// Tests that only need the entry.
#[derive(Debug)]
pub(super) enum Column {
    HasFlag(Flags),
    RecentFrom(u32),
    Seqs(NumSet),
    Internal(DateTest),
    Saved(DateTest),
    Younger(u32),
    Older(u32),
    Larger(u64),
    Smaller(u64),
    ModSeq(ModSeq),
    EmailId(EmailId),
    /// Kept beside the message.
    ThreadId(ThreadId),
}

/// Prepares `query` for the entries of `view`; and the keys that the index can be asked about.
pub(super) fn compile(query: Query, view: &View) -> (Node, Vec<Leaf>) {
    let mut leaves = Leaves::default();
    (compile_node(query, view, &mut leaves), leaves.list)
}

/// The text keys of a query.
#[derive(Default)]
struct Leaves {
    texts: usize,
    list: Vec<Leaf>,
}

impl Leaves {
    fn add(&mut self, leaf: Leaf) -> Option<usize> {
        self.list.push(leaf);
        Some(self.list.len() - 1)
    }

    fn text(&mut self, text: &str, place: Place) -> Node {
        let mut needle = TextNeedle::new(text, place, self.texts);
        self.texts += 1;
        needle.leaf = self.add(Leaf::text(needle.needle.folded(), place));
        Node::Text(needle)
    }

    fn header(&mut self, name: String, text: &str) -> Node {
        let needle = (!text.is_empty()).then(|| Needle::new(text));
        let leaf = Leaf::header(&name, needle.as_ref().map(Needle::folded)).and_then(|leaf| self.add(leaf));
        Node::Header { name, needle, leaf }
    }
}

fn compile_node(query: Query, view: &View, leaves: &mut Leaves) -> Node {
    match query {
        Query::All => Node::Const(true),
        Query::ThreadId(id) => Node::Column(Column::ThreadId(id)),
        Query::And(parts) => {
            let mut nodes = Vec::with_capacity(parts.len());
            for part in parts {
                match compile_node(part, view, leaves) {
                    Node::And(inner) => nodes.extend(inner),
                    node => nodes.push(node),
                }
            }
            nodes.sort_by_key(Node::cost_class);
            Node::And(nodes)
        }
        Query::Or(a, b) => {
            let mut nodes = Vec::with_capacity(2);
            for part in [*a, *b] {
                match compile_node(part, view, leaves) {
                    Node::Or(inner) => nodes.extend(inner),
                    node => nodes.push(node),
                }
            }
            nodes.sort_by_key(Node::cost_class);
            Node::Or(nodes)
        }
        Query::Not(inner) => Node::Not(Box::new(compile_node(*inner, view, leaves))),
        Query::HasFlag(flags) => Node::Column(Column::HasFlag(flags)),
        Query::Recent => match view.recent_from() {
            Some(from) => Node::Column(Column::RecentFrom(from.get())),
            None => Node::Const(false),
        },
        Query::Seqs(seqs) => Node::Column(Column::Seqs(seqs)),
        Query::Uids(uids) => Node::Column(Column::Seqs(view.seqs_of(&uids))),
        Query::Internal(test) => Node::Column(Column::Internal(test)),
        Query::Sent(test) => Node::Sent { test, leaf: leaves.add(Leaf::sent(test)) },
        Query::Saved(test) => Node::Column(Column::Saved(test)),
        Query::Younger(seconds) => Node::Column(Column::Younger(seconds)),
        Query::Older(seconds) => Node::Column(Column::Older(seconds)),
        Query::Larger(octets) => Node::Column(Column::Larger(octets)),
        Query::Smaller(octets) => Node::Column(Column::Smaller(octets)),
        Query::Header(name, text) => leaves.header(name, &text),
        // Every message contains the empty string (RFC 9051 §6.4.4: "contains the specified string").
        Query::Body(text) | Query::Text(text) if text.is_empty() => Node::Const(true),
        Query::Body(text) => leaves.text(&text, Place::Body),
        Query::Text(text) => {
            Node::Or([Place::Header, Place::PartHeader, Place::Body].map(|place| leaves.text(&text, place)).into())
        }
        Query::ModSeq(modseq) => Node::Column(Column::ModSeq(modseq)),
        Query::EmailId(id) => Node::Column(Column::EmailId(id)),
    }
}

/// What a key says of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// What the key asks for is damaged.
    Unknown,
}

impl Answer {
    fn negated(self) -> Self {
        match self {
            Answer::Yes => Answer::No,
            Answer::No => Answer::Yes,
            Answer::Unknown => Answer::Unknown,
        }
    }
}

impl From<bool> for Answer {
    fn from(matches: bool) -> Self {
        if matches { Answer::Yes } else { Answer::No }
    }
}

/// One entry under test, and what was read of its message so far.
pub(super) struct Scope<'a> {
    pub(super) reader: &'a mut Reader,
    pub(super) entry: Entry,
    plan: Option<&'a Plan>,
    now: i64,
    /// By needle: whether the text has it.
    texts: HashMap<usize, Answer>,
    /// The first damage that was met.
    pub(super) damage: Option<Error>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(reader: &'a mut Reader, entry: Entry, now: i64, plan: Option<&'a Plan>) -> Self {
        Scope { reader, entry, plan, now, texts: HashMap::new(), damage: None }
    }

    /// What the index says of a key.
    fn indexed(&self, leaf: Option<usize>) -> Option<Answer> {
        self.plan?.answer(leaf, self.entry.email_id)
    }

    /// The answer of a key that read the message: damage makes it unknown.
    fn known(&mut self, answer: Result<bool>) -> Result<Answer> {
        match answer {
            Ok(matches) => Ok(matches.into()),
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.damage.get_or_insert(error);
                Ok(Answer::Unknown)
            }
            Err(error) => Err(error),
        }
    }
}

impl Node {
    /// 0: columns; 1: derived data or header; 2: body.
    fn cost_class(&self) -> u8 {
        match self {
            Node::Column(Column::ThreadId(_)) => 1,
            Node::Const(_) | Node::Column(_) => 0,
            Node::Sent { .. } | Node::Header { .. } | Node::Text(TextNeedle { place: Place::Header, .. }) => 1,
            Node::Text(_) => 2,
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().map(Node::cost_class).max().unwrap_or(0),
            Node::Not(node) => node.cost_class(),
        }
    }

    /// The sequence numbers outside which nothing can match, when the query says so at its top.
    pub(super) fn only_seqs(&self) -> Option<NumSet> {
        match self {
            Node::Column(Column::Seqs(seqs)) => Some(seqs.clone()),
            Node::And(nodes) => nodes.iter().filter_map(Node::only_seqs).reduce(|a, b| a.intersection(&b)),
            _ => None,
        }
    }

    /// What this says of an entry by its columns and by the index; `None`: its message must be read.
    pub(super) fn known(&self, entry: &Entry, now: i64, plan: Option<&Plan>) -> Option<Answer> {
        let first_known = |nodes: &[Node], deciding: Answer| {
            let mut answer = Some(deciding.negated());
            for node in nodes {
                match node.known(entry, now, plan) {
                    decided if decided == Some(deciding) => return decided,
                    None => answer = None,
                    Some(_) => {}
                }
            }
            answer
        };
        match self {
            Node::Const(answer) => Some((*answer).into()),
            Node::And(nodes) => first_known(nodes, Answer::No),
            Node::Or(nodes) => first_known(nodes, Answer::Yes),
            Node::Not(node) => node.known(entry, now, plan).map(Answer::negated),
            Node::Column(Column::ThreadId(_)) => None,
            Node::Column(column) => Some(column.matches(entry, now).into()),
            Node::Sent { leaf, .. } | Node::Header { leaf, .. } | Node::Text(TextNeedle { leaf, .. }) => {
                plan?.answer(*leaf, entry.email_id)
            }
        }
    }

    /// What it costs at most to read what is not known of an entry, in octets of body scanned in the same time.
    pub(super) fn reading_cost(&self, entry: &Entry, now: i64, plan: Option<&Plan>) -> u64 {
        if self.known(entry, now, plan).is_some() {
            return 0;
        }
        match self {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().map(|node| node.reading_cost(entry, now, plan)).sum(),
            Node::Not(node) => node.reading_cost(entry, now, plan),
            Node::Text(TextNeedle { place: Place::PartHeader | Place::Body, .. }) => {
                HEADER_COST + u64::from(entry.size)
            }
            _ => HEADER_COST,
        }
    }

    /// What this says of the entry in `scope`: Kleene's logic of three values, in which a key that cannot be answered decides nothing.
    ///
    /// Errors are those of the machine; damage to the message is noted in the scope.
    pub(super) fn matches(&self, scope: &mut Scope<'_>) -> Result<Answer> {
        match self {
            Node::Const(answer) => Ok((*answer).into()),
            Node::And(nodes) => first_or_unknown(nodes, Answer::No, scope),
            Node::Or(nodes) => first_or_unknown(nodes, Answer::Yes, scope),
            Node::Not(node) => Ok(node.matches(scope)?.negated()),
            Node::Column(Column::ThreadId(thread)) => {
                let answer = scope.reader.thread_id(scope.entry.email_id);
                scope.known(answer.map(|id| id == *thread))
            }
            Node::Column(column) => Ok(column.matches(&scope.entry, scope.now).into()),
            Node::Sent { test, leaf } => {
                if let Some(answer) = scope.indexed(*leaf) {
                    return Ok(answer);
                }
                // RFC 9051 §6.4.4: "disregarding time and timezone". Without a date that can be read, none of the keys matches.
                let answer = scope.reader.sent_date(scope.entry.email_id);
                scope.known(answer.map(|date| date.is_some_and(|date| test.passes(date))))
            }
            Node::Header { name, needle, leaf } => {
                if let Some(answer) = scope.indexed(*leaf) {
                    return Ok(answer);
                }
                let header = scope.reader.header(scope.entry.email_id);
                let answer = header.map(|header| header_matches(header, name, needle.as_ref()));
                scope.known(answer)
            }
            Node::Text(needle) => {
                if let Some(answer) = scope.indexed(needle.leaf) {
                    return Ok(answer);
                }
                if let Some(known) = scope.texts.get(&needle.id) {
                    return Ok(*known);
                }
                let answer = text::message_has(scope.reader, scope.entry.email_id, needle);
                let answer = scope.known(answer)?;
                scope.texts.insert(needle.id, answer);
                Ok(answer)
            }
        }
    }
}

/// `deciding` when one of the nodes says so; else unknown when one of them is; else the opposite.
fn first_or_unknown(nodes: &[Node], deciding: Answer, scope: &mut Scope<'_>) -> Result<Answer> {
    let mut answer = deciding.negated();
    for node in nodes {
        match node.matches(scope)? {
            decided if decided == deciding => return Ok(deciding),
            Answer::Unknown => answer = Answer::Unknown,
            Answer::Yes | Answer::No => {}
        }
    }
    Ok(answer)
}

impl Column {
    fn matches(&self, entry: &Entry, now: i64) -> bool {
        match self {
            Column::HasFlag(flags) => entry.flags.intersects(*flags),
            Column::RecentFrom(uid) => entry.uid.get() >= *uid,
            Column::Seqs(seqs) => seqs.contains(entry.seq.get()),
            Column::Internal(test) => test.passes(entry.internal_date.civil_date()),
            Column::Saved(test) => test.passes(CivilDate::from_days(entry.save_date.div_euclid(86_400))),
            // RFC 5032 §2: OLDER is less recent than or equal to the target time, YOUNGER more recent than or equal to it.
            Column::Younger(seconds) => entry.internal_date.unix_seconds >= now.saturating_sub(i64::from(*seconds)),
            Column::Older(seconds) => entry.internal_date.unix_seconds <= now.saturating_sub(i64::from(*seconds)),
            Column::Larger(octets) => u64::from(entry.size) > *octets,
            Column::Smaller(octets) => u64::from(entry.size) < *octets,
            Column::ModSeq(modseq) => entry.modseq >= *modseq,
            Column::EmailId(id) => entry.email_id == *id,
            // It is not in the entry; see `Node::matches`.
            Column::ThreadId(_) => false,
        }
    }
}

/// RFC 9051 §6.4.4 HEADER: any field of that name has the text; an empty text: there is such a field.
fn header_matches(header: &[u8], name: &str, needle: Option<&Needle>) -> bool {
    let mut fields = HeaderBlock::new(header).fields().filter(|field| field.name.eq_ignore_ascii_case(name.as_bytes()));
    match needle {
        None => fields.next().is_some(),
        Some(needle) => fields.any(|field| {
            needle.is_in(&mime::field_text(field.value))
                || mime::parameter_texts(&field).iter().any(|text| needle.is_in(text))
        }),
    }
}
