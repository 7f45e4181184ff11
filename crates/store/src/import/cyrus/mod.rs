//! The spool of a Cyrus server: a directory for each mailbox, with a file for each message, named `UID.`, and what the server knows of them in `cyrus.index`
//! and `cyrus.header`.
//!
//! Since 3.6 the directories are named by the mailboxes' ids, and `cyrus.header` says whose mailbox it is; before, the path says it
//! (`.../user/ann/Drafts`). Both are read. What the server calls `user.ann.Drafts` is the mailbox `Drafts` of ann; `user.ann` is her INBOX.
//!
//! Not kept, since they are elsewhere or have no equal here: annotations, access rights, conversations, sieve scripts, the seen states of others than the owner.

pub(super) mod header;
pub(super) mod index;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::{DateTime, Keyword, Result, SystemFlag, Uid, UidValidity};
use platform::Disk;

use self::header::Header;
use self::index::{Index, Record, flag};
use super::listed::{Content, FileNotes, Listed, ListedMessage};
use crate::FlagNames;
use crate::format::maildir::courier::level;
use crate::format::served::Form;

const HEADER: &str = "cyrus.header";
const INDEX: &str = "cyrus.index";
/// Levels of directories that are looked through: a spool has three for its hashes, and those of the mailboxes.
const DEPTH_MAX: usize = 64;

/// Flags of a record and what they are here.
const FLAGS: [(u32, SystemFlag); 5] = [
    (flag::ANSWERED, SystemFlag::Answered),
    (flag::FLAGGED, SystemFlag::Flagged),
    (flag::DELETED, SystemFlag::Deleted),
    (flag::DRAFT, SystemFlag::Draft),
    (flag::SEEN, SystemFlag::Seen),
];

/// A mailbox that was found.
pub(super) struct Found {
    /// Where.
    pub(super) path: PathBuf,
    /// Whose: `ann`, or `ann@example.org`. `None`: nobody's own.
    pub(super) owner: Option<String>,
    /// Its name as levels; none for INBOX.
    pub(super) levels: Vec<String>,
    header: Header,
}

/// The mailboxes below `path`, itself included; directories that cannot be read are in the second part.
pub(super) fn find(disk: &dyn Disk, path: &Path) -> Result<(Vec<Found>, FileNotes)> {
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    let mut open = vec![(path.to_owned(), 0)];
    while let Some((dir, depth)) = open.pop() {
        let entries = match disk.list(&dir) {
            Ok(entries) => entries,
            Err(error) if dir == path => return Err(error.into()),
            Err(error) => {
                failed.push((dir, format!("it cannot be read: {error}")));
                continue;
            }
        };
        if entries.iter().any(|entry| !entry.is_dir && entry.name == OsStr::new(INDEX)) {
            match read_header(disk, &dir) {
                Ok(header) => found.push(name(dir.clone(), header)),
                Err(error) => failed.push((dir.join(HEADER), error.to_string())),
            }
        }
        if depth < DEPTH_MAX {
            open.extend(entries.iter().filter(|entry| entry.is_dir).map(|entry| (dir.join(&entry.name), depth + 1)));
        }
    }
    found.sort_by(|a, b| (&a.owner, &a.levels).cmp(&(&b.owner, &b.levels)));
    Ok((found, failed))
}

fn read_header(disk: &dyn Disk, dir: &Path) -> Result<Header> {
    let bytes = disk.read(&dir.join(HEADER))?;
    Header::parse(&bytes)
        .ok_or_else(|| model::Error::new(model::ErrorKind::Corrupt, "no cyrus.header that is known here"))
}

/// Finds out what a mailbox is called: by its header, else by its path.
fn name(path: PathBuf, header: Header) -> Found {
    let internal = header.name.clone().unwrap_or_else(|| {
        // `.../u/user/ann/Drafts`: hashed or not, `user` is the last directory of that name.
        let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let at = parts.iter().rposition(|part| part == "user").unwrap_or(parts.len().saturating_sub(1));
        parts.get(at..).unwrap_or_default().join(".")
    });
    let (domain, local) =
        internal.split_once('!').map_or((None, internal.as_str()), |(domain, rest)| (Some(domain), rest));
    let mut levels = local.split('.').map(|part| level(&part.replace('^', ".")));
    if !local.starts_with("user.") {
        return Found { owner: None, levels: levels.collect(), path, header };
    }
    let user = levels.nth(1).unwrap_or_default();
    let owner = match domain {
        Some(domain) => format!("{user}@{domain}"),
        None => user,
    };
    Found { owner: Some(owner), levels: levels.collect(), path, header }
}

/// Reads what the server knows of a mailbox.
pub(super) fn list(disk: &dyn Disk, found: &Found) -> Result<Listed> {
    let bytes = disk.read(&found.path.join(INDEX))?;
    let corrupt =
        |what: String| model::Error::new(model::ErrorKind::Corrupt, what).context(found.path.join(INDEX).display());
    let index = Index::parse(&bytes).map_err(corrupt)?;
    let uid_validity =
        UidValidity::new(index.uid_validity).ok_or_else(|| corrupt("it has no UIDVALIDITY".to_owned()))?;
    let mut notes: FileNotes = index.notes.into_iter().map(|what| (found.path.join(INDEX), what)).collect();
    let mut nameless = 0_u64;
    let mut bad: BTreeMap<String, u64> = BTreeMap::new();
    let mut messages = Vec::with_capacity(index.records.len());
    for record in &index.records {
        let Some(uid) = Uid::new(record.uid) else { continue };
        let mut keywords = Vec::new();
        for bit in record.user_flags() {
            match found.header.flags.get(bit).and_then(Option::as_deref).map(|name| (name, Keyword::new(name))) {
                Some((_, Ok(keyword))) => keywords.push(keyword),
                Some((name, Err(_))) => *bad.entry(name.to_owned()).or_default() += 1,
                None => nameless += 1,
            }
        }
        messages.push(message(&found.path, uid, record, keywords));
    }
    if nameless > 0 {
        notes.push((found.path.join(HEADER), format!("{nameless} flags have no name there: they are lost")));
    }
    for (name, count) in bad {
        notes.push((found.path.join(HEADER), format!("{name:?} is no keyword of IMAP: {count} messages lose it")));
    }
    let next_uid = index.last_uid.saturating_add(1);
    Ok(Listed { uid_validity, next_uid, modseq: index.highest_modseq, messages, notes })
}

fn message(dir: &Path, uid: Uid, record: &Record, keywords: Vec<Keyword>) -> ListedMessage {
    let system = FLAGS.iter().filter(|(bit, _)| record.system_flags & bit != 0).map(|(_, flag)| *flag).collect();
    ListedMessage {
        uid: Some(uid),
        name: Vec::new(),
        path: dir.join(format!("{uid}.")),
        // Its octets are those that were served.
        content: Content::Whole { bytes: u64::from(record.size), form: Form { convert: false, unquote: false } },
        flags: FlagNames { system, keywords },
        internal_date: Some(DateTime::utc(i64::from(record.internal_date))),
        save_date: record.save_date.map(i64::from),
    }
}
