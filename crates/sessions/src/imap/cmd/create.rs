//! CREATE (RFC 9051 §6.3.4, RFC 6154 §3, RFC 8474 §4.1).

use std::sync::Arc;

use imap_proto::MailboxArg;
use imap_proto::command::UseAttribute;
use model::SpecialUse;
use store::Edit;

use crate::imap::cmd::list;
use crate::imap::reply::{Done, Started, Stop, commit};
use crate::imap::state::Session;

pub(crate) fn run(session: &Session, mailbox: &MailboxArg, special_use: &[UseAttribute]) -> Started {
    let account = session.account()?;
    let name = mailbox.decode_for_create(session.name_encoding())?;
    let special_use = special_use.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    let (made, sent) = (Arc::clone(&account), mailbox.clone());
    let wanted = name.clone();
    let change = move |edit: &mut Edit<'_>| edit.create_mailbox(&wanted, &special_use);
    Ok(commit(account, change, move |session, id, out| {
        session.note_name(&name);
        list::renamed(session, &made, &name, &sent, out)?;
        Ok(Done::ok("Created").with_code(format!("MAILBOXID ({id})")))
    })?)
}

/// RFC 6154 §3: an attribute that the server cannot give is answered with USEATTR, and no mailbox is made.
fn known(attribute: &UseAttribute) -> Result<SpecialUse, Stop> {
    match attribute {
        // \All and \Flagged are for mailboxes that show the messages of others (RFC 6154 §2); these here hold their own.
        UseAttribute::Known(special_use @ (SpecialUse::All | SpecialUse::Flagged)) => {
            Err(Done::no(format!("No mailbox can be made {}", special_use.as_str())).with_code("USEATTR").into())
        }
        UseAttribute::Known(special_use) => Ok(*special_use),
        UseAttribute::Unknown(_) => Err(Done::no("That special use is not known").with_code("USEATTR").into()),
    }
}
