//! The mailboxes of an account: names, hierarchy, subscriptions (RFC 9051 §6.3.4 to §6.3.9).

use std::collections::BTreeMap;

use index::{State, Transaction};
use model::{Error, ErrorKind, MailboxId, MailboxName, Result, SpecialUse, UidSet};

use crate::account::{Account, MailboxInfo, no_mailbox};
use crate::edit::Edit;

impl Account {
    /// Every mailbox, every subscribed name and every name above a mailbox, sorted by name, as of one moment.
    pub fn mailboxes(&self) -> Vec<MailboxInfo> {
        if let Some(files) = self.inner.files() {
            files.discover();
        }
        // When the database cannot be asked, what was known last is better than nothing.
        let _ = self.inner.log().catch_up();
        let state = self.inner.state();
        let mut infos: BTreeMap<MailboxName, MailboxInfo> = BTreeMap::new();
        for mailbox in state.mailboxes() {
            let info = entry(&mut infos, mailbox.name());
            info.id = Some(mailbox.id());
            info.special_use = mailbox.special_uses().collect();
            let mut parent = mailbox.name().parent();
            while let Some(name) = parent {
                let info = entry(&mut infos, &name);
                if info.has_children {
                    // Whoever marked it has marked everything above it.
                    break;
                }
                info.has_children = true;
                parent = name.parent();
            }
        }
        for name in state.subscriptions() {
            entry(&mut infos, name).subscribed = true;
        }
        infos.into_values().collect()
    }

    /// The mailbox of this name; [`ErrorKind::NotFound`].
    pub fn mailbox(&self, name: &MailboxName) -> Result<MailboxId> {
        self.inner.log().catch_up()?;
        let find = || self.inner.state().mailbox_named(name).map(|mailbox| mailbox.id());
        if let (None, Some(files)) = (find(), self.inner.files()) {
            // Others may just have made it.
            files.look_for(name)?;
        }
        find().ok_or_else(|| not_there(name))
    }

    /// The present name of a mailbox; `None` once it is deleted.
    pub fn mailbox_name(&self, id: MailboxId) -> Option<MailboxName> {
        self.inner.state().mailbox(id).map(|mailbox| mailbox.name().clone())
    }
}

impl Edit<'_> {
    /// Makes a mailbox, and its missing parents (RFC 9051 §6.3.4). A special use that another mailbox has is allowed (RFC 6154 §3).
    pub fn create_mailbox(&mut self, name: &MailboxName, special_use: &[SpecialUse]) -> Result<MailboxId> {
        self.effects.names = true;
        self.check_name(name)?;
        create_parents(self.transaction, name)?;
        self.transaction.create_mailbox(name, special_use)
    }

    /// Removes a mailbox and its entries; its children stay (RFC 9051 §6.3.5). Not INBOX.
    pub fn delete_mailbox(&mut self, name: &MailboxName) -> Result<()> {
        if name.is_inbox() {
            return Err(Error::new(ErrorKind::NotPermitted, "INBOX cannot be deleted"));
        }
        self.effects.names = true;
        let state = self.transaction.state();
        match state.mailbox_named(name).map(|mailbox| mailbox.id()) {
            Some(id) => {
                let hidden = state.mailbox_named(&MailboxName::hidden(id)).map(|mailbox| mailbox.id());
                self.files.map_or(Ok(()), |files| files.part_with(self.transaction, id))?;
                self.transaction.delete_mailbox(id)?;
                hidden.map_or(Ok(()), |hidden| self.transaction.delete_mailbox(hidden))
            }
            // RFC 9051 §6.3.5: a name that is only there because of its children cannot be deleted.
            None if has_children(state, name) => {
                Err(Error::new(ErrorKind::NotPermitted, format!("{name} is no mailbox, only the name above others")))
            }
            None => Err(not_there(name)),
        }
    }

    /// Renames a mailbox and those below it; of INBOX, moves the entries and leaves it empty (RFC 9051 §6.3.6). Missing parents
    /// of the new name are made. Subscriptions stay with the names.
    pub fn rename_mailbox(&mut self, from: &MailboxName, to: &MailboxName) -> Result<()> {
        self.effects.names = true;
        self.check_name(to)?;
        if from.is_inbox() {
            return self.rename_inbox(from, to);
        }
        let transaction = &mut *self.transaction;
        if to.is_below(from) {
            return Err(Error::new(ErrorKind::Invalid, "a mailbox cannot be moved below itself"));
        }
        if transaction.state().mailbox_named(to).is_some() {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("there is a mailbox {to} already")));
        }
        if let Some(id) = transaction.state().mailbox_named(from).map(|mailbox| mailbox.id()) {
            self.files.map_or(Ok(()), |files| files.check_rename(id))?;
            create_parents(transaction, to)?;
            return transaction.rename_mailbox(id, to);
        }
        rename_children(transaction, from, to)
    }

    /// RFC 9051 §6.3.6: renaming INBOX moves its messages to a new mailbox and leaves INBOX and what is below it.
    fn rename_inbox(&mut self, inbox: &MailboxName, to: &MailboxName) -> Result<()> {
        let state = self.transaction.state();
        let from = state.mailbox_named(inbox).map(|mailbox| mailbox.id()).ok_or_else(no_mailbox)?;
        create_parents(self.transaction, to)?;
        let to = self.transaction.create_mailbox(to, &[])?;
        self.copy_metadata(from, to)?;
        self.move_entries(from, &UidSet::range(1, u32::MAX), to)?;
        Ok(())
    }

    /// A mailbox whose messages lie in a file has a name that a file can have.
    fn check_name(&self, name: &MailboxName) -> Result<()> {
        self.files.map_or(Ok(()), |files| files.check_name(name))
    }

    /// Subscribes or unsubscribes a name, which need not exist (RFC 9051 §6.3.7). Idempotent.
    pub fn set_subscribed(&mut self, name: &MailboxName, subscribed: bool) -> Result<()> {
        if subscribed {
            return self.transaction.subscribe(name);
        }
        self.transaction.unsubscribe(name);
        Ok(())
    }
}

/// One change each, durable when they return; see the functions of [`Edit`] that have the same names.
impl Account {
    /// [`Edit::create_mailbox`]
    pub fn create_mailbox(&self, name: &MailboxName, special_use: &[SpecialUse]) -> Result<MailboxId> {
        self.edit(|edit| edit.create_mailbox(name, special_use))
    }

    /// [`Edit::delete_mailbox`]
    pub fn delete_mailbox(&self, name: &MailboxName) -> Result<()> {
        self.edit(|edit| edit.delete_mailbox(name))
    }

    /// [`Edit::rename_mailbox`]
    pub fn rename_mailbox(&self, from: &MailboxName, to: &MailboxName) -> Result<()> {
        self.edit(|edit| edit.rename_mailbox(from, to))
    }

    /// [`Edit::set_subscribed`]
    pub fn set_subscribed(&self, name: &MailboxName, subscribed: bool) -> Result<()> {
        self.edit(|edit| edit.set_subscribed(name, subscribed))
    }

    /// Says what a mailbox is for, instead of what was said before (RFC 6154 §5.4 by way of METADATA, or an administrator).
    pub fn set_special_use(&self, id: MailboxId, special_use: &[SpecialUse]) -> Result<()> {
        self.commit(|transaction| transaction.set_special_uses(id, special_use))
    }
}

fn entry<'a>(infos: &'a mut BTreeMap<MailboxName, MailboxInfo>, name: &MailboxName) -> &'a mut MailboxInfo {
    infos.entry(name.clone()).or_insert_with(|| MailboxInfo {
        id: None,
        name: name.clone(),
        special_use: Vec::new(),
        subscribed: false,
        has_children: false,
    })
}

fn not_there(name: &MailboxName) -> Error {
    no_mailbox().context(name)
}

fn has_children(state: &State, name: &MailboxName) -> bool {
    state.mailboxes_below(name).next().is_some()
}

/// RFC 9051 §6.3.4: "the server SHOULD create any superior hierarchical names that are needed".
pub(crate) fn create_parents(transaction: &mut Transaction, name: &MailboxName) -> Result<()> {
    let mut missing = Vec::new();
    let mut parent = name.parent();
    while let Some(name) = parent {
        parent = name.parent();
        if transaction.state().mailbox_named(&name).is_none() {
            missing.push(name);
        }
    }
    for name in missing.iter().rev() {
        transaction.create_mailbox(name, &[])?;
    }
    Ok(())
}

/// Renames what lies below a name that is no mailbox itself.
fn rename_children(transaction: &mut Transaction, from: &MailboxName, to: &MailboxName) -> Result<()> {
    if !has_children(transaction.state(), from) {
        return Err(not_there(from));
    }
    create_parents(transaction, to)?;
    // Each rename takes along what is below it, so the next one is looked for anew.
    loop {
        let next =
            transaction.state().mailboxes_below(from).next().map(|mailbox| (mailbox.id(), mailbox.name().clone()));
        let Some((id, name)) = next else { return Ok(()) };
        let renamed = name.rebased(from, to).ok_or_else(no_mailbox)??;
        transaction.rename_mailbox(id, &renamed)?;
    }
}
