//! Untagged responses about what has changed in the selected mailbox (RFC 9051 §7.5, §5.2; RFC 7162 §3.2.10), in pieces.
//!
//! Invariant: the client's numbering and the view's are the same after every complete run, and the view moves nowhere else. When
//! expunges are not allowed (RFC 9051 §7.5.1) the view keeps them, and a later run reports them.

use std::collections::VecDeque;

use imap_proto::encode::number;
use model::{Flags, NumSet, SeqNum, UidSet};
use store::{Changes, FlagNames, StoreMode, View};

use super::cmd::fetch::FetchRun;
use super::context::{Arrivals, Context, ContextRun};
use super::notify::Watch;
use super::reply::{Progress, Running, Stop};
use super::state::{Selected, Session};
use super::write::{self, FlagsLine};
use crate::Output;

/// Flags that this session changed with STORE `.SILENT`: no news to the client, unless somebody else changed them too.
pub(crate) struct Silent {
    /// The view as it was before.
    pub before: View,
    /// The entries that were changed.
    pub uids: UidSet,
    /// How.
    pub mode: StoreMode,
    /// With which flags.
    pub names: FlagNames,
    /// Whether the client knows the new modseq too (FETCH has told it).
    pub modseq_known: bool,
}

/// A run that reports changes.
#[derive(Default)]
pub(crate) struct Updates {
    /// EXPUNGE responses still to come, by the old sequence numbers, rising; they are sent from the last to the first, so that
    /// each number is right when it is read.
    expunged: Vec<(u32, u32)>,
    /// UIDs still to come in VANISHED responses, rising; sent from the last to the first.
    vanished: Vec<(u32, u32)>,
    /// What comes between the expunges and the flags.
    middle: Option<Middle>,
    /// Flags still to come, sequence numbers of the new view.
    flags: Flagged,
    /// What there is to say of search results that the client follows, and of new messages.
    followed: Box<Followed>,
}

/// What changes in the contexts of the session, and what the client wants to know of new messages.
///
/// RFC 5465 §5.2 has what NOTIFY fetches of new messages behind any ADDTO, §7 what UPDATE fetches before it, §5.2 both in one response:
/// with items of NOTIFY, all of it comes behind, without, before.
#[derive(Default)]
struct Followed {
    /// What the contexts lose to expunges, in the numbers of before: it must come first (RFC 5267 §4.3.4).
    lost: Vec<u8>,
    /// What they gain and lose by the rest: it comes behind the EXISTS that makes the numbers valid (RFC 5267 §4.3.3).
    changed: Option<ContextRun>,
    /// What the contexts have to say, when it waits for what is fetched.
    held: Option<Output>,
    /// What is still to be fetched of new messages.
    arrivals: Arrivals,
    fetching: Option<Box<FetchRun>>,
}

#[derive(Default)]
struct Middle {
    exists: bool,
    keywords: bool,
    gone: bool,
}

/// FETCH responses for a set of entries.
#[derive(Default)]
struct Flagged {
    seqs: VecDeque<(u32, u32)>,
    /// Of these only the MODSEQ is said, or nothing at all to a client that is not CONDSTORE-aware.
    silent: UidSet,
    /// The client knows the MODSEQ of the silent ones too.
    modseq_known: bool,
    /// Whether the UID is said whatever the client has enabled.
    uid: bool,
}

/// UID ranges in one VANISHED line.
const RANGES_PER_LINE: usize = 500;

/// Why something is said of the selected mailbox. It makes a difference to clients that have said what they want to hear of (RFC 5465).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is an opportunity.
    Passing,
    /// The client has changed something itself: its numbers have to be right again.
    OwnChange,
    /// The client wants to know everything.
    Asked,
}

impl Updates {
    /// Moves the view to the present. `None` when no mailbox is selected or nothing is to be said.
    pub fn new(session: &mut Session, expunges: bool, why: Why) -> Option<Self> {
        let qresync = session.enabled.qresync;
        let (hears, hears_of_flags) = (session.hears_of_selected(), session.hears_of_flags() || why == Why::Asked);
        let selected = session.selected.as_mut()?;
        let own = std::mem::take(&mut selected.own);
        if !hears && why == Why::Passing {
            // RFC 5465 §5: NONE makes the mailbox a snapshot.
            return None;
        }
        let before = (!selected.contexts.is_empty()).then(|| selected.view.clone());
        let changes = if selected.view.has_news() { selected.view.advance(expunges) } else { Changes::default() };
        let modseq_known = own.silent.as_ref().is_some_and(|silent| silent.modseq_known);
        let silent = own.silent.map(|silent| as_expected(selected, silent)).unwrap_or_default();
        let flagged = if hears_of_flags { changes.flags_changed.union(&own.report) } else { own.report };
        let gone = changes.mailbox_deleted && !std::mem::replace(&mut selected.told_gone, true);
        if changes.is_empty() && flagged.is_empty() && !gone {
            return None;
        }
        let seqs = selected.view.seqs_of(&flagged);
        let followed = Box::new(followed(selected, session.notify.as_deref(), before.as_ref(), &changes));
        let (expunged, vanished) =
            if qresync { (NumSet::new(), changes.expunged_uids) } else { (changes.expunged_seqs, NumSet::new()) };
        Some(Updates {
            expunged: expunged.ranges().to_vec(),
            vanished: vanished.ranges().to_vec(),
            middle: Some(Middle { exists: changes.added > 0, keywords: changes.keywords_changed, gone }),
            flags: Flagged { seqs: seqs.ranges().iter().copied().collect(), silent, modseq_known, uid: own.uid },
            followed,
        })
    }

    /// Writes until the output is full; true when all is said.
    pub fn pull(&mut self, session: &mut Session, out: &mut Output) -> bool {
        while !out.is_full() {
            if !self.followed.lost.is_empty() {
                out.push(&std::mem::take(&mut self.followed.lost));
            } else if let Some(seq) = pop_last(&mut self.expunged) {
                out.push(b"* ");
                number(out.bytes_mut(), u64::from(seq));
                out.push(b" EXPUNGE\r\n");
            } else if !self.vanished.is_empty() {
                let from = self.vanished.len().saturating_sub(RANGES_PER_LINE);
                vanished_line(out, &self.vanished.split_off(from), false);
            } else if let Some(middle) = self.middle.take() {
                middle.write(session, out);
            } else {
                return self.flags.pull(session, out) && self.followed.pull(session, out);
            }
        }
        false
    }
}

impl Followed {
    /// Writes until the output is full; true when all is said.
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> bool {
        if let Some(changed) = &mut self.changed {
            if !changed.pull(session, self.held.as_mut().unwrap_or(out)) {
                return false;
            }
            self.arrivals = std::mem::take(&mut changed.arrivals);
            self.changed = None;
        }
        if !self.tell_arrivals(session, out) {
            return false;
        }
        if let Some(held) = self.held.take() {
            out.push(held.pending());
        }
        true
    }

    fn tell_arrivals(&mut self, session: &mut Session, out: &mut Output) -> bool {
        if self.fetching.is_none() {
            let Some((items, uids)) = self.arrivals.next() else { return true };
            let (Ok(account), Some(selected)) = (session.account(), &session.selected) else { return true };
            self.fetching = Some(Box::new(FetchRun::quiet(session, account, &items, selected.view.seqs_of(&uids))));
        }
        let Some(fetching) = &mut self.fetching else { return true };
        match fetching.pull(session, out) {
            Ok(Progress::Done(_)) => {}
            Ok(_) => return false,
            Err(Stop::Error(error)) => session.context.observer.error(&session.connection, "NOTIFY", &error),
            Err(Stop::Broken(error)) => {
                session.context.observer.error(&session.connection, "NOTIFY", &error);
                session.is_broken = true;
            }
            Err(Stop::Done(_)) => {}
        }
        self.fetching = None;
        // There may be others, of which something else is wanted.
        false
    }
}

/// Takes expunged entries out of the contexts, and begins to look at what was added or changed. `before`: the view as it was, where
/// there are contexts.
fn followed(selected: &mut Selected, watch: Option<&Watch>, before: Option<&View>, changes: &Changes) -> Followed {
    let added = selected.added(changes.added);
    // RFC 5465 §5.2: not of messages that this session has put there.
    let arrived = watch.map_or_else(|| added.clone(), |watch| watch.not_own(selected.mailbox, &added));
    let items = watch.and_then(|watch| watch.selected.as_ref()).map_or(&[][..], |events| &events.items);
    let mut arrivals = Arrivals::default();
    arrivals.want(items, &arrived);
    let Some(before) = before else { return Followed { arrivals, ..Followed::default() } };
    let mut lost = Vec::new();
    for context in &mut selected.contexts {
        context.expunge(before, &changes.expunged_uids, &mut lost);
    }
    let is_held = items.is_empty() && selected.contexts.iter().any(Context::fetches);
    let changed = Some(ContextRun::new(changes.flags_changed.union(&added), arrived, arrivals));
    Followed { lost, changed, held: is_held.then(|| Output::new(usize::MAX)), ..Followed::default() }
}

impl Middle {
    fn write(self, session: &Session, out: &mut Output) {
        let Some(selected) = &session.selected else { return };
        if self.gone {
            out.push_str("* NO [NONEXISTENT] The mailbox was deleted\r\n");
        }
        if self.exists {
            out.push_fmt(format_args!("* {} EXISTS\r\n", selected.view.exists()));
            // RFC 3501 §7.3.2; IMAP4rev2 has no RECENT.
            if !session.enabled.imap4rev2 {
                out.push_fmt(format_args!("* {} RECENT\r\n", selected.recent_count()));
            }
        }
        if self.keywords {
            write::mailbox_flags(out, &selected.view, selected.read_only);
        }
    }
}

impl Flagged {
    fn pull(&mut self, session: &Session, out: &mut Output) -> bool {
        let Some(selected) = &session.selected else { return true };
        let unsolicited = session.unsolicited_flags();
        let whole = FlagsLine { uid: unsolicited.uid || self.uid, ..unsolicited };
        let modseq_only = FlagsLine { flags: false, ..whole };
        let mut rest = None;
        for entry in selected.view.flags(self.seqs.iter().copied()) {
            if out.is_full() {
                rest = Some(entry.seq);
                break;
            }
            if !self.silent.contains_uid(entry.uid) {
                whole.write(out.bytes_mut(), &entry, selected.view.keywords());
            } else if session.enabled.condstore && !self.modseq_known {
                modseq_only.write(out.bytes_mut(), &entry, selected.view.keywords());
            }
        }
        match rest {
            Some(seq) => begin_at(&mut self.seqs, seq),
            // It may be asked again, while what comes behind it has no room.
            None => self.seqs.clear(),
        }
        rest.is_none()
    }
}

/// `* VANISHED 41,43:116` or `* VANISHED (EARLIER) ...` (RFC 7162 §3.2.10).
pub(crate) fn vanished_line(out: &mut Output, ranges: &[(u32, u32)], earlier: bool) {
    let mut uids = UidSet::new();
    for (first, last) in ranges {
        uids.insert_range(*first, *last);
    }
    out.push_str(if earlier { "* VANISHED (EARLIER) " } else { "* VANISHED " });
    out.push_fmt(format_args!("{uids}\r\n"));
}

/// Takes what is below `seq` out of rising ranges.
pub(crate) fn begin_at(ranges: &mut VecDeque<(u32, u32)>, seq: SeqNum) {
    let done = ranges.partition_point(|range| range.1 < seq.get());
    ranges.drain(..done);
    if let Some(first) = ranges.front_mut() {
        first.0 = first.0.max(seq.get());
    }
}

/// Takes the last number out of rising ranges.
fn pop_last(ranges: &mut Vec<(u32, u32)>) -> Option<u32> {
    let (first, last) = ranges.last_mut()?;
    let number = *last;
    if *first == number {
        ranges.pop();
    } else {
        *last -= 1;
    }
    Some(number)
}

/// Those entries of a silent STORE whose flags are what the client makes of its own change: it knows them.
fn as_expected(selected: &Selected, silent: Silent) -> UidSet {
    let mask = silent.names.system.iter().fold(Flags::NONE, |flags, flag| flags.with(Flags::system(*flag)));
    let indexes = silent.names.keywords.iter().filter_map(|keyword| selected.view.keywords().find(keyword));
    let mask = indexes.fold(mask, |flags, index| flags.with(Flags::keyword(index)));
    let seqs = |view: &View| view.seqs_of(&silent.uids);
    let (seqs_before, seqs_now) = (seqs(&silent.before), seqs(&selected.view));
    let mut before = silent.before.flags(seqs_before.ranges().iter().copied());
    let mut known = UidSet::new();
    for entry in selected.view.flags(seqs_now.ranges().iter().copied()) {
        // Both rise by UID.
        let Some(before) = before.find(|before| before.uid >= entry.uid) else { break };
        let expected = match silent.mode {
            StoreMode::Replace => mask,
            StoreMode::Add => before.flags.with(mask),
            StoreMode::Remove => before.flags.without(mask),
        };
        if before.uid == entry.uid && entry.flags == expected {
            known.insert(entry.uid.get());
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_comes_first() {
        let mut ranges = vec![(1, 1), (3, 5)];
        let taken: Vec<u32> = std::iter::from_fn(|| pop_last(&mut ranges)).collect();
        assert_eq!(taken, [5, 4, 3, 1]);
    }

    #[test]
    fn what_was_said_is_not_said_again() {
        let mut ranges = VecDeque::from([(1, 4), (6, 6), (8, 9)]);
        for (seq, left) in [(3, &[(3, 4), (6, 6), (8, 9)][..]), (6, &[(6, 6), (8, 9)]), (9, &[(9, 9)])] {
            begin_at(&mut ranges, SeqNum::new(seq).expect("not zero"));
            assert_eq!(ranges, left);
        }
    }

    #[test]
    fn vanished_is_written_as_a_set() {
        let mut out = Output::new(100);
        vanished_line(&mut out, &[(1, 3), (7, 7)], true);
        assert_eq!(out.pending(), b"* VANISHED (EARLIER) 1:3,7\r\n");
    }
}
