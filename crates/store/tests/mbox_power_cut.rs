//! Power cuts on accounts in mbox files: random histories beside a model, with deliveries by others, write-backs and a disk that dies or
//! fails anywhere.
//!
//! After each cut the account is the model before or after the operation that was interrupted. And whatever was cut: once the file was
//! written back, it holds exactly the messages that the model has, each once. A failure prints its seed.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

mod history;
mod seeds;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::{AccountName, ErrorKind, MailboxName, Result, UidSet};
use platform::sim::SimEnv;
use platform::{OpenMode, Prng};

use history::{Session, flag_names, is_machine_error, look, random_flags, schedule};
use store::{Account, AccountFormat, Moment, NewMessage, Options, Store, StoreFlags, StoreMode};

const HISTORIES: u64 = 3000;
const OPERATIONS: u64 = 40;
/// A dotlock whose contents were lost in a power cut is in the way for so long.
const DOTLOCK_STALE: Duration = Duration::from_secs(130);
/// Each with its file.
const MAILBOXES: [(&str, &str); 3] = [("INBOX", "/mail/inbox"), ("a", "/mail/root/a"), ("a/b", "/mail/root/a.sbd/b")];

/// What a mailbox should be: flags and octets by UID.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ModelMailbox {
    uid_next: u32,
    entries: BTreeMap<u32, (BTreeSet<String>, Vec<u8>)>,
}

type Model = BTreeMap<&'static str, ModelMailbox>;

/// One change, decided before it is tried.
#[derive(Clone, Debug)]
enum Operation {
    Append(usize, Vec<(Vec<u8>, BTreeSet<String>)>),
    /// Another program appends to the file; then somebody looks.
    Deliver(usize, Vec<(Vec<u8>, BTreeSet<String>)>),
    Flags(usize, UidSet, StoreMode, BTreeSet<String>),
    Expunge(usize, Option<UidSet>),
    Copy(usize, UidSet, usize),
    Move(usize, UidSet, usize),
    WriteBack(usize, Moment),
    Refresh(usize),
    Maintain,
    Idle,
    Reopen,
}

fn name(mailbox: usize) -> &'static str {
    MAILBOXES[mailbox].0
}

/// A message that has its number in its subject, and lines that look like separators.
fn message(random: &mut Prng, serial: &mut u32) -> Vec<u8> {
    *serial += 1;
    let mut text = format!("Subject: t{serial}\r\nX-Other: {}\r\n\r\n", "x".repeat(random.index(60)));
    let lines = if random.one_in(6) { 60 } else { random.index(6) };
    for line in 0..lines {
        text.push_str(match random.below(8) {
            0 => "From here on it is text\r\n",
            1 => ">From there as well\r\n",
            _ => "",
        });
        text.push_str(&format!("line {line} of {serial}\r\n"));
    }
    text.into_bytes()
}

fn random_operation(random: &mut Prng, serial: &mut u32) -> Operation {
    let mailbox = random.index(MAILBOXES.len());
    let other = random.index(MAILBOXES.len());
    let uids =
        |random: &mut Prng| -> UidSet { (0..1 + random.below(4)).map(|_| 1 + random.below(15) as u32).collect() };
    let mut messages =
        |random: &mut Prng| (0..1 + random.below(3)).map(|_| (message(random, serial), random_flags(random))).collect();
    match random.below(24) {
        0..=3 => Operation::Append(mailbox, messages(random)),
        4..=7 => Operation::Deliver(mailbox, messages(random)),
        8..=10 => {
            let mode = [StoreMode::Replace, StoreMode::Add, StoreMode::Remove][random.index(3)];
            Operation::Flags(mailbox, uids(random), mode, random_flags(random))
        }
        11..=13 => Operation::Expunge(mailbox, random.one_in(2).then(|| uids(random))),
        14 => Operation::Copy(mailbox, uids(random), other),
        15 => Operation::Move(mailbox, uids(random), other),
        16..=19 => {
            let moments = [Moment::Check, Moment::Close, Moment::Logout, Moment::Idle];
            Operation::WriteBack(mailbox, moments[random.index(moments.len())])
        }
        20 => Operation::Refresh(mailbox),
        21 => Operation::Idle,
        22 => Operation::Reopen,
        _ => Operation::Maintain,
    }
}

fn add(model: &mut Model, mailbox: usize, flags: BTreeSet<String>, octets: Vec<u8>) {
    let mailbox = model.get_mut(name(mailbox)).unwrap();
    mailbox.entries.insert(mailbox.uid_next, (flags, octets));
    mailbox.uid_next += 1;
}

/// Does what the operation should do.
fn apply(model: &mut Model, operation: &Operation) {
    match operation {
        Operation::Append(mailbox, messages) | Operation::Deliver(mailbox, messages) => {
            for (octets, flags) in messages {
                add(model, *mailbox, flags.clone(), octets.clone());
            }
        }
        Operation::Flags(mailbox, uids, mode, flags) => {
            for (uid, (have, _)) in &mut model.get_mut(name(*mailbox)).unwrap().entries {
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
            let mailbox = model.get_mut(name(*mailbox)).unwrap();
            mailbox.entries.retain(|uid, (flags, _)| !(is_doomed(uid) && flags.contains("\\Deleted")));
        }
        Operation::Copy(from, uids, to) | Operation::Move(from, uids, to) => {
            let source = &model[name(*from)];
            let entries: Vec<_> = source.entries.iter().filter(|(uid, _)| uids.contains(**uid)).collect();
            let entries: Vec<_> = entries.into_iter().map(|(uid, entry)| (*uid, entry.clone())).collect();
            for (uid, (flags, octets)) in entries {
                add(model, *to, flags, octets);
                if matches!(operation, Operation::Move(..)) {
                    model.get_mut(name(*from)).unwrap().entries.remove(&uid);
                }
            }
        }
        Operation::WriteBack(..)
        | Operation::Refresh(_)
        | Operation::Maintain
        | Operation::Idle
        | Operation::Reopen => {}
    }
}

/// What the account is, read through the store.
fn observe(account: &Account) -> Model {
    let mut model = Model::new();
    let mut reader = account.reader();
    for (name, _) in MAILBOXES {
        let id = account.mailbox(&MailboxName::new(name).unwrap()).unwrap();
        let view = account.view(id, false).unwrap();
        let mut entries = BTreeMap::new();
        for entry in view.all_rows() {
            let mut octets = Vec::new();
            reader.read(entry.email_id, 0..u64::MAX, &mut octets).unwrap();
            let flags = view.keywords().names(entry.flags).map(str::to_owned).collect();
            entries.insert(entry.uid.get(), (flags, octets));
        }
        model.insert(name, ModelMailbox { uid_next: view.uid_next().unwrap().get(), entries });
    }
    model
}

/// Appends to a file as a delivery agent does that keeps to the rules: the whole of it is durable.
fn deliver(sim: &SimEnv, path: &Path, messages: &[(Vec<u8>, BTreeSet<String>)]) {
    let mut text = String::new();
    for (octets, flags) in messages {
        text.push_str("From sender@example.org Sun Sep  9 01:46:40 2001\n");
        let letters = |known: &[(&str, char)]| -> String {
            known.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| *letter).collect()
        };
        let keywords: Vec<&str> = flags.iter().map(String::as_str).filter(|flag| !flag.starts_with('\\')).collect();
        let fields = [
            ("Status", letters(&[("\\Seen", 'R')])),
            ("X-Status", letters(&[("\\Flagged", 'F'), ("\\Deleted", 'D')])),
            ("X-Keywords", keywords.join(" ")),
        ];
        for (field, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            text.push_str(&format!("{field}: {value}\n"));
        }
        for line in std::str::from_utf8(octets).unwrap().split_inclusive("\r\n") {
            if line.trim_start_matches('>').starts_with("From ") {
                text.push('>');
            }
            text.push_str(&line.replace("\r\n", "\n"));
        }
        text.push('\n');
    }
    sim.env().disk.create_dir_all_durable(path.parent().unwrap()).unwrap();
    let file = sim.env().disk.open(path, OpenMode::Create).unwrap();
    file.write_at(text.as_bytes(), file.len().unwrap()).unwrap();
    file.sync_all().unwrap();
    sim.env().disk.sync_dir(path.parent().unwrap()).unwrap();
}

/// The numbers of the messages in a file, sorted.
fn in_file(sim: &SimEnv, path: &str) -> Vec<u32> {
    let octets = match sim.env().disk.read(Path::new(path)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        read => read.unwrap(),
    };
    numbers(octets.split(|octet| *octet == b'\n'))
}

/// The numbers of the model's messages, sorted.
fn in_model(mailbox: &ModelMailbox) -> Vec<u32> {
    numbers(mailbox.entries.values().flat_map(|(_, octets)| octets.split(|octet| *octet == b'\n')))
}

fn numbers<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<u32> {
    let subjects = lines.filter_map(|line| line.strip_prefix(b"Subject: t"));
    let mut numbers: Vec<u32> =
        subjects.map(|number| String::from_utf8_lossy(number).trim_end().parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

fn perform(account: &Account, store: &Store, sim: &SimEnv, operation: &Operation) -> Result<()> {
    let find = |mailbox: &usize| account.mailbox(&MailboxName::new(name(*mailbox)).unwrap());
    match operation {
        Operation::Append(mailbox, messages) => {
            let id = find(mailbox)?;
            let mut new = Vec::new();
            for (octets, flags) in messages {
                let mut writer = account.message_writer()?;
                writer.write(octets)?;
                new.push(NewMessage { message: writer.finish()?, flags: flag_names(flags), internal_date: None });
            }
            account.append(id, new).map(drop)
        }
        Operation::Deliver(mailbox, _) | Operation::Refresh(mailbox) => account.refresh(find(mailbox)?),
        Operation::Flags(mailbox, uids, mode, flags) => {
            let request = StoreFlags { mode: *mode, flags: flag_names(flags), unchanged_since: None };
            account.store_flags(find(mailbox)?, uids, &request).map(drop)
        }
        Operation::Expunge(mailbox, uids) => account.expunge(find(mailbox)?, uids.as_ref()).map(drop),
        Operation::Copy(from, uids, to) => account.copy(find(from)?, uids, find(to)?).map(drop),
        Operation::Move(from, uids, to) => account.move_entries(find(from)?, uids, find(to)?).map(drop),
        Operation::WriteBack(mailbox, moment) => account.write_back(find(mailbox)?, *moment),
        Operation::Maintain => store.maintain().map(drop),
        Operation::Idle => {
            sim.clock.advance(Duration::from_secs(40));
            Ok(())
        }
        Operation::Reopen => Ok(()),
    }
}

fn options(random: &mut Prng) -> Options {
    let mut options = Options::default();
    options.log.tail_bytes_max = 4000;
    options.log.spool_above_bytes = 1000;
    options.log.preallocate_bytes_min = 512;
    options.log.preallocate_bytes_max = 1024;
    options.log.checkpoint_bytes = 6000;
    options.log.retention_seconds = 60;
    options.mbox.padding_bytes = [0, 8, 32][random.index(3)];
    options
}

/// A process: a store that is open, and its account.
struct Process {
    store: Arc<Store>,
    account: Arc<Account>,
    number: u32,
}

impl Process {
    /// Starts one under the next number, so that the locks of those before it are known to be left behind.
    fn start(sim: &SimEnv, options: &Options, number: u32) -> Process {
        let store = Store::open(sim.as_process(number).env(), PathBuf::from("/data"), options.clone()).unwrap();
        let account = store.account(&AccountName::new("ann").unwrap()).unwrap();
        Process { store, account, number }
    }

    /// The end of the process; the number of the next.
    fn end(self, sim: &SimEnv) -> u32 {
        let number = self.number;
        drop(self);
        sim.host.end(number);
        number + 1
    }
}

/// With `TRACE` set: what the disk did last, in the end.
struct Trace<'s>(&'s SimEnv);

impl Drop for Trace<'_> {
    fn drop(&mut self) {
        if std::env::var("TRACE").is_ok() {
            eprintln!("{}", self.0.disk.take_trace().join("\n"));
        }
    }
}

fn history(seed: u64) {
    let sim = SimEnv::new(seed);
    let _trace = Trace(&sim);
    let mut random = Prng::new(seed ^ 0x6d62_6f78);
    let options = options(&mut random);
    sim.env().disk.create_dir_all_durable(Path::new("/mail/root")).unwrap();
    {
        let store = Store::open(sim.env(), PathBuf::from("/data"), options.clone()).unwrap();
        let format = AccountFormat::Mbox { inbox: "/mail/inbox".into(), root: "/mail/root".into() };
        store.create_account_as(&AccountName::new("ann").unwrap(), &format).unwrap();
    }
    let mut process = Process::start(&sim, &options, 2000);
    process.account.create_mailbox(&MailboxName::new("a/b").unwrap(), &[]).unwrap();
    let empty = ModelMailbox { uid_next: 1, entries: BTreeMap::new() };
    let mut model: Model = MAILBOXES.iter().map(|(name, _)| (*name, empty.clone())).collect();
    let mut sessions: Vec<Session> = Vec::new();
    let mut serial = 0;
    schedule(&sim, &mut random);
    for step in 0..OPERATIONS {
        let operation = random_operation(&mut random, &mut serial);
        if std::env::var("TRACE").is_ok() {
            eprintln!("{}\n{step}: {operation:?}", sim.disk.take_trace().join("\n"));
            sim.disk.start_trace();
        }
        let mut after = model.clone();
        apply(&mut after, &operation);
        if let Operation::Deliver(mailbox, messages) = &operation {
            // What happens to the other program is its own affair.
            sim.disk.clear_faults();
            sim.disk.set_capacity(None);
            if !sim.disk.is_off() {
                deliver(&sim, Path::new(MAILBOXES[*mailbox].1), messages);
                schedule(&sim, &mut random);
            } else {
                after.clone_from(&model);
            }
        }
        if matches!(operation, Operation::Reopen) && !sim.disk.is_off() {
            sessions.clear();
            let next = process.end(&sim);
            sim.disk.clear_faults();
            process = Process::start(&sim, &options, next);
        }
        let mut result = perform(&process.account, &process.store, &sim, &operation);
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::InUse) {
            // A dotlock whose contents did not survive is in the way until nothing has changed for a while.
            sim.clock.advance(DOTLOCK_STALE);
            result = perform(&process.account, &process.store, &sim, &operation);
        }
        match result {
            Ok(()) => model = after,
            // A dotlock that could not be removed is in the way of its own process, too, as long as that lives.
            Err(error) if is_machine_error(error.kind()) || error.kind() == ErrorKind::InUse => {
                sessions.clear();
                let next = process.end(&sim);
                sim.disk.clear_faults();
                sim.disk.set_capacity(None);
                if sim.disk.is_off() || random.one_in(2) {
                    sim.disk.crash();
                    sim.disk.restart();
                }
                sim.clock.advance(DOTLOCK_STALE);
                process = Process::start(&sim, &options, next);
                let mut found = observe(&process.account);
                if let Operation::Deliver(mailbox, _) = &operation {
                    let id = process.account.mailbox(&MailboxName::new(name(*mailbox)).unwrap()).unwrap();
                    process.account.refresh(id).unwrap();
                    found = observe(&process.account);
                    assert!(found == after, "seed {seed} step {step}: {found:?}\nnot {after:?}");
                }
                assert!(
                    found == model || found == after,
                    "seed {seed} step {step}: {operation:?}: {found:?}\nbefore {model:?}\nafter {after:?}"
                );
                model = found;
                schedule(&sim, &mut random);
            }
            Err(error) => panic!("seed {seed} step {step}: {operation:?} was refused: {error}"),
        }
        look(&process.account, &mut sessions, &mut random);
    }
    finish(&sim, process, sessions, &options, &model, seed);
}

/// Nothing goes wrong any more: the files get what the model has.
fn finish(sim: &SimEnv, process: Process, sessions: Vec<Session>, options: &Options, model: &Model, seed: u64) {
    drop(sessions);
    let mut next = process.end(sim);
    sim.disk.clear_faults();
    sim.disk.set_capacity(None);
    if sim.disk.is_off() {
        sim.disk.crash();
        sim.disk.restart();
    }
    sim.clock.advance(DOTLOCK_STALE);
    for round in 0..2 {
        let process = Process::start(sim, options, next);
        assert_eq!(observe(&process.account), *model, "seed {seed} round {round}");
        // What was moved leaves its file once the other file has it: twice is enough for all.
        for _ in 0..2 {
            for (name, _) in MAILBOXES {
                let id = process.account.mailbox(&MailboxName::new(name).unwrap()).unwrap();
                process.account.refresh(id).unwrap();
                process.account.write_back(id, Moment::Close).unwrap();
            }
        }
        for (name, path) in MAILBOXES {
            assert_eq!(in_file(sim, path), in_model(&model[name]), "seed {seed} round {round}: {path}");
        }
        assert_eq!(observe(&process.account), *model, "seed {seed} round {round}, written back");
        next = process.end(sim);
    }
}

#[test]
fn histories() {
    seeds::play(HISTORIES, history);
}
