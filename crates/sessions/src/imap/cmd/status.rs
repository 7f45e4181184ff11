//! STATUS (RFC 9051 §6.3.11; RFC 8438, RFC 7162 §3.1.7, RFC 7889 §3, RFC 8474 §4.3, RFC 9208 §4.1.4).

use imap_proto::MailboxArg;
use imap_proto::command::StatusAtt;
use model::{MailboxName, Uid};
use store::Status;

use crate::Output;
use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;
use crate::imap::write;

pub(crate) fn run(session: &mut Session, mailbox: &MailboxArg, items: &[StatusAtt], out: &mut Output) -> Started {
    let account = session.account()?;
    let name = mailbox.decode(session.name_encoding())?;
    let mailbox = account.mailbox(&name)?;
    account.refresh(mailbox)?;
    let status = account.status(mailbox)?;
    if items.contains(&StatusAtt::HighestModSeq) {
        // RFC 7162 §3.1: a CONDSTORE enabling command.
        session.enable_condstore(out);
    }
    line(session, &name, &status, items, out);
    Ok(Done::ok("That is its status").into())
}

/// The untagged STATUS response (RFC 9051 §7.3.4); LIST has use for it too (RFC 5819).
pub(crate) fn line(session: &Session, name: &MailboxName, status: &Status, items: &[StatusAtt], out: &mut Output) {
    out.push_str("* STATUS ");
    write::mailbox(out.bytes_mut(), name, session.name_encoding());
    let mut separator = " (";
    for item in items {
        out.push_str(separator);
        separator = " ";
        match item {
            StatusAtt::Messages => out.push_fmt(format_args!("MESSAGES {}", status.messages)),
            StatusAtt::Recent => out.push_fmt(format_args!("RECENT {}", status.recent)),
            // The grammar knows no mailbox without a next UID; the last one is as near as it gets.
            StatusAtt::UidNext => out.push_fmt(format_args!("UIDNEXT {}", status.uid_next.unwrap_or(Uid::LAST))),
            StatusAtt::UidValidity => out.push_fmt(format_args!("UIDVALIDITY {}", status.uid_validity)),
            StatusAtt::Unseen => out.push_fmt(format_args!("UNSEEN {}", status.unseen)),
            StatusAtt::Deleted => out.push_fmt(format_args!("DELETED {}", status.deleted)),
            StatusAtt::DeletedStorage => out.push_fmt(format_args!("DELETED-STORAGE {}", status.deleted_size)),
            StatusAtt::Size => out.push_fmt(format_args!("SIZE {}", status.size)),
            StatusAtt::HighestModSeq => out.push_fmt(format_args!("HIGHESTMODSEQ {}", status.highest_modseq)),
            StatusAtt::AppendLimit => {
                out.push_fmt(format_args!("APPENDLIMIT {}", session.context.store.options().message_bytes_max));
            }
            StatusAtt::MailboxId => out.push_fmt(format_args!("MAILBOXID ({})", status.id)),
        }
    }
    out.push_str(")\r\n");
}
