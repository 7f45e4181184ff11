//! Taking care of an account: restore, check, repair, figures.

use std::time::Duration;

use model::ErrorKind;
use store::{StoreFlags, StoreMode};

use crate::support::{Format, append, fill, flags_of, listed, mailbox, name, names, uid, uids, whole};

fn delete(account: &store::Account, id: model::MailboxId, which: &str) {
    let request = StoreFlags { mode: StoreMode::Add, flags: names("\\Deleted"), unchanged_since: None };
    account.store_flags(id, &uids(which), &request).unwrap();
    account.expunge(id, Some(&uids(which))).unwrap();
}

pub fn restore(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    fill(&account, inbox, 5);
    append(&account, inbox, b"kept words", "\\Seen k");
    delete(&account, inbox, "1");
    format.sim.clock.advance(Duration::from_secs(100));
    let since = format.env.clock.now().seconds;
    delete(&account, inbox, "3,6");
    let name = account.mailbox_name(inbox).unwrap();
    let restored = account.restore(&name, since).unwrap();
    assert_eq!((restored.mailbox, restored.uids), (None, vec![(uid(3), uid(7)), (uid(6), uid(8))]));
    let view = account.view(inbox, false).unwrap();
    assert_eq!(listed(&view), [2, 4, 5, 7, 8]);
    assert_eq!((flags_of(&view, 8).as_str(), whole(&account, &view, 8).as_slice()), ("\\Seen k", &b"kept words"[..]));
    assert!(account.restore(&name, since).unwrap().uids.is_empty(), "once");
    assert_eq!(account.restore(&name, 0).unwrap().uids, [(uid(1), uid(9))]);
    assert_eq!(account.restore(&mailbox("none"), 0).unwrap_err().kind(), ErrorKind::NotFound);
}

pub fn restore_mailbox(format: &Format) {
    let (_store, account, _) = format.with_account();
    let id = account.create_mailbox(&mailbox("a/b"), &[]).unwrap();
    fill(&account, id, 2);
    let before = account.status(id).unwrap();
    account.delete_mailbox(&mailbox("a/b")).unwrap();
    account.delete_mailbox(&mailbox("a")).unwrap();
    let restored = account.restore(&mailbox("a/b"), 0).unwrap();
    assert_eq!(restored.mailbox, Some(id));
    let status = account.status(id).unwrap();
    assert_eq!((status.messages, status.uid_validity), (2, before.uid_validity));
}

pub fn check_and_repair(format: &Format) {
    let (store, account, inbox) = format.with_account();
    fill(&account, inbox, 300);
    append(&account, inbox, &vec![b'x'; 70_000], "");
    while store.maintain().unwrap() {}
    fill(&account, inbox, 10);
    let report = account.check().unwrap();
    assert_eq!((report.findings.len(), report.derived), (0, 311), "{:?}", report.findings);
    assert!(report.messages >= 311 && report.records > 0 && report.bytes > 0);
    assert_eq!(store.repair(&name("ann")).unwrap_err().kind(), ErrorKind::InUse);
    let before: Vec<_> = account.view(inbox, false).unwrap().all_rows().collect();
    drop(account);
    store.repair(&name("ann")).unwrap();
    let account = store.account(&name("ann")).unwrap();
    assert_eq!(account.view(inbox, false).unwrap().all_rows().collect::<Vec<_>>(), before);
    assert!(account.check().unwrap().findings.is_empty());
}

pub fn stats(format: &Format) {
    let (store, account, inbox) = format.with_account();
    let other = account.create_mailbox(&mailbox("other"), &[]).unwrap();
    for n in 0..100u32 {
        append(&account, inbox, &n.to_le_bytes().repeat(500), "");
    }
    account.copy(inbox, &uids("1:10"), other).unwrap();
    delete(&account, inbox, "1:20");
    while store.maintain().unwrap() {}
    let stats = account.stats().unwrap();
    assert_eq!((stats.mailboxes, stats.entries, stats.messages), (2, 90, 90));
    assert_eq!((stats.message_bytes, stats.restorable), (90 * 2000, 20));
    let disk = stats.segment_disk_bytes + stats.tail_disk_bytes + stats.index_disk_bytes + stats.other_disk_bytes;
    assert!((disk > 0 || !format.is_on_disk()) && stats.dead_bytes <= stats.sealed_bytes);
}
