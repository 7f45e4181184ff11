//! Accounts: made, found, opened once, removed, and the same after reopening.

use std::sync::Arc;
use std::time::Duration;

use model::{ErrorKind, MailboxName};

use crate::support::{Format, append, fill, flags_of, listed, mailbox, name, whole};

pub fn make_list_remove(format: &Format) {
    let store = format.open();
    format.create(&store, &name("bob")).unwrap();
    format.create(&store, &name("ann@example.org")).unwrap();
    assert_eq!(format.create(&store, &name("bob")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(store.accounts().unwrap(), [name("ann@example.org"), name("bob")]);
    let held = store.account(&name("bob")).unwrap();
    assert_eq!(store.delete_account(&name("bob")).unwrap_err().kind(), ErrorKind::InUse);
    let reader = held.reader();
    drop(held);
    assert_eq!(store.delete_account(&name("bob")).unwrap_err().kind(), ErrorKind::InUse);
    drop(reader);
    store.delete_account(&name("bob")).unwrap();
    assert_eq!(store.accounts().unwrap(), [name("ann@example.org")]);
    for gone in [store.account(&name("bob")).err(), store.delete_account(&name("bob")).err()] {
        assert_eq!(gone.unwrap().kind(), ErrorKind::NotFound);
    }
    format.create(&store, &name("bob")).unwrap();
}

pub fn one_object(format: &Format) {
    let (store, account, inbox) = format.with_account();
    assert!(Arc::ptr_eq(&account, &store.account(&name("ann")).unwrap()));
    assert_eq!(account.name(), &name("ann"));
    append(&account, inbox, b"x", "");
    drop(account);
    // Idle accounts are closed; the next use opens them again.
    while store.maintain().unwrap() {}
    format.sim.clock.advance(Duration::from_secs(store.options().account_idle_seconds + 1));
    while store.maintain().unwrap() {}
    let account = store.account(&name("ann")).unwrap();
    assert_eq!(listed(&account.view(inbox, false).unwrap()), [1]);
}

pub fn one_process(format: &Format) {
    let store = format.open();
    assert_eq!(format.try_open().err().unwrap().kind(), ErrorKind::InUse);
    drop(store);
    format.open();
}

pub fn reopen_keeps_everything(format: &Format) {
    let (store, account, inbox) = format.with_account();
    let work = account.create_mailbox(&mailbox("a/work"), &[model::SpecialUse::Archive]).unwrap();
    account.set_subscribed(&mailbox("a/work"), true).unwrap();
    let large: Vec<u8> = (0..20_000u32).flat_map(|n| n.to_le_bytes()).collect();
    append(&account, inbox, &large, "\\Seen $k");
    fill(&account, work, 3);
    account.move_entries(work, &crate::support::uids("2"), inbox).unwrap();
    let (before, status) = (account.mailboxes(), account.status(inbox).unwrap());
    drop(account);
    drop(store);
    // Once as it was closed, and once more without its index.
    for _ in 0..2 {
        let store = format.open();
        let account = store.account(&name("ann")).unwrap();
        assert_eq!(format!("{:?}", account.mailboxes()), format!("{before:?}"));
        assert_eq!(account.mailbox(&MailboxName::inbox()).unwrap(), inbox);
        assert_eq!(format!("{:?}", account.status(inbox).unwrap()), format!("{status:?}"));
        let view = account.view(inbox, false).unwrap();
        assert_eq!((listed(&view), flags_of(&view, 1)), (vec![1, 2], "\\Seen $k".to_owned()));
        assert_eq!(whole(&account, &view, 1), large);
        assert_eq!(whole(&account, &view, 2), b"Subject: 1\r\n\r\nbody 1\r\n");
        assert_eq!(listed(&account.view(work, false).unwrap()), [1, 3]);
    }
}

pub fn after_a_failed_write(format: &Format) {
    let (store, account, inbox) = format.with_account();
    append(&account, inbox, b"kept", "");
    let view = account.view(inbox, false).unwrap();
    format.sim.disk.fail_at(1);
    let message = crate::support::new_message(&account, b"lost", "");
    assert!(account.append(inbox, vec![message]).is_err());
    format.sim.disk.clear_faults();
    let message = crate::support::new_message(&account, b"refused", "");
    assert_eq!(account.append(inbox, vec![message]).unwrap_err().kind(), ErrorKind::ReadOnlyAfterFailure);
    assert_eq!(whole(&account, &view, 1), b"kept", "reading goes on");
    let anew = store.account(&name("ann")).unwrap();
    assert!(!Arc::ptr_eq(&account, &anew));
    append(&anew, inbox, b"more", "");
    assert_eq!(whole(&account, &view, 1), b"kept");
    let found = anew.view(inbox, false).unwrap();
    let last = found.last_uid().unwrap().get();
    assert_eq!(whole(&anew, &found, last), b"more");
}
