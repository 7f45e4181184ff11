//! Messages that a file has and the log does not: their entries.

use index::{ForeignMessage, NewEntry, Transaction};
use model::{DateTime, EmailId, ErrorKind, Flags, Keyword, MailboxId, Result, Uid, UidSet};

use super::flags::system_flags;
use crate::format::mbox::place::{FileFlags, Found, ImapBase};

/// A message that is new to the log.
pub(super) struct Arrival {
    message: ForeignMessage,
    uid: Option<u32>,
    date: Option<DateTime>,
    flags: FileFlags,
    keywords: Vec<Keyword>,
}

impl Arrival {
    /// `None`: it is too large to be served.
    pub(super) fn new(found: Found) -> Option<Self> {
        let (octets, header_octets) =
            (u32::try_from(found.octets).ok()?, u32::try_from(found.header_octets.min(found.octets)).ok()?);
        let message = ForeignMessage { octets, header_octets, digest: found.digest };
        let meta = found.meta;
        Some(Arrival { message, uid: meta.uid, date: found.date, flags: meta.flags, keywords: meta.keywords })
    }
}

/// Gives each an entry. UIDs that the file names are kept where they rise above all that were given; `base` is what the file says of itself,
/// and without it, or with another UIDVALIDITY, its UIDs mean nothing here.
pub(super) fn add(
    transaction: &mut Transaction,
    mailbox: MailboxId,
    base: Option<&ImapBase>,
    arrivals: Vec<Arrival>,
) -> Result<Vec<EmailId>> {
    let uid_validity = transaction.mailbox(mailbox)?.uidvalidity().get();
    let last_uid = base.filter(|base| base.uid_validity == uid_validity).map_or(0, |base| base.last_uid);
    let mut ids = Vec::with_capacity(arrivals.len());
    // \Recent is what no program has shown before (RFC 3501 §2.3.2): those behind the last of a run of old ones.
    let mut old_until = 0;
    let mut is_old = transaction.mailbox(mailbox)?.recent_floor() >= next_uid(transaction, mailbox)?
        || transaction.mailbox(mailbox)?.exists() == 0;
    for arrival in arrivals {
        let mut flags = system_flags(arrival.flags);
        for keyword in &arrival.keywords {
            match transaction.keyword(mailbox, keyword) {
                Ok(bit) => flags = flags.with(bit),
                // The file keeps it; it cannot be shown.
                Err(error) if error.kind() == ErrorKind::Limit => {}
                Err(error) => return Err(error),
            }
        }
        let next = next_uid(transaction, mailbox)?;
        let uid = match arrival.uid {
            Some(uid) if uid >= next && uid <= last_uid => Some(uid),
            // Somebody else may have given any UID up to the last one.
            _ if next <= last_uid => last_uid.checked_add(1),
            _ => None,
        };
        let id = transaction.add_foreign(arrival.message)?;
        let internal_date = arrival.date.unwrap_or(DateTime::utc(transaction.now()));
        let entry = NewEntry { uid: uid.and_then(Uid::new), flags, internal_date, save_date: None };
        let uid = transaction.add_entry(mailbox, id, &entry)?;
        is_old &= arrival.flags.has(FileFlags::OLD);
        if is_old {
            old_until = uid.get().saturating_add(1);
        }
        ids.push(id);
    }
    if old_until > 0 {
        transaction.set_recent_floor(mailbox, old_until)?;
    }
    Ok(ids)
}

/// UIDs up to the last one that the file names were given by others, and the messages that had them may be gone: none of ours gets one of
/// them.
pub(super) fn pass_over_used(transaction: &mut Transaction, mailbox: MailboxId, base: &ImapBase) -> Result<()> {
    let state = transaction.mailbox(mailbox)?;
    let last = Uid::new(base.last_uid).filter(|_| base.uid_validity == state.uidvalidity().get());
    let Some(last) = last else { return Ok(()) };
    if next_uid(transaction, mailbox)? > last.get() {
        return Ok(());
    }
    // The log raises UIDNEXT with entries only: one that comes and goes within this transaction, of a message that is nowhere.
    let internal_date = DateTime::utc(transaction.now());
    let entry = NewEntry { uid: Some(last), flags: Flags::NONE, internal_date, save_date: None };
    let nothing = transaction.add_foreign(ForeignMessage { octets: 0, header_octets: 0, digest: 0 })?;
    transaction.add_entry(mailbox, nothing, &entry)?;
    transaction.expunge(mailbox, &UidSet::range(last.get(), last.get())).map(drop)
}

fn next_uid(transaction: &Transaction, mailbox: MailboxId) -> Result<u32> {
    Ok(transaction.mailbox(mailbox)?.uidnext().map_or(u32::MAX, Uid::get))
}
