//! Flags that other programs changed in names, for the log.
//!
//! Only what is different from what the name said before counts: a flag that a client has changed meanwhile, and that nobody touched in the
//! name, stays as the client wants it.

use std::collections::BTreeMap;

use index::Transaction;
use model::{ErrorKind, FlagChange, Flags, Keyword, MailboxId, ModSeq, Result, Uid, UidSet};

use crate::format::maildir::keywords::Keywords;
use crate::format::maildir::name::{Letters, PASSED};

/// What is different in one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delta {
    uid: u32,
    set: Letters,
    cleared: Letters,
}

impl Delta {
    pub(super) fn between(uid: u32, was: Letters, is: Letters) -> Option<Delta> {
        let delta = Delta { uid, set: is.difference(was), cleared: was.difference(is) };
        (was != is).then_some(delta)
    }
}

/// Changes the entries of a mailbox; `only_until`: not those that the log changed later.
pub(super) fn apply(
    transaction: &mut Transaction,
    mailbox: MailboxId,
    deltas: &[Delta],
    keywords: &Keywords,
    only_until: Option<ModSeq>,
) -> Result<()> {
    let mut groups: BTreeMap<u128, UidSet> = BTreeMap::new();
    for delta in deltas {
        let (set, cleared) =
            (flags(transaction, mailbox, delta.set, keywords)?, flags(transaction, mailbox, delta.cleared, keywords)?);
        let row = Uid::new(delta.uid).and_then(|uid| transaction.mailbox(mailbox).ok()?.row_of(uid));
        let Some((_, row)) = row else { continue };
        if only_until.is_some_and(|until| row.modseq > until) {
            continue;
        }
        let wanted = row.flags.with(set).without(cleared);
        if wanted != row.flags {
            groups.entry(wanted.0).or_default().insert(delta.uid);
        }
    }
    for (flags, uids) in groups {
        transaction.set_flags(mailbox, &uids, FlagChange::Replace(Flags(flags)), None)?;
    }
    Ok(())
}

/// What letters mean in a mailbox. A keyword for which it has no room is left out: the name keeps its letter.
pub(super) fn flags(
    transaction: &mut Transaction,
    mailbox: MailboxId,
    letters: Letters,
    keywords: &Keywords,
) -> Result<Flags> {
    let mut flags = letters.system().fold(Flags::NONE, |flags, flag| flags.with(Flags::system(flag)));
    let passed = letters.has(PASSED).then(|| Keyword::new(super::super::FORWARDED)).into_iter().flatten();
    for keyword in keywords.of(letters).0.into_iter().chain(passed) {
        match transaction.keyword(mailbox, &keyword) {
            Ok(bit) => flags = flags.with(bit),
            Err(error) if error.kind() == ErrorKind::Limit => {}
            Err(error) => return Err(error),
        }
    }
    Ok(flags)
}
