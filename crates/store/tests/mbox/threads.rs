//! Several sessions and another program at one mailbox at once, beside a model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use model::{ErrorKind, Result};
use platform::{LockMode, LockTable, OpenMode, Prng};
use store::{Account, Moment, StoreFlags, StoreMode};

use crate::support::*;

const ROUNDS: u32 = 40;
/// Messages that are there at the beginning.
const OLD: u32 = 30;
/// What clients append has numbers from here on, what is delivered from the next.
const APPENDED: u32 = 1000;
const DELIVERED: u32 = 2000;

/// Again as long as another one is at the file.
fn patiently<T>(mut work: impl FnMut() -> Result<T>) -> T {
    loop {
        match work() {
            Ok(value) => return value,
            Err(error) if error.kind() == ErrorKind::InUse => thread::yield_now(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// A delivery agent that locks as it should.
fn deliver(world: &World, text: &str) {
    let file = world.env.disk.open(INBOX.as_ref(), OpenMode::Create).unwrap();
    let _lock = patiently(|| Ok(file.try_lock(LockTable::Fcntl, LockMode::Exclusive)?));
    let len = file.len().unwrap();
    file.write_at(text.as_bytes(), len).unwrap();
    file.sync_data().unwrap();
}

/// UID and number of each message, while others are at work.
fn read_all(account: &Account, inbox: model::MailboxId) -> Vec<(u32, u32)> {
    patiently(|| account.refresh(inbox));
    let view = account.view(inbox, false).unwrap();
    let mut reader = account.reader();
    let mut found = Vec::new();
    for row in view.all_rows() {
        let mut text = Vec::new();
        let read = loop {
            text.clear();
            match reader.read(row.email_id, 0..u64::MAX, &mut text) {
                Err(error) if error.kind() == ErrorKind::InUse => thread::yield_now(),
                read => break read,
            }
        };
        match read {
            Ok(()) => {}
            // It left the file since the view was taken.
            Err(error) if error.kind() == ErrorKind::Expunged => continue,
            Err(error) => panic!("{error:?}"),
        }
        let text = String::from_utf8(text).unwrap();
        let number = text.lines().next().unwrap().trim_start_matches("Subject: ").parse().unwrap();
        assert_eq!(text, served(number));
        found.push((row.uid.get(), number));
    }
    assert!(found.is_sorted_by_key(|(uid, _)| *uid));
    found
}

/// What a thread does: `work`, again and again.
fn worker<'a>(
    seed: u64,
    working: &'a AtomicU32,
    mut work: impl FnMut(u32, &mut Prng) + Send + 'a,
) -> impl FnOnce() + Send + 'a {
    move || {
        let _done = Done(working);
        let mut random = Prng::new(seed);
        (1..=ROUNDS).for_each(|round| work(round, &mut random));
    }
}

/// One less is at work, also when it ends in a panic.
struct Done<'a>(&'a AtomicU32);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn play(seed: u64) {
    let world = World::new(seed);
    world.write(INBOX, &(1..=OLD).map(|n| message(n, "")).collect::<String>());
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(read_all(&account, inbox).len(), OLD as usize);
    let expunged: Mutex<BTreeSet<u32>> = Mutex::default();
    let flags: Mutex<BTreeMap<u32, BTreeSet<&str>>> = Mutex::default();
    let working = AtomicU32::new(5);
    let (world_, account_) = (&world, &account);
    thread::scope(|scope| {
        let working = &working;
        scope.spawn(worker(seed * 10 + 1, working, |round, _: &mut Prng| {
            append(account_, inbox, &served(APPENDED + round), "");
        }));
        scope.spawn(worker(seed * 10 + 2, working, |round, _: &mut Prng| {
            deliver(world_, &message(DELIVERED + round, ""))
        }));
        scope.spawn(worker(seed * 10 + 3, working, |_, random: &mut Prng| {
            let uid = 1 + random.below(u64::from(OLD)) as u32;
            let flag = ["\\Seen", "\\Flagged", "work"][random.index(3)];
            let mode = if random.one_in(3) { StoreMode::Remove } else { StoreMode::Add };
            let mut model = flags.lock().unwrap();
            let request = StoreFlags { mode, flags: flag_names(flag), unchanged_since: None };
            account_.store_flags(inbox, &uids(&[uid]), &request).unwrap();
            let have = model.entry(uid).or_default();
            if mode == StoreMode::Add {
                have.insert(flag)
            } else {
                have.remove(flag)
            };
        }));
        scope.spawn(worker(seed * 10 + 4, working, |_, random: &mut Prng| {
            let uid = 1 + random.below(u64::from(OLD) / 2) as u32 * 2;
            expunged.lock().unwrap().insert(uid);
            let request = StoreFlags { mode: StoreMode::Add, flags: flag_names("\\Deleted"), unchanged_since: None };
            let done = account_.edit(|edit| {
                edit.store_flags(inbox, &uids(&[uid]), &request)?;
                edit.expunge(inbox, Some(&uids(&[uid])))
            });
            done.unwrap();
        }));
        scope.spawn(worker(seed * 10 + 5, working, |_, random: &mut Prng| {
            let moment = [Moment::Check, Moment::Close, Moment::Logout][random.index(3)];
            patiently(|| account_.write_back(inbox, moment));
            patiently(|| store.maintain().map(drop));
        }));
        // Somebody who reads everything all the time.
        let mut last: Vec<(u32, u32)> = Vec::new();
        while working.load(Ordering::Acquire) > 0 {
            let found = read_all(account_, inbox);
            for (uid, number) in &last {
                let now = found.iter().find(|(other, _)| other == uid);
                assert!(now.is_none_or(|(_, other)| other == number), "UID {uid} was {number} and is {now:?}");
            }
            last = found;
        }
    });
    world.pass();
    let expunged = expunged.into_inner().unwrap();
    let mut expected: Vec<u32> = (1..=OLD).filter(|uid| !expunged.contains(uid)).collect();
    expected.extend((1..=ROUNDS).map(|n| APPENDED + n));
    expected.extend((1..=ROUNDS).map(|n| DELIVERED + n));
    let check = |account: &Account| {
        let mut numbers: Vec<u32> = read_all(account, inbox).into_iter().map(|(_, number)| number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, expected, "seed {seed}");
    };
    check(&account);
    account.write_back(inbox, Moment::Close).unwrap();
    check(&account);
    let before = all(&account, inbox);
    let flags = flags.into_inner().unwrap();
    for (uid, have, _) in before.iter().filter(|(uid, ..)| *uid <= OLD) {
        let wanted: Vec<&str> = flags.get(uid).into_iter().flatten().copied().collect();
        assert_eq!(
            have.split_whitespace().collect::<BTreeSet<_>>(),
            wanted.into_iter().collect(),
            "seed {seed}: {uid}"
        );
    }
    let text = world.read(INBOX);
    for number in &expected {
        assert_eq!(text.matches(&format!("\nSubject: {number}\n")).count(), 1, "seed {seed}: {number}");
    }
    assert_eq!(text.matches("\nFrom ").count() + 1, expected.len(), "seed {seed}");
    drop((account, store));
    let (_store, account) = world.open();
    assert_eq!(all(&account, inbox), before, "seed {seed}");
    assert_eq!(account.check().unwrap().findings, [], "seed {seed}");
}

#[test]
fn everybody_at_once() {
    for seed in 0..4 {
        play(seed);
    }
}
