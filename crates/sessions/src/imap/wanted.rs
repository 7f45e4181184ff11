//! Which mailboxes a source of ESEARCH (RFC 7377 §2.2) or of NOTIFY (RFC 5465 §6) stands for.

use std::collections::HashSet;

use imap_proto::command::SearchSource;
use imap_proto::{MailboxArg, NameEncoding};
use model::{MailboxName, Result};

/// Mailboxes that one source stands for; the selected one is not among these sources.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// All of the user's own.
    All,
    /// Those that are subscribed.
    Subscribed,
    /// These, and those so many levels below them.
    Named(HashSet<MailboxName>, usize),
}

impl Wanted {
    /// `None` for the selected mailbox.
    pub fn new(source: &SearchSource, encoding: NameEncoding) -> Result<Option<Self>> {
        let named = |mailboxes: &[MailboxArg], depth| -> Result<Option<Wanted>> {
            let names: Result<HashSet<MailboxName>> =
                mailboxes.iter().map(|mailbox| mailbox.decode(encoding)).collect();
            Ok(Some(Wanted::Named(names?, depth)))
        };
        match source {
            SearchSource::Selected => Ok(None),
            // RFC 5465 §6.3: a server that cannot tell where mail may be delivered to takes all personal ones.
            SearchSource::Inboxes | SearchSource::Personal => Ok(Some(Wanted::All)),
            SearchSource::Subscribed => Ok(Some(Wanted::Subscribed)),
            SearchSource::Mailboxes(mailboxes) => named(mailboxes, 0),
            SearchSource::SubtreeOne(mailboxes) => named(mailboxes, 1),
            SearchSource::Subtree(mailboxes) => named(mailboxes, usize::MAX),
        }
    }

    /// Whether a mailbox of that name is among them.
    pub fn has(&self, name: &MailboxName, subscribed: bool) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Subscribed => subscribed,
            Wanted::Named(names, depth) => {
                let above = std::iter::successors(name.parent(), MailboxName::parent);
                names.contains(name) || above.take(*depth).any(|name| names.contains(&name))
            }
        }
    }
}
