//! ESEARCH: one search of several mailboxes (RFC 7377), each answered by an ESEARCH response of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use imap_proto::command::{MultiSearch, SearchKey, SearchReturn, SearchSource};
use model::{Error, ErrorKind, MailboxId, UidSet};
use store::{Account, MailboxInfo, View};

use super::search::answer::{Answer, Form, Found};
use super::search::question::{asks_for_modseq, fixed, known, question};
use super::search::{self, Patience, no_charset_after_utf8, updates_have_modseq, warning, write_warning};
use crate::Output;
use crate::imap::context::Context;
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::Session;
use crate::imap::wanted::Wanted;
use crate::imap::write;

pub(crate) fn run(session: &mut Session, tag: &str, command: MultiSearch, out: &mut Output) -> Started {
    let account = session.account()?;
    let MultiSearch { sources, search } = command;
    no_charset_after_utf8(session, search.charset.as_deref())?;
    let returns = search.returns.unwrap_or(search::ALL);
    let only_selected = sources.iter().all(|source| *source == SearchSource::Selected);
    if sources.is_empty() || sources.contains(&SearchSource::Selected) || returns.update.is_some() {
        // RFC 7377 §2.2: BAD when no mailbox is selected.
        session.selected()?;
    }
    if returns.save && !only_selected {
        return Err(Done::bad("SAVE is for the selected mailbox alone").into());
    }
    if returns.update.is_some() && session.selected()?.contexts.iter().any(|context| context.tag == tag) {
        // RFC 5267 §4.3
        return Err(Done::bad("That tag is in use for updates").into());
    }
    if asks_for_modseq(&search.key) || updates_have_modseq(&returns) {
        session.enable_condstore(out);
    }
    known(search.charset.as_deref())?;
    let mailboxes = mailboxes(session, &account, &sources)?;
    if returns.save {
        session.selected()?.saved = UidSet::new();
    }
    Ok(Reply::Running(Box::new(MultiSearchRun {
        account,
        tag: tag.to_owned(),
        mailboxes,
        key: search.key,
        charset: search.charset,
        update_refused: returns.update.is_some(),
        returns,
        current: None,
        damage: None,
        patience: Patience::new(session.now.monotonic),
    })))
}

/// Mailboxes that one ESEARCH may search. Over it, the limit `search_mailboxes_max` is met.
const SEARCH_MAILBOXES_MAX: usize = 10_000;

/// The mailboxes of the sources, each once, in the order of their names. Those that are not there are passed over, as those are that
/// the user may not see (RFC 7377 §2.2).
fn mailboxes(session: &mut Session, account: &Account, sources: &[SearchSource]) -> Result<VecDeque<MailboxId>, Stop> {
    let encoding = session.name_encoding();
    let has_selected = sources.is_empty() || sources.contains(&SearchSource::Selected);
    let selected = if has_selected { Some(session.selected()?.mailbox) } else { None };
    let wanted: Result<Vec<_>, Error> = sources.iter().map(|source| Wanted::new(source, encoding)).collect();
    let wanted: Vec<Wanted> = wanted?.into_iter().flatten().collect();
    let all = account.mailboxes();
    let is_wanted = |info: &&MailboxInfo| {
        info.id.is_some() && info.id == selected || wanted.iter().any(|wanted| wanted.has(&info.name, info.subscribed))
    };
    let found: VecDeque<MailboxId> = all.iter().filter(is_wanted).filter_map(|info| info.id).collect();
    if found.len() > SEARCH_MAILBOXES_MAX {
        return Err(Error::over_limit("search_mailboxes_max", "too many mailboxes for one search").into());
    }
    Ok(found)
}

/// An ESEARCH that is under way.
struct MultiSearchRun {
    account: Arc<Account>,
    tag: String,
    /// Still to be searched.
    mailboxes: VecDeque<MailboxId>,
    key: SearchKey,
    charset: Option<String>,
    returns: SearchReturn,
    /// What is being done of the mailbox that was taken last.
    current: Option<Current>,
    /// UPDATE was asked for, and the selected mailbox, the only one that it is about (RFC 7377 §2.2), was not searched.
    update_refused: bool,
    damage: Option<Done>,
    patience: Patience,
}

struct Current {
    state: State,
    view: View,
    /// `(TAG "a" MAILBOX b UIDVALIDITY 1`
    correlator: Vec<u8>,
    is_selected: bool,
    context: Option<Box<Context>>,
}

enum State {
    Searching(Box<store::search::Search>),
    Answering(Answer),
}

impl Running for MultiSearchRun {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        let Some(current) = &mut self.current else {
            let Some(mailbox) = self.mailboxes.pop_front() else {
                if self.update_refused {
                    Context::refuse(&self.tag, "Updates are of the selected mailbox", out);
                }
                write_warning(self.damage.take(), out);
                return Ok(Progress::Done(Done::ok("Searched")));
            };
            self.current = self.open(session, mailbox)?;
            return Ok(Progress::More);
        };
        match &mut current.state {
            State::Searching(search) => {
                let Some((seqs, highest)) = search.step()? else { return Ok(self.patience.more(session, out)) };
                if self.damage.is_none() {
                    self.damage = search.damage().map(|error| warning(session, "ESEARCH", error));
                }
                let wants_modseq = asks_for_modseq(&self.key);
                let found = Found { seqs, order: None, highest: highest.filter(|_| wants_modseq) };
                current.state = State::Answering(begin_answer(current, session, &self.returns, &found, out)?);
            }
            State::Answering(answer) => {
                if answer.pull(out) {
                    if let Some(context) = current.context.take() {
                        self.update_refused = false;
                        context.begin(session, out);
                    }
                    self.current = None;
                }
            }
        }
        Ok(Progress::More)
    }
}

/// Writes the beginning of a mailbox's ESEARCH response. "An ESEARCH response MUST NOT be returned for mailboxes that contain no matching
/// messages" (RFC 7377 §2.1).
fn begin_answer(
    current: &mut Current,
    session: &mut Session,
    returns: &SearchReturn,
    found: &Found,
    out: &mut Output,
) -> Result<Answer, Stop> {
    if returns.save && current.is_selected {
        session.selected()?.saved = current.view.uids_of(&found.saved(returns));
    }
    if let Some(context) = &mut current.context {
        context.set_results(&current.view, found);
    }
    if found.seqs.is_empty() || *returns == (SearchReturn { save: true, ..SearchReturn::default() }) {
        return Ok(Answer::nothing());
    }
    let correlator = [current.correlator.as_slice(), b")"].concat();
    Ok(Answer::begin(found, &current.view, (true, returns), &Form::Extended(&correlator), out))
}

impl MultiSearchRun {
    /// Begins with a mailbox; `None` for one that was deleted meanwhile.
    fn open(&self, session: &mut Session, mailbox: MailboxId) -> Result<Option<Current>, Stop> {
        let now = session.now.unix_seconds;
        let Some(name) = self.account.mailbox_name(mailbox) else { return Ok(None) };
        // The selected mailbox is searched as the client knows it.
        let selected = session.selected.as_ref().filter(|selected| selected.mailbox == mailbox);
        let is_selected = selected.is_some();
        let view = match selected {
            Some(selected) => selected.view.clone(),
            None => match self.account.view(mailbox, false) {
                Ok(view) => view,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            },
        };
        // `$` is about the selected mailbox only.
        let nothing = UidSet::new();
        let saved = selected.map_or(&nothing, |selected| &selected.saved);
        let mut correlator = Vec::new();
        search::write_tag(&mut correlator, &self.tag);
        correlator.extend_from_slice(b" MAILBOX ");
        write::mailbox(&mut correlator, &name, session.name_encoding());
        correlator.extend_from_slice(format!(" UIDVALIDITY {}", view.uid_validity()).as_bytes());
        let question = question(&self.key, self.charset.as_deref(), &view, saved)?;
        let context = self.returns.update.as_ref().filter(|_| is_selected).map(|items| {
            let key = fixed(&self.key, &view, saved);
            let context = Context::new(&self.tag, true, key, self.charset.clone(), &[], items);
            Box::new(context.correlated_by(&correlator))
        });
        let search = store::search::Search::new(view.clone(), self.account.reader(), question, now);
        Ok(Some(Current { state: State::Searching(Box::new(search)), view, correlator, is_selected, context }))
    }
}
