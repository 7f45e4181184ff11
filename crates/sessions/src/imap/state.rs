//! What a session knows: who is logged in, what is selected, what the client has enabled.

use std::sync::Arc;

use imap_proto::{NameEncoding, SequenceSet};
use model::{AccountName, ErrorKind, MailboxId, NumSet, Uid, UidSet};
use store::{Account, ListenerGuard, Moment, View};

use super::Context;
use super::context::Context as SearchContext;
use super::notify::Watch;
use super::reply::{Done, Stop};
use super::updates::Silent;
use super::write::FlagsLine;
use crate::{Connection, Now, Output, Waker};

/// The session's own state; what is going on at the moment is the machine's.
pub(crate) struct Session {
    /// What all sessions share.
    pub context: Arc<Context>,
    /// The connection.
    pub connection: Connection,
    /// For listeners.
    pub waker: Waker,
    /// The time of this step.
    pub now: Now,
    /// What the client has switched on.
    pub enabled: Enabled,
    /// Who is logged in.
    pub login: Option<Login>,
    /// The mailbox that is selected.
    pub selected: Option<Selected>,
    /// What the client wants to hear of; `None` before its first NOTIFY (RFC 5465 §3.1).
    pub notify: Option<Box<Watch>>,
    /// A literal was announced and cannot be sent: the connection ends without a word.
    pub is_broken: bool,
    /// Whether COMPRESS is on.
    pub compressed: bool,
    /// Failed logins so far.
    pub failed_logins: u32,
    /// Whether the client waits in IDLE.
    pub idle: bool,
}

/// What the client has switched on: by ENABLE, or by using it (RFC 7162 §3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Enabled {
    /// RFC 9051 §6.3.1
    pub imap4rev2: bool,
    /// RFC 7162 §3.1: the client is CONDSTORE-aware.
    pub condstore: bool,
    /// RFC 7162 §3.2.3
    pub qresync: bool,
    /// RFC 6855 §3
    pub utf8_accept: bool,
}

/// Somebody who is logged in.
pub(crate) struct Login {
    /// The account's name.
    pub name: AccountName,
    /// The account.
    pub account: Arc<Account>,
}

/// The selected mailbox.
pub(crate) struct Selected {
    /// Its identity; a rename by somebody else changes nothing here.
    pub mailbox: MailboxId,
    /// What the client has been told.
    pub view: View,
    /// Whether it was opened by EXAMINE.
    pub read_only: bool,
    /// `$`: the saved result of a SEARCH, as UIDs, so that expunges need no bookkeeping (RFC 5182 §2.1, RFC 9051 §6.4.4.1).
    pub saved: UidSet,
    /// Searches whose results the client follows (RFC 5267 §4.3).
    pub contexts: Vec<SearchContext>,
    /// What a STORE wants said, or not said, about its own changes.
    pub own: OwnChanges,
    /// The client has been told that the mailbox is gone.
    pub told_gone: bool,
    /// Wakes the session while it is in IDLE.
    pub listener: Option<ListenerGuard>,
}

/// What is to be said about flags that this session itself has changed (RFC 9051 §6.4.6).
#[derive(Default)]
pub(crate) struct OwnChanges {
    /// These are reported whether they changed or not.
    pub report: UidSet,
    /// The command was a UID command: its FETCH responses have the UID (RFC 9051 §6.4.9).
    pub uid: bool,
    /// Of these the client knows the flags already; only the MODSEQ is news, and that for CONDSTORE-aware clients only.
    pub silent: Option<Silent>,
}

impl Session {
    /// How mailbox names are written now.
    pub fn name_encoding(&self) -> NameEncoding {
        if self.utf8() { NameEncoding::Utf8 } else { NameEncoding::Utf7 }
    }

    /// Whether strings may be UTF-8 (RFC 6855 §3, RFC 9051 §5.1).
    pub fn utf8(&self) -> bool {
        self.enabled.imap4rev2 || self.enabled.utf8_accept
    }

    /// The account. BAD before login.
    pub fn account(&self) -> Result<Arc<Account>, Stop> {
        match &self.login {
            Some(login) => Ok(Arc::clone(&login.account)),
            None => Err(Done::bad("Log in first").into()),
        }
    }

    /// The selected mailbox. BAD when none is.
    pub fn selected(&mut self) -> Result<&mut Selected, Stop> {
        self.selected.as_mut().ok_or_else(|| Done::bad("Select a mailbox first").into())
    }

    /// The selected mailbox for a command that changes it. NO when it was opened by EXAMINE.
    pub fn selected_for_writing(&mut self) -> Result<&mut Selected, Stop> {
        let selected = self.selected()?;
        if selected.read_only {
            return Err(Done::no("The mailbox was opened read-only").with_code("NOPERM").into());
        }
        Ok(selected)
    }

    /// The client has used something of CONDSTORE. The first time with a mailbox selected, it is told the HIGHESTMODSEQ
    /// (RFC 7162 §3.1).
    pub fn enable_condstore(&mut self, out: &mut Output) {
        if std::mem::replace(&mut self.enabled.condstore, true) {
            return;
        }
        if let Some(selected) = &self.selected {
            let modseq = selected.view.highest_modseq();
            out.push_fmt(format_args!("* OK [HIGHESTMODSEQ {modseq}] CONDSTORE is on\r\n"));
        }
    }

    /// Makes the file of the selected mailbox, if it has one, show what was changed. One that is locked is written later.
    pub fn write_back(&self, moment: Moment) -> Result<(), Stop> {
        let (Ok(account), Some(selected)) = (self.account(), &self.selected) else { return Ok(()) };
        if selected.read_only {
            return Ok(());
        }
        match account.write_back(selected.mailbox, moment) {
            Err(error) if error.kind() != ErrorKind::InUse => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The selected mailbox is left. What cannot be written into its file now is written when it is idle: leaving never fails.
    pub fn leave(&mut self, moment: Moment) -> Option<Selected> {
        let _later = self.write_back(moment);
        self.selected.take()
    }

    /// IDLE is over: no more wake-ups.
    pub fn stop_idling(&mut self) {
        self.idle = false;
        if let Some(selected) = &mut self.selected {
            selected.listener = None;
        }
    }

    /// What an unsolicited FETCH has in it. The UID is there for all who can know that it may be (RFC 7162 §3.2.4 demands it after
    /// QRESYNC, RFC 5465 §5.1 after NOTIFY, RFC 9051 §7.5.2 allows it), MODSEQ for the CONDSTORE-aware (RFC 7162 §3.1).
    pub fn unsolicited_flags(&self) -> FlagsLine {
        FlagsLine {
            uid: self.enabled.condstore || self.enabled.imap4rev2 || self.notify.is_some(),
            flags: true,
            modseq: self.enabled.condstore,
            recent_from: self.recent_from(),
        }
    }

    /// From which UID on entries are `\Recent` to this client; `None` in IMAP4rev2, which knows no such flag (RFC 9051 §2.3.2).
    pub fn recent_from(&self) -> Option<Uid> {
        let selected = self.selected.as_ref()?;
        if self.enabled.imap4rev2 { None } else { selected.view.recent_from() }
    }
}

impl Selected {
    /// A view just opened.
    pub fn new(view: View, read_only: bool) -> Self {
        Selected {
            mailbox: view.mailbox(),
            view,
            read_only,
            saved: UidSet::new(),
            contexts: Vec::new(),
            own: OwnChanges::default(),
            told_gone: false,
            listener: None,
        }
    }

    /// The sequence numbers that a set names. With `uid`, numbers of entries that are not there are left out (RFC 9051 §6.4.9);
    /// without, a number that is not in the mailbox is BAD (RFC 9051 §9 seq-number).
    pub fn seqs(&self, set: &SequenceSet, uid: bool) -> Result<NumSet, Stop> {
        let named = if uid {
            self.view.seqs_of(&set.resolve(self.view.last_uid().map_or(0, Uid::get)))
        } else if set.exceeds(self.view.exists()) {
            return Err(Done::bad("There is no message of that number").into());
        } else {
            set.resolve(self.view.exists())
        };
        Ok(if set.saved { named.union(&self.view.seqs_of(&self.saved)) } else { named })
    }

    /// The UIDs of the entries that a set names; see [`Selected::seqs`].
    pub fn uids(&self, set: &SequenceSet, uid: bool) -> Result<UidSet, Stop> {
        Ok(self.view.uids_of(&self.seqs(set, uid)?))
    }

    /// The last `count` entries, which are those that came last.
    pub fn added(&self, count: u32) -> UidSet {
        let first = self.view.exists().saturating_sub(count).saturating_add(1);
        self.view.rows(first..=u32::MAX).map(|entry| entry.uid).collect()
    }

    /// How many entries are `\Recent` for this view.
    pub fn recent_count(&self) -> u64 {
        match self.view.recent_from() {
            Some(from) => self.view.seqs_of(&UidSet::range(from.get(), Uid::LAST.get())).len(),
            None => 0,
        }
    }
}
