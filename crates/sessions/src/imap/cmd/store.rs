//! STORE (RFC 9051 §6.4.6, RFC 7162 §3.1.3).
//!
//! The FETCH responses are written by the updates that follow every command; here it is decided which of the own changes they tell.

use imap_proto::FlagName;
use imap_proto::command::{Store, StoreMode};
use model::UidSet;
use store::{Account, Edit, FlagNames, StoreFlags, Stored};

use crate::Output;
use crate::imap::reply::{Done, Started, Stop, commit};
use crate::imap::state::{Selected, Session};
use crate::imap::updates::Silent;

pub(crate) fn run(session: &mut Session, command: &Store, out: &mut Output) -> Started {
    let account = session.account()?;
    session.selected_for_writing()?;
    if command.unchanged_since.is_some() {
        // RFC 7162 §3.1: a CONDSTORE enabling command.
        session.enable_condstore(out);
    }
    let condstore = session.enabled.condstore;
    let selected = session.selected_for_writing()?;
    let uids = selected.uids(&command.set, command.uid)?;
    let mode = match command.mode {
        StoreMode::Replace => store::StoreMode::Replace,
        StoreMode::Add => store::StoreMode::Add,
        StoreMode::Remove => store::StoreMode::Remove,
    };
    let names = flag_names(&command.flags);
    let request = StoreFlags { mode, flags: names.clone(), unchanged_since: command.unchanged_since };
    let gone = if command.uid { UidSet::new() } else { expunged(&account, selected, &uids)? };
    let before = selected.view.clone();
    selected.own.uid = command.uid;
    let mailbox = selected.mailbox;
    let asked = Asked {
        uids,
        uid: command.uid,
        silent: command.silent.then(|| Silent { before, uids: UidSet::new(), mode, names, modseq_known: false }),
        // The MODSEQ is told even for SILENT, and even for those that had the flags already.
        report_all: !command.silent || command.unchanged_since.is_some() && condstore,
        any_gone: !gone.is_empty(),
    };
    let wanted = asked.uids.clone();
    let change = move |edit: &mut Edit<'_>| edit.store_flags(mailbox, &wanted, &request);
    Ok(commit(account, change, |session, stored, _| asked.answer(session.selected()?, stored))?)
}

/// What the answer needs to know of the command.
struct Asked {
    uids: UidSet,
    uid: bool,
    /// For SILENT; its UIDs are still to be filled in.
    silent: Option<Silent>,
    report_all: bool,
    any_gone: bool,
}

impl Asked {
    fn answer(self, selected: &mut Selected, stored: Stored) -> Result<Done, Stop> {
        let touched = self.uids.difference(&stored.modified);
        selected.own.silent = self.silent.map(|silent| Silent { uids: touched, ..silent });
        // RFC 7162 §3.1.3: those that failed the test are reported too, so that the client knows why.
        selected.own.report = if self.report_all { self.uids } else { stored.modified.clone() };
        if self.any_gone {
            return Err(Done::no("Some of the messages were expunged").with_code("EXPUNGEISSUED").into());
        }
        if stored.modified.is_empty() {
            return Ok(Done::ok("Stored"));
        }
        // MODIFIED speaks the numbers of the command (RFC 7162 §3.1.3); the view has not moved since they were resolved.
        let modified = if self.uid { stored.modified } else { selected.view.seqs_of(&stored.modified) };
        Ok(Done::ok("Some had changed meanwhile").with_code(format!("MODIFIED {modified}")))
    }
}

/// Those that others have expunged: the client has been told the numbers, and not yet that they are gone (RFC 9051 §7.5.1).
fn expunged(account: &Account, selected: &Selected, uids: &UidSet) -> model::Result<UidSet> {
    if !selected.view.has_news() {
        return Ok(UidSet::new());
    }
    let present = account.view(selected.mailbox, false)?;
    Ok(uids.difference(&present.uids_of(&present.seqs_of(uids))))
}

/// Flags for the store. `\Recent` cannot be set (RFC 3501 §2.3.2) and other names with a backslash are not kept: RFC 9051 §7.1
/// (PERMANENTFLAGS) lets a server leave them out, and clients that write back what they have read depend on it.
pub(crate) fn flag_names(flags: &[FlagName]) -> FlagNames {
    let mut names = FlagNames::default();
    for flag in flags {
        match flag {
            FlagName::System(flag) if !names.system.contains(flag) => names.system.push(*flag),
            FlagName::Keyword(keyword) if !names.keywords.contains(keyword) => names.keywords.push(keyword.clone()),
            FlagName::System(_) | FlagName::Keyword(_) | FlagName::Recent | FlagName::Extension(_) => {}
        }
    }
    names
}
