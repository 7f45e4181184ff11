//! `import` and `export`: the store does the work, here it is asked and reported.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use model::{HIERARCHY_DELIMITER, MailboxName, Result};
use serde_json::{Value, json};
use store::Account;
use store::export::{ExportForm, ExportOptions, export};
use store::import::{ImportNote, ImportOptions, ImportReport, import};

use super::{Context, Format, Progress};

/// `import`: the mbox files, Maildirs and trees at `paths`, one after another.
pub fn bring_in_all(
    context: &Context,
    user: &str,
    mailbox: Option<&str>,
    paths: &[PathBuf],
    progress: &mut dyn Progress,
) -> Result<Value> {
    let mailbox = mailbox.map(MailboxName::new).transpose()?;
    let options = ImportOptions { mailbox, owner: Some(user.to_owned()), ..ImportOptions::default() };
    bring_in(&*context.account(user)?, paths, &options, progress)
}

fn bring_in(
    account: &Account,
    paths: &[PathBuf],
    options: &ImportOptions,
    progress: &mut dyn Progress,
) -> Result<Value> {
    let mut total = ImportReport::default();
    let mut noted = 0;
    for path in paths {
        let report = bring_in_one(account, path, options, progress)?;
        for note in &report.notes {
            progress.notice(describe(note));
        }
        if report.notes_left_out > 0 {
            progress.notice(format!("{}: {} further notes are left out", path.display(), report.notes_left_out));
        }
        total.imported += report.imported;
        total.imported_bytes += report.imported_bytes;
        total.already_there += report.already_there;
        total.skipped += report.skipped;
        total.notes_left_out += report.notes_left_out;
        noted += report.notes.len() as u64;
        total.mailboxes.extend(report.mailboxes);
        total.was_stopped |= report.was_stopped;
        if total.was_stopped {
            break;
        }
    }
    total.mailboxes.sort();
    total.mailboxes.dedup();
    Ok(json!({
        "imported": total.imported,
        "imported_bytes": total.imported_bytes,
        "already_there": total.already_there,
        "skipped": total.skipped,
        "odd": (noted + total.notes_left_out).saturating_sub(total.skipped),
        "mailboxes": total.mailboxes.iter().map(MailboxName::as_str).collect::<Vec<_>>(),
        "stopped": total.was_stopped,
    }))
}

fn bring_in_one(
    account: &Account,
    path: &Path,
    options: &ImportOptions,
    progress: &mut dyn Progress,
) -> Result<ImportReport> {
    import(account, path, options, &mut |state| {
        progress.advanced(state.bytes_done, state.bytes_total, "bytes");
        if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

fn describe(note: &ImportNote) -> String {
    let verb = if note.skipped { "skipped" } else { "odd" };
    format!("{}: {verb} at octet {}: {}", note.file.display(), note.offset, note.what)
}

/// `export`: a whole account becomes the directory `to`, which must not be there; one mailbox becomes a file or a directory in it.
pub fn write_out(
    context: &Context,
    user: &str,
    mailbox: Option<&str>,
    format: Format,
    to: &Path,
    progress: &mut dyn Progress,
) -> Result<Value> {
    let account = context.account(user)?;
    let mailbox = mailbox.map(MailboxName::new).transpose()?;
    let form = match format {
        Format::Mbox => ExportForm::Mbox,
        Format::Maildir => ExportForm::Maildir,
    };
    let mut path = to.to_owned();
    let mut messages = 0;
    match &mailbox {
        Some(name) => {
            context.store.env().disk.create_dir_all_durable(to)?;
            path.push(file_name(name, format));
            messages += u64::from(account.status(account.mailbox(name)?)?.messages);
        }
        None => {
            for id in account.mailboxes().into_iter().filter_map(|info| info.id) {
                messages += u64::from(account.status(id)?.messages);
            }
        }
    }
    let options = ExportOptions { form, mailbox, ..ExportOptions::default() };
    let report = export(&account, &path, &options, &mut |report| {
        progress.advanced(report.messages, messages, "messages");
        if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    report.notes.into_iter().for_each(|note| progress.notice(note));
    Ok(json!({
        "mailboxes": report.mailboxes,
        "messages": report.messages,
        "bytes": report.bytes,
        "to": path,
        "stopped": report.was_stopped,
    }))
}

/// The last level of the name; a dot at its start would hide the file, or lead elsewhere.
fn file_name(name: &MailboxName, format: Format) -> String {
    let level = name.as_str().rsplit(HIERARCHY_DELIMITER).next().unwrap_or_default();
    let level = match level.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => level.to_owned(),
    };
    match format {
        Format::Mbox => level + ".mbox",
        Format::Maildir => level,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_lead_nowhere_else() {
        for (name, mbox) in [("INBOX", "INBOX.mbox"), ("a/b", "b.mbox"), ("a/..", "%2E..mbox"), (".x", "%2Ex.mbox")] {
            assert_eq!(file_name(&MailboxName::new(name).unwrap(), Format::Mbox), mbox);
        }
    }
}
