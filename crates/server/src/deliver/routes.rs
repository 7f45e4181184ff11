//! From an address to an account (docs/delivery.md).

use std::sync::Arc;

use model::{AccountName, Error, ErrorKind, MailboxName, Result};
use sessions::lmtp::{Address, Destination, Place, Recipients};

use crate::config::{Aliases, DeliverySection};
use crate::users::Directory;

/// The users, and the addresses that the configuration gives them.
pub struct Routes {
    users: Arc<Directory>,
    rules: Rules,
}

impl Routes {
    /// As it is configured.
    pub fn new(delivery: &DeliverySection, users: Arc<Directory>) -> Self {
        let domains = delivery.domains.iter().map(|domain| domain.to_lowercase()).collect();
        let rules = Rules { domains, aliases: delivery.aliases.clone(), separator: delivery.detail_separator.clone() };
        Routes { users, rules }
    }
}

impl Recipients for Routes {
    fn destination(&self, address: &Address) -> Result<Destination> {
        let users = self.users.current();
        let found = self.rules.find(address.local(), address.domain(), &|name| users.users.contains_key(name));
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("nobody has the address {}", address.as_str())))
    }
}

struct Rules {
    domains: Vec<String>,
    aliases: Aliases,
    separator: String,
}

impl Rules {
    /// In this order: the whole local part, the local part without a detail, the catch-all; each in its domain, then in all of them.
    fn find(&self, local: &str, domain: Option<&str>, is_user: &dyn Fn(&AccountName) -> bool) -> Option<Destination> {
        let is_ours =
            domain.is_none_or(|domain| self.domains.is_empty() || self.domains.iter().any(|ours| ours == domain));
        let names = |local: &str| {
            let full = domain.map(|domain| format!("{local}@{domain}"));
            full.into_iter().chain(is_ours.then(|| local.to_owned()))
        };
        let named = |local: &str| {
            names(local).find_map(|name| {
                let user = AccountName::new(&name).ok().filter(|user| is_user(user));
                user.map(|user| (user, None)).or_else(|| self.alias(&name, is_user))
            })
        };
        if let Some((account, detail)) = named(local) {
            return Some(Destination { account, place: place(detail) });
        }
        if let Some((base, detail)) = self.split(local)
            && let Some((account, _)) = named(base)
        {
            return Some(Destination { account, place: place(Some(detail)) });
        }
        let (account, detail) = names("").find_map(|name| match name.as_str() {
            "" => self.alias("@", is_user),
            catch_all => self.alias(catch_all, is_user),
        })?;
        Some(Destination { account, place: place(detail) })
    }

    /// To whom an alias leads: a user, with a detail or without.
    fn alias(&self, name: &str, is_user: &dyn Fn(&AccountName) -> bool) -> Option<(AccountName, Option<&str>)> {
        let target = self.aliases.0.get(&name.to_lowercase())?;
        let user = |name: &str| AccountName::new(name).ok().filter(|user| is_user(user));
        if let Some(user) = user(target) {
            return Some((user, None));
        }
        let (base, detail) = self.split(target)?;
        Some((user(base)?, Some(detail)))
    }

    fn split<'t>(&self, local: &'t str) -> Option<(&'t str, &'t str)> {
        let separator = Some(self.separator.as_str()).filter(|separator| !separator.is_empty())?;
        local.split_once(separator).filter(|(base, detail)| !base.is_empty() && !detail.is_empty())
    }
}

/// What is no name of a mailbox leads to INBOX, as what is none that is there does.
fn place(detail: Option<&str>) -> Place {
    detail.and_then(|detail| MailboxName::new(detail).ok()).map_or(Place::Inbox, Place::IfThere)
}

/// Users by their names, and their mailboxes: `ann`, or `ann/INBOX`, as `mailyard deliver` asks for. No name of a user has a slash.
pub struct Named(Arc<Directory>);

impl Named {
    /// Of these users.
    pub fn new(users: Arc<Directory>) -> Self {
        Named(users)
    }
}

impl Recipients for Named {
    fn destination(&self, address: &Address) -> Result<Destination> {
        let (user, mailbox) = match address.local().split_once('/') {
            Some((user, mailbox)) => (user, Some(mailbox)),
            None => (address.local(), None),
        };
        let unknown = || Error::new(ErrorKind::NotFound, format!("there is no user {user}"));
        let account = AccountName::new(user).map_err(|_| unknown())?;
        if !self.0.current().users.contains_key(&account) {
            return Err(unknown());
        }
        let place = mailbox.map(MailboxName::new).transpose()?.map_or(Place::Inbox, Place::Exactly);
        Ok(Destination { account, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_their_users() {
        let aliases = [
            ("sales", "ann"),
            ("old@b.example", "ann+archive"),
            ("@b.example", "bob"),
            ("loop", "loop"),
            ("gone", "nobody"),
        ];
        let mut rules = Rules {
            domains: vec!["a.example".into(), "b.example".into()],
            aliases: Aliases(aliases.into_iter().map(|(from, to)| (from.to_owned(), to.to_owned())).collect()),
            separator: "+".into(),
        };
        let is_user = |name: &AccountName| ["ann", "bob", "bob+x", "cid@c.example"].contains(&name.as_str());
        let find = |rules: &Rules, address: &str| {
            let (local, domain) = address.rsplit_once('@').map_or((address, None), |(l, d)| (l, Some(d)));
            let Destination { account, place } = rules.find(local, domain, &is_user)?;
            Some(match place {
                Place::Inbox => account.to_string(),
                Place::IfThere(name) => format!("{account} {}", name.as_str()),
                Place::Exactly(name) => format!("{account} = {}", name.as_str()),
            })
        };
        for (address, expected) in [
            ("ann", Some("ann")),
            ("Ann@a.example", Some("ann")),
            ("ann@c.example", None),
            ("cid@c.example", Some("cid@c.example")),
            ("cid+x@c.example", Some("cid@c.example x")),
            ("cid@a.example", None),
            ("ann+lists/rust@a.example", Some("ann lists/rust")),
            ("bob+x@a.example", Some("bob+x")),
            ("bob+y@a.example", Some("bob y")),
            ("ann+@a.example", None),
            ("ann+a//b@a.example", Some("ann")),
            ("SALES@a.example", Some("ann")),
            ("sales+q@a.example", Some("ann q")),
            ("old@b.example", Some("ann archive")),
            ("old@a.example", None),
            ("anything@b.example", Some("bob")),
            ("loop@a.example", None),
            ("gone@a.example", None),
        ] {
            assert_eq!(find(&rules, address).as_deref(), expected, "{address}");
        }
        rules.aliases.0.insert("@".into(), "ann".into());
        assert_eq!(find(&rules, "anything@a.example").as_deref(), Some("ann"));
        assert_eq!(find(&rules, "anything@c.example"), None);
        rules.separator.clear();
        assert_eq!(find(&rules, "bob+y@b.example").as_deref(), Some("bob"), "by the catch-all");
    }
}
