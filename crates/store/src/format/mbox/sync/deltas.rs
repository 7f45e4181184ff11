//! Flags and keywords that other programs changed in a file, for the log.
//!
//! Only what is different from what the file said before counts: a flag that a client has changed meanwhile, and that nobody touched in
//! the file, stays as the client wants it.

use std::collections::BTreeMap;

use index::Transaction;
use model::{EmailId, ErrorKind, FlagChange, Flags, Keyword, MailboxId, ModSeq, Result, UidSet};

use super::flags::system_flags;
use crate::format::mbox::place::Place;

/// What is different in the fields of one message.
pub(super) struct Delta {
    id: EmailId,
    set: Flags,
    cleared: Flags,
    /// All that the field names now, if that is different.
    keywords: Option<Vec<Keyword>>,
}

impl Delta {
    /// `new` has an email id; `keywords` are those of its field, if they are not what they were.
    pub(super) fn between(old: &Place, new: &Place, keywords: Option<Vec<Keyword>>) -> Option<Self> {
        let (was, is) = (system_flags(old.flags), system_flags(new.flags));
        let (set, cleared) = (is.without(was), was.without(is));
        let differs = set != Flags::NONE || cleared != Flags::NONE || keywords.is_some();
        let id = new.email_id.filter(|_| differs)?;
        Some(Delta { id, set, cleared, keywords })
    }
}

/// What is different in the fields of all messages.
pub(super) struct Deltas {
    /// Sorted by email id, and with the same id in the order of the file.
    deltas: Vec<Delta>,
    written: ModSeq,
}

impl Deltas {
    /// `written`: up to there the fields showed what the log said.
    pub(super) fn new(mut deltas: Vec<Delta>, written: ModSeq) -> Self {
        deltas.sort_by_key(|delta| delta.id);
        Deltas { deltas, written }
    }

    /// Changes the entries of a mailbox.
    pub(super) fn apply(&self, transaction: &mut Transaction, mailbox: MailboxId) -> Result<()> {
        if self.deltas.is_empty() {
            return Ok(());
        }
        // Keywords first: their bits depend on the mailbox.
        let mut bits: BTreeMap<String, Flags> = BTreeMap::new();
        for keyword in self.deltas.iter().flat_map(|delta| delta.keywords.iter().flatten()) {
            if !bits.contains_key(keyword.as_str()) {
                let bit = match transaction.keyword(mailbox, keyword) {
                    Ok(bit) => bit,
                    Err(error) if error.kind() == ErrorKind::Limit => Flags::NONE,
                    Err(error) => return Err(error),
                };
                bits.insert(keyword.as_str().to_owned(), bit);
            }
        }
        let mut groups: BTreeMap<u128, UidSet> = BTreeMap::new();
        let mut used = vec![false; self.deltas.len()];
        for (_, row) in transaction.mailbox(mailbox)?.all_rows() {
            // Of a message that is there twice each entry takes the next one.
            let first = self.deltas.partition_point(|delta| delta.id < row.email_id);
            let mut of_message = (first..).zip(self.deltas.iter().skip(first));
            let next = of_message.by_ref().take_while(|(_, delta)| delta.id == row.email_id);
            let Some((at, delta)) = next.into_iter().find(|(at, _)| used.get(*at) == Some(&false)) else { continue };
            if let Some(used) = used.get_mut(at) {
                *used = true;
            }
            let mut flags = row.flags.with(delta.set).without(delta.cleared);
            if let Some(keywords) = &delta.keywords {
                let named = keywords.iter().filter_map(|keyword| bits.get(keyword.as_str()));
                let named = named.fold(Flags::NONE, |flags, bit| flags.with(*bit));
                // What a client has changed and the file does not show yet is not taken away again.
                let kept = if row.modseq <= self.written { system_only(flags) } else { flags };
                flags = kept.with(named);
            }
            if flags != row.flags {
                groups.entry(flags.0).or_default().insert(row.uid.get());
            }
        }
        for (flags, uids) in groups {
            transaction.set_flags(mailbox, &uids, FlagChange::Replace(Flags(flags)), None)?;
        }
        Ok(())
    }
}

fn system_only(flags: Flags) -> Flags {
    flags.system_flags().fold(Flags::NONE, |only, flag| only.with(Flags::system(flag)))
}
