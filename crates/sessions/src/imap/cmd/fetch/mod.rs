//! FETCH and UID FETCH (RFC 9051 §6.4.5): which items of which messages, pulled piece by piece.
//!
//! Invariants:
//! * A response that has left is finished, or the connection ends: an announced literal always gets its octets.
//! * What is held is bounded whatever the size of a message: a piece of a literal ([`PIECE_BYTES`]), and sections that are small
//!   enough to be sent whole ([`WHOLE_BYTES_MAX`]).
//! * Damage is confined to the message that it hit: its response is left out, the others are sent, and the command ends with NO.
//! * `\Seen` is durable before the octets that set it are sent.

mod binary;
mod item;
mod line;
mod section;

use std::ops::Range;
use std::sync::Arc;

use imap_proto::PartialRange;
use imap_proto::command::{Fetch, FetchAtt};
use model::{EmailId, Error, Flags, ModSeq, NumSet, SystemFlag, Uid, UidSet};
use store::{Account, Entry, FlagNames, Pending, Reader, StoreFlags, StoreMode, Stored, View};

use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::{Selected, Session};
use crate::imap::updates::{Silent, vanished_line};
use crate::imap::write::FlagsLine;
use crate::{Output, Waker};
use binary::Decoded;
use item::Item;
use line::FlagsText;

/// A piece of a literal that is streamed, octets.
const PIECE_BYTES: u64 = 64 * 1024;
/// Sections up to this size are read whole before they are announced, so that damage can still be told in a NO.
const WHOLE_BYTES_MAX: u64 = 256 * 1024;
/// Entries that are taken from the view at once; `\Seen` is set on all of them with one change of the log.
const BATCH: usize = 256;
/// UID ranges in one VANISHED line.
const VANISHED_RANGES: usize = 500;

pub(crate) fn run(session: &mut Session, command: &Fetch, out: &mut Output) -> Started {
    let account = session.account()?;
    session.selected()?;
    let wants_modseq = command.modifiers.changed_since.is_some();
    if command.modifiers.vanished && !(command.uid && wants_modseq && session.enabled.qresync) {
        // RFC 7162 §3.2.6
        return Err(Done::bad("VANISHED needs UID FETCH, CHANGEDSINCE, and QRESYNC enabled").into());
    }
    if wants_modseq || command.items.contains(&FetchAtt::ModSeq) {
        // RFC 7162 §3.1: CONDSTORE enabling commands.
        session.enable_condstore(out);
    }
    let qresync = session.enabled.qresync;
    let selected = session.selected()?;
    let mut seqs = selected.seqs(&command.set, command.uid)?;
    if let Some(since) = command.modifiers.changed_since {
        seqs = changed_since(&selected.view, &seqs, since);
        if command.modifiers.vanished {
            let last = selected.view.uid_next().map_or(Uid::LAST.get(), |next| next.get() - 1);
            let known = command.set.resolve(last);
            // An entry that the client has not been told is gone is still in the view, and no earlier one.
            let gone = account.vanished_since(selected.mailbox, since, &known)?;
            let gone = gone.difference(&selected.view.uids_of(&NumSet::range(1, selected.view.exists())));
            for ranges in gone.ranges().chunks(VANISHED_RANGES) {
                vanished_line(out, ranges, true);
            }
        }
    }
    if let Some(range) = command.modifiers.partial {
        seqs = partial(&seqs, range);
    }

    let mut items: Vec<Item> = command.items.iter().map(item::plan).collect();
    if command.uid && !items.contains(&Item::Uid) {
        items.insert(0, Item::Uid);
    }
    // RFC 7162 §3.1.4.1: CHANGEDSINCE asks for MODSEQ; §3.2.4: after QRESYNC it goes with FLAGS.
    let implied = wants_modseq || qresync && items.contains(&Item::Flags);
    if implied && !items.contains(&Item::ModSeq) {
        items.push(Item::ModSeq);
    }
    let sets_seen = !selected.read_only && items.iter().any(Item::sets_seen);
    let before = sets_seen.then(|| selected.view.clone());
    let run = FetchRun::new(session, account, items, seqs);
    Ok(Reply::Running(Box::new(FetchRun { before, ..run })))
}

impl FetchRun {
    fn new(session: &Session, account: Arc<Account>, items: Vec<Item>, seqs: NumSet) -> Self {
        FetchRun {
            before: None,
            line: session.unsolicited_flags(),
            reader: account.reader(),
            account,
            items,
            utf8: session.utf8(),
            flags: FlagsText::default(),
            cursor: Cursor::default(),
            seqs,
            batch: Vec::new(),
            at: 0,
            current: None,
            newly_seen: UidSet::new(),
            setting_seen: None,
            damage: None,
        }
    }

    /// Of the entries at `seqs` of the selected mailbox, without setting `\Seen` (RFC 5465 §5.2).
    pub fn quiet(session: &Session, account: Arc<Account>, items: &[FetchAtt], seqs: NumSet) -> Self {
        FetchRun::new(session, account, items.iter().map(item::plan).collect(), seqs)
    }
}

/// Those of `seqs` that changed after `since` (RFC 7162 §3.1.4.1).
fn changed_since(view: &View, seqs: &NumSet, since: ModSeq) -> NumSet {
    let mut changed = NumSet::new();
    if view.highest_modseq() <= since {
        return changed;
    }
    for &(first, last) in seqs.ranges() {
        changed.extend(view.rows(first..=last).filter(|entry| entry.modseq > since).map(|entry| entry.seq.get()));
    }
    changed
}

/// Those at the given positions (RFC 9394 §3.3): the lowest UID is the first.
pub(crate) fn partial(seqs: &NumSet, range: PartialRange) -> NumSet {
    let total = seqs.len();
    let (first, last) = match range {
        PartialRange::FromFirst(a, b) => (u64::from(a.min(b).get()) - 1, u64::from(a.max(b).get())),
        PartialRange::FromLast(a, b) => {
            (total.saturating_sub(u64::from(a.max(b).get())), (total + 1).saturating_sub(u64::from(a.min(b).get())))
        }
    };
    let (mut chosen, mut position) = (NumSet::new(), 0u64);
    for &(low, high) in seqs.ranges() {
        let count = u64::from(high - low) + 1;
        let (from, to) = (first.max(position), last.min(position + count));
        if from < to {
            chosen.insert_range(low + (from - position) as u32, low + (to - 1 - position) as u32);
        }
        position += count;
    }
    chosen
}

/// A FETCH that is under way.
pub(crate) struct FetchRun {
    account: Arc<Account>,
    reader: Reader,
    items: Vec<Item>,
    /// Whether quoted strings may hold UTF-8.
    utf8: bool,
    /// What unasked-for flags are told with.
    line: FlagsLine,
    flags: FlagsText,
    seqs: NumSet,
    cursor: Cursor,
    /// Some entries; the cursor is behind them. They stay where they are while they are answered: an entry is large, and moving each
    /// one twice cost a quarter of a FETCH of flags.
    batch: Vec<Entry>,
    /// Which of them is answered now, or is the next.
    at: usize,
    current: Option<Current>,
    /// The view as it was at the start, when `\Seen` is to be set.
    before: Option<View>,
    newly_seen: UidSet,
    /// `\Seen` of the batch on its way to the disk: nothing of the batch is answered before.
    setting_seen: Option<Pending<Stored>>,
    /// The first damage that was met.
    damage: Option<Stop>,
}

impl Running for FetchRun {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        let waker = Arc::clone(&session.waker);
        let selected = session.selected()?;
        while !out.is_full() || self.is_in_small_response(out) {
            if self.current.is_none() {
                if self.at == self.batch.len() {
                    self.refill(&selected.view)?;
                }
                if !self.is_seen_set(&waker)? {
                    return Ok(Progress::WaitForSync);
                }
                if !self.begin_next(out) {
                    return self.finish(selected).map(Progress::Done);
                }
            }
            self.go_on(&selected.view, out)?;
        }
        // What is in the buffer now will have left when we are called again.
        if let Some(current) = &mut self.current {
            current.begins_at = None;
        }
        Ok(Progress::More)
    }
}

/// The message whose response is being sent.
struct Current {
    /// The next item.
    item: usize,
    /// Whether an item stands in the response already, so that a space goes before the next.
    any_written: bool,
    /// Octets of an announced literal that are still to be sent.
    stream: Option<Stream>,
    /// Where the response begins in the output; `None` once some of it may have left and it cannot be taken back.
    begins_at: Option<usize>,
}

/// Octets of a literal that was announced.
enum Stream {
    Raw(EmailId, Range<u64>),
    Decoded(Box<Decoded>),
}

impl FetchRun {
    /// Whether a response has begun that is still small: it is finished at once, so that it can still be taken back whatever the
    /// output holds.
    fn is_in_small_response(&self, out: &Output) -> bool {
        let Some(Current { stream: None, begins_at: Some(at), .. }) = self.current else { return false };
        (out.pending().len().saturating_sub(at) as u64) < WHOLE_BYTES_MAX
    }

    /// The next message; false when there is none.
    fn begin_next(&mut self, out: &mut Output) -> bool {
        let Some(entry) = self.batch.get(self.at) else { return false };
        let begins_at = Some(out.pending().len());
        line::begin(out.bytes_mut(), entry.seq);
        self.current = Some(Current { item: 0, any_written: false, stream: None, begins_at });
        true
    }

    /// The current message is done with.
    fn end_current(&mut self) {
        self.current = None;
        self.at += 1;
    }

    /// Takes the next entries from the view, and sets `\Seen` on them if it is to be set.
    fn refill(&mut self, view: &View) -> Result<(), Stop> {
        self.batch.clear();
        self.at = 0;
        while let Some(room) = BATCH.checked_sub(self.batch.len()).filter(|room| *room > 0) {
            let Some((first, last)) = self.cursor.next_in(&self.seqs, room as u32) else { break };
            self.batch.extend(view.rows(first..=last));
        }
        if self.before.is_some() { self.set_seen(view) } else { Ok(()) }
    }

    fn set_seen(&mut self, view: &View) -> Result<(), Stop> {
        let unseen = self.batch.iter().filter(|entry| !entry.flags.has(SystemFlag::Seen));
        let uids: UidSet = unseen.map(|entry| entry.uid).collect();
        if uids.is_empty() {
            return Ok(());
        }
        let request = StoreFlags {
            mode: StoreMode::Add,
            flags: FlagNames { system: vec![SystemFlag::Seen], keywords: Vec::new() },
            unchanged_since: None,
        };
        let mailbox = view.mailbox();
        self.setting_seen = Some(self.account.begin(move |edit| edit.store_flags(mailbox, &uids, &request))?);
        Ok(())
    }

    /// Whether `\Seen` of the batch is durable; the waker is called otherwise, when it is worth asking again.
    fn is_seen_set(&mut self, waker: &Waker) -> Result<bool, Stop> {
        let Some(pending) = &mut self.setting_seen else { return Ok(true) };
        let Some(settled) = pending.poll(waker) else { return Ok(false) };
        self.setting_seen = None;
        let stored = settled?;
        if let Some(modseq) = stored.modseq {
            for &(first, last) in stored.changed.ranges() {
                self.newly_seen.insert_range(first, last);
            }
            // The view has not moved; what the client is told is what was stored.
            for entry in self.batch.iter_mut().filter(|entry| stored.changed.contains_uid(entry.uid)) {
                entry.flags = entry.flags.with(Flags::system(SystemFlag::Seen));
                entry.modseq = entry.modseq.max(modseq);
            }
        }
        Ok(true)
    }

    /// One piece of a literal, one item, or the end of the current response.
    fn go_on(&mut self, view: &View, out: &mut Output) -> Result<(), Stop> {
        let (Some(current), Some(entry)) = (&mut self.current, self.batch.get(self.at)) else { return Ok(()) };
        if let Some(stream) = &mut current.stream {
            let sent = match stream {
                Stream::Raw(id, range) => send_piece(&mut self.reader, *id, range, out),
                Stream::Decoded(decoded) => decoded.send_piece(&mut self.reader, out),
            };
            // The octets of a literal are announced and cannot be had: no answer can be given any more.
            if sent.map_err(Stop::Broken)? {
                current.stream = None;
            }
            return Ok(());
        }
        let Some(item) = self.items.get(current.item) else {
            if self.newly_seen.contains_uid(entry.uid) {
                let (entry, any_written) = (*entry, current.any_written);
                self.tell_seen(view, &entry, any_written, out);
            }
            out.push(b")\r\n");
            self.end_current();
            return Ok(());
        };
        let item_begins_at = out.pending().len();
        if current.any_written {
            out.push(b" ");
        }
        current.item += 1;
        let written = match item {
            Item::Flags => {
                self.flags.write(view, entry, self.line.recent_from, out.bytes_mut());
                Ok(None)
            }
            _ => item::write(item, entry, &mut self.reader, self.utf8, out),
        };
        match written {
            Ok(None) => current.any_written = true,
            Ok(stream) => {
                current.stream = stream;
                current.any_written = true;
            }
            Err(stop) => {
                // The whole response is left out, or just the item when some of the response has left already.
                out.truncate_pending(current.begins_at.unwrap_or(item_begins_at));
                if current.begins_at.is_some() {
                    // It was not told that it is \Seen now; what follows the command tells it.
                    let uid = entry.uid.get();
                    self.newly_seen = self.newly_seen.difference(&NumSet::range(uid, uid));
                    self.end_current();
                }
                self.damage.get_or_insert(stop);
            }
        }
        Ok(())
    }

    /// What a change of `\Seen` brings into the response, as far as the client has not asked for it anyway (RFC 9051 §6.4.5; with
    /// UID and MODSEQ by RFC 7162 §3.1 and §3.2.4).
    fn tell_seen(&mut self, view: &View, entry: &Entry, any_written: bool, out: &mut Output) {
        let mut any_written = any_written;
        for item in [Item::Uid, Item::Flags, Item::ModSeq] {
            let wanted = match item {
                Item::Uid => self.line.uid,
                Item::ModSeq => self.line.modseq,
                _ => true,
            };
            if !wanted || self.items.contains(&item) {
                continue;
            }
            if any_written {
                out.push(b" ");
            }
            any_written = true;
            match item {
                Item::Uid => line::uid(out.bytes_mut(), entry.uid),
                Item::ModSeq => line::modseq(out.bytes_mut(), entry.modseq),
                _ => self.flags.write(view, entry, self.line.recent_from, out.bytes_mut()),
            }
        }
    }

    fn finish(&mut self, selected: &mut Selected) -> Result<Done, Stop> {
        if let Some(before) = self.before.take()
            && !self.newly_seen.is_empty()
        {
            // The client knows these flags already.
            let names = FlagNames { system: vec![SystemFlag::Seen], keywords: Vec::new() };
            let uids = std::mem::take(&mut self.newly_seen);
            selected.own.silent = Some(Silent { before, uids, mode: StoreMode::Add, names, modseq_known: true });
        }
        match self.damage.take() {
            Some(stop) => Err(stop),
            None => Ok(Done::ok("Fetched")),
        }
    }
}

/// Sends the next piece of `range`; `true` when that was the last.
fn send_piece(reader: &mut Reader, id: EmailId, range: &mut Range<u64>, out: &mut Output) -> Result<bool, Error> {
    let end = range.end.min(range.start.saturating_add(PIECE_BYTES));
    reader.read(id, range.start..end, out.bytes_mut())?;
    range.start = end;
    Ok(range.is_empty())
}

/// A position in a [`NumSet`].
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    range: usize,
    taken: u32,
}

impl Cursor {
    /// The next numbers that follow one another, at most `count` (one at least).
    fn next_in(&mut self, set: &NumSet, count: u32) -> Option<(u32, u32)> {
        let &(start, end) = set.ranges().get(self.range)?;
        let first = start.checked_add(self.taken)?;
        let last = end.min(first.saturating_add(count.saturating_sub(1)));
        if last == end {
            *self = Cursor { range: self.range + 1, taken: 0 };
        } else {
            self.taken = last - start + 1;
        }
        Some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn partials_count_from_either_end() {
        let mut set = NumSet::range(11, 14);
        set.insert_range(21, 23);
        let n = |n| NonZeroU32::new(n).unwrap();
        let pick = |range| partial(&set, range).to_string();
        assert_eq!(pick(PartialRange::FromFirst(n(1), n(2))), "11:12");
        assert_eq!(pick(PartialRange::FromFirst(n(5), n(3))), "13:14,21");
        assert_eq!(pick(PartialRange::FromFirst(n(8), n(9))), "");
        assert_eq!(pick(PartialRange::FromLast(n(1), n(2))), "22:23");
        assert_eq!(pick(PartialRange::FromLast(n(7), n(100))), "11");
        assert_eq!(pick(PartialRange::FromLast(n(8), n(100))), "");
    }

    #[test]
    fn the_cursor_visits_every_number() {
        let mut set = NumSet::range(2, 4);
        set.insert(9);
        set.insert_range(u32::MAX - 1, u32::MAX);
        let mut cursor = Cursor::default();
        let visited: Vec<u32> = std::iter::from_fn(|| cursor.next_in(&set, 2)).flat_map(|(a, b)| a..=b).collect();
        assert_eq!(visited, [2, 3, 4, 9, u32::MAX - 1, u32::MAX]);
    }
}
