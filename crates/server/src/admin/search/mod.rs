//! `search`: messages of an account that match, looked for in the index, and by a scan beside it if wanted.

mod terms;

use mime::HeaderBlock;
use model::{Error, ErrorKind, MailboxName, NumSet, Result, UidSet};
use serde_json::{Value, json};
use store::search::Search;
use store::{Account, Entry, Reader, View};

use self::terms::Terms;
use super::{Context, Progress};

/// Messages that one answer names; all are counted.
pub const SEARCH_ROWS_MAX: usize = 10_000;

/// What to look for, and how.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Terms, see [`terms`], or search keys of IMAP.
    pub query: &'a str,
    /// It is search keys of IMAP.
    pub imap: bool,
    /// One mailbox only.
    pub mailbox: Option<&'a str>,
    /// Scan as well, and compare.
    pub verify: bool,
}

/// Looks for messages. A mailbox in which the index and a scan disagree is a finding.
pub fn search(context: &Context, user: &str, wanted: Wanted<'_>, progress: &mut dyn Progress) -> Result<Value> {
    let invalid = |why| Error::new(ErrorKind::Invalid, why);
    let terms = if wanted.imap { Terms::default() } else { Terms::parse(wanted.query).map_err(invalid)? };
    let account = context.account(user)?;
    let mailboxes = match wanted.mailbox {
        Some(name) => vec![MailboxName::new(name)?],
        None => account.mailboxes().into_iter().filter(|info| info.id.is_some()).map(|info| info.name).collect(),
    };
    let now = context.store.env().clock.now().seconds;
    let (mut found, mut messages, mut findings) = (0u64, Vec::new(), Vec::new());
    for (number, name) in mailboxes.iter().enumerate() {
        progress.advanced(number as u64, mailboxes.len() as u64, "mailboxes");
        let view = account.view(account.mailbox(name)?, false)?;
        let query = match wanted.imap {
            true => sessions::imap::search_query(wanted.query, &view),
            false => terms.query(&view),
        };
        let query = query.map_err(invalid)?;
        let Some(seqs) = run(Search::new(view.clone(), account.reader(), query.clone(), now), progress)? else { break };
        if wanted.verify {
            let Some(scanned) = run(Search::scanning(view.clone(), account.reader(), query, now), progress)? else {
                break;
            };
            findings.extend(compare(name, &view, &seqs, &scanned));
        }
        let mut reader = account.reader();
        for entry in entries(&view, &seqs) {
            if let Some(wanted) = terms.attachment
                && has_attachment(&mut reader, &entry)? != wanted
            {
                continue;
            }
            found += 1;
            if messages.len() < SEARCH_ROWS_MAX {
                messages.push(row(&mut reader, name, &entry));
            }
        }
    }
    Ok(json!({
        "found": found,
        "verified": wanted.verify,
        "damaged": findings.len(),
        "findings": findings,
        "messages": messages,
    }))
}

/// The messages of a view that terms (see [`terms`]) name, by UID: for those who do something with them.
pub fn chosen(account: &Account, view: &View, query: &str, now: i64) -> Result<UidSet> {
    let invalid = |why| Error::new(ErrorKind::Invalid, why);
    let terms = Terms::parse(query).map_err(invalid)?;
    let query = terms.query(view).map_err(invalid)?;
    let (seqs, _) = Search::new(view.clone(), account.reader(), query, now).finish()?;
    let mut reader = account.reader();
    let mut uids = UidSet::new();
    for entry in entries(view, &seqs) {
        let is_wanted = match terms.attachment {
            Some(wanted) => has_attachment(&mut reader, &entry)? == wanted,
            None => true,
        };
        if is_wanted {
            uids.insert(entry.uid.get());
        }
    }
    Ok(uids)
}

/// Runs a search to its end; `None` when whoever asked has gone. Damaged messages are told and passed over.
fn run(mut search: Search, progress: &mut dyn Progress) -> Result<Option<NumSet>> {
    loop {
        if let Some((seqs, _)) = search.step()? {
            if let Some(damage) = search.damage() {
                progress.notice(format!("a message could not be searched: {damage}"));
            }
            return Ok(Some(seqs));
        }
        if progress.is_cancelled() {
            return Ok(None);
        }
    }
}

/// What the two ways found differently.
fn compare(name: &MailboxName, view: &View, indexed: &NumSet, scanned: &NumSet) -> Option<Value> {
    let uids = |seqs: &NumSet| view.uids_of(seqs).to_string();
    (indexed != scanned).then(|| {
        json!({
            "mailbox": name.as_str(),
            "what": "the index and a scan disagree",
            "indexed": uids(indexed),
            "scanned": uids(scanned),
        })
    })
}

fn entries<'v>(view: &'v View, seqs: &'v NumSet) -> impl Iterator<Item = Entry> + 'v {
    seqs.ranges().iter().flat_map(|(first, last)| view.rows(*first..=*last))
}

/// Whether a part of the message says that it is attached (RFC 2183 §2.2).
fn has_attachment(reader: &mut Reader, entry: &Entry) -> Result<bool> {
    let structure = reader.structure(entry.email_id)?;
    let is_attached = |kind: &[u8]| kind.eq_ignore_ascii_case(b"ATTACHMENT");
    Ok(structure.parts().any(|part| part.disposition.as_ref().is_some_and(|has| is_attached(&has.kind))))
}

/// A message, for a table. What cannot be read is left empty.
fn row(reader: &mut Reader, name: &MailboxName, entry: &Entry) -> Value {
    let header = reader.header(entry.email_id).unwrap_or_default();
    let block = HeaderBlock::new(header);
    let field = |name: &str| block.first(name).map(mime::field_text).unwrap_or_default();
    let day = entry.internal_date.civil_date();
    json!({
        "mailbox": name.as_str(),
        "uid": entry.uid.get(),
        "date": format!("{:04}-{:02}-{:02}", day.year, day.month, day.day),
        "size": entry.size,
        "from": field("From"),
        "subject": field("Subject"),
    })
}
