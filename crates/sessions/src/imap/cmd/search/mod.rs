//! SEARCH and UID SEARCH (RFC 9051 §6.4.4), and what SORT and ESEARCH have in common with them: the question put to the store, and its
//! answer in pieces.

pub(crate) mod answer;
pub(crate) mod question;

use std::time::Duration;

use imap_proto::command::{FetchAtt, Search, SearchKey, SearchReturn};
use model::{Error, NumSet};
use store::order::{Sort, SortCriterion};

use self::answer::{Answer, Form, Found};
use self::question::{asks_for_modseq, fixed, known, question};
use crate::Output;
use crate::imap::context::Context;
use crate::imap::reply::{Condition, Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::Session;
use crate::imap::{status, write};

pub(crate) fn run(session: &mut Session, tag: &str, command: &Search, out: &mut Output) -> Started {
    let charset = command.charset.clone();
    no_charset_after_utf8(session, charset.as_deref())?;
    let plain = (command.returns.is_none() && !session.enabled.imap4rev2).then_some("SEARCH");
    let returns = command.returns.clone().unwrap_or(ALL);
    let uid = command.uid;
    let criteria = Vec::new();
    start(session, Request { tag, uid, plain, returns, criteria, charset, key: &command.key }, out)
}

/// What is returned when nothing else was asked for.
pub(crate) const ALL: SearchReturn = SearchReturn {
    all: true,
    min: false,
    max: false,
    count: false,
    save: false,
    partial: None,
    context: false,
    update: None,
};

/// Whether the MODSEQ of new messages will be fetched (RFC 5465 §7).
pub(crate) fn updates_have_modseq(returns: &SearchReturn) -> bool {
    returns.update.as_ref().is_some_and(|items| items.contains(&FetchAtt::ModSeq))
}

/// RFC 6855 §3: everything is UTF-8 once the client has said so. IMAP4rev2 says otherwise.
pub(crate) fn no_charset_after_utf8(session: &Session, charset: Option<&str>) -> Result<(), Stop> {
    if charset.is_some() && session.enabled.utf8_accept && !session.enabled.imap4rev2 {
        return Err(Done::bad("No CHARSET after ENABLE UTF8=ACCEPT").into());
    }
    Ok(())
}

/// A SEARCH or SORT of the selected mailbox.
pub(crate) struct Request<'a> {
    pub tag: &'a str,
    pub uid: bool,
    /// Answered by this response, not by ESEARCH.
    pub plain: Option<&'static str>,
    pub returns: SearchReturn,
    /// Of a SORT; empty for a SEARCH.
    pub criteria: Vec<SortCriterion>,
    pub charset: Option<String>,
    pub key: &'a SearchKey,
}

/// Starts a SEARCH or a SORT.
pub(crate) fn start(session: &mut Session, request: Request<'_>, out: &mut Output) -> Started {
    let account = session.account()?;
    let Request { tag, uid, plain, returns, criteria, charset, key } = request;
    if returns.update.is_some() && session.selected()?.contexts.iter().any(|context| context.tag == tag) {
        // RFC 5267 §4.3
        return Err(Done::bad("That tag is in use for updates").into());
    }
    let wants_modseq = asks_for_modseq(key);
    if wants_modseq || updates_have_modseq(&returns) {
        session.selected()?;
        // RFC 7162 §3.1.5, §3.1: a CONDSTORE enabling command.
        session.enable_condstore(out);
    }
    let now = session.now;
    let selected = session.selected()?;
    // RFC 9051 §6.4.4: NO to a charset that is not supported, even when no string needs it.
    let charset_known = known(charset.as_deref());
    let question = charset_known.and_then(|()| question(key, charset.as_deref(), &selected.view, &selected.saved));
    let context = returns.update.as_ref().filter(|_| question.is_ok()).map(|items| {
        Box::new(Context::new(tag, uid, fixed(key, &selected.view, &selected.saved), charset, &criteria, items))
    });
    if returns.save && !matches!(&question, Err(Stop::Done(done)) if done.condition == Condition::Bad) {
        // RFC 5182 §2.1: BAD changes nothing, NO leaves an empty result; a SEARCH that succeeds overwrites it below.
        selected.saved = NumSet::new();
    }
    let search = store::search::Search::new(selected.view.clone(), account.reader(), question?, now.unix_seconds);
    let mut correlator = Vec::new();
    write_tag(&mut correlator, tag);
    correlator.push(b')');
    Ok(Reply::Running(Box::new(SearchRun {
        state: State::Searching(Box::new(search)),
        correlator,
        uid,
        plain,
        returns,
        criteria,
        wants_modseq,
        context,
        damage: None,
        patience: Patience::new(now.monotonic),
    })))
}

/// `(TAG "a"`
pub(crate) fn write_tag(out: &mut Vec<u8>, tag: &str) {
    out.extend_from_slice(b"(TAG ");
    write::string(out, tag.as_bytes(), false);
}

/// A SEARCH or SORT that is under way.
struct SearchRun {
    state: State,
    correlator: Vec<u8>,
    uid: bool,
    plain: Option<&'static str>,
    returns: SearchReturn,
    criteria: Vec<SortCriterion>,
    wants_modseq: bool,
    /// What is kept up to date afterwards (RFC 5267 §4.3).
    context: Option<Box<Context>>,
    /// What is said behind the results of a search that met damaged messages.
    damage: Option<Done>,
    patience: Patience,
}

enum State {
    Searching(Box<store::search::Search>),
    Sorting(Box<Sort>, Found),
    Answering(Answer),
}

impl Running for SearchRun {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        loop {
            match &mut self.state {
                State::Searching(search) => {
                    let Some((seqs, highest)) = search.step()? else { return Ok(self.patience.more(session, out)) };
                    self.damage = search.damage().map(|error| warning(session, "SEARCH", error));
                    let found = Found { seqs, order: None, highest: highest.filter(|_| self.wants_modseq) };
                    if self.criteria.is_empty() {
                        self.state = State::Answering(self.begin_answer(session, &found, out)?);
                        continue;
                    }
                    let reader = session.account()?.reader();
                    let view = session.selected()?.view.clone();
                    self.state = State::Sorting(Box::new(Sort::new(view, reader, &self.criteria, &found.seqs)), found);
                }
                State::Sorting(sort, found) => {
                    let Some(order) = sort.step()? else { return Ok(self.patience.more(session, out)) };
                    if self.damage.is_none() {
                        self.damage = sort.damage().map(|error| warning(session, "SORT", error));
                    }
                    let found = Found { order: Some(order), seqs: std::mem::take(&mut found.seqs), ..*found };
                    self.state = State::Answering(self.begin_answer(session, &found, out)?);
                }
                State::Answering(answer) => {
                    if !answer.pull(out) {
                        return Ok(Progress::More);
                    }
                    if let Some(context) = self.context.take() {
                        context.begin(session, out);
                    }
                    write_warning(self.damage.take(), out);
                    return Ok(Progress::Done(Done::ok(if self.criteria.is_empty() { "Searched" } else { "Sorted" })));
                }
            }
        }
    }
}

impl SearchRun {
    /// Writes all of the answer but its long list, and saves what `$` will stand for.
    fn begin_answer(&mut self, session: &mut Session, found: &Found, out: &mut Output) -> Result<Answer, Stop> {
        let selected = session.selected()?;
        if self.returns.save {
            selected.saved = selected.view.uids_of(&found.saved(&self.returns));
        }
        if let Some(context) = &mut self.context {
            context.set_results(&selected.view, found);
        }
        if self.returns == (SearchReturn { save: true, ..SearchReturn::default() }) {
            // RFC 5182 §2.1: with SAVE alone nothing is returned.
            return Ok(Answer::nothing());
        }
        let form = match self.plain {
            Some(name) => Form::Plain(name),
            None => Form::Extended(&self.correlator),
        };
        Ok(Answer::begin(found, &selected.view, (self.uid, &self.returns), &form, out))
    }
}

/// What is said of damage that left something out of an answer; the administrator hears where it is.
pub(crate) fn warning(session: &Session, doing: &'static str, error: &Error) -> Done {
    session.context.observer.error(&session.connection, doing, error);
    status::answer(error)
}

/// RFC 9051 §7.1.2: an untagged NO is a warning; the command itself was completed, without the messages that cannot be read.
pub(crate) fn write_warning(warning: Option<Done>, out: &mut Output) {
    if let Some(Done { code, text, .. }) = warning {
        out.push_fmt(format_args!("* NO [{}] {text}\r\n", code.unwrap_or_default()));
    }
}

/// After so long without a word the client is told that the search goes on: it waits the more patiently, and a connection that is dead
/// shows itself.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Reminds of a client that waits.
pub(crate) struct Patience {
    /// When the client last heard something, in [`crate::Now::monotonic`].
    said_at: Duration,
}

impl Patience {
    pub fn new(now: Duration) -> Self {
        Patience { said_at: now }
    }

    /// There is more to do; says so when it is time.
    pub fn more(&mut self, session: &Session, out: &mut Output) -> Progress {
        let now = session.now.monotonic;
        if now.saturating_sub(self.said_at) >= SILENCE_MAX {
            self.said_at = now;
            // RFC 9051 §7.1.1: an untagged OK is information, at any time.
            out.push_str("* OK Still searching\r\n");
        }
        Progress::More
    }
}
