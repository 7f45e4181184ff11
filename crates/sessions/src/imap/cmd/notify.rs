//! NOTIFY (RFC 5465 §3.1): which events the client wants to hear of from now on. They are told by `notify.rs`.

use imap_proto::command::{EventGroup, MailboxFilter, Notify, NotifyEvent, SearchSource};

use crate::Output;
use crate::imap::notify::{Events, Group, Notices, SelectedEvents, Watch};
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::Session;
use crate::imap::wanted::Wanted;

/// RFC 5465 §3.1: the names of all events that are supported; messages have no annotations.
const BADEVENT: &str = "BADEVENT (MessageNew MessageExpunge FlagChange MailboxName SubscriptionChange MailboxMetadataChange \
     ServerMetadataChange)";

pub(crate) fn run(session: &mut Session, command: Notify, out: &mut Output) -> Started {
    let account = session.account()?;
    let (status, groups, text) = match command {
        Notify::None => (false, Vec::new(), "You will hear of nothing"),
        Notify::Set { status, groups } => (status, groups, "You will hear of it"),
    };
    let mut selected = None;
    let mut others = Vec::new();
    // Both orders of the groups must say the same: first whether there is anything wrong with any of them.
    for group in &groups {
        check(group)?;
    }
    for group in groups {
        match wanted(session, &group.filter)? {
            Some(wanted) => others.extend(other_events(&group.events)?.map(|events| Group { wanted, events })),
            None if selected.is_some() => {
                return Err(Done::bad("The selected mailbox is specified twice").into());
            }
            None => selected = Some(selected_events(group)?),
        }
    }
    let selected = selected.flatten();
    let asks_for_modseq =
        selected.as_ref().is_some_and(|events| events.items.contains(&imap_proto::command::FetchAtt::ModSeq));
    if asks_for_modseq {
        // RFC 7162 §3.1: as FETCH does.
        session.enable_condstore(out);
    }
    let watch = Watch::new(session, &account, selected, others)?;
    let open = session.selected.as_ref().map(|selected| selected.mailbox);
    let notices = if status { watch.status(open) } else { Notices::default() };
    session.notify = Some(Box::new(watch));
    Ok(Reply::Running(Box::new(Telling { notices, text })))
}

/// What is BAD whatever else there is (RFC 5465 §5), and what is not there.
fn check(group: &EventGroup) -> Result<(), Stop> {
    let has = |wanted: &dyn Fn(&NotifyEvent) -> bool| group.events.iter().any(wanted);
    let is_unsupported = |event: &NotifyEvent| matches!(event, NotifyEvent::AnnotationChange | NotifyEvent::Other(_));
    if has(&is_unsupported) {
        return Err(Done::no("There is no such event here").with_code(BADEVENT).into());
    }
    let (new, expunge) = (
        has(&|event| matches!(event, NotifyEvent::MessageNew(_))),
        has(&|event| *event == NotifyEvent::MessageExpunge),
    );
    if new != expunge {
        return Err(Done::bad("MessageNew and MessageExpunge go together").into());
    }
    if has(&|event| *event == NotifyEvent::FlagChange) && !new {
        return Err(Done::bad("FlagChange needs MessageNew and MessageExpunge").into());
    }
    Ok(())
}

/// `None` for the selected mailbox.
fn wanted(session: &Session, filter: &MailboxFilter) -> Result<Option<Wanted>, Stop> {
    match filter {
        MailboxFilter::SelectedDelayed => Ok(None),
        MailboxFilter::Source(source) => Ok(Wanted::new(&known_names(session, source), session.name_encoding())?),
    }
}

/// RFC 5465 §3.1: what cannot be the name of a mailbox refers to none, and is ignored.
fn known_names(session: &Session, source: &SearchSource) -> SearchSource {
    let mut source = source.clone();
    if let SearchSource::Subtree(names) | SearchSource::SubtreeOne(names) | SearchSource::Mailboxes(names) = &mut source
    {
        names.retain(|name| name.decode(session.name_encoding()).is_ok());
    }
    source
}

fn selected_events(group: EventGroup) -> Result<Option<SelectedEvents>, Stop> {
    let mut events =
        SelectedEvents { delayed: group.filter == MailboxFilter::SelectedDelayed, flags: false, items: Vec::new() };
    let is_none = group.events.is_empty();
    for event in group.events {
        match event {
            NotifyEvent::MessageNew(items) => events.items = items,
            NotifyEvent::MessageExpunge => {}
            NotifyEvent::FlagChange => events.flags = true,
            // RFC 5465 §6.1
            _ => return Err(Done::bad("Of the selected mailbox only messages can be watched").into()),
        }
    }
    Ok((!is_none).then_some(events))
}

/// `None` for NONE, which is the same as not naming the mailboxes.
fn other_events(events: &[NotifyEvent]) -> Result<Option<Events>, Stop> {
    let mut wanted = Events::default();
    for event in events {
        match event {
            NotifyEvent::MessageNew(items) if items.is_empty() => wanted.messages = true,
            // RFC 5465 §8 message-event
            NotifyEvent::MessageNew(_) => {
                return Err(Done::bad("Items are fetched of messages in the selected mailbox only").into());
            }
            NotifyEvent::FlagChange => wanted.flags = true,
            NotifyEvent::MailboxName => wanted.names = true,
            NotifyEvent::SubscriptionChange => wanted.subscriptions = true,
            NotifyEvent::MailboxMetadataChange => wanted.entries = true,
            NotifyEvent::ServerMetadataChange => wanted.server_entries = true,
            _ => {}
        }
    }
    Ok((wanted != Events::default()).then_some(wanted))
}

/// The STATUS responses that were asked for.
struct Telling {
    notices: Notices,
    text: &'static str,
}

impl Running for Telling {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        Ok(match self.notices.pull(session, out) {
            true => Progress::Done(Done::ok(self.text)),
            false => Progress::More,
        })
    }
}
