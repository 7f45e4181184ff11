//! APPEND and REPLACE (RFC 9051 §6.3.12, RFC 3502, RFC 4315 §3, RFC 7889, RFC 8508, RFC 6855 §4).
//!
//! Invariants: of a message, never more is held here than the piece that has just come; nothing is stored before the whole command
//! has been read, and then all of its messages or none (RFC 3502 §6.3.11).

use std::sync::Arc;

use imap_proto::SeqNumber;
use imap_proto::command::{AppendKind, AppendMessage, AppendStart, Tag};
use model::{DateTime, Error, MailboxId, Uid, UidSet};
use store::{Account, Appended, Edit, FlagNames, MessageWriter, NewMessage};

use crate::Output;
use crate::imap::cmd::store::flag_names;
use crate::imap::reply::{Done, Started, Stop, commit};
use crate::imap::state::Session;
use crate::imap::status::try_create;
use crate::imap::updates::Why;

/// An APPEND or a REPLACE that is being read.
pub(crate) struct Append {
    /// The command's tag.
    pub tag: Tag,
    account: Arc<Account>,
    to: MailboxId,
    /// The entry that REPLACE puts the message in the place of, and its mailbox.
    replaced: Option<(MailboxId, Uid)>,
    messages: Vec<NewMessage>,
    current: Option<Incoming>,
}

/// A message that is coming in.
struct Incoming {
    writer: MessageWriter,
    flags: FlagNames,
    date: Option<DateTime>,
}

/// The command's name.
pub(crate) fn name(kind: AppendKind) -> &'static str {
    match kind {
        AppendKind::Append => "APPEND",
        AppendKind::Replace { .. } => "REPLACE",
    }
}

impl Append {
    /// The command's name.
    pub fn name(&self) -> &'static str {
        if self.replaced.is_some() { "REPLACE" } else { "APPEND" }
    }

    /// A REPLACE expunges.
    pub fn why(&self) -> Why {
        if self.replaced.is_some() { Why::OwnChange } else { Why::Passing }
    }

    /// Checks everything that can be checked before the first message comes, so that a client that waits need not send it.
    pub fn start(session: &mut Session, start: AppendStart, out: &mut Output) -> Result<Self, Stop> {
        let account = session.account()?;
        let replaced = match start.kind {
            AppendKind::Append => None,
            AppendKind::Replace { uid, target } => Some(target_of_replace(session, uid, target)?),
        };
        let to = account.mailbox(&start.mailbox.decode(session.name_encoding())?).map_err(try_create)?;
        let mut append = Append { tag: start.tag, account, to, replaced, messages: Vec::new(), current: None };
        append.message(session, &start.message, out)?;
        Ok(append)
    }

    /// The next message begins.
    pub fn message(&mut self, session: &Session, message: &AppendMessage, out: &mut Output) -> Result<(), Stop> {
        let size = message.literal.size;
        if size == 0 {
            // RFC 3502 §6.3.11: an empty literal takes the whole command back.
            return Err(Done::no("An empty message: nothing was appended").into());
        }
        if size > session.context.store.options().message_bytes_max {
            return Err(Error::over_limit("message_bytes_max", "announced by APPEND").into());
        }
        if self.messages.len() >= session.context.settings.limits.append_messages_max as usize {
            return Err(Error::over_limit("append_messages_max", "too many messages in one APPEND").into());
        }
        if self.replaced.is_none() {
            // What counts is the check when it is stored; this one spares a client that waits the sending.
            let octets = self.messages.iter().map(|message| message.message.size()).sum::<u64>();
            self.account.has_room_for(self.messages.len() as u64 + 1, octets.saturating_add(size))?;
        }
        if message.literal.utf8 && !session.utf8() {
            // RFC 6855 §4: UTF8 (...) is for those who have enabled it.
            return Err(Done::bad("ENABLE UTF8=ACCEPT first").into());
        }
        let writer = self.account.message_writer()?;
        self.current = Some(Incoming { writer, flags: flag_names(&message.flags), date: message.date });
        if message.literal.synchronising {
            out.push_str("+ Send it\r\n");
        }
        Ok(())
    }

    /// Octets of the message.
    pub fn chunk(&mut self, octets: &[u8]) -> Result<(), Stop> {
        match &mut self.current {
            Some(incoming) => Ok(incoming.writer.write(octets)?),
            None => Ok(()),
        }
    }

    /// The message is complete.
    pub fn message_end(&mut self) -> Result<(), Stop> {
        if let Some(Incoming { writer, flags, date }) = self.current.take() {
            self.messages.push(NewMessage { message: writer.finish()?, flags, internal_date: date });
        }
        Ok(())
    }

    /// The command is complete.
    pub fn end(self) -> Started {
        let Append { account, to, replaced, mut messages, .. } = self;
        account.before_adding(to);
        let Some((from, uid)) = replaced else {
            let change = move |edit: &mut Edit<'_>| edit.append(to, &messages);
            let reply = commit(account, change, move |session, appended, _| {
                session.note_added(to, appended.entries.iter().map(|(uid, _)| *uid));
                Ok(Done::ok("Appended").with_code(appenduid(&appended)))
            });
            return reply.map_err(try_create);
        };
        let Some(message) = messages.pop() else { return Err(Done::bad("REPLACE wants a message").into()) };
        let change = move |edit: &mut Edit<'_>| edit.replace(from, uid, to, &message);
        let reply = commit(account, change, move |session, appended, out| {
            session.note_added(to, appended.entries.iter().map(|(uid, _)| *uid));
            // RFC 8508 §3.4: APPENDUID in an untagged OK, before the expunge.
            out.push_fmt(format_args!("* OK [{}] Appended\r\n", appenduid(&appended)));
            let done = Done::ok("Replaced");
            Ok(if session.enabled.qresync { done.with_highest_modseq() } else { done })
        });
        reply.map_err(try_create)
    }
}

/// The entry that is to be replaced (RFC 8508 §3.3).
fn target_of_replace(session: &mut Session, uid: bool, target: SeqNumber) -> Result<(MailboxId, Uid), Stop> {
    let selected = session.selected_for_writing()?;
    let view = &selected.view;
    let found = if uid {
        let number = target.resolve(view.last_uid().map_or(0, Uid::get));
        Uid::new(number).and_then(|uid| view.entry_of(uid)).ok_or_else(|| Done::no("There is no message of that UID"))
    } else {
        let number = target.resolve(view.exists());
        let entry = model::SeqNum::new(number).and_then(|seq| view.entry(seq));
        entry.ok_or_else(|| Done::bad("There is no message of that number"))
    };
    Ok((selected.mailbox, found?.uid))
}

/// `APPENDUID uidvalidity uids` (RFC 4315 §3); the UIDs rise in the order of the messages.
fn appenduid(appended: &Appended) -> String {
    let uids: UidSet = appended.entries.iter().map(|(uid, _)| *uid).collect();
    format!("APPENDUID {} {uids}", appended.uid_validity)
}
