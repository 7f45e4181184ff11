//! `restore`, `check`, `stats`: looking after accounts.

use model::{AccountName, Error, ErrorKind, MailboxName, Result};
use serde_json::{Value, json};
use store::{CheckReport, Finding, Stats};

use super::{Context, Progress};

/// Brings back what was expunged from a mailbox, or the mailbox itself.
pub fn restore(context: &Context, user: &str, mailbox: &str, since_unix_seconds: i64) -> Result<Value> {
    let name = MailboxName::new(mailbox)?;
    let restored = context.account(user)?.restore(&name, since_unix_seconds)?;
    Ok(json!({
        "mailbox": name.as_str(),
        "mailbox_was_deleted": restored.mailbox.is_some(),
        "restored": restored.uids.len() + restored.from_file.len(),
    }))
}

/// Verifies accounts. One that cannot even be opened is damaged, and does not keep the others from being looked at.
pub fn check(context: &Context, user: Option<&str>, repair: bool, progress: &mut dyn Progress) -> Result<Value> {
    let accounts = selected(context, user)?;
    let mut total = CheckReport::default();
    let (mut checked, mut repaired, mut findings) = (0, 0u64, Vec::new());
    for (number, name) in accounts.iter().enumerate() {
        progress.advanced(number as u64, accounts.len() as u64, "accounts");
        if progress.is_cancelled() {
            break;
        }
        if repair {
            match context.store.repair(name) {
                Ok(()) => repaired += 1,
                Err(error) => progress.notice(format!("{name}: not repaired: {error}")),
            }
        }
        match context.store.account(name).and_then(|account| account.check()) {
            Ok(report) => {
                total.messages += report.messages;
                total.records += report.records;
                total.bytes += report.bytes;
                total.indexed += report.indexed;
                findings.extend(report.findings.iter().map(|finding| describe(name, finding)));
            }
            Err(error) => findings.push(json!({
                "user": name.as_str(), "file": null, "offset": null, "message": null, "what": error.to_string()
            })),
        }
        checked += 1;
    }
    Ok(json!({
        "accounts": checked,
        "messages": total.messages,
        "records": total.records,
        "bytes": total.bytes,
        "indexed": total.indexed,
        "repaired": repaired,
        "damaged": findings.len(),
        "findings": findings,
    }))
}

fn describe(name: &AccountName, finding: &Finding) -> Value {
    json!({
        "user": name.as_str(),
        "file": finding.file,
        "offset": finding.offset,
        "message": finding.email_id.map(|id| id.to_string()),
        "what": finding.what,
    })
}

/// Accounts in numbers.
pub fn stats(context: &Context, user: Option<&str>) -> Result<Value> {
    let mut rows = Vec::new();
    for name in selected(context, user)? {
        let stats = context.store.account(&name)?.stats()?;
        rows.push(row(name.as_str(), &stats));
    }
    Ok(json!({ "accounts": rows }))
}

fn row(name: &str, stats: &Stats) -> Value {
    json!({
        "user": name,
        "mailboxes": stats.mailboxes,
        "entries": stats.entries,
        "messages": stats.messages,
        "bytes": stats.message_bytes,
        "restorable": stats.restorable,
        "disk_bytes":
            stats.segment_disk_bytes + stats.tail_disk_bytes + stats.index_disk_bytes + stats.other_disk_bytes,
        "segment_bytes": stats.segment_disk_bytes,
        "tail_bytes": stats.tail_disk_bytes,
        "index_bytes": stats.index_disk_bytes,
        "segments": stats.segments,
        "dead_bytes": stats.dead_bytes,
    })
}

/// The account of `user`, or all accounts.
pub(super) fn selected(context: &Context, user: Option<&str>) -> Result<Vec<AccountName>> {
    let accounts = context.store.accounts()?;
    let Some(user) = user else { return Ok(accounts) };
    let name = AccountName::new(user)?;
    if !accounts.contains(&name) {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no account {name}")));
    }
    Ok(vec![name])
}
