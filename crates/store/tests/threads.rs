//! Many sessions on one account at once, on the real disk: everyone's changes are there, and no view tells a lie.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use model::{AccountName, MailboxId, MailboxName, SystemFlag, UidSet};
use platform::{Env, Prng};
use store::{Account, FlagNames, NewMessage, Options, Store, StoreFlags, StoreMode, View};

const WRITERS: u32 = 4;
const MESSAGES: u32 = 60;

fn append(account: &Account, inbox: MailboxId, text: &str) -> u32 {
    let mut writer = account.message_writer().unwrap();
    writer.write(text.as_bytes()).unwrap();
    let message = writer.finish().unwrap();
    let new = NewMessage { message, flags: FlagNames::default(), internal_date: None };
    account.append(inbox, vec![new]).unwrap().entries[0].0.get()
}

/// Appends, and expunges every third of its own.
fn write(account: &Account, inbox: MailboxId, number: u32) -> BTreeSet<u32> {
    let mut mine = BTreeSet::new();
    for n in 0..MESSAGES {
        let uid = append(account, inbox, &format!("Subject: {number}-{n}\r\n\r\n{}", "x".repeat(n as usize * 20)));
        mine.insert(uid);
        if n % 3 == 0 {
            let set = UidSet::range(uid, uid);
            let flags = FlagNames { system: vec![SystemFlag::Deleted], keywords: Vec::new() };
            let request = StoreFlags { mode: StoreMode::Add, flags, unchanged_since: None };
            assert_eq!(account.store_flags(inbox, &set, &request).unwrap().changed, set);
            assert_eq!(account.expunge(inbox, Some(&set)).unwrap().uids, set);
            mine.remove(&uid);
        }
    }
    mine
}

/// Follows the mailbox as a session does; returns what its client believes in the end.
fn watch(account: &Account, mut view: View, over: &AtomicBool, seed: u64) -> Vec<u32> {
    let mut random = Prng::new(seed);
    let mut reader = account.reader();
    let mut known: Vec<u32> = view.all_rows().map(|entry| entry.uid.get()).collect();
    let mut is_last = false;
    loop {
        let changes = view.advance(is_last || random.below(2) == 0);
        for seq in changes.expunged_seqs.iter().rev() {
            assert!(changes.expunged_uids.contains(known.remove(seq as usize - 1)));
        }
        known.extend(view.rows(known.len() as u32 + 1..=u32::MAX).map(|entry| entry.uid.get()));
        assert!(view.all_rows().map(|entry| entry.uid.get()).eq(known.iter().copied()));
        for entry in view.all_rows().skip(random.index(known.len() + 1)).take(3) {
            assert!(reader.header(entry.email_id).unwrap().starts_with(b"Subject: "));
        }
        if is_last {
            return known;
        }
        is_last = over.load(Ordering::SeqCst);
    }
}

#[test]
fn many_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.log.tail_bytes_max = 20_000;
    options.log.checkpoint_bytes = 10_000;
    let store = Store::open(Env::real(), dir.path().to_owned(), options.clone()).unwrap();
    let ann = AccountName::new("ann").unwrap();
    store.create_account(&ann).unwrap();
    let account = store.account(&ann).unwrap();
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    let (over, heard) = (AtomicBool::new(false), Arc::new(AtomicU32::new(0)));
    let counter = Arc::clone(&heard);
    let guard = account.listen(Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    let expected: BTreeSet<u32> = std::thread::scope(|scope| {
        let watchers: Vec<_> = (0..2)
            .map(|seed| {
                let (account, view, over) = (&account, account.view(inbox, true).unwrap(), &over);
                scope.spawn(move || watch(account, view, over, seed))
            })
            .collect();
        let maintenance = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                store.maintain().unwrap();
                std::thread::yield_now();
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let account = store.account(&ann).unwrap();
                scope.spawn(move || write(&account, inbox, number))
            })
            .collect();
        let expected: BTreeSet<u32> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        over.store(true, Ordering::SeqCst);
        for watcher in watchers {
            assert!(watcher.join().unwrap().into_iter().eq(expected.iter().copied()));
        }
        maintenance.join().unwrap();
        expected
    });
    assert!(heard.load(Ordering::Relaxed) > 0);
    // An append of each message, and STORE and EXPUNGE of every third.
    let writes = store.writes();
    assert!(writes.commits >= u64::from(WRITERS * (MESSAGES + 2 * MESSAGES.div_ceil(3))), "{writes:?}");
    assert!((1..=writes.commits).contains(&writes.syncs), "{writes:?}");
    assert_eq!(account.check().unwrap().findings, []);
    drop((guard, account));
    drop(store);
    let store = Store::open(Env::real(), dir.path().to_owned(), options).unwrap();
    let view = store.account(&ann).unwrap().view(inbox, false).unwrap();
    assert!(view.all_rows().map(|entry| entry.uid.get()).eq(expected));
}
