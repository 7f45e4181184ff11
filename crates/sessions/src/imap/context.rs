//! Search results that are kept up to date: the contexts of RFC 5267 §4.3, and what is fetched of new messages in them (RFC 5465 §7).
//!
//! Only what has changed is searched again: whether a message matches depends on nothing but its entry and its bytes. Invariant: between
//! two commands a context holds exactly what its search would find in the view, and the client, following ADDTO and REMOVEFROM, the same.
//! (Keys that depend on the clock, OLDER and YOUNGER, are the exception: they are looked at when something else changes.)

use imap_proto::command::{FetchAtt, SearchKey};
use model::{NumSet, UidSet};
use store::View;
use store::order::{Sort, SortCriterion};
use store::search::{Query, Search};

use super::cmd::search::answer::{Found, number, runs, set};
use super::cmd::search::question::question;
use super::cmd::search::write_tag;
use super::reply::Stop;
use super::state::Session;
use crate::Output;

/// Contexts of one session.
pub(crate) const CONTEXTS_MAX: usize = 16;
/// UIDs of a sorted result, or ranges of UIDs of another one, that a context holds.
pub(crate) const CONTEXT_RESULTS_MAX: usize = 100_000;

const TOO_MANY_RESULTS: &str = "Too many results (limit context_results_max)";

/// A search whose results the client follows.
pub(crate) struct Context {
    /// The tag of its command.
    pub tag: String,
    /// What its responses begin with, up to the closing parenthesis: `(TAG "a"`, for ESEARCH with mailbox and UIDVALIDITY (RFC 7377 §2.1).
    correlator: Vec<u8>,
    /// Whether the client wants UIDs.
    uid: bool,
    /// What is searched for, with all numbers as UIDs.
    key: SearchKey,
    charset: Option<String>,
    criteria: Vec<SortCriterion>,
    /// What is fetched of new messages that match.
    items: Vec<FetchAtt>,
    results: Results,
}

/// What the client has been told.
enum Results {
    /// In the order of the mailbox.
    Set(UidSet),
    /// UIDs in the order of a SORT.
    Sorted(Vec<u32>),
}

impl Context {
    pub fn new(
        tag: &str,
        uid: bool,
        key: SearchKey,
        charset: Option<String>,
        criteria: &[SortCriterion],
        items: &[FetchAtt],
    ) -> Self {
        let results = if criteria.is_empty() { Results::Set(UidSet::new()) } else { Results::Sorted(Vec::new()) };
        let mut correlator = Vec::new();
        write_tag(&mut correlator, tag);
        let (tag, criteria, items) = (tag.to_owned(), criteria.to_vec(), items.to_vec());
        Context { tag, correlator, uid, key, charset, criteria, items, results }
    }

    /// With another beginning of its responses.
    pub fn correlated_by(self, correlator: &[u8]) -> Self {
        Context { correlator: correlator.to_vec(), ..self }
    }

    /// Whether something is fetched of new messages.
    pub fn fetches(&self) -> bool {
        !self.items.is_empty()
    }

    /// What the search has found, sequence numbers of `view`.
    pub fn set_results(&mut self, view: &View, found: &Found) {
        self.results = match &found.order {
            None => Results::Set(view.uids_of(&found.seqs)),
            Some(order) => Results::Sorted(order.iter().map(|seq| number(view, *seq, true)).collect()),
        };
    }

    /// Begins to follow; where there are too many contexts, or too many results, the client is told that there will be no updates
    /// (RFC 5267 §4.3.1).
    pub fn begin(self, session: &mut Session, out: &mut Output) {
        let Some(selected) = &mut session.selected else { return };
        if selected.contexts.len() >= CONTEXTS_MAX {
            Context::refuse(&self.tag, "Too many contexts (limit contexts_max)", out);
        } else if self.is_too_large() {
            Context::refuse(&self.tag, TOO_MANY_RESULTS, out);
        } else {
            selected.contexts.push(self);
        }
    }

    fn is_too_large(&self) -> bool {
        match &self.results {
            Results::Set(uids) => uids.ranges().len() > CONTEXT_RESULTS_MAX,
            Results::Sorted(uids) => uids.len() > CONTEXT_RESULTS_MAX,
        }
    }

    /// `* NO [NOUPDATE "tag"] text`
    pub fn refuse(tag: &str, text: &str, out: &mut Output) {
        out.push_str("* NO [NOUPDATE ");
        super::write::string(out.bytes_mut(), tag.as_bytes(), false);
        out.push_fmt(format_args!("] {text}\r\n"));
    }

    /// Takes expunged entries out of the results; says so in the numbers of `before`, the view in which they still are.
    pub fn expunge(&mut self, before: &View, expunged: &UidSet, out: &mut Vec<u8>) {
        let mut items = Vec::new();
        self.remove(before, expunged, &mut items);
        self.write(&items, out);
    }

    /// Takes `uids` out of the results and writes a REMOVEFROM item for those that were in (RFC 5267 §4.3.4).
    fn remove(&mut self, view: &View, uids: &UidSet, out: &mut Vec<u8>) {
        match &mut self.results {
            Results::Set(results) => {
                let gone = results.intersection(uids);
                if !gone.is_empty() {
                    *results = results.difference(&gone);
                    set_item("REMOVEFROM", &numbers(view, gone, self.uid), out);
                }
            }
            Results::Sorted(results) => {
                let gone = positions(results, |uid| uids.contains(uid));
                results.retain(|uid| !uids.contains(*uid));
                // From the last to the first, so that each position is right when it is read.
                let pairs: Vec<_> = gone.into_iter().rev().collect();
                sorted_item("REMOVEFROM", view, self.uid, &pairs, out);
            }
        }
    }

    /// Replaces the results of a search by `found`, whose elements not in `changed` are the old ones, and writes an ADDTO item
    /// (RFC 5267 §4.3.3).
    fn add(&mut self, view: &View, added: &UidSet, out: &mut Vec<u8>) {
        if let (Results::Set(results), false) = (&mut self.results, added.is_empty()) {
            *results = results.union(added);
            set_item("ADDTO", &numbers(view, added.clone(), self.uid), out);
        }
    }

    /// The same for a SORT: all results, in their new order.
    fn add_sorted(&mut self, view: &View, order: Vec<u32>, added: &UidSet, out: &mut Vec<u8>) {
        // Rising positions: when one is inserted, everything before it is in its place.
        sorted_item("ADDTO", view, self.uid, &positions(&order, |uid| added.contains(uid)), out);
        self.results = Results::Sorted(order);
    }

    /// `* ESEARCH (TAG "B01") UID ADDTO (0 32768:32769)`
    fn write(&self, items: &[u8], out: &mut Vec<u8>) {
        if items.is_empty() {
            return;
        }
        out.extend_from_slice(b"* ESEARCH ");
        out.extend_from_slice(&self.correlator);
        out.push(b')');
        if self.uid {
            out.extend_from_slice(b" UID");
        }
        out.extend_from_slice(items);
        out.extend_from_slice(b"\r\n");
    }

    fn results(&self) -> UidSet {
        match &self.results {
            Results::Set(uids) => uids.clone(),
            Results::Sorted(uids) => uids.iter().copied().collect(),
        }
    }
}

/// UIDs as the client wants them.
fn numbers(view: &View, uids: UidSet, uid: bool) -> NumSet {
    if uid { uids } else { view.seqs_of(&uids) }
}

/// The runs of neighbours that `wanted` picks: the position of the first, from 1, and the UIDs.
fn positions(uids: &[u32], wanted: impl Fn(u32) -> bool) -> Vec<(usize, Vec<u32>)> {
    let mut found: Vec<(usize, Vec<u32>)> = Vec::new();
    for (position, &uid) in (1..).zip(uids).filter(|(_, uid)| wanted(**uid)) {
        match found.last_mut() {
            Some((first, run)) if *first + run.len() == position => run.push(uid),
            _ => found.push((position, vec![uid])),
        }
    }
    found
}

/// ` ADDTO (0 set)`: in mailbox order no position is needed.
fn set_item(name: &str, numbers: &NumSet, out: &mut Vec<u8>) {
    out.extend_from_slice(format!(" {name} (0 ").as_bytes());
    set(out, numbers.ranges());
    out.push(b')');
}

/// ` ADDTO (position set position set)`
fn sorted_item(name: &str, view: &View, uid: bool, pairs: &[(usize, Vec<u32>)], out: &mut Vec<u8>) {
    for (n, (position, uids)) in pairs.iter().enumerate() {
        out.extend_from_slice(if n == 0 { format!(" {name} (") } else { " ".to_owned() }.as_bytes());
        out.extend_from_slice(format!("{position} ").as_bytes());
        let number = |from: &u32| if uid { Some(*from) } else { view.seqs_of(&NumSet::range(*from, *from)).first() };
        set(out, &runs(uids.iter().filter_map(number)));
    }
    if !pairs.is_empty() {
        out.push(b')');
    }
}

/// Messages that a FETCH response is due for, by what is wanted of them: none is in two of the sets.
#[derive(Default)]
pub(crate) struct Arrivals {
    wanted: Vec<(Vec<FetchAtt>, UidSet)>,
}

impl Arrivals {
    /// Of these messages, these items too. RFC 5465 §5.2: all that is wanted of a message comes in a single response, each item once.
    pub fn want(&mut self, items: &[FetchAtt], uids: &UidSet) {
        let mut rest = uids.clone();
        for at in 0..self.wanted.len() {
            let Some((have, of)) = self.wanted.get_mut(at) else { break };
            let both = of.intersection(&rest);
            if both.is_empty() {
                continue;
            }
            let mut all = have.clone();
            all.extend(items.iter().filter(|item| !have.contains(item)).cloned());
            *of = of.difference(&both);
            rest = rest.difference(&both);
            self.wanted.push((all, both));
        }
        self.wanted.push((items.to_vec(), rest));
        self.wanted.retain(|(items, uids)| !items.is_empty() && !uids.is_empty());
    }

    /// The next of them.
    pub fn next(&mut self) -> Option<(Vec<FetchAtt>, UidSet)> {
        self.wanted.pop()
    }
}

/// Brings all contexts up to date with entries that were added or changed.
pub(crate) struct ContextRun {
    changed: UidSet,
    /// Those of them that are new, and may be fetched.
    arrived: UidSet,
    /// What is to be fetched of them.
    pub arrivals: Arrivals,
    /// The context that is being looked at.
    at: usize,
    state: State,
}

enum State {
    Starting,
    Searching(Box<Search>),
    /// The items that are written already, what is to be added, and the order of all.
    Sorting(Vec<u8>, UidSet, Box<Sort>),
}

impl ContextRun {
    /// `arrivals`: what is to be fetched of `arrived` in any case.
    pub fn new(changed: UidSet, arrived: UidSet, arrivals: Arrivals) -> Self {
        ContextRun { changed, arrived, arrivals, at: 0, state: State::Starting }
    }

    /// Does a bounded piece of work; true when all is done.
    pub fn pull(&mut self, session: &mut Session, out: &mut Output) -> bool {
        if self.changed.is_empty()
            || session.selected.as_ref().is_none_or(|selected| self.at >= selected.contexts.len())
        {
            return true;
        }
        match self.step(session, out) {
            Ok(true) => {
                self.at += 1;
                self.state = State::Starting;
                self.drop_if_too_large(session, out);
            }
            Ok(false) => {}
            Err(stop) => {
                if let Stop::Error(error) | Stop::Broken(error) = stop {
                    session.context.observer.error(&session.connection, "UPDATE", &error);
                }
                // The results are not known any more.
                if let Some(selected) = &mut session.selected {
                    let context = selected.contexts.remove(self.at);
                    Context::refuse(&context.tag, "The results cannot be found any more", out);
                }
                self.state = State::Starting;
            }
        }
        false
    }

    fn drop_if_too_large(&mut self, session: &mut Session, out: &mut Output) {
        let Some(selected) = &mut session.selected else { return };
        let last = self.at - 1;
        if selected.contexts.get(last).is_some_and(Context::is_too_large) {
            let context = selected.contexts.remove(last);
            Context::refuse(&context.tag, TOO_MANY_RESULTS, out);
            self.at = last;
        }
    }

    /// Goes on with one context; true when that is done.
    fn step(&mut self, session: &mut Session, out: &mut Output) -> Result<bool, Stop> {
        let account = session.account()?;
        let now = session.now.unix_seconds;
        let selected = session.selected()?;
        let view = &selected.view;
        let Some(context) = selected.contexts.get_mut(self.at) else { return Ok(true) };
        match &mut self.state {
            State::Starting => {
                let question = question(&context.key, context.charset.as_deref(), view, &UidSet::new())?;
                let query = Query::And(vec![Query::Uids(self.changed.clone()), question]);
                self.state = State::Searching(Box::new(Search::new(view.clone(), account.reader(), query, now)));
                Ok(false)
            }
            State::Searching(search) => {
                let Some((seqs, _)) = search.step()? else { return Ok(false) };
                let matching = view.uids_of(&seqs);
                let added = matching.difference(&context.results());
                // RFC 5465 §7: not of messages that match because their flags changed.
                self.arrivals.want(&context.items, &added.intersection(&self.arrived));
                let mut items = Vec::new();
                context.remove(view, &self.changed.difference(&matching), &mut items);
                if !context.criteria.is_empty() && !added.is_empty() {
                    let all = view.seqs_of(&context.results().union(&added));
                    let sort = Sort::new(view.clone(), account.reader(), &context.criteria, &all);
                    self.state = State::Sorting(items, added, Box::new(sort));
                    return Ok(false);
                }
                context.add(view, &added, &mut items);
                context.write(&items, out.bytes_mut());
                Ok(true)
            }
            State::Sorting(items, added, sort) => {
                let Some(order) = sort.step()? else { return Ok(false) };
                let order = order.iter().map(|seq| number(view, *seq, true)).collect();
                context.add_sorted(view, order, added, items);
                context.write(items, out.bytes_mut());
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_run() {
        let found = positions(&[9, 4, 7, 1, 2], |uid| uid != 7);
        assert_eq!(found, [(1, vec![9, 4]), (4, vec![1, 2])]);
        assert_eq!(positions(&[], |_| true), []);
    }

    #[test]
    fn what_is_wanted_of_a_message_comes_once() {
        let uids = |numbers: &[u32]| numbers.iter().copied().collect::<UidSet>();
        let mut arrivals = Arrivals::default();
        arrivals.want(&[FetchAtt::Uid], &uids(&[1, 2, 3]));
        arrivals.want(&[], &uids(&[3]));
        arrivals.want(&[FetchAtt::Flags, FetchAtt::Uid], &uids(&[2, 4]));
        arrivals.want(&[FetchAtt::ModSeq], &uids(&[2, 3]));
        let mut all: Vec<_> = std::iter::from_fn(|| arrivals.next()).collect();
        all.sort_by_key(|(_, uids)| uids.first());
        let expected = [
            (vec![FetchAtt::Uid], uids(&[1])),
            (vec![FetchAtt::Uid, FetchAtt::Flags, FetchAtt::ModSeq], uids(&[2])),
            (vec![FetchAtt::Uid, FetchAtt::ModSeq], uids(&[3])),
            (vec![FetchAtt::Flags, FetchAtt::Uid], uids(&[4])),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn results_have_a_limit() {
        let of = |results| Context { results, ..Context::new("a", true, SearchKey::All, None, &[], &[]) };
        let most = CONTEXT_RESULTS_MAX as u32;
        let apart = |count: u32| Results::Set((1..=count).map(|n| 2 * n).collect());
        assert!(!of(apart(most)).is_too_large() && of(apart(most + 1)).is_too_large());
        let sorted = |count: u32| Results::Sorted((1..=count).collect());
        assert!(!of(sorted(most)).is_too_large() && of(sorted(most + 1)).is_too_large());
    }
}
