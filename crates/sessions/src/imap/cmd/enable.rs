//! ENABLE (RFC 5161 §3.1, RFC 9051 §6.3.1).
//!
//! RFC 5161 §3.1 forbids clients to send it with a mailbox selected and leaves it to servers whether to mind. It does no harm here.

use imap_proto::command::EnableCapability;

use crate::Output;
use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

pub(crate) fn run(session: &mut Session, wanted: &[EnableCapability], out: &mut Output) -> Started {
    session.account()?;
    let before = session.enabled;
    let mut enabled = before;
    for capability in wanted {
        match capability {
            EnableCapability::Imap4Rev2 => enabled.imap4rev2 = true,
            EnableCapability::CondStore => enabled.condstore = true,
            // RFC 7162 §3.2.3: QRESYNC brings CONDSTORE with it.
            EnableCapability::QResync => (enabled.qresync, enabled.condstore) = (true, true),
            EnableCapability::Utf8Accept => enabled.utf8_accept = true,
            // RFC 5161 §3.1: what is not known is ignored.
            EnableCapability::Other(_) => {}
        }
    }
    // RFC 5161 §3.2: what is on now because of this command.
    let names = [
        (enabled.imap4rev2 && !before.imap4rev2, " IMAP4rev2"),
        (enabled.condstore && !before.condstore, " CONDSTORE"),
        (enabled.qresync && !before.qresync, " QRESYNC"),
        (enabled.utf8_accept && !before.utf8_accept, " UTF8=ACCEPT"),
    ];
    out.push_str("* ENABLED");
    for (_, name) in names.iter().filter(|(on, _)| *on) {
        out.push_str(name);
    }
    out.push_str("\r\n");
    if enabled.condstore {
        session.enable_condstore(out);
    }
    session.enabled = enabled;
    Ok(Done::ok("Enabled").into())
}
