//! LSUB (RFC 3501 §6.3.9): the subscribed names, for clients of IMAP4rev1.

use imap_proto::{ListPattern, MailboxArg};
use model::{HIERARCHY_DELIMITER, MailboxName};

use crate::Output;
use crate::imap::pattern::Pattern;
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::Session;
use crate::imap::write;

pub(crate) fn run(session: &Session, reference: &MailboxArg, pattern: &ListPattern) -> Started {
    let account = session.account()?;
    let encoding = session.name_encoding();
    let pattern = Pattern::new(&reference.decode_text(encoding)?, &pattern.decode(encoding)?)?;
    let subscribed = account.mailboxes().into_iter().filter(|info| info.subscribed).map(|info| info.name);
    let mut lines: Vec<(MailboxName, bool)> = Vec::new();
    for name in subscribed {
        if pattern.matches(name.as_str()) {
            lines.push((name, true));
            continue;
        }
        // RFC 3501 §6.3.9: with %, a name whose child is subscribed is returned as \Noselect when the child is not.
        let mut parent = name.parent();
        while let Some(name) = parent {
            parent = name.parent();
            if pattern.matches(name.as_str()) {
                lines.push((name, false));
            }
        }
    }
    // One line a name; the subscribed one before the one that is only a parent.
    lines.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    lines.dedup_by(|later, earlier| later.0 == earlier.0);
    Ok(Reply::Running(Box::new(Subscriptions { lines: lines.into_iter() })))
}

struct Subscriptions {
    lines: std::vec::IntoIter<(MailboxName, bool)>,
}

impl Running for Subscriptions {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        while !out.is_full() {
            let Some((name, subscribed)) = self.lines.next() else {
                return Ok(Progress::Done(Done::ok("Those are the subscriptions")));
            };
            let attributes = if subscribed { "" } else { "\\Noselect" };
            out.push_fmt(format_args!("* LSUB ({attributes}) \"{HIERARCHY_DELIMITER}\" "));
            write::mailbox(out.bytes_mut(), &name, session.name_encoding());
            out.push_str("\r\n");
        }
        Ok(Progress::More)
    }
}
