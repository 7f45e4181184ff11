//! SEARCH and UID SEARCH (RFC 9051 §6.4.4): the question put to the store, and its answer as SEARCH or ESEARCH, in pieces.

use std::time::Duration;

use imap_proto::PartialRange;
use imap_proto::command::{Search, SearchKey, SearchReturn};
use imap_proto::encode;
use model::{EmailId, Flags, ModSeq, NumSet, SeqNum, SystemFlag, Uid};
use store::View;
use store::search::{DateTest, Query};

use crate::Output;
use crate::imap::reply::{Condition, Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::{Selected, Session};
use crate::imap::status;

pub(crate) fn run(session: &mut Session, tag: &str, command: &Search, out: &mut Output) -> Started {
    let account = session.account()?;
    session.selected()?;
    if command.charset.is_some() && session.enabled.utf8_accept && !session.enabled.imap4rev2 {
        // RFC 6855 §3: everything is UTF-8 now.
        return Err(Done::bad("No CHARSET after ENABLE UTF8=ACCEPT").into());
    }
    let wants_modseq = asks_for_modseq(&command.key);
    if wants_modseq {
        // RFC 7162 §3.1.5: a CONDSTORE enabling command.
        session.enable_condstore(out);
    }
    let plain = command.returns.is_none() && !session.enabled.imap4rev2;
    let now = session.now;
    let selected = session.selected()?;
    let returns = command.returns.unwrap_or(SearchReturn { all: true, ..SearchReturn::default() });
    let charset = command.charset.as_deref();
    // RFC 9051 §6.4.4: NO to a charset that is not supported, even when no string needs it.
    let question = known(charset).and_then(|()| question(&command.key, charset, selected));
    if returns.save && !matches!(&question, Err(Stop::Done(done)) if done.condition == Condition::Bad) {
        // RFC 5182 §2.1: BAD changes nothing, NO leaves an empty result; a SEARCH that succeeds overwrites it below.
        selected.saved = NumSet::new();
    }
    let search = store::search::Search::new(selected.view.clone(), account.reader(), question?, now.unix_seconds);
    Ok(Reply::Running(Box::new(SearchRun {
        state: State::Searching(Box::new(search)),
        tag: tag.to_owned(),
        uid: command.uid,
        plain,
        returns,
        wants_modseq,
        damage: None,
        said_at: now.monotonic,
    })))
}

/// Whether the answer has MODSEQ in it (RFC 7162 §3.1.5).
fn asks_for_modseq(key: &SearchKey) -> bool {
    match key {
        SearchKey::ModSeq { .. } => true,
        SearchKey::And(keys) => keys.iter().any(asks_for_modseq),
        SearchKey::Or(a, b) => asks_for_modseq(a) || asks_for_modseq(b),
        SearchKey::Not(key) => asks_for_modseq(key),
        _ => false,
    }
}

/// The key as a query of the store. Its depth is bounded by the grammar's limit on nesting.
fn question(key: &SearchKey, charset: Option<&str>, selected: &Selected) -> Result<Query, Stop> {
    let view = &selected.view;
    let text = |bytes: &[u8]| decode(bytes, charset);
    let header = |name: &str, bytes: &[u8]| Ok::<_, Stop>(Query::Header(name.to_owned(), text(bytes)?));
    let nothing = || Query::Not(Box::new(Query::All));
    let not = |query| Query::Not(Box::new(query));
    let flag = |flag: &SystemFlag| Query::HasFlag(Flags::system(*flag));
    // A keyword that the mailbox has never seen is set nowhere.
    let keyword = |keyword| match view.keywords().find(keyword) {
        Some(index) => Query::HasFlag(Flags::keyword(index)),
        None => nothing(),
    };
    Ok(match key {
        SearchKey::All => Query::All,
        SearchKey::And(keys) => {
            Query::And(keys.iter().map(|key| question(key, charset, selected)).collect::<Result<_, _>>()?)
        }
        SearchKey::Or(a, b) => {
            Query::Or(Box::new(question(a, charset, selected)?), Box::new(question(b, charset, selected)?))
        }
        SearchKey::Not(key) => not(question(key, charset, selected)?),
        SearchKey::Flag(system) => flag(system),
        SearchKey::Unflag(system) => not(flag(system)),
        SearchKey::Keyword(name) => keyword(name),
        SearchKey::Unkeyword(name) => not(keyword(name)),
        SearchKey::New => Query::And(vec![Query::Recent, not(flag(&SystemFlag::Seen))]),
        SearchKey::Old => not(Query::Recent),
        SearchKey::Recent => Query::Recent,
        SearchKey::Bcc(value) => header("Bcc", value)?,
        SearchKey::Cc(value) => header("Cc", value)?,
        SearchKey::From(value) => header("From", value)?,
        SearchKey::Subject(value) => header("Subject", value)?,
        SearchKey::To(value) => header("To", value)?,
        SearchKey::Header { name, value } => header(&String::from_utf8_lossy(name), value)?,
        SearchKey::Body(value) => Query::Body(text(value)?),
        SearchKey::Text(value) => Query::Text(text(value)?),
        SearchKey::Before(day) => Query::Internal(DateTest::Before(*day)),
        SearchKey::On(day) => Query::Internal(DateTest::On(*day)),
        SearchKey::Since(day) => Query::Internal(DateTest::Since(*day)),
        SearchKey::SentBefore(day) => Query::Sent(DateTest::Before(*day)),
        SearchKey::SentOn(day) => Query::Sent(DateTest::On(*day)),
        SearchKey::SentSince(day) => Query::Sent(DateTest::Since(*day)),
        SearchKey::SavedBefore(day) => Query::Saved(DateTest::Before(*day)),
        SearchKey::SavedOn(day) => Query::Saved(DateTest::On(*day)),
        SearchKey::SavedSince(day) => Query::Saved(DateTest::Since(*day)),
        // RFC 8514 §4.3: every mailbox here keeps save dates.
        SearchKey::SaveDateSupported => Query::All,
        SearchKey::Older(seconds) => Query::Older(*seconds),
        SearchKey::Younger(seconds) => Query::Younger(*seconds),
        SearchKey::Larger(octets) => Query::Larger(*octets),
        SearchKey::Smaller(octets) => Query::Smaller(*octets),
        // Numbers beyond the end match nothing: the rule that they are BAD names COPY, FETCH and STORE (RFC 9051 §9 seq-number).
        SearchKey::Sequence(set) => {
            let named = set.resolve(view.exists());
            Query::Seqs(if set.saved { named.union(&view.seqs_of(&selected.saved)) } else { named })
        }
        SearchKey::Uid(set) => {
            let named = set.resolve(view.last_uid().map_or(0, Uid::get));
            Query::Uids(if set.saved { named.union(&selected.saved) } else { named })
        }
        // RFC 7162 §3.1.5: the entry may be ignored by a server that keeps one modseq a message.
        SearchKey::ModSeq { least, .. } => Query::ModSeq(*least),
        SearchKey::EmailId(id) => EmailId::parse(id).map_or_else(nothing, Query::EmailId),
        // RFC 8474 §5.2: no message has a thread id (THREADID is NIL), so none has this one.
        SearchKey::ThreadId(_) => nothing(),
    })
}

/// Whether strings can be read in this charset.
fn known(charset: Option<&str>) -> Result<(), Stop> {
    match charset {
        Some(name) if !mime::charset_known(name.as_bytes()) => {
            Err(Done::no("Unknown charset").with_code("BADCHARSET (US-ASCII UTF-8)").into())
        }
        _ => Ok(()),
    }
}

/// A search string as text. Without CHARSET it is UTF-8 (RFC 9051 §6.4.4; US-ASCII in RFC 3501, which is a subset).
fn decode(bytes: &[u8], charset: Option<&str>) -> Result<String, Stop> {
    let charset = charset.unwrap_or("UTF-8");
    if charset.eq_ignore_ascii_case("UTF-8") || charset.eq_ignore_ascii_case("US-ASCII") {
        return String::from_utf8(bytes.to_vec())
            .map_err(|_| Done::bad("A search string is not in its charset").into());
    }
    Ok(mime::decode_charset(charset.as_bytes(), bytes).into_owned())
}

/// A SEARCH that is under way.
struct SearchRun {
    state: State,
    tag: String,
    uid: bool,
    /// Answered by SEARCH, not ESEARCH (RFC 3501 §7.2.5).
    plain: bool,
    returns: SearchReturn,
    wants_modseq: bool,
    /// What is said behind the results of a search that met damaged messages.
    damage: Option<Done>,
    /// When the client last heard something, in [`crate::Now::monotonic`].
    said_at: Duration,
}

/// After so long without a word the client is told that the search goes on: it waits the more patiently, and a connection that is dead
/// shows itself.
const SILENCE_MAX: Duration = Duration::from_secs(10);

enum State {
    Searching(Box<store::search::Search>),
    /// Ranges still to be written; the numbers of each one by one for SEARCH.
    Answering {
        rest: Vec<(u32, u32)>,
        any_written: bool,
        tail: Vec<u8>,
    },
}

impl Running for SearchRun {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        if let State::Searching(search) = &mut self.state {
            let Some((seqs, highest)) = search.step()? else {
                let now = session.now.monotonic;
                if now.saturating_sub(self.said_at) >= SILENCE_MAX {
                    self.said_at = now;
                    // RFC 9051 §7.1.1: an untagged OK is information, at any time.
                    out.push_str("* OK Still searching\r\n");
                }
                return Ok(Progress::More);
            };
            self.damage = search.damage().map(|error| {
                session.context.observer.error(&session.connection, "SEARCH", error);
                status::answer(error)
            });
            self.state = self.begin_answer(session.selected()?, &seqs, highest, out);
        }
        let State::Answering { rest, any_written, tail } = &mut self.state else { return Ok(Progress::More) };
        while let Some((first, last)) = rest.pop() {
            if out.is_full() {
                rest.push((first, last));
                return Ok(Progress::More);
            }
            let bytes = out.bytes_mut();
            if self.plain {
                bytes.push(b' ');
                encode::number(bytes, u64::from(first));
                if first < last {
                    rest.push((first + 1, last));
                }
            } else {
                bytes.push(if *any_written { b',' } else { b' ' });
                encode::number(bytes, u64::from(first));
                if first < last {
                    bytes.push(b':');
                    encode::number(bytes, u64::from(last));
                }
            }
            *any_written = true;
        }
        out.push(tail);
        if let Some(Done { code, text, .. }) = self.damage.take() {
            // RFC 9051 §7.1.2: an untagged NO is a warning; the command itself was completed, without the messages that cannot be read.
            out.push_fmt(format_args!("* NO [{}] {text}\r\n", code.unwrap_or_default()));
        }
        Ok(Progress::Done(Done::ok("Searched")))
    }
}

impl SearchRun {
    /// Writes all of the answer but its long list, and saves what `$` will stand for.
    fn begin_answer(&self, selected: &mut Selected, seqs: &NumSet, highest: Option<ModSeq>, out: &mut Output) -> State {
        let view = &selected.view;
        let returns = self.returns;
        let numbers = if self.uid { view.uids_of(seqs) } else { seqs.clone() };
        let page = returns.partial.map(|range| (range, super::fetch::partial(seqs, range)));
        if returns.save {
            selected.saved = view.uids_of(&saved(returns, seqs, page.as_ref().map(|(_, page)| page)));
        }
        let view = &selected.view;
        let highest = if self.wants_modseq { reported_modseq(view, returns, seqs, highest) } else { None };
        if self.plain {
            out.push(b"* SEARCH");
            let tail = highest.map_or_else(|| "\r\n".to_owned(), |modseq| format!(" (MODSEQ {modseq})\r\n"));
            return State::answering(numbers, tail.into_bytes());
        }
        if returns == (SearchReturn { save: true, ..SearchReturn::default() }) {
            // RFC 5182 §2.1: with SAVE alone nothing is returned.
            return State::answering(NumSet::new(), Vec::new());
        }
        let bytes = out.bytes_mut();
        bytes.extend_from_slice(b"* ESEARCH (TAG ");
        crate::imap::write::string(bytes, self.tag.as_bytes(), false);
        bytes.push(b')');
        if self.uid {
            bytes.extend_from_slice(b" UID");
        }
        if let (true, Some(first)) = (returns.min, numbers.first()) {
            out.push_fmt(format_args!(" MIN {first}"));
        }
        if let (true, Some(last)) = (returns.max, numbers.last()) {
            out.push_fmt(format_args!(" MAX {last}"));
        }
        if returns.count {
            out.push_fmt(format_args!(" COUNT {}", numbers.len()));
        }
        if let Some(modseq) = highest {
            out.push_fmt(format_args!(" MODSEQ {modseq}"));
        }
        // RFC 9394 §3.1: PARTIAL and ALL do not stand together.
        if let Some((range, page)) = page {
            let page = if self.uid { view.uids_of(&page) } else { page };
            let range = match range {
                PartialRange::FromFirst(a, b) => format!("{a}:{b}"),
                PartialRange::FromLast(a, b) => format!("-{a}:-{b}"),
            };
            if page.is_empty() {
                out.push_fmt(format_args!(" PARTIAL ({range} NIL)\r\n"));
                return State::answering(NumSet::new(), Vec::new());
            }
            out.push_fmt(format_args!(" PARTIAL ({range}"));
            return State::answering(page, b")\r\n".to_vec());
        }
        if returns.all && !numbers.is_empty() {
            out.push(b" ALL");
            return State::answering(numbers, b"\r\n".to_vec());
        }
        State::answering(NumSet::new(), b"\r\n".to_vec())
    }
}

impl State {
    fn answering(list: NumSet, tail: Vec<u8>) -> Self {
        let mut rest = list.ranges().to_vec();
        rest.reverse();
        State::Answering { rest, any_written: false, tail }
    }
}

/// What SAVE keeps (the tables of RFC 5182 §2.4 and RFC 9394 §3.2).
fn saved(returns: SearchReturn, seqs: &NumSet, page: Option<&NumSet>) -> NumSet {
    let some = returns.min || returns.max || page.is_some();
    if returns.all || returns.count || !some {
        return seqs.clone();
    }
    let min = seqs.first().filter(|_| returns.min);
    let max = seqs.last().filter(|_| returns.max);
    let mut kept = page.cloned().unwrap_or_default();
    kept.extend(min.into_iter().chain(max));
    kept
}

/// The MODSEQ of an answer: the highest of all that match; of those named when only MIN or MAX were asked for (RFC 7162 §3.1.10).
fn reported_modseq(view: &View, returns: SearchReturn, seqs: &NumSet, highest: Option<ModSeq>) -> Option<ModSeq> {
    if returns.all || returns.count || returns.partial.is_some() || !(returns.min || returns.max) {
        return highest;
    }
    let modseq = |seq: Option<u32>| view.entry(SeqNum::new(seq?)?).map(|entry| entry.modseq);
    let min = modseq(seqs.first().filter(|_| returns.min));
    let max = modseq(seqs.last().filter(|_| returns.max));
    min.max(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_depends_on_what_is_returned() {
        let seqs: NumSet = [2, 5, 9].into_iter().collect();
        let returns = SearchReturn { save: true, ..SearchReturn::default() };
        let keeps = |returns| saved(returns, &seqs, None).to_string();
        // The table of RFC 5182 §2.4.
        assert_eq!(keeps(returns), "2,5,9");
        assert_eq!(keeps(SearchReturn { min: true, ..returns }), "2");
        assert_eq!(keeps(SearchReturn { max: true, ..returns }), "9");
        assert_eq!(keeps(SearchReturn { min: true, max: true, ..returns }), "2,9");
        assert_eq!(keeps(SearchReturn { min: true, count: true, ..returns }), "2,5,9");
        assert_eq!(keeps(SearchReturn { max: true, all: true, ..returns }), "2,5,9");
        // The table of RFC 9394 §3.2.
        let page = NumSet::range(5, 5);
        let keeps = |returns| saved(returns, &seqs, Some(&page)).to_string();
        assert_eq!(keeps(returns), "5");
        assert_eq!(keeps(SearchReturn { min: true, max: true, ..returns }), "2,5,9");
        assert_eq!(keeps(SearchReturn { count: true, ..returns }), "2,5,9");
    }

    #[test]
    fn strings_are_read_in_their_charset() {
        assert_eq!(decode("ü".as_bytes(), None).unwrap(), "ü");
        assert_eq!(decode(b"\xfc", Some("iso-8859-1")).unwrap(), "ü");
        assert!(decode(b"\xfc", Some("UTF-8")).is_err());
        assert!(known(None).is_ok() && known(Some("us-ascii")).is_ok() && known(Some("UTF-8")).is_ok());
        assert!(known(Some("x-nonsense")).is_err());
    }
}
