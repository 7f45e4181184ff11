//! SELECT and EXAMINE (RFC 9051 §6.3.2, §6.3.3; RFC 7162 §3.1.8; RFC 8474 §4.2). QRESYNC goes on in `qresync.rs`.

use imap_proto::MailboxArg;
use imap_proto::command::Select;
use model::MailboxName;
use store::{MailboxInfo, Moment};

use crate::Output;
use crate::imap::cmd::{list, qresync};
use crate::imap::reply::{Done, Reply, Started};
use crate::imap::state::{Selected, Session};
use crate::imap::write;

pub(crate) fn run(session: &mut Session, command: &Select, read_only: bool, out: &mut Output) -> Started {
    let account = session.account()?;
    if command.qresync.is_some() && !session.enabled.qresync {
        // RFC 7162 §3.2.5
        return Err(Done::bad("ENABLE QRESYNC first").into());
    }
    // From here on the mailbox that was selected is closed, whatever becomes of this (RFC 9051 §6.3.2), and nothing is expunged in it.
    if session.leave(Moment::Close).is_some() {
        // RFC 9051 §7.1 CLOSED: what comes from now on is about the new mailbox.
        out.push_str("* OK [CLOSED] The mailbox before is closed\r\n");
    }
    let name = command.mailbox.decode(session.name_encoding())?;
    let mailbox = account.mailbox(&name)?;
    account.refresh(mailbox)?;
    let view = account.view(mailbox, !read_only)?;
    if command.condstore {
        session.enable_condstore(out);
    }
    let selected = Selected::new(view, read_only);
    announce(session, &selected, out);
    if session.enabled.imap4rev2 {
        mailbox_line(session, &name, &command.mailbox, &account.mailboxes(), out);
    }
    let code = if read_only { "READ-ONLY" } else { "READ-WRITE" };
    let done = Done::ok("Selected").with_code(code);
    let resync = command.qresync.as_ref().map(|known| qresync::Resync::new(&account, &selected, known, done.clone()));
    session.selected = Some(selected);
    match resync.transpose()?.flatten() {
        Some(resync) => Ok(Reply::Running(Box::new(resync))),
        None => Ok(done.into()),
    }
}

/// The untagged responses that tell all about a mailbox (RFC 9051 §6.3.2, RFC 3501 §6.3.1).
fn announce(session: &Session, selected: &Selected, out: &mut Output) {
    let view = &selected.view;
    write::mailbox_flags(out, view, selected.read_only);
    out.push_fmt(format_args!("* {} EXISTS\r\n", view.exists()));
    if !session.enabled.imap4rev2 {
        out.push_fmt(format_args!("* {} RECENT\r\n", selected.recent_count()));
        if let (_, Some(seq)) = view.unseen() {
            out.push_fmt(format_args!("* OK [UNSEEN {seq}] The first that is not seen\r\n"));
        }
    }
    out.push_fmt(format_args!("* OK [UIDVALIDITY {}] UIDs are valid\r\n", view.uid_validity()));
    if let Some(uid) = view.uid_next() {
        out.push_fmt(format_args!("* OK [UIDNEXT {uid}] The next UID\r\n"));
    }
    // RFC 7162 §3.1.2.1: to everybody, since a client may become CONDSTORE-aware later.
    out.push_fmt(format_args!("* OK [HIGHESTMODSEQ {}] The highest mod-sequence\r\n", view.highest_modseq()));
    out.push_fmt(format_args!("* OK [MAILBOXID ({})] Its identity\r\n", view.mailbox()));
}

/// The LIST response that IMAP4rev2 wants (RFC 9051 §6.3.2), with OLDNAME when the client wrote the name in another way.
fn mailbox_line(session: &Session, name: &MailboxName, sent: &MailboxArg, mailboxes: &[MailboxInfo], out: &mut Output) {
    if let Some(info) = mailboxes.iter().find(|info| info.name == *name) {
        list::line(session, info, list::Extra::old_name(session, name, sent), out);
    }
}
