//! `backup`, and `restore --from`: the store does the work, here it is asked and reported.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use model::{AccountName, Error, ErrorKind, Result};
use platform::Env;
use serde_json::{Value, json};
use store::backup::{Choice, Identities, Pick, Recipients, Repository, Snapshot};
use store::{Account, View};

pub use store::backup::RestoreOptions as Place;

use super::request::SecretKeys;
use super::{Context, Progress, care, search};

/// The snapshot that is meant: by name, by time, or the newest one.
pub fn pick(id: Option<String>, at_unix_seconds: Option<i64>) -> Pick {
    match (id, at_unix_seconds) {
        (Some(id), _) => Pick::Id(id),
        (None, Some(time)) => Pick::At(time),
        (None, None) => Pick::Newest,
    }
}

/// What is brought back.
pub struct Source {
    /// The directory of backups.
    pub dir: PathBuf,
    /// Whose snapshot.
    pub user: AccountName,
    /// Which one.
    pub pick: Pick,
    /// What opens it.
    pub identities: Option<SecretKeys>,
}

/// `backup --to`: a snapshot of one account or of all. An account that cannot be backed up does not keep the others from it.
pub fn save(
    context: &Context,
    user: Option<&str>,
    to: &Path,
    recipients: &[String],
    progress: &mut dyn Progress,
) -> Result<Value> {
    let repository = Repository::create(context.store.env().clone(), to, Recipients::parse(recipients)?)?;
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for name in care::selected(context, user)? {
        let saved = context.store.account(&name).and_then(|account| repository.save(&account, &mut octets(progress)));
        match saved {
            Ok(Some(report)) => rows.push(json!({
                "user": name.as_str(),
                "snapshot": report.snapshot.id,
                "files": report.snapshot.files.len(),
                "bytes": report.snapshot.bytes(),
                "copied_files": report.copied_files,
                "copied_bytes": report.copied_bytes,
            })),
            Ok(None) => break,
            Err(error) if user.is_none() => {
                progress.notice(format!("{name}: not backed up: {error}"));
                failed.push(name);
            }
            Err(error) => return Err(error),
        }
    }
    match failed.is_empty() {
        true => Ok(json!({ "snapshots": rows })),
        false => {
            Err(Error::new(ErrorKind::Io, format!("{} accounts were backed up, {} were not", rows.len(), failed.len())))
        }
    }
}

/// `restore --from`
pub fn restore(
    context: &Context,
    from: Source,
    place: &Place,
    query: Option<&str>,
    progress: &mut dyn Progress,
) -> Result<Value> {
    let Source { dir, user, pick, identities } = from;
    let identities = identities.map(SecretKeys::into_identities).transpose()?;
    let repository = Repository::open(context.store.env().clone(), &dir)?.with_identities(identities);
    let snapshot = repository.pick(&user, &pick)?;
    let now = context.store.env().clock.now().seconds;
    let choice = query.map(|query| move |account: &Account, view: &View| search::chosen(account, view, query, now));
    let choice = choice.as_ref().map(|choice| choice as &Choice<'_>);
    let report = context.store.restore_chosen(&repository, &snapshot, place, choice, &mut octets(progress))?;
    for damaged in &report.damaged {
        progress.notice(format!("left out: {damaged}"));
    }
    Ok(json!({
        "snapshot": snapshot.id,
        "account": place.account.as_str(),
        "account_is_new": report.account_is_new,
        "mailboxes": report.mailboxes,
        "restored": report.restored,
        "already_there": report.already_there,
        "other_uids": report.other_uids,
        "lost_keywords": report.lost_keywords,
        "damaged": report.damaged.len(),
        "interrupted": report.was_stopped,
    }))
}

/// `backup list`
pub fn list(dir: &Path, user: Option<&str>) -> Result<Value> {
    let repository = Repository::open(Env::real(), dir)?;
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    for name in selected(&repository, user)? {
        for id in repository.ids(&name)? {
            match repository.snapshot(&name, &id) {
                Ok(snapshot) => rows.push(row(&snapshot)),
                Err(error) => unreadable.push(error.to_string()),
            }
        }
    }
    Ok(json!({ "snapshots": rows, "unreadable": unreadable }))
}

fn row(snapshot: &Snapshot) -> Value {
    json!({
        "user": snapshot.account.as_str(),
        "snapshot": snapshot.id,
        "unix_seconds": snapshot.time,
        "files": snapshot.files.len(),
        "bytes": snapshot.bytes(),
    })
}

/// `backup verify`
pub fn verify(
    dir: &Path,
    user: Option<&str>,
    identities: Option<Identities>,
    progress: &mut dyn Progress,
) -> Result<Value> {
    let repository = Repository::open(Env::real(), dir)?.with_identities(identities);
    let (mut snapshots, mut files, mut bytes, mut findings) = (0, 0, 0, Vec::new());
    for name in selected(&repository, user)? {
        let report = repository.verify(&name, &mut octets(progress))?;
        snapshots += report.snapshots;
        files += report.files;
        bytes += report.bytes;
        for finding in report.findings {
            findings.push(json!({
                "user": name.as_str(),
                "file": finding.file,
                "snapshots": finding.snapshots.join(" "),
                "what": finding.what,
            }));
        }
        if report.was_stopped {
            return Err(Error::new(ErrorKind::Io, "interrupted: not everything was verified"));
        }
    }
    Ok(json!({
        "snapshots": snapshots, "files": files, "bytes": bytes, "damaged": findings.len(), "findings": findings
    }))
}

/// `backup forget`
pub fn forget(dir: &Path, user: Option<&str>, keep: u32) -> Result<Value> {
    let repository = Repository::open(Env::real(), dir)?;
    let mut rows = Vec::new();
    for name in selected(&repository, user)? {
        rows.extend(repository.forget(&name, usize::try_from(keep).unwrap_or(usize::MAX))?.iter().map(row));
    }
    Ok(json!({ "forgotten": rows.len(), "snapshots": rows }))
}

/// The account of `user`, or all accounts that the directory has.
fn selected(repository: &Repository, user: Option<&str>) -> Result<Vec<AccountName>> {
    let accounts = repository.accounts()?;
    let Some(user) = user else { return Ok(accounts) };
    let name = AccountName::new(user)?;
    match accounts.contains(&name) {
        true => Ok(vec![name]),
        false => Err(Error::new(ErrorKind::NotFound, format!("there is no snapshot of {name}"))),
    }
}

fn octets(progress: &mut dyn Progress) -> impl FnMut(u64, u64) -> ControlFlow<()> {
    |done, total| {
        progress.advanced(done, total, "bytes");
        if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
