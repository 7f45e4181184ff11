//! Power cuts: random histories of one account beside a model, with views held as sessions hold them, and a disk that dies or
//! fails anywhere.
//!
//! After each cut the store is the model before or after the operation that was interrupted; everything acknowledged is there; no UID
//! and no UIDVALIDITY was used twice. While it lives, each view says what a client would know from what it was told. A failure
//! prints its seed.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use model::{AccountName, MailboxName, NumSet, Result, UidSet};
use platform::Prng;
use platform::sim::SimEnv;

use history::{Session, flag_names, is_machine_error, look, random_flags, schedule};
use store::{Account, NewMessage, Options, Store, StoreFlags, StoreMode};

const HISTORIES: u64 = 6000;
const OPERATIONS: u64 = 40;
const NAMES: [&str; 4] = ["INBOX", "a", "a/b", "c"];

/// What a mailbox should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ModelMailbox {
    uid_next: u32,
    /// Flags and octets by UID.
    entries: BTreeMap<u32, (BTreeSet<String>, Vec<u8>)>,
}

/// What an account should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    mailboxes: BTreeMap<String, ModelMailbox>,
    subscribed: BTreeSet<String>,
}

/// One change, decided before it is tried.
#[derive(Clone, Debug)]
enum Operation {
    Append(String, Vec<(Vec<u8>, BTreeSet<String>)>),
    Flags(String, NumSet, StoreMode, BTreeSet<String>),
    Expunge(String, Option<UidSet>),
    Copy(String, UidSet, String),
    Move(String, UidSet, String),
    Create(String),
    Delete(String),
    Rename(String, String),
    Subscribe(String, bool),
    Maintain,
    Idle,
}

fn name(text: &str) -> MailboxName {
    MailboxName::new(text).unwrap()
}

fn random_uids(random: &mut Prng) -> UidSet {
    (0..1 + random.below(5)).map(|_| 1 + random.below(12) as u32).collect()
}

fn random_operation(random: &mut Prng) -> Operation {
    let mailbox = |random: &mut Prng| NAMES[random.index(NAMES.len())].to_owned();
    match random.below(22) {
        0..=6 => {
            let messages = (0..1 + random.below(3)).map(|_| {
                let len = if random.below(8) == 0 { 3000 } else { random.below(200) } as usize;
                let mut bytes = b"Subject: s\r\n\r\n".to_vec();
                bytes.resize_with(bytes.len() + len, || random.u64() as u8);
                (bytes, random_flags(random))
            });
            let messages = messages.collect();
            Operation::Append(mailbox(random), messages)
        }
        7..=9 => {
            let mode = [StoreMode::Replace, StoreMode::Add, StoreMode::Remove][random.index(3)];
            Operation::Flags(mailbox(random), random_uids(random), mode, random_flags(random))
        }
        10..=11 => {
            let uids = (random.below(2) == 0).then(|| random_uids(random));
            Operation::Expunge(mailbox(random), uids)
        }
        12 => Operation::Copy(mailbox(random), random_uids(random), mailbox(random)),
        13..=14 => Operation::Move(mailbox(random), random_uids(random), mailbox(random)),
        15 => Operation::Create(mailbox(random)),
        16 => Operation::Delete(mailbox(random)),
        17 => Operation::Rename(mailbox(random), mailbox(random)),
        18 => Operation::Subscribe(mailbox(random), random.below(2) == 0),
        19 => Operation::Idle,
        _ => Operation::Maintain,
    }
}

impl Model {
    fn add(&mut self, mailbox: &str, flags: BTreeSet<String>, bytes: Vec<u8>) {
        let mailbox = self.mailboxes.get_mut(mailbox).unwrap();
        mailbox.entries.insert(mailbox.uid_next, (flags, bytes));
        mailbox.uid_next += 1;
    }

    fn create(&mut self, mailbox: &str) {
        let parents = mailbox.match_indices('/').map(|(at, _)| &mailbox[..at]).chain([mailbox]);
        for name in parents {
            let new = ModelMailbox { uid_next: 1, entries: BTreeMap::new() };
            self.mailboxes.entry(name.to_owned()).or_insert(new);
        }
    }

    /// Does what the operation should do; `None` when it should be refused.
    fn apply(&mut self, operation: &Operation) -> Option<()> {
        match operation {
            Operation::Append(mailbox, messages) => {
                self.mailboxes.get(mailbox)?;
                for (bytes, flags) in messages {
                    self.add(mailbox, flags.clone(), bytes.clone());
                }
            }
            Operation::Flags(mailbox, uids, mode, flags) => {
                for (uid, (have, _)) in &mut self.mailboxes.get_mut(mailbox)?.entries {
                    if uids.contains(*uid) {
                        match mode {
                            StoreMode::Replace => have.clone_from(flags),
                            StoreMode::Add => have.extend(flags.iter().cloned()),
                            StoreMode::Remove => have.retain(|flag| !flags.contains(flag)),
                        }
                    }
                }
            }
            Operation::Expunge(mailbox, uids) => {
                let is_doomed = |uid: &u32| uids.as_ref().is_none_or(|uids| uids.contains(*uid));
                let mailbox = self.mailboxes.get_mut(mailbox)?;
                mailbox.entries.retain(|uid, (flags, _)| !(is_doomed(uid) && flags.contains("\\Deleted")));
            }
            Operation::Copy(from, uids, to) | Operation::Move(from, uids, to) => {
                let source = self.mailboxes.get(from)?;
                self.mailboxes.get(to)?;
                let entries: Vec<_> = source.entries.iter().filter(|(uid, _)| uids.contains(**uid)).collect();
                let entries: Vec<_> = entries.into_iter().map(|(uid, entry)| (*uid, entry.clone())).collect();
                for (uid, (flags, bytes)) in entries {
                    self.add(to, flags, bytes);
                    if matches!(operation, Operation::Move(..)) {
                        self.mailboxes.get_mut(from).unwrap().entries.remove(&uid);
                    }
                }
            }
            Operation::Create(mailbox) => {
                if self.mailboxes.contains_key(mailbox) {
                    return None;
                }
                self.create(mailbox);
            }
            Operation::Delete(mailbox) => {
                if mailbox == "INBOX" {
                    return None;
                }
                self.mailboxes.remove(mailbox)?;
            }
            Operation::Rename(from, to) => self.rename(from, to)?,
            Operation::Subscribe(mailbox, true) => {
                self.subscribed.insert(mailbox.clone());
            }
            Operation::Subscribe(mailbox, false) => {
                self.subscribed.remove(mailbox);
            }
            Operation::Maintain | Operation::Idle => {}
        }
        Some(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Option<()> {
        if from == to || self.mailboxes.contains_key(to) || to.starts_with(&format!("{from}/")) {
            return None;
        }
        if from == "INBOX" {
            self.create(to);
            let moved = std::mem::take(&mut self.mailboxes.get_mut("INBOX").unwrap().entries);
            for (flags, bytes) in moved.into_values() {
                self.add(to, flags, bytes);
            }
            return Some(());
        }
        let below = format!("{from}/");
        let old: Vec<String> =
            self.mailboxes.keys().filter(|name| *name == from || name.starts_with(&below)).cloned().collect();
        if old.is_empty() {
            return None;
        }
        let taken: Vec<(String, ModelMailbox)> = old
            .iter()
            .map(|name| (format!("{to}{}", &name[from.len()..]), self.mailboxes.remove(name).unwrap()))
            .collect();
        if taken.iter().any(|(name, _)| self.mailboxes.contains_key(name)) {
            return None;
        }
        if let Some((parent, _)) = to.rsplit_once('/') {
            self.create(parent);
        }
        self.mailboxes.extend(taken);
        Some(())
    }
}

/// What the account is, read through the store.
fn observe(account: &Account) -> Model {
    let mut model = Model::default();
    let mut reader = account.reader();
    for info in account.mailboxes() {
        if info.subscribed {
            model.subscribed.insert(info.name.to_string());
        }
        let Some(id) = info.id else { continue };
        let view = account.view(id, false).unwrap();
        let mut entries = BTreeMap::new();
        for entry in view.all_rows() {
            let mut bytes = Vec::new();
            reader.read(entry.email_id, 0..u64::MAX, &mut bytes).unwrap();
            let flags = view.keywords().names(entry.flags).map(str::to_owned).collect();
            entries.insert(entry.uid.get(), (flags, bytes));
        }
        let uid_next = view.uid_next().unwrap().get();
        model.mailboxes.insert(info.name.to_string(), ModelMailbox { uid_next, entries });
    }
    model
}

fn perform(store: &Store, account: &Account, sim: &SimEnv, operation: &Operation) -> Result<()> {
    let find = |text: &str| account.mailbox(&name(text));
    match operation {
        Operation::Append(mailbox, messages) => {
            let id = find(mailbox)?;
            let mut new = Vec::new();
            for (bytes, flags) in messages {
                let mut writer = account.message_writer()?;
                for piece in bytes.chunks(500) {
                    writer.write(piece)?;
                }
                new.push(NewMessage { message: writer.finish()?, flags: flag_names(flags), internal_date: None });
            }
            account.append(id, new).map(drop)
        }
        Operation::Flags(mailbox, uids, mode, flags) => {
            let request = StoreFlags { mode: *mode, flags: flag_names(flags), unchanged_since: None };
            account.store_flags(find(mailbox)?, uids, &request).map(drop)
        }
        Operation::Expunge(mailbox, uids) => account.expunge(find(mailbox)?, uids.as_ref()).map(drop),
        Operation::Copy(from, uids, to) => account.copy(find(from)?, uids, find(to)?).map(drop),
        Operation::Move(from, uids, to) => account.move_entries(find(from)?, uids, find(to)?).map(drop),
        Operation::Create(mailbox) => account.create_mailbox(&name(mailbox), &[]).map(drop),
        Operation::Delete(mailbox) => account.delete_mailbox(&name(mailbox)),
        Operation::Rename(from, to) => account.rename_mailbox(&name(from), &name(to)),
        Operation::Subscribe(mailbox, subscribed) => account.set_subscribed(&name(mailbox), *subscribed),
        Operation::Maintain => store.maintain().map(drop),
        Operation::Idle => {
            sim.clock.advance(Duration::from_secs(40));
            Ok(())
        }
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.log.tail_bytes_max = 2000;
    options.log.spool_above_bytes = 1000;
    options.log.preallocate_bytes_min = 512;
    options.log.preallocate_bytes_max = 1024;
    options.log.checkpoint_bytes = 3000;
    options.log.merge_bytes_max = 10_000;
    options.log.retention_seconds = 60;
    options
}

fn history(seed: u64) {
    let sim = SimEnv::new(seed);
    let mut random = Prng::new(seed ^ 0x5eed);
    let ann = AccountName::new("ann").unwrap();
    let open = || Store::open(sim.env(), PathBuf::from("/data"), options()).unwrap();
    let mut store = open();
    store.create_account(&ann).unwrap();
    let mut account = store.account(&ann).unwrap();
    let mut model = Model::default();
    model.create("INBOX");
    let mut uid_validities: BTreeMap<model::MailboxId, u32> = BTreeMap::new();
    let mut sessions: Vec<Session> = Vec::new();
    schedule(&sim, &mut random);
    for _ in 0..OPERATIONS {
        let operation = random_operation(&mut random);
        let mut after = model.clone();
        let is_allowed = after.apply(&operation).is_some();
        match perform(&store, &account, &sim, &operation) {
            Ok(()) => {
                assert!(is_allowed, "seed {seed}: {operation:?} should have been refused");
                model = after;
            }
            Err(error) if is_machine_error(error.kind()) => {
                // A new process finds what is there; a power cut happens once in a while without a fault as well.
                sessions.clear();
                drop((account, store));
                sim.disk.clear_faults();
                sim.disk.set_capacity(None);
                if sim.disk.is_off() || random.below(2) == 0 {
                    sim.disk.crash();
                    sim.disk.restart();
                }
                store = open();
                if random.below(4) == 0 {
                    store.repair(&ann).unwrap();
                }
                account = store.account(&ann).unwrap();
                let found = observe(&account);
                let is_after = is_allowed && found == after;
                assert!(
                    found == model || is_after,
                    "seed {seed}: {operation:?}: {found:?}\nbefore {model:?}\nafter {after:?}"
                );
                model = found;
                schedule(&sim, &mut random);
            }
            Err(error) => {
                assert!(!is_allowed, "seed {seed}: {operation:?} was refused: {error}");
            }
        }
        remember_uid_validities(&account, &mut uid_validities, seed);
        look(&account, &mut sessions, &mut random);
    }
    sim.disk.clear_faults();
    sim.disk.set_capacity(None);
    if !sim.disk.is_off() {
        assert_eq!(observe(&account), model, "seed {seed}");
        if random.below(3) == 0 {
            assert_eq!(account.check().unwrap().findings, [], "seed {seed}");
        }
    }
}

/// A UIDVALIDITY stays with its mailbox, and a new one is greater than all before it.
fn remember_uid_validities(account: &Account, known: &mut BTreeMap<model::MailboxId, u32>, seed: u64) {
    for info in account.mailboxes() {
        let Some(id) = info.id else { continue };
        let value = account.status(id).unwrap().uid_validity.get();
        let greatest = known.values().max().copied().unwrap_or(0);
        let before = *known.entry(id).or_insert_with(|| {
            assert!(value > greatest || known_at_once(greatest, value), "seed {seed}: {value} after {greatest}");
            value
        });
        assert_eq!(before, value, "seed {seed}");
    }
}

/// Parents and children are made in one transaction and seen in the order of their names.
fn known_at_once(greatest: u32, value: u32) -> bool {
    greatest.abs_diff(value) <= NAMES.len() as u32
}

#[test]
fn histories() {
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (0..HISTORIES).filter(|seed| seed % 2 == half).for_each(history));
        }
    });
}
