//! What a client is told between commands (RFC 5465): the events that it asked for, found by comparing two moments of the account.
//!
//! Invariants:
//! * Nothing is queued for a client: what it has not been told yet is the difference between the moment that it knows and now. A client
//!   that does not read costs no more than one that does.
//! * Of the messages in the selected mailbox only [`Updates`] speaks, of all else only [`Notices`].
//! * What this session did itself is no news to its client (RFC 5465 §5).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use imap_proto::command::{FetchAtt, StatusAtt};
use model::{ErrorKind, HIERARCHY_DELIMITER, MailboxId, MailboxName, Uid, UidSet};
use store::{Account, AccountFormat, EntryNews, ListenerGuard, MailboxInfo, Naming, News, Snapshot};

use super::cmd::{list, status};
use super::reply::{Done, Stop};
use super::state::Session;
use super::updates::{Updates, Why};
use super::wanted::Wanted;
use super::write;
use crate::Output;

/// Responses that one look may bring; with more, the client is told that it will hear nothing any more (RFC 5465 §5.8).
pub(crate) const NOTICES_MAX: usize = 10_000;
/// Mailboxes in files of other programs that one client may watch: each costs a question to the file system whenever something happens.
pub(crate) const WATCHED_FILES_MAX: usize = 1000;
/// Names of entries in one METADATA response.
const ENTRIES_PER_LINE: usize = 16;
/// How long it is waited when a file has changed and is locked: whoever changed it is about to be done.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

/// What a client wants to hear of, since its last NOTIFY.
pub(crate) struct Watch {
    /// Of the selected mailbox; `None`: nothing.
    pub selected: Option<SelectedEvents>,
    groups: Vec<Group>,
    /// What the client has been told.
    seen: Snapshot,
    /// What this session has done since.
    own: Own,
    /// Whether other programs can change mail without the log knowing.
    has_files: bool,
    /// When to look at a file again that was locked.
    again: Option<Duration>,
    listener: Option<ListenerGuard>,
}

/// What is to be told of the selected mailbox: new and expunged messages at least (RFC 5465 §5).
pub(crate) struct SelectedEvents {
    /// Expunges only when a command allows it (RFC 5465 §6.1.2).
    pub delayed: bool,
    /// Flags, too.
    pub flags: bool,
    /// What is fetched of new messages.
    pub items: Vec<FetchAtt>,
}

/// What is to be told of other mailboxes.
pub(crate) struct Group {
    /// Which mailboxes.
    pub wanted: Wanted,
    /// What of them.
    pub events: Events,
}

/// Which events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    /// New and expunged messages, which come together only.
    pub messages: bool,
    /// Flags.
    pub flags: bool,
    /// Mailboxes made, renamed, deleted.
    pub names: bool,
    /// Subscriptions.
    pub subscriptions: bool,
    /// What is noted with the mailboxes (RFC 5464).
    pub entries: bool,
    /// What is noted with the account, whichever the mailboxes are.
    pub server_entries: bool,
}

impl Events {
    fn or(self, other: Events) -> Events {
        Events {
            messages: self.messages || other.messages,
            flags: self.flags || other.flags,
            names: self.names || other.names,
            subscriptions: self.subscriptions || other.subscriptions,
            entries: self.entries || other.entries,
            server_entries: self.server_entries || other.server_entries,
        }
    }
}

/// What a session has done itself and its client knows.
#[derive(Default)]
struct Own {
    added: BTreeMap<MailboxId, UidSet>,
    names: BTreeSet<MailboxName>,
    /// Entries of mailboxes, and of the account.
    entries: BTreeMap<Option<MailboxId>, BTreeSet<String>>,
}

impl Watch {
    /// From now on. NOTIFICATIONOVERFLOW when it would cost too much.
    pub fn new(
        session: &Session,
        account: &Arc<Account>,
        selected: Option<SelectedEvents>,
        groups: Vec<Group>,
    ) -> Result<Watch, Stop> {
        // First listen, then look: a change in between is seen by the next look.
        let listens = selected.is_some() || !groups.is_empty();
        let listener = listens.then(|| account.listen(Arc::clone(&session.waker)));
        let has_files = account.format()? != AccountFormat::Native;
        let seen = account.snapshot();
        let watch = Watch { selected, groups, seen, own: Own::default(), has_files, again: None, listener };
        if has_files && watch.watched(&watch.seen).count() > WATCHED_FILES_MAX {
            let done = Done::no("These are too many files to watch (limit watched_files_max)");
            return Err(done.with_code("NOTIFICATIONOVERFLOW").into());
        }
        Ok(watch)
    }

    /// As after NOTIFY NONE.
    fn silence(&mut self) {
        (self.selected, self.groups, self.listener, self.again) = (None, Vec::new(), None, None);
    }

    fn events(&self, name: &MailboxName, subscribed: bool) -> Events {
        let groups = self.groups.iter().filter(|group| group.wanted.has(name, subscribed));
        groups.fold(Events::default(), |events, group| events.or(group.events))
    }

    /// The mailboxes whose messages are watched, and what is wanted of them.
    fn watched<'a>(&'a self, now: &'a Snapshot) -> impl Iterator<Item = (MailboxId, &'a MailboxName, Events)> {
        let all = now.mailboxes().map(|(id, name)| (id, name, self.events(name, now.is_subscribed(name))));
        all.filter(|(_, _, events)| events.messages)
    }

    /// The lines that `NOTIFY SET STATUS` brings (RFC 5465 §3.1): of watched mailboxes but the selected one.
    pub fn status(&self, selected: Option<MailboxId>) -> Notices {
        let watched = self.watched(&self.seen).filter(|(id, ..)| Some(*id) != selected);
        let lines = watched.map(|(id, name, events)| {
            let mut items = vec![StatusAtt::Messages, StatusAtt::UidNext, StatusAtt::UidValidity];
            items.extend(events.flags.then_some(StatusAtt::HighestModSeq));
            Line::Status(id, name.clone(), items)
        });
        Notices { lines: lines.collect(), updates: None }
    }

    /// Which of these entries, which are new in a mailbox, this session has not put there itself.
    pub fn not_own(&self, mailbox: MailboxId, added: &UidSet) -> UidSet {
        self.own.added.get(&mailbox).map_or_else(|| added.clone(), |own| added.difference(own))
    }

    /// Takes in what other programs did to watched files.
    fn look_at_files(&mut self, account: &Account, selected: Option<MailboxId>, now: Duration) {
        if !self.has_files {
            return;
        }
        let moment = account.snapshot();
        let watched = self.watched(&moment).map(|(id, ..)| id).chain(selected);
        // What is wrong with a file is told to who asks for something in it.
        let is_locked = watched.fold(false, |locked, id| locked | !account.try_refresh(id).unwrap_or(true));
        self.again = is_locked.then(|| now.saturating_add(LOCKED_PAUSE));
    }
}

impl Session {
    /// Messages that this session has put into a mailbox are no news.
    pub fn note_added(&mut self, mailbox: MailboxId, uids: impl Iterator<Item = Uid>) {
        if let Some(watch) = &mut self.notify {
            let own = watch.own.added.entry(mailbox).or_default();
            uids.for_each(|uid| own.insert(uid.get()));
        }
    }

    /// A name that this session has made, renamed, deleted or subscribed is no news, nor are those above it that were made with it.
    pub fn note_name(&mut self, name: &MailboxName) {
        if let Some(watch) = &mut self.notify {
            watch.own.names.extend(std::iter::successors(Some(name.clone()), MailboxName::parent));
        }
    }

    /// Entries that this session has set are no news.
    pub fn note_entries(&mut self, mailbox: Option<MailboxId>, entries: Vec<String>) {
        if let Some(watch) = &mut self.notify {
            watch.own.entries.entry(mailbox).or_default().extend(entries);
        }
    }

    /// Whether anything is said of messages in the selected mailbox that its client did not do itself.
    pub fn hears_of_selected(&self) -> bool {
        self.notify.as_ref().is_none_or(|watch| watch.selected.is_some())
    }

    /// Whether flags that others change are said.
    pub fn hears_of_flags(&self) -> bool {
        let Some(watch) = &self.notify else { return true };
        watch.selected.as_ref().is_some_and(|selected| selected.flags)
    }

    /// When a file that was locked is to be looked at again.
    pub fn looks_again_at(&self) -> Option<Duration> {
        self.notify.as_ref().and_then(|watch| watch.again)
    }
}

/// What is to be told now.
#[derive(Default)]
pub(crate) struct Notices {
    lines: VecDeque<Line>,
    updates: Option<Updates>,
}

enum Line {
    /// LIST, with OLDNAME.
    List(Box<MailboxInfo>, Option<MailboxName>),
    /// STATUS.
    Status(MailboxId, MailboxName, Vec<StatusAtt>),
    /// METADATA: names of entries, at most [`ENTRIES_PER_LINE`]; of the account without a mailbox.
    Metadata(Option<MailboxName>, Vec<String>),
    /// There is too much.
    Overflow,
}

impl Notices {
    /// Looks what a client that has said NOTIFY is to be told now. `None`: nothing. `expunges`: also those that it wants delayed.
    pub fn look(session: &mut Session, expunges: bool) -> Option<Notices> {
        let account = session.account().ok()?;
        let selected = session.selected.as_ref().map(|selected| selected.mailbox);
        let condstore = session.enabled.condstore;
        let monotonic = session.now.monotonic;
        let watch = session.notify.as_mut()?;
        watch.look_at_files(&account, selected, monotonic);
        let now = account.snapshot();
        let mut lines = VecDeque::new();
        if !now.is_same(&watch.seen) && !watch.groups.is_empty() {
            let news = now.news_since(&watch.seen);
            watch.name_lines(&account, &now, &news, &mut lines);
            watch.status_lines(&now, &news, selected, condstore, &mut lines);
            watch.metadata_lines(&now, &mut lines);
        }
        watch.seen = now;
        if lines.len() > NOTICES_MAX {
            watch.silence();
            lines = VecDeque::from([Line::Overflow]);
        }
        let delayed = watch.selected.as_ref().is_none_or(|selected| selected.delayed);
        let updates = Updates::new(session, expunges || !delayed, Why::Passing);
        session.notify.as_mut()?.own = Own::default();
        (!lines.is_empty() || updates.is_some()).then_some(Notices { lines, updates })
    }

    /// Writes until the output is full; true when all is said.
    pub fn pull(&mut self, session: &mut Session, out: &mut Output) -> bool {
        while !out.is_full() {
            match self.lines.pop_front() {
                Some(line) => line.write(session, out),
                None => return self.updates.as_mut().is_none_or(|updates| updates.pull(session, out)),
            }
        }
        false
    }
}

impl Watch {
    /// LIST responses: names that were made, deleted or renamed, and subscriptions (RFC 5465 §5.4, §5.5).
    fn name_lines(&self, account: &Account, now: &Snapshot, news: &[News], lines: &mut VecDeque<Line>) {
        let is_own = |name: &MailboxName| self.own.names.contains(name);
        let hears = |name: &MailboxName| {
            let subscribed = now.is_subscribed(name) || self.seen.is_subscribed(name);
            self.events(name, subscribed)
        };
        let old_name = |news: &News| match &news.naming {
            Naming::Renamed(old) => Some(old.clone()),
            _ => None,
        };
        let renamed: BTreeMap<MailboxName, MailboxName> =
            news.iter().filter_map(|news| Some((news.name.clone(), old_name(news)?))).collect();
        // A name, and the one that it had.
        let mut affected: BTreeMap<MailboxName, Option<MailboxName>> = BTreeMap::new();
        for news in news.iter().filter(|news| !is_own(&news.name)) {
            match &news.naming {
                Naming::Created | Naming::Deleted => {
                    // The mailbox itself, and its direct parent.
                    let names = std::iter::once(news.name.clone()).chain(news.name.parent());
                    names.filter(|name| hears(name).names).for_each(|name| {
                        affected.entry(name).or_default();
                    });
                }
                Naming::Renamed(old) if !is_moved_along(&news.name, old, &renamed) => {
                    if hears(&news.name).names || hears(old).names {
                        affected.insert(news.name.clone(), Some(old.clone()));
                    }
                }
                Naming::Renamed(_) | Naming::Same => {}
            }
        }
        for name in now.subscriptions_since(&self.seen) {
            if !is_own(&name) && hears(&name).subscriptions {
                affected.entry(name).or_default();
            }
        }
        if affected.is_empty() {
            return;
        }
        let mut infos: BTreeMap<MailboxName, MailboxInfo> =
            account.mailboxes().into_iter().map(|info| (info.name.clone(), info)).collect();
        lines.extend(affected.into_iter().map(|(name, old)| {
            let info = infos.remove(&name).unwrap_or_else(|| MailboxInfo {
                id: None,
                name,
                special_use: Vec::new(),
                subscribed: false,
                has_children: false,
            });
            Line::List(Box::new(info), old)
        }));
    }

    /// STATUS responses: messages and flags in mailboxes that are not selected (RFC 5465 §5.1 to §5.3).
    fn status_lines(
        &self,
        now: &Snapshot,
        news: &[News],
        selected: Option<MailboxId>,
        condstore: bool,
        lines: &mut VecDeque<Line>,
    ) {
        for news in news.iter().filter(|news| Some(news.id) != selected && news.naming != Naming::Deleted) {
            let events = self.events(&news.name, now.is_subscribed(&news.name));
            let is_added = !self.not_own(news.id, &news.added).is_empty();
            let messages = events.messages && (is_added || news.expunged);
            // RFC 5465 §5.1: who watches flags hears of another UIDVALIDITY: the name may have been that of another mailbox.
            let is_another = news.naming != Naming::Same && !self.own.names.contains(&news.name);
            let flags = events.flags && (news.flags && (news.unseen || condstore) || is_another);
            if !messages && !flags {
                continue;
            }
            let mut items = Vec::new();
            if messages {
                items.extend([StatusAtt::UidNext, StatusAtt::Messages]);
            }
            if flags {
                items.push(StatusAtt::UidValidity);
                items.extend(news.unseen.then_some(StatusAtt::Unseen));
            }
            // RFC 5465 §5.2, §5.3: for who has enabled CONDSTORE or QRESYNC.
            items.extend(condstore.then_some(StatusAtt::HighestModSeq));
            lines.push_back(Line::Status(news.id, news.name.clone(), items));
        }
    }
}

impl Watch {
    /// METADATA responses with the names of entries (RFC 5465 §5.6, §5.7; RFC 5464 §4.4.2).
    fn metadata_lines(&self, now: &Snapshot, lines: &mut VecDeque<Line>) {
        if !self.groups.iter().any(|group| group.events.entries || group.events.server_entries) {
            return;
        }
        for EntryNews { mailbox, mut names } in now.entries_since(&self.seen) {
            let is_heard = match &mailbox {
                Some((_, name)) => self.events(name, now.is_subscribed(name)).entries,
                None => self.groups.iter().any(|group| group.events.server_entries),
            };
            if let Some(own) = self.own.entries.get(&mailbox.as_ref().map(|(id, _)| *id)) {
                names.retain(|name| !own.contains(name));
            }
            if is_heard {
                let name = mailbox.map(|(_, name)| name);
                let some = names.chunks(ENTRIES_PER_LINE);
                lines.extend(some.map(|names| Line::Metadata(name.clone(), names.to_vec())));
            }
        }
    }
}

/// Whether a mailbox was renamed because one above it was: that is no event of its own (RFC 5465 §5.4).
fn is_moved_along(name: &MailboxName, old: &MailboxName, renamed: &BTreeMap<MailboxName, MailboxName>) -> bool {
    let mut above = std::iter::successors(name.parent(), MailboxName::parent);
    above.any(|parent| {
        let Some(old_parent) = renamed.get(&parent) else { return false };
        let below = |name: &MailboxName, parent: &MailboxName| {
            name.as_str()
                .strip_prefix(parent.as_str())
                .map(str::to_owned)
                .filter(|rest| rest.starts_with(HIERARCHY_DELIMITER))
        };
        below(name, &parent).is_some_and(|rest| below(old, old_parent) == Some(rest))
    })
}

impl Line {
    fn write(self, session: &Session, out: &mut Output) {
        match self {
            Line::List(info, old) => {
                list::line(session, &info, list::Extra::of_notice(old.map(|old| old.as_str().to_owned())), out);
            }
            Line::Status(id, name, items) => match session.account().map(|account| account.status(id)) {
                Ok(Ok(found)) => status::line(session, &name, &found, &items, out),
                // Deleted meanwhile: the next look says so.
                Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {}
                Ok(Err(error)) => session.context.observer.error(&session.connection, "NOTIFY", &error),
                Err(_logged_out) => {}
            },
            Line::Metadata(mailbox, names) => {
                out.push_str("* METADATA ");
                match mailbox {
                    Some(mailbox) => write::mailbox(out.bytes_mut(), &mailbox, session.name_encoding()),
                    None => out.push_str("\"\""),
                }
                for name in names {
                    out.push_str(" ");
                    write::astring(out.bytes_mut(), name.as_bytes());
                }
                out.push_str("\r\n");
            }
            Line::Overflow => {
                out.push_str("* OK [NOTIFICATIONOVERFLOW] Too much happens (limit notices_max); say NOTIFY again\r\n");
            }
        }
    }
}
