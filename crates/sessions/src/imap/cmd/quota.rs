//! GETQUOTA, GETQUOTAROOT and SETQUOTA (RFC 9208 §4.1).
//!
//! Each account is one quota root, which has the account's name and all its mailboxes. Users see their own; administrators
//! (`Settings::administrators`) see and set everybody's.

use std::sync::Arc;

use imap_proto::MailboxArg;
use imap_proto::command::SetQuota;
use model::{AccountName, ErrorKind};
use store::{Account, Edit, OwnLimit, OwnLimits, Quota};

use crate::Output;
use crate::imap::reply::{Done, Started, Stop, commit};
use crate::imap::state::Session;
use crate::imap::write;

pub(crate) fn get(session: &Session, root: &[u8], out: &mut Output) -> Started {
    let account = account_of(session, root)?;
    line(account.name(), &account.quota(), out);
    Ok(Done::ok("That is its quota").into())
}

/// The mailbox need not be there (RFC 9208 §4.1.2).
pub(crate) fn get_root(session: &Session, mailbox: &MailboxArg, out: &mut Output) -> Started {
    let account = session.account()?;
    let name = mailbox.decode(session.name_encoding())?;
    out.push_str("* QUOTAROOT ");
    write::mailbox(out.bytes_mut(), &name, session.name_encoding());
    out.push_str(" ");
    write::astring(out.bytes_mut(), account.name().as_str().as_bytes());
    out.push_str("\r\n");
    line(account.name(), &account.quota(), out);
    Ok(Done::ok("That is its quota root").into())
}

/// A resource that is not named has no limit afterwards (RFC 9208 §4.1.3), whatever the default is.
pub(crate) fn set(session: &Session, command: &SetQuota) -> Started {
    session.account()?;
    if !is_administrator(session) {
        return Err(Done::no("Quotas are the administrators' to set").with_code("NOPERM").into());
    }
    let account = account_of(session, &command.root)?;
    let mut limits = OwnLimits { storage_kib: OwnLimit::None, messages: OwnLimit::None };
    for (resource, limit) in &command.limits {
        match resource.as_str() {
            "STORAGE" => limits.storage_kib = OwnLimit::Limit(*limit),
            "MESSAGE" => limits.messages = OwnLimit::Limit(*limit),
            _ => return Err(Done::no("That resource has no limits here").with_code("CANNOT").into()),
        }
    }
    let changed = Arc::clone(&account);
    let change = move |edit: &mut Edit<'_>| edit.set_own_limits(limits);
    Ok(commit(account, change, move |_, (), out| {
        line(changed.name(), &changed.quota(), out);
        Ok(Done::ok("Set"))
    })?)
}

fn is_administrator(session: &Session) -> bool {
    let administrators = &session.context.settings.administrators;
    session.login.as_ref().is_some_and(|login| administrators.contains(&login.name))
}

/// The account of a quota root. One that is not there and one that is not yours to see sound the same.
fn account_of(session: &Session, root: &[u8]) -> Result<Arc<Account>, Stop> {
    let own = session.account()?;
    if root == own.name().as_str().as_bytes() {
        return Ok(own);
    }
    let unknown = || Stop::from(Done::no("There is no such quota root").with_code("NONEXISTENT"));
    let name = std::str::from_utf8(root).ok().and_then(|name| AccountName::new(name).ok());
    let name = name.filter(|_| is_administrator(session)).ok_or_else(unknown)?;
    session.context.store.account(&name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => unknown(),
        _ => error.into(),
    })
}

/// `* QUOTA ann (STORAGE 10 512)`: resources without a limit are not named (RFC 9208 §4.2.1).
fn line(root: &AccountName, quota: &Quota, out: &mut Output) {
    out.push_str("* QUOTA ");
    write::astring(out.bytes_mut(), root.as_str().as_bytes());
    let resources = [
        ("STORAGE", quota.storage_kib(), quota.limits.storage_kib),
        ("MESSAGE", quota.messages, quota.limits.messages),
    ];
    let limited = resources.iter().filter_map(|(name, used, limit)| Some(format!("{name} {used} {}", (*limit)?)));
    out.push_fmt(format_args!(" ({})\r\n", limited.collect::<Vec<_>>().join(" ")));
}
