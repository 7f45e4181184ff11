//! Other programs that deliver, rename and remove at random while clients work: nothing is lost, doubled or given another UID.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::UidSet;
use platform::random::Prng;
use platform::{Env, OpenMode};
use store::{AccountFormat, MaildirLayout, Options, Store, StoreMode};

use crate::support::{ann, append, flag_names, listed, name, served};

/// So many messages a program delivers at most: the test is about changes, not about size.
const MESSAGES_MAX: u32 = 60;

/// What the other programs did: the numbers of messages that they delivered, and of those that they removed.
#[derive(Default)]
struct Done {
    delivered: BTreeSet<u32>,
    removed: BTreeSet<u32>,
}

/// A program that renames, delivers and removes until it is told to stop.
fn crowd(env: &Env, root: &Path, seed: u64, first: u32, stop: &AtomicBool) -> Done {
    let (mut random, mut done, mut next) = (Prng::new(seed), Done::default(), first);
    while !stop.load(Ordering::Relaxed) {
        std::thread::yield_now();
        if next < first + MESSAGES_MAX && random.one_in(3) {
            let temporary = root.join("tmp").join(format!("{next}.crowd"));
            let file = env.disk.open(&temporary, OpenMode::CreateNew).unwrap();
            file.write_at(crate::support::message(next).as_bytes(), 0).unwrap();
            let (subdir, flags) = if random.one_in(2) { ("new", "") } else { ("cur", ":2,F") };
            env.disk.rename(&temporary, &root.join(subdir).join(format!("{next}.crowd{flags}"))).unwrap();
            done.delivered.insert(next);
            next += 1;
            continue;
        }
        let subdir = if random.one_in(3) { "new" } else { "cur" };
        let entries = env.disk.list(&root.join(subdir)).unwrap();
        if entries.is_empty() {
            continue;
        }
        let entry = entries[random.index(entries.len())].name.to_str().unwrap().to_owned();
        let from = root.join(subdir).join(&entry);
        let base = entry.split(":2,").next().unwrap();
        let number = base.strip_suffix(".crowd").and_then(|number| number.parse::<u32>().ok());
        // Only those that this program delivered: others may be another's, or a client's.
        let is_ours = number.is_some_and(|number| done.delivered.contains(&number));
        if is_ours && random.one_in(8) {
            if env.disk.remove(&from).is_ok() {
                done.removed.extend(number);
            }
            continue;
        }
        let to = match random.below(6) {
            0 => format!("new/{base}"),
            1 => format!("cur/{base}:2,S"),
            2 => format!("cur/{base}:2,"),
            3 => format!("cur/{base}:2,FS"),
            4 => format!("cur/{base}:2,RS"),
            _ => format!("cur/{base}:2,F"),
        };
        // Somebody else may have been first.
        let _ = env.disk.rename(&from, &root.join(to));
    }
    done
}

#[test]
fn nothing_is_lost_or_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let (env, root) = (Env::real(), folder.path().join("Maildir"));
    let store = Store::open(env.clone(), folder.path().join("data"), Options::default()).unwrap();
    let format = AccountFormat::Maildir { root: root.clone(), layout: MaildirLayout::MaildirPlusPlus };
    store.create_account_as(&ann(), &format).unwrap();
    let account = store.account(&ann()).unwrap();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let programs: Vec<_> = (0..2u32)
        .map(|n| {
            let (env, root, stop) = (env.clone(), PathBuf::from(&root), Arc::clone(&stop));
            std::thread::spawn(move || crowd(&env, &root, u64::from(n), (n + 1) * 100_000, &stop))
        })
        .collect();
    let mut random = Prng::new(7);
    let (mut ours, mut expunged) = (BTreeMap::new(), BTreeSet::new());
    // Each UID has one message for ever.
    let mut by_uid: BTreeMap<u32, u32> = BTreeMap::new();
    let mut number = 0;
    for _ in 0..300 {
        account.refresh(inbox).unwrap();
        let view = account.view(inbox, false).unwrap();
        let rows: Vec<_> = view.all_rows().collect();
        match random.below(5) {
            0 => {
                number += 1;
                let uid = append(&account, inbox, &served(number), ["", "\\Seen"][random.index(2)]);
                ours.insert(number, uid.get());
            }
            1 if !rows.is_empty() => {
                let uid = rows[random.index(rows.len())].uid.get();
                let mode = [StoreMode::Add, StoreMode::Remove, StoreMode::Replace][random.index(3)];
                let flags = flag_names(["\\Seen", "\\Flagged \\Seen", "\\Answered"][random.index(3)]);
                let request = store::StoreFlags { mode, flags, unchanged_since: None };
                account.store_flags(inbox, &UidSet::range(uid, uid), &request).unwrap();
            }
            2 if !ours.is_empty() && random.one_in(2) => {
                let (number, uid) = ours.iter().nth(random.index(ours.len())).map(|(n, uid)| (*n, *uid)).unwrap();
                crate::support::expunge(&account, inbox, &[uid]);
                ours.remove(&number);
                expunged.insert(number);
            }
            3 if !rows.is_empty() => {
                let entry = rows[random.index(rows.len())];
                let mut text = Vec::new();
                // It may be gone; it is never another one.
                if account.reader().read(entry.email_id, 0..u64::MAX, &mut text).is_ok() {
                    let text = String::from_utf8(text).unwrap();
                    let found: u32 = text.lines().next().unwrap().trim_start_matches("Subject: ").parse().unwrap();
                    assert_eq!(*by_uid.entry(entry.uid.get()).or_insert(found), found);
                }
            }
            _ => {
                let _ = store.maintain().unwrap();
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut expected: BTreeSet<u32> = ours.keys().copied().collect();
    for program in programs {
        let done = program.join().unwrap();
        expected.extend(done.delivered.difference(&done.removed));
    }
    env.clock.sleep(std::time::Duration::from_millis(50));
    let listed_now = listed(&account, inbox);
    let numbers: Vec<u32> =
        listed_now.iter().map(|line| line.split([':', ' ']).nth(1).unwrap().parse().unwrap()).collect();
    let found: BTreeSet<u32> = numbers.iter().copied().collect();
    assert_eq!(found.len(), numbers.len(), "nothing twice: {listed_now:?}");
    assert_eq!(found, expected);
    for line in &listed_now {
        let mut words = line.split([':', ' ']);
        let (uid, number): (u32, u32) =
            (words.next().unwrap().parse().unwrap(), words.next().unwrap().parse().unwrap());
        assert_eq!(by_uid.get(&uid).copied().unwrap_or(number), number, "a UID that moved");
        assert!(ours.get(&number).is_none_or(|known| *known == uid), "a message of ours with another UID");
    }
    // Names and the log agree in the end.
    account.write_back(inbox, store::Moment::Close).unwrap();
    assert_eq!(listed(&account, inbox), listed_now);
    assert!(account.check().unwrap().findings.is_empty());
}
