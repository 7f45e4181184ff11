//! NOTIFY (RFC 5465).
//!
//! Which events may stand together is the session's to say: some of it is BAD, some is NO (RFC 5465 §3.1, §5).

use super::esearch::{SearchSource, filter_mailboxes};
use super::fetch::{optional_fetch_atts, write_optional_fetch_atts};
use super::write::CommandWriter;
use super::{CommandBody, FetchAtt};
use crate::error::Parse;
use crate::limits;
use crate::scan::Scan;

/// NOTIFY (RFC 5465 §8 notify).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notify {
    /// `NONE`: of nothing.
    None,
    /// `SET`: of this, and of nothing else.
    Set {
        /// `STATUS`: the state of the mailboxes is wanted at once.
        status: bool,
        /// What of which mailboxes; one or more.
        groups: Vec<EventGroup>,
    },
}

/// Events of some mailboxes (RFC 5465 §8 event-group).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventGroup {
    /// Which mailboxes.
    pub filter: MailboxFilter,
    /// Which events; empty for `NONE`.
    pub events: Vec<NotifyEvent>,
}

/// Mailboxes to be watched (RFC 5465 §6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailboxFilter {
    /// `selected-delayed`: the selected mailbox; expunges are told only when a command allows it.
    SelectedDelayed,
    /// The others, which ESEARCH has as well (RFC 7377 §2.2).
    Source(SearchSource),
}

/// An event (RFC 5465 §5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyEvent {
    /// `MessageNew`, with what is wanted of each new message.
    MessageNew(Vec<FetchAtt>),
    /// `MessageExpunge`
    MessageExpunge,
    /// `FlagChange`
    FlagChange,
    /// `AnnotationChange`
    AnnotationChange,
    /// `MailboxName`
    MailboxName,
    /// `SubscriptionChange`
    SubscriptionChange,
    /// `MailboxMetadataChange`
    MailboxMetadataChange,
    /// `ServerMetadataChange`
    ServerMetadataChange,
    /// Another, as sent: answered with NO and the code BADEVENT.
    Other(String),
}

// RFC 5465 §8 notify = "NOTIFY" SP (notify-set / notify-none)
pub(super) fn notify(scan: &mut Scan) -> Parse<CommandBody> {
    scan.sp()?;
    if scan.eat_word("NONE") {
        return Ok(CommandBody::Notify(Notify::None));
    }
    // notify-set = "SET" [SP "STATUS"] SP event-groups
    if !scan.eat_word("SET") {
        return scan.error("SET or NONE");
    }
    scan.sp()?;
    let status = scan.eat_word("STATUS");
    if status {
        scan.sp()?;
    }
    let groups = scan.items(limits::EVENT_GROUPS_MAX, "event_groups_max", event_group)?;
    Ok(CommandBody::Notify(Notify::Set { status, groups }))
}

// event-group = "(" filter-mailboxes SP events ")"
fn event_group(scan: &mut Scan) -> Parse<EventGroup> {
    scan.parenthesised(|scan| {
        let filter = match scan.eat_word("SELECTED-DELAYED") {
            true => MailboxFilter::SelectedDelayed,
            false => MailboxFilter::Source(filter_mailboxes(scan)?),
        };
        scan.sp()?;
        // events = ( "(" event *(SP event) ")" ) / "NONE"; the RFC's own examples have a lone event without parentheses.
        let events = match scan.peek() {
            Some(b'(') => scan.list1(limits::EVENTS_MAX, "events_max", event)?,
            _ if scan.eat_word("NONE") => Vec::new(),
            _ => scan.items(limits::EVENTS_MAX, "events_max", event)?,
        };
        Ok(EventGroup { filter, events })
    })
}

// event = message-event / mailbox-event / user-event / event-ext
fn event(scan: &mut Scan) -> Parse<NotifyEvent> {
    let name = scan.atom("an event")?;
    if name.eq_ignore_ascii_case("MessageNew") {
        // "MessageNew" [SP "(" fetch-att *(SP fetch-att) ")"]
        return Ok(NotifyEvent::MessageNew(optional_fetch_atts(scan)?));
    }
    let known = NotifyEvent::PLAIN.into_iter().find(|event| event.as_str().eq_ignore_ascii_case(name));
    Ok(known.unwrap_or_else(|| NotifyEvent::Other(name.to_owned())))
}

impl NotifyEvent {
    const PLAIN: [NotifyEvent; 7] = [
        NotifyEvent::MessageExpunge,
        NotifyEvent::FlagChange,
        NotifyEvent::AnnotationChange,
        NotifyEvent::MailboxName,
        NotifyEvent::SubscriptionChange,
        NotifyEvent::MailboxMetadataChange,
        NotifyEvent::ServerMetadataChange,
    ];

    /// The event's name.
    pub fn as_str(&self) -> &str {
        match self {
            NotifyEvent::MessageNew(_) => "MessageNew",
            NotifyEvent::MessageExpunge => "MessageExpunge",
            NotifyEvent::FlagChange => "FlagChange",
            NotifyEvent::AnnotationChange => "AnnotationChange",
            NotifyEvent::MailboxName => "MailboxName",
            NotifyEvent::SubscriptionChange => "SubscriptionChange",
            NotifyEvent::MailboxMetadataChange => "MailboxMetadataChange",
            NotifyEvent::ServerMetadataChange => "ServerMetadataChange",
            NotifyEvent::Other(name) => name,
        }
    }
}

impl Notify {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        let Notify::Set { status, groups } = self else { return writer.raw("NOTIFY NONE") };
        writer.raw(if *status { "NOTIFY SET STATUS" } else { "NOTIFY SET" });
        for group in groups {
            writer.raw(" (");
            match &group.filter {
                MailboxFilter::SelectedDelayed => writer.raw("selected-delayed"),
                MailboxFilter::Source(source) => source.write(writer),
            }
            writer.raw(" ");
            if group.events.is_empty() {
                writer.raw("NONE");
            } else {
                writer.list(&group.events, |writer, event| event.write(writer));
            }
            writer.raw(")");
        }
    }
}

impl NotifyEvent {
    fn write(&self, writer: &mut CommandWriter) {
        writer.raw(self.as_str());
        if let NotifyEvent::MessageNew(items) = self {
            write_optional_fetch_atts(items, writer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MailboxArg;
    use crate::command::command;

    fn read(line: &str) -> Option<Notify> {
        match command(line.as_bytes()).ok()?.body {
            CommandBody::Notify(notify) => Some(notify),
            _ => None,
        }
    }

    #[test]
    fn examples_of_the_rfc() {
        assert_eq!(read("a notify none"), Some(Notify::None));
        let subtree = MailboxFilter::Source(SearchSource::Subtree(vec![MailboxArg(b"Lists".to_vec())]));
        let Some(Notify::Set { status, groups }) = read(
            "b notify set status (selected MessageNew (uid body.peek[header.fields (from to subject)]) MessageExpunge) \
             (subtree Lists MessageNew)",
        ) else {
            panic!("RFC 5465 §3.1 has it");
        };
        assert!(status && groups.len() == 2);
        assert_eq!(groups.last(), Some(&EventGroup { filter: subtree, events: vec![NotifyEvent::MessageNew(vec![])] }));
        let first = &groups.first().expect("two").events;
        assert!(
            matches!(first.as_slice(), [NotifyEvent::MessageNew(items), NotifyEvent::MessageExpunge] if items.len() == 2)
        );
        let personal =
            read("a notify set (mailboxes INBOX (Messagenew messageExpunge)) (personal (SubscriptionChange x-y))");
        let Some(Notify::Set { status: false, groups }) = personal else { panic!("RFC 5465 §6 has it") };
        let events = vec![NotifyEvent::SubscriptionChange, NotifyEvent::Other("x-y".to_owned())];
        let personal = EventGroup { filter: MailboxFilter::Source(SearchSource::Personal), events };
        assert_eq!(groups.last(), Some(&personal));
        let none = EventGroup { filter: MailboxFilter::SelectedDelayed, events: Vec::new() };
        let set = Notify::Set { status: false, groups: vec![none] };
        assert_eq!(read("a NOTIFY SET (SELECTED-DELAYED NONE)"), Some(set));
        for bad in [
            "a notify",
            "a notify set",
            "a notify set status",
            "a notify set (selected)",
            "a notify set (selected ())",
            "a notify set (sent (MessageNew))",
            "a notify set (selected (MessageNew ()))",
            "a notify set selected none",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
