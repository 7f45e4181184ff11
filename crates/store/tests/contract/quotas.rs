//! Quotas: what counts, what is refused at one over, what never is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{ErrorKind, Result};
use store::{Account, OwnLimit, OwnLimits, QuotaLimits};

use crate::support::{Format, append, fill, mailbox, names, new_message, uid, uids};

fn held(account: &Account) -> (u64, u64) {
    let quota = account.quota();
    (quota.messages, quota.octets)
}

fn limit(account: &Account, storage_kib: OwnLimit, messages: OwnLimit) {
    account.set_own_limits(OwnLimits { storage_kib, messages }).unwrap();
}

fn refused<T: std::fmt::Debug>(result: Result<T>) {
    assert_eq!(result.unwrap_err().kind(), ErrorKind::OverQuota);
}

pub fn what_counts(format: &Format) {
    let (store, account, inbox) = format.with_account();
    let work = account.create_mailbox(&mailbox("work"), &[]).unwrap();
    assert_eq!(held(&account), (0, 0));
    append(&account, inbox, b"0123456789", "");
    append(&account, inbox, b"01234", "\\Deleted");
    assert_eq!(held(&account), (2, 15));
    assert_eq!(account.status(inbox).unwrap().deleted_size, 5);
    account.copy(inbox, &uids("1"), work).unwrap();
    assert_eq!(held(&account), (3, 25), "a copy counts");
    account.move_entries(inbox, &uids("1"), work).unwrap();
    assert_eq!(held(&account), (3, 25));
    account.expunge(inbox, None).unwrap();
    assert_eq!(held(&account), (2, 20));
    assert_eq!(account.status(inbox).unwrap().deleted_size, 0);
    account.delete_mailbox(&mailbox("work")).unwrap();
    assert_eq!(held(&account), (0, 0));
    fill(&account, inbox, 3);
    let before = held(&account);
    limit(&account, OwnLimit::None, OwnLimit::Limit(7));
    drop(account);
    while store.maintain().unwrap() {}
    format.sim.clock.advance(Duration::from_secs(store.options().account_idle_seconds + 1));
    while store.maintain().unwrap() {}
    let account = store.account(&crate::support::name("ann")).unwrap();
    assert_eq!(held(&account), before, "the same after a checkpoint");
    assert_eq!(account.quota().limits, QuotaLimits { storage_kib: None, messages: Some(7) });
}

pub fn at_the_limit_and_one_over(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let message = |octets: usize| vec![new_message(&account, &vec![b'x'; octets], "")];
    limit(&account, OwnLimit::Limit(1), OwnLimit::Limit(3));
    append(&account, inbox, &[b'x'; 1000], "");
    refused(account.append(inbox, message(25)));
    assert_eq!(held(&account), (1, 1000), "nothing of it was done");
    account.append(inbox, message(24)).unwrap();
    refused(account.append(inbox, message(1)));
    refused(account.copy(inbox, &uids("2"), inbox));
    assert_eq!(account.has_room_for(1, 1).unwrap_err().kind(), ErrorKind::OverQuota);
    account.has_room_for(1, 0).unwrap();
    // As much as went comes in.
    account.replace(inbox, uid(2), inbox, new_message(&account, &[b'x'; 24], "")).unwrap();
    refused(account.replace(inbox, uid(3), inbox, new_message(&account, &[b'x'; 25], "")));
    let work = account.create_mailbox(&mailbox("work"), &[]).unwrap();
    account.move_entries(inbox, &uids("1:*".replace('*', "99").as_str()), work).unwrap();
    // All of several or none.
    limit(&account, OwnLimit::None, OwnLimit::Limit(3));
    let two = (0..2).map(|_| new_message(&account, b"x", "")).collect();
    refused(account.append(inbox, two));
    append(&account, inbox, b"x", "");
    refused(account.append(inbox, message(1)));
    assert_eq!(held(&account).0, 3);
    // Who is over a limit can do what adds nothing.
    limit(&account, OwnLimit::None, OwnLimit::Limit(1));
    let flags = store::StoreFlags { mode: store::StoreMode::Add, flags: names("\\Deleted"), unchanged_since: None };
    account.store_flags(work, &uids("1:99"), &flags).unwrap();
    account.expunge(work, None).unwrap();
    refused(account.append(inbox, message(1)));
    limit(&account, OwnLimit::Default, OwnLimit::Default);
    account.append(inbox, message(1)).unwrap();
}

pub fn many_at_once(format: &Format) {
    const EACH: u64 = 20;
    let (_store, account, inbox) = format.with_account();
    limit(&account, OwnLimit::None, OwnLimit::Limit(50));
    let (taken, full) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    match account.append(inbox, vec![new_message(&account, b"x", "")]) {
                        Ok(_) => taken.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::OverQuota);
                            full.fetch_add(1, Ordering::Relaxed)
                        }
                    };
                }
            });
        }
    });
    assert_eq!((taken.into_inner(), full.into_inner()), (50, 6 * EACH - 50));
    assert_eq!(held(&account).0, 50);
}

pub fn what_is_never_refused(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    fill(&account, inbox, 4);
    let flags = store::StoreFlags { mode: store::StoreMode::Add, flags: names("\\Deleted"), unchanged_since: None };
    account.store_flags(inbox, &uids("1:2"), &flags).unwrap();
    account.expunge(inbox, None).unwrap();
    limit(&account, OwnLimit::None, OwnLimit::Limit(1));
    // What cannot be brought back from a file is not; the rest is, limit or not.
    let restored = account.restore(&model::MailboxName::inbox(), 0).unwrap().uids.len() as u64;
    assert_eq!(held(&account).0, 2 + restored);
    refused(account.append(inbox, vec![new_message(&account, b"x", "")]));
}
