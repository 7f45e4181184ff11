//! GETMETADATA and SETMETADATA (RFC 5464). Unsolicited METADATA responses come with NOTIFY only.

use std::collections::BTreeSet;

use imap_proto::MailboxArg;
use imap_proto::command::{GetMetadata, MetadataDepth, SetMetadata, search_criteria};
use model::{MailboxId, MailboxName, Result};
use store::{Account, METADATA_VALUE_BYTES_MAX, Metadata};

use super::filters;
use crate::Output;
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop, commit};
use crate::imap::state::Session;
use crate::imap::{status, write};

/// A mailbox with entries; none: the server's (RFC 5464 §4.1 "an empty string is used").
fn place(session: &Session, account: &Account, mailbox: &MailboxArg) -> Result<Option<(MailboxName, MailboxId)>> {
    if mailbox.0.is_empty() {
        return Ok(None);
    }
    let name = mailbox.decode(session.name_encoding())?;
    let id = account.mailbox(&name)?;
    Ok(Some((name, id)))
}

/// GETMETADATA
pub(crate) fn get(session: &Session, command: &GetMetadata) -> Started {
    let account = session.account()?;
    let place = place(session, &account, &command.mailbox)?;
    let metadata = account.metadata(place.as_ref().map(|(_, id)| *id))?;
    let depth = match command.depth {
        MetadataDepth::Zero => 0,
        MetadataDepth::One => 1,
        MetadataDepth::Infinity => usize::MAX,
    };
    let mut names = BTreeSet::new();
    for entry in &command.entries {
        // What was asked for by its name is answered, with NIL when it is not there; of what lies around it only what is.
        if depth == 0 || metadata.value(entry.as_str()).is_some() {
            names.insert(entry.as_str().to_owned());
        }
        names.extend(metadata.below(entry.as_str(), depth).map(str::to_owned));
    }
    let mailbox = place.map(|(name, _)| name);
    let names = names.into_iter();
    Ok(Reply::Running(Box::new(Getting { mailbox, metadata, names, max_size: command.max_size, longest: 0 })))
}

/// A GETMETADATA under way: a response for each entry, so that none is larger than a value.
struct Getting {
    mailbox: Option<MailboxName>,
    metadata: Metadata,
    names: std::collections::btree_set::IntoIter<String>,
    max_size: Option<u32>,
    /// The longest value that was left out, octets.
    longest: usize,
}

impl Running for Getting {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        while !out.is_full() {
            let Some(name) = self.names.next() else {
                let done = Done::ok("That is what is noted");
                return Ok(Progress::Done(match self.longest {
                    0 => done,
                    // RFC 5464 §4.2.1
                    longest => done.with_code(format!("METADATA LONGENTRIES {longest}")),
                }));
            };
            let value = self.metadata.value(&name);
            let len = value.map_or(0, <[u8]>::len);
            if self.max_size.is_some_and(|max| len > max as usize) {
                self.longest = self.longest.max(len);
                continue;
            }
            out.push_str("* METADATA ");
            match &self.mailbox {
                Some(mailbox) => write::mailbox(out.bytes_mut(), mailbox, session.name_encoding()),
                None => out.push_str("\"\""),
            }
            out.push_str(" (");
            write::astring(out.bytes_mut(), name.as_bytes());
            out.push_str(" ");
            match value {
                None => out.push_str("NIL"),
                // RFC 5464 §5 value = nstring / literal8
                Some(value) if value.contains(&0) => {
                    out.push_fmt(format_args!("~{{{len}}}\r\n"));
                    out.push(value);
                }
                Some(value) => write::string(out.bytes_mut(), value, false),
            }
            out.push_str(")\r\n");
        }
        Ok(Progress::More)
    }
}

/// SETMETADATA
pub(crate) fn set(session: &Session, command: SetMetadata) -> Started {
    let account = session.account()?;
    let place = place(session, &account, &command.mailbox)?;
    if place.is_none() {
        for (entry, value) in &command.values {
            check_filter(entry.as_str(), value.as_deref())?;
        }
    }
    let id = place.map(|(_, id)| id);
    let names: Vec<String> = command.values.iter().map(|(entry, _)| entry.as_str().to_owned()).collect();
    let change = move |edit: &mut store::Edit<'_>| {
        let values: Vec<(&str, Option<&[u8]>)> =
            command.values.iter().map(|(entry, value)| (entry.as_str(), value.as_deref())).collect();
        edit.set_metadata(id, &values)
    };
    let answer = move |session: &mut Session, (), _: &mut Output| {
        session.note_entries(id, names);
        Ok(Done::ok("Noted"))
    };
    commit(account, change, answer).map_err(|error| match error.limit() {
        // RFC 5464 §4.3
        Some("metadata_value_bytes_max") => {
            let code = format!("METADATA MAXSIZE {METADATA_VALUE_BYTES_MAX}");
            Done::no("The value is too long (limit metadata_value_bytes_max)").with_code(code).into()
        }
        Some("metadata_entries_max" | "metadata_bytes_max") => {
            status::answer(&error).with_code("METADATA TOOMANY").into()
        }
        _ => Stop::Error(error),
    })
}

/// RFC 5466 §3.2: what is kept as a filter should be "a full and correct search criterion".
fn check_filter(entry: &str, value: Option<&[u8]>) -> Result<(), Stop> {
    let (Some(name), Some(value)) = (filters::name_of(entry), value) else { return Ok(()) };
    if !filters::is_name(name) {
        return Err(Done::no("A filter cannot have that name").with_code("CANNOT").into());
    }
    if std::str::from_utf8(value).is_err() || search_criteria(value).is_err() {
        return Err(Done::no("The value is no search criterion").with_code("CANNOT").into());
    }
    Ok(())
}
