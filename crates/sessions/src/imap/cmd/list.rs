//! LIST (RFC 9051 §6.3.9; RFC 5258, RFC 5819, RFC 6154 §2, RFC 3348).
//!
//! The attributes for children and special uses are always sent: they cost nothing here, and RFC 5258 §4 and RFC 6154 §2 allow it.

use std::sync::Arc;

use imap_proto::MailboxArg;
use imap_proto::command::{List, ListSelect, StatusAtt};
use model::{ErrorKind, HIERARCHY_DELIMITER, MailboxName, Result};
use store::{Account, MailboxInfo};

use crate::Output;
use crate::imap::cmd::status;
use crate::imap::pattern::Pattern;
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::Session;
use crate::imap::write;

pub(crate) fn run(session: &mut Session, command: List, out: &mut Output) -> Started {
    let account = session.account()?;
    let encoding = session.name_encoding();
    let reference = command.reference.decode_text(encoding)?;
    let patterns = command.patterns.iter().map(|pattern| pattern.decode(encoding)).collect::<Result<Vec<String>>>()?;
    // RFC 9051 §6.3.9: an empty pattern asks for the delimiter and the root of the reference.
    if !command.extended && patterns.iter().all(String::is_empty) {
        out.push_fmt(format_args!("* LIST (\\Noselect) \"{HIERARCHY_DELIMITER}\" \"\"\r\n"));
        return Ok(Done::ok("That is the delimiter").into());
    }
    if command.returns.status.contains(&StatusAtt::HighestModSeq) {
        // RFC 7162 §3.1.7 by way of RFC 5819.
        session.enable_condstore(out);
    }
    let patterns = patterns.iter().map(|pattern| Pattern::new(&reference, pattern)).collect::<Result<_>>()?;
    let mailboxes = account.mailboxes();
    let criteria_below = if command.select.recursive_match {
        selected_below(&mailboxes, &command.select)
    } else {
        vec![false; mailboxes.len()]
    };
    Ok(Reply::Running(Box::new(Listing { account, mailboxes, criteria_below, next: 0, patterns, command })))
}

/// A LIST under way.
struct Listing {
    account: Arc<Account>,
    mailboxes: Vec<MailboxInfo>,
    /// For each mailbox: whether one below it meets the selection options.
    criteria_below: Vec<bool>,
    next: usize,
    patterns: Vec<Pattern>,
    command: List,
}

/// Whether a mailbox is what the selection options ask for; without any, whether it is more than a name.
fn meets(info: &MailboxInfo, select: &ListSelect) -> bool {
    if select.subscribed || select.special_use {
        (!select.subscribed || info.subscribed) && (!select.special_use || !info.special_use.is_empty())
    } else {
        // A name that is only subscribed is nothing to LIST; a parent of others is (RFC 9051 §6.3.9.8 example 11).
        info.id.is_some() || info.has_children
    }
}

/// For each mailbox, whether one below it meets the options. Names are sorted, so that what lies below follows, though not at once
/// (`a`, `a-b`, `a/c`).
fn selected_below(mailboxes: &[MailboxInfo], select: &ListSelect) -> Vec<bool> {
    let mut parents = std::collections::HashSet::new();
    for info in mailboxes.iter().filter(|info| meets(info, select)) {
        let mut parent = info.name.parent();
        while let Some(name) = parent {
            parent = name.parent();
            if !parents.insert(name) {
                break;
            }
        }
    }
    mailboxes.iter().map(|info| parents.contains(&info.name)).collect()
}

impl Running for Listing {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        while let (Some(info), Some(&below)) = (self.mailboxes.get(self.next), self.criteria_below.get(self.next)) {
            if out.is_full() {
                return Ok(Progress::More);
            }
            self.next += 1;
            if !self.patterns.iter().any(|pattern| pattern.matches(info.name.as_str())) {
                continue;
            }
            let meets = meets(info, &self.command.select);
            if !meets && !below {
                continue;
            }
            let child_info = if below { child_info(&self.command.select) } else { "" };
            let subscribed = self.command.select.subscribed || self.command.returns.subscribed;
            line(session, info, Extra { old_name: None, child_info, subscribed }, out);
            if meets && !self.command.returns.status.is_empty() {
                self.status(session, info, out)?;
            }
        }
        Ok(Progress::Done(Done::ok("Listed")))
    }
}

impl Listing {
    /// RFC 5819 §2: STATUS after LIST, for those that can be selected. One that was deleted meanwhile has none.
    fn status(&self, session: &Session, info: &MailboxInfo, out: &mut Output) -> Result<()> {
        let Some(id) = info.id else { return Ok(()) };
        // A file that is locked is told of as it was.
        let _is_news = self.account.try_refresh(id)?;
        match self.account.status(id) {
            Ok(status) => status::line(session, &info.name, &status, &self.command.returns.status, out),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The criteria that a mailbox below met (RFC 9051 §6.3.9.6).
fn child_info(select: &ListSelect) -> &'static str {
    match (select.subscribed, select.special_use) {
        (true, true) => " (\"CHILDINFO\" (\"SUBSCRIBED\" \"SPECIAL-USE\"))",
        (false, true) => " (\"CHILDINFO\" (\"SPECIAL-USE\"))",
        _ => " (\"CHILDINFO\" (\"SUBSCRIBED\"))",
    }
}

/// The extended data items of a LIST response.
#[derive(Default)]
pub(crate) struct Extra {
    /// OLDNAME, as the client wrote it.
    old_name: Option<String>,
    /// CHILDINFO, as written.
    child_info: &'static str,
    /// Whether `\Subscribed` is said: to those who asked (RFC 9051 §6.3.9.2).
    subscribed: bool,
}

impl Extra {
    /// Of a response that nobody asked for (RFC 5465 §5.4, §5.5).
    pub fn of_notice(old_name: Option<String>) -> Self {
        Extra { old_name, subscribed: true, ..Extra::default() }
    }

    /// OLDNAME when `sent` is not how `name` is written (RFC 9051 §6.3.9.7).
    pub fn old_name(session: &Session, name: &MailboxName, sent: &MailboxArg) -> Self {
        let sent = sent.decode_text(session.name_encoding()).ok();
        Extra { old_name: sent.filter(|sent| sent != name.as_str()), ..Extra::default() }
    }
}

/// The untagged LIST response of one mailbox (RFC 9051 §7.3.1).
pub(crate) fn line(session: &Session, info: &MailboxInfo, extra: Extra, out: &mut Output) {
    let encoding = session.name_encoding();
    out.push_str("* LIST (");
    attributes(info, extra.subscribed, out);
    out.push_fmt(format_args!(") \"{HIERARCHY_DELIMITER}\" "));
    write::mailbox(out.bytes_mut(), &info.name, encoding);
    out.push_str(extra.child_info);
    if let Some(old) = extra.old_name {
        out.push_str(" (\"OLDNAME\" (");
        write::mailbox_text(out.bytes_mut(), &old, encoding);
        out.push_str("))");
    }
    out.push_str("\r\n");
}

fn attributes(info: &MailboxInfo, subscribed: bool, out: &mut Output) {
    // RFC 9051 §7.3.1: \NonExistent implies \Noselect; IMAP4rev1 clients know only the second.
    if info.id.is_none() {
        out.push_str("\\NonExistent \\Noselect ");
    }
    out.push_str(if info.has_children { "\\HasChildren" } else { "\\HasNoChildren" });
    if subscribed && info.subscribed {
        out.push_str(" \\Subscribed");
    }
    for special_use in &info.special_use {
        out.push_str(" ");
        out.push_str(special_use.as_str());
    }
}

/// After CREATE and RENAME, in IMAP4rev2: the LIST response that says what became of the name that the client wrote
/// (RFC 9051 §6.3.9.7).
pub(crate) fn renamed(
    session: &Session,
    account: &Account,
    name: &MailboxName,
    sent: &MailboxArg,
    out: &mut Output,
) -> Result<()> {
    if !session.enabled.imap4rev2 {
        return Ok(());
    }
    let extra = Extra::old_name(session, name, sent);
    let with_delimiter = format!("{name}{HIERARCHY_DELIMITER}");
    // `CREATE a/` is the name `a`, with a hint that the client knows of (RFC 9051 §6.3.4).
    if extra.old_name.as_ref().is_none_or(|old| *old == with_delimiter) {
        return Ok(());
    }
    if let Some(info) = account.mailboxes().iter().find(|info| info.name == *name) {
        line(session, info, extra, out);
    }
    Ok(())
}
