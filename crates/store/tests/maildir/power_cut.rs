//! Histories of clients and of other programs, cut off at every moment: what was acknowledged is there, what was not expunged has its file, and
//! nothing is there twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::Result;
use platform::random::Prng;
use store::{Account, Moment, NewMessage, StoreFlags, StoreMode};

use crate::sizes;
use crate::support::{ROOT, World, all, flag_names, message, name, served, uids};

/// What must be true after the next opening.
#[derive(Clone, Default, Debug)]
struct Model {
    /// Message numbers by mailbox and UID, with flags as they were acknowledged.
    entries: BTreeMap<(&'static str, u32), (u32, String)>,
    /// Messages that were delivered and may not have been seen yet.
    delivered: BTreeSet<u32>,
}

const MAILBOXES: [&str; 2] = ["INBOX", "other"];

/// What a client does.
#[derive(Clone, Debug)]
enum Step {
    Append(&'static str, u32, &'static str),
    Store(&'static str, u32, &'static str),
    Expunge(&'static str, u32),
    Copy(&'static str, u32),
    Move(&'static str, u32),
    Idle(&'static str),
}

fn other(mailbox: &str) -> &'static str {
    MAILBOXES[usize::from(mailbox == "INBOX")]
}

impl Step {
    fn draw(model: &Model, random: &mut Prng, number: u32) -> Step {
        let mailbox = MAILBOXES[random.index(2)];
        let known: Vec<u32> = model.entries.keys().filter(|(name, _)| *name == mailbox).map(|(_, uid)| *uid).collect();
        let uid = known.get(random.index(known.len())).copied();
        match (random.below(9), uid) {
            (0..=1, _) | (_, None) => Step::Append(mailbox, number, ["", "\\Seen", "\\Flagged work"][random.index(3)]),
            (2..=4, Some(uid)) => {
                Step::Store(mailbox, uid, ["", "\\Seen", "\\Answered", "\\Flagged work"][random.index(4)])
            }
            (5, Some(uid)) => Step::Expunge(mailbox, uid),
            (6, Some(uid)) => Step::Copy(mailbox, uid),
            (7, Some(uid)) => Step::Move(mailbox, uid),
            _ => Step::Idle(mailbox),
        }
    }

    /// The model afterwards; `next`: UIDNEXT of the mailboxes.
    fn expect(&self, model: &Model, next: &BTreeMap<&'static str, u32>) -> Model {
        let mut after = model.clone();
        match *self {
            Step::Append(mailbox, number, flags) => {
                after.entries.insert((mailbox, next[mailbox]), (number, flags.to_owned()));
            }
            Step::Store(mailbox, uid, flags) => after.entries.get_mut(&(mailbox, uid)).unwrap().1 = flags.to_owned(),
            Step::Expunge(mailbox, uid) => drop(after.entries.remove(&(mailbox, uid))),
            Step::Copy(mailbox, uid) | Step::Move(mailbox, uid) => {
                let entry = after.entries[&(mailbox, uid)].clone();
                after.entries.insert((other(mailbox), next[other(mailbox)]), entry);
                if matches!(self, Step::Move(..)) {
                    after.entries.remove(&(mailbox, uid));
                }
            }
            Step::Idle(_) => {}
        }
        after
    }

    fn run(&self, account: &Account) -> Result<()> {
        let id = |mailbox: &str| account.mailbox(&name(mailbox));
        let request = |flags: &str, mode| StoreFlags { mode, flags: flag_names(flags), unchanged_since: None };
        match *self {
            Step::Append(mailbox, number, flags) => {
                let mut writer = account.message_writer()?;
                writer.write(served(number).as_bytes())?;
                let message = NewMessage { message: writer.finish()?, flags: flag_names(flags), internal_date: None };
                account.append(id(mailbox)?, vec![message]).map(drop)
            }
            Step::Store(mailbox, uid, flags) => {
                account.store_flags(id(mailbox)?, &uids(&[uid]), &request(flags, StoreMode::Replace)).map(drop)
            }
            Step::Expunge(mailbox, uid) => {
                let id = id(mailbox)?;
                account.edit(|edit| {
                    edit.store_flags(id, &uids(&[uid]), &request("\\Deleted", StoreMode::Add))?;
                    edit.expunge(id, Some(&uids(&[uid]))).map(drop)
                })
            }
            Step::Copy(mailbox, uid) => account.copy(id(mailbox)?, &uids(&[uid]), id(other(mailbox))?).map(drop),
            Step::Move(mailbox, uid) => {
                account.move_entries(id(mailbox)?, &uids(&[uid]), id(other(mailbox))?).map(drop)
            }
            Step::Idle(mailbox) => account.write_back(id(mailbox)?, Moment::Idle),
        }
    }
}

/// UIDNEXT of the mailboxes, when what was delivered has its UIDs: where UIDs are shared with Dovecot, adding a message takes it in.
fn next_uids(account: &Account) -> BTreeMap<&'static str, u32> {
    MAILBOXES.iter().for_each(|mailbox| account.before_adding(account.mailbox(&name(mailbox)).unwrap()));
    let next = |mailbox| account.status(account.mailbox(&name(mailbox)).unwrap()).unwrap().uid_next.unwrap().get();
    MAILBOXES.map(|mailbox| (mailbox, next(mailbox))).into()
}

/// What is there: entries as the model has them.
fn seen(account: &Account) -> BTreeMap<(&'static str, u32), (u32, String)> {
    let mut found = BTreeMap::new();
    for mailbox in MAILBOXES {
        let id = account.mailbox(&name(mailbox)).unwrap();
        for (uid, flags, text) in all(account, id) {
            let number = text.lines().next().unwrap().trim_start_matches("Subject: ").parse().unwrap();
            assert_eq!(text, served(number));
            found.insert((mailbox, uid), (number, flags));
        }
    }
    found
}

/// Takes what was delivered and is there now into the model.
fn take_in(model: &mut Model, found: &BTreeMap<(&'static str, u32), (u32, String)>) {
    for (key, entry) in found {
        if model.delivered.remove(&entry.0) {
            model.entries.insert(*key, entry.clone());
        }
    }
}

fn numbers_in_files(world: &World) -> BTreeMap<u32, usize> {
    let mut numbers = BTreeMap::new();
    for maildir in ["", ".other"] {
        for file in world.files(maildir) {
            let text = world.env.disk.read(&Path::new(ROOT).join(maildir).join(&file)).unwrap();
            let text = String::from_utf8(text).unwrap();
            let number: u32 = text.lines().next().unwrap().trim_start_matches("Subject: ").parse().unwrap();
            assert_eq!(text, message(number), "a torn file {file}");
            *numbers.entry(number).or_default() += 1;
        }
    }
    numbers
}

/// The UIDs that Dovecot would give to the files of a Maildir.
fn uids_in_list(world: &World, maildir: &str) -> BTreeSet<u32> {
    let base = |name: &str| name.split(":2,").next().unwrap().to_owned();
    let files: BTreeSet<String> =
        world.files(maildir).iter().map(|file| base(file.split_once('/').unwrap().1)).collect();
    let text = world.env.disk.read(&Path::new(ROOT).join(maildir).join("dovecot-uidlist")).unwrap_or_default();
    let text = String::from_utf8(text).unwrap();
    let records =
        text.lines().skip(1).map(|line| line.split_once(" :").unwrap_or_else(|| panic!("{line:?} of {text:?}")));
    records.filter(|(_, name)| files.contains(&base(name))).map(|(uid, _)| uid.parse().unwrap()).collect()
}

fn history(seed: u64) {
    let world = World::new(seed);
    world.make(".other");
    let has_lists = seed.is_multiple_of(2);
    if has_lists {
        world.put("dovecot-uidlist", "3 V77 N1 Gabc\n");
    }
    let has_sizes = seed % 6 == 3;
    if has_sizes {
        world.put("maildirsize", "1000000S\n0 0\n");
    }
    let mut random = Prng::new(seed);
    let mut model = Model::default();
    let mut number = 0;
    for round in 0..5 {
        let what = format!("seed {seed}, round {round}");
        let (store, account) = world.open();
        for _ in 0..random.between(1, 5) {
            number += 1;
            if random.one_in(3) {
                let dir = ["new", ".other/new", "cur"][random.index(3)];
                // Delivered as it should be, so it is durable.
                world.deliver(&format!("{dir}/{number}.x"), &message(number));
                model.delivered.insert(number);
            } else {
                let step = Step::draw(&model, &mut random, number);
                let after = step.expect(&model, &next_uids(&account));
                step.run(&account).unwrap();
                model = after;
            }
            if random.one_in(2) {
                let found = seen(&account);
                take_in(&mut model, &found);
                assert_eq!(found, model.entries, "{what}");
            }
            if random.one_in(4) {
                store.maintain().unwrap();
            }
        }
        // The power goes within a step, or behind it.
        number += 1;
        let step = Step::draw(&model, &mut random, number);
        let after = step.expect(&model, &next_uids(&account));
        world.sim.disk.crash_at(1 + random.below(40));
        let result = step.run(&account);
        // What was told is durable; what was not may be.
        if result.is_ok() {
            model = after.clone();
        }
        let _ = account.write_back(account.mailbox(&name("INBOX")).unwrap(), Moment::Close);
        drop((store, account));
        world.sim.disk.crash();
        world.pass();
        let (store, account) = world.open();
        let found = seen(&account);
        let mut expected = [model.clone(), after];
        for model in &mut expected {
            take_in(model, &found);
        }
        let fits = expected.iter().find(|model| model.entries == found);
        model = fits.unwrap_or_else(|| panic!("{what}: after {step:?}\n{found:?}\n{expected:?}")).clone();
        assert!(model.delivered.is_empty(), "{what}: {:?} were delivered durably", model.delivered);
        while store.maintain().unwrap() {}
        for mailbox in MAILBOXES {
            account.write_back(account.mailbox(&name(mailbox)).unwrap(), Moment::Idle).unwrap();
        }
        let mut files: BTreeMap<u32, usize> = BTreeMap::new();
        for (number, _) in model.entries.values() {
            *files.entry(*number).or_default() += 1;
        }
        assert_eq!(numbers_in_files(&world), files, "{what}: each entry has a file, and no other is there");
        assert_eq!(account.check().unwrap().findings, [], "{what}");
        if has_sizes {
            // Made anew: what changed while it could not be told is counted.
            world.env.clock.sleep(std::time::Duration::from_secs(1000));
            while store.maintain().unwrap() {}
            let octets: usize = model.entries.values().map(|(number, _)| message(*number).len()).sum();
            assert_eq!(
                sizes::read(&world),
                ("1000000S".to_owned(), octets as i64, model.entries.len() as i64),
                "{what}"
            );
        }
        if has_lists {
            // A lock that the power cut left is stale by then.
            world.env.clock.sleep(std::time::Duration::from_secs(1000));
            while store.maintain().unwrap() {}
            for (maildir, mailbox) in [("", "INBOX"), (".other/", "other")] {
                let uids = model.entries.keys().filter(|(name, _)| *name == mailbox).map(|(_, uid)| *uid);
                let (listed, uids) = (uids_in_list(&world, maildir), uids.collect::<BTreeSet<_>>());
                assert_eq!(listed, uids, "{what}: also one that a power cut has torn is whole again");
            }
        }
    }
}

#[test]
fn power_cuts() {
    for seed in 0..200 {
        history(seed);
    }
}
