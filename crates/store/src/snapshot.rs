//! All mailboxes at one moment, and what is different at a later one: what NOTIFY (RFC 5465) is told from.

use std::collections::BTreeSet;
use std::sync::Arc;

use index::{Mailbox, State};
use model::{MailboxId, MailboxName, UidSet};

use crate::{Account, Metadata};

/// An account's mailboxes at one moment. Cheap to take and to keep.
#[derive(Clone)]
pub struct Snapshot {
    state: Arc<State>,
}

/// What is different about one mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Which.
    pub id: MailboxId,
    /// Its name at the later moment; of one that is gone, the last that is known.
    pub name: MailboxName,
    /// What became of its name.
    pub naming: Naming,
    /// New entries.
    pub added: UidSet,
    /// Entries are gone.
    pub expunged: bool,
    /// Entries that were there before have other flags.
    pub flags: bool,
    /// The number of entries without `\Seen` is another.
    pub unseen: bool,
}

/// Entries (RFC 5464) that are not as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryNews {
    /// The mailbox that they are of, and its name at the later moment; `None`: the account.
    pub mailbox: Option<(MailboxId, MailboxName)>,
    /// Their names, in order.
    pub names: Vec<String>,
}

/// What became of a mailbox's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// It is the same.
    Same,
    /// The mailbox was not there.
    Created,
    /// The mailbox is not there any more.
    Deleted,
    /// It was another.
    Renamed(MailboxName),
}

impl Account {
    /// All mailboxes as they are now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { state: self.inner.state() }
    }
}

impl Snapshot {
    /// Whether both are the same moment.
    pub fn is_same(&self, other: &Snapshot) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// The mailboxes, by name.
    pub fn mailboxes(&self) -> impl Iterator<Item = (MailboxId, &MailboxName)> {
        self.state.mailboxes().map(|mailbox| (mailbox.id(), mailbox.name()))
    }

    /// Whether a name is subscribed.
    pub fn is_subscribed(&self, name: &MailboxName) -> bool {
        self.state.subscriptions().contains(name)
    }

    /// The names that are subscribed at one of the moments only.
    pub fn subscriptions_since(&self, before: &Snapshot) -> BTreeSet<MailboxName> {
        self.state.subscriptions().symmetric_difference(before.state.subscriptions()).cloned().collect()
    }

    /// The entries (RFC 5464) that are not as they were: of the account (`None`), and of mailboxes that were there before, by the names that
    /// they have now.
    pub fn entries_since(&self, before: &Snapshot) -> Vec<EntryNews> {
        let account = Metadata::of_account(&self.state).changed_since(&Metadata::of_account(&before.state));
        let mailboxes = self.state.mailboxes().filter_map(|mailbox| {
            let old = before.state.mailbox(mailbox.id()).filter(|old| !Arc::ptr_eq(old, mailbox))?;
            let changed = Metadata::of_mailbox(mailbox).changed_since(&Metadata::of_mailbox(old));
            Some(EntryNews { mailbox: Some((mailbox.id(), mailbox.name().clone())), names: changed })
        });
        let account = EntryNews { mailbox: None, names: account };
        std::iter::once(account).chain(mailboxes).filter(|news| !news.names.is_empty()).collect()
    }

    /// What is different since `before`, by identity. Costs a comparison of pointers for each mailbox that is as it was.
    pub fn news_since(&self, before: &Snapshot) -> Vec<News> {
        let mut news = Vec::new();
        for mailbox in self.state.mailboxes() {
            match before.state.mailbox(mailbox.id()) {
                Some(old) if Arc::ptr_eq(old, mailbox) => {}
                old => news.extend(news_of(old.map(|old| &**old), mailbox)),
            }
        }
        let gone = before.state.mailboxes().filter(|old| self.state.mailbox(old.id()).is_none());
        news.extend(gone.map(|old| News::about(old, Naming::Deleted)));
        news.sort_unstable_by_key(|news| news.id);
        news
    }
}

impl News {
    fn about(mailbox: &Mailbox, naming: Naming) -> News {
        let (id, name) = (mailbox.id(), mailbox.name().clone());
        News { id, name, naming, added: UidSet::new(), expunged: false, flags: false, unseen: false }
    }
}

fn news_of(old: Option<&Mailbox>, now: &Mailbox) -> Option<News> {
    let naming = match old {
        None => Naming::Created,
        Some(old) if old.name() != now.name() => Naming::Renamed(old.name().clone()),
        Some(_) => Naming::Same,
    };
    let mut news = News::about(now, naming);
    // Where the UIDs of new entries begin; none are new when the last one was given away before.
    let first_new = old.map_or(Some(1), |old| old.uidnext().map(|uid| uid.get()));
    if let Some(first_new) = first_new {
        news.added = now.existing(&UidSet::range(first_new, u32::MAX));
    }
    if let Some(old) = old {
        let kept = first_new.map_or(now.exists(), |first_new| now.count_below(first_new));
        news.expunged = kept < old.exists();
        let is_old = |uid: u32| first_new.is_none_or(|first_new| uid < first_new);
        news.flags = now.changed_since(old.highest_modseq()).any(|(_, row)| is_old(row.uid.get()));
        news.unseen = now.unseen() != old.unseen();
    }
    let is_news = news.naming != Naming::Same || !news.added.is_empty() || news.expunged || news.flags;
    is_news.then_some(news)
}
