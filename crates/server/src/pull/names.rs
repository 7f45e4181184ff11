//! Which mailboxes there are on the other server, and how they are called here.

use std::collections::BTreeSet;

use imap_proto::response::{ListAttribute, Namespace, Response};
use imap_proto::{MailboxArg, NameEncoding};
use model::{Error, HIERARCHY_DELIMITER, MailboxName, Result, SpecialUse, limits};

use super::client::{Client, Failure};

/// A mailbox there.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name as sent.
    pub there: MailboxArg,
    /// Its name here.
    pub here: MailboxName,
    /// What it is for (RFC 6154).
    pub special_use: Vec<SpecialUse>,
    /// Whether it is subscribed.
    pub subscribed: bool,
}

/// Asks for the mailboxes; what can have no place here is told to `note`.
pub fn list(client: &mut Client, above: Option<&MailboxName>, note: &mut dyn FnMut(String)) -> Result<Vec<Job>> {
    let mut spaces: [Vec<Namespace>; 3] = Default::default();
    if client.has("NAMESPACE") {
        client.run(b"NAMESPACE", &mut |response| {
            if let Response::Namespace(found) = response {
                spaces = found;
            }
            Ok(())
        })?;
    }
    let [personal, others, shared] = &spaces;
    let mut subscribed = BTreeSet::new();
    let lsub = client.run(b"LSUB \"\" \"*\"", &mut |response| {
        if let Response::Lsub(item) | Response::List(item) = response
            && subscribed.len() < limits::MAILBOXES_MAX
        {
            subscribed.insert(item.mailbox.0);
        }
        Ok(())
    });
    match lsub {
        // RFC 9051 has no LSUB: then everything there is counts as subscribed.
        Err(Failure::Refused(_)) => subscribed.clear(),
        other => drop(other?),
    }
    let is_known = !subscribed.is_empty();
    let mut items = Vec::new();
    client.run(b"LIST \"\" \"*\"", &mut |response| {
        if let Response::List(item) = response {
            if items.len() >= limits::MAILBOXES_MAX {
                return Err(Error::over_limit(
                    "mailboxes_max",
                    "the other server lists more mailboxes than an account can have",
                ));
            }
            items.push(item);
        }
        Ok(())
    })?;
    let mut jobs: Vec<Job> = Vec::new();
    for item in items {
        let is_empty =
            |attribute: &ListAttribute| matches!(attribute, ListAttribute::NoSelect | ListAttribute::NonExistent);
        if item.attributes.iter().any(is_empty) {
            continue;
        }
        let shown = format!("{:?}", item.mailbox);
        let begins = |space: &&Namespace| !space.prefix.is_empty() && item.mailbox.0.starts_with(&space.prefix);
        if others.iter().chain(shared).any(|space| begins(&space)) && !personal.iter().any(|space| begins(&space)) {
            note(format!("{shown}: not this user's own mailbox: left out"));
            continue;
        }
        let prefix = personal.first().map_or(&[][..], |space| &space.prefix);
        let here = match name_here(&item.mailbox, item.delimiter, prefix, above) {
            Ok(here) => here,
            Err(error) => {
                note(format!("{shown}: no mailbox here can have this name: {error}"));
                continue;
            }
        };
        if let Some(other) = jobs.iter().find(|job| job.here == here) {
            note(format!("{shown}: goes to {here}, as {:?} does", other.there));
        }
        let use_of = |attribute: &ListAttribute| match attribute {
            ListAttribute::SpecialUse(special_use) => Some(*special_use),
            _ => None,
        };
        jobs.push(Job {
            here,
            special_use: item.attributes.iter().filter_map(use_of).collect(),
            subscribed: !is_known || subscribed.contains(&item.mailbox.0),
            there: item.mailbox,
        });
    }
    Ok(jobs)
}

/// The name without the prefix of the user's namespace (RFC 2342 §5), its levels divided as they are here.
fn name_here(
    there: &MailboxArg,
    delimiter: Option<u8>,
    prefix: &[u8],
    above: Option<&MailboxName>,
) -> Result<MailboxName> {
    let is_inbox = there.0.eq_ignore_ascii_case(b"INBOX");
    let own = match there.0.strip_prefix(prefix) {
        Some(rest) if !rest.is_empty() && !is_inbox => MailboxArg(rest.to_vec()),
        _ => there.clone(),
    };
    let text = own.decode_text(NameEncoding::Utf7).or_else(|_| {
        // What is in no known encoding is shown as it is.
        String::from_utf8(own.0.clone()).map_err(|error| Error::new(model::ErrorKind::Invalid, error.to_string()))
    })?;
    let levels: Vec<&str> = match delimiter {
        Some(delimiter) => text.split(char::from(delimiter)).collect(),
        None => vec![&text],
    };
    let clean = |level: &&str| {
        let is_bad = |c: char| c.is_control() || c == HIERARCHY_DELIMITER || matches!(c, '\u{2028}' | '\u{2029}');
        let clean: String = level.chars().map(|c| if is_bad(c) { '_' } else { c }).collect();
        if clean.is_empty() { "_".to_owned() } else { clean }
    };
    let mut levels: Vec<String> = levels.iter().map(clean).collect();
    if let Some(above) = above {
        levels.insert(0, above.as_str().to_owned());
    }
    MailboxName::new(&levels.join(&HIERARCHY_DELIMITER.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let here = |there: &str, delimiter: u8, prefix: &str| {
            name_here(&MailboxArg(there.as_bytes().to_vec()), Some(delimiter), prefix.as_bytes(), None)
                .map(|name| name.as_str().to_owned())
                .ok()
        };
        for (there, delimiter, prefix, expected) in [
            ("inbox", b'/', "", "INBOX"),
            ("INBOX", b'.', "INBOX.", "INBOX"),
            ("INBOX.Sent.2003", b'.', "INBOX.", "Sent/2003"),
            ("a/b.c", b'.', "", "a_b/c"),
            ("Entw&APw-rfe", b'/', "", "Entwürfe"),
            ("a//b", b'/', "", "a/_/b"),
        ] {
            assert_eq!(here(there, delimiter, prefix).as_deref(), Some(expected), "{there}");
        }
        let above = MailboxName::new("old").ok();
        let name = name_here(&MailboxArg(b"INBOX".to_vec()), Some(b'/'), b"", above.as_ref());
        assert_eq!(name.ok().map(|name| name.as_str().to_owned()), Some("old/INBOX".to_owned()));
    }
}
