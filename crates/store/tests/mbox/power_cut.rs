//! Clients and other programs at the same files, beside a model, on a disk that dies or fails anywhere.
//!
//! After each cut the mailboxes are the model before or after what was interrupted; every message can be read; UIDs stay, and new ones are
//! above all that were ever seen; what the files say after a write-back is what the log says. A failure prints its seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{ErrorKind, MailboxId, MailboxName, Result};
use platform::Prng;
use store::{Account, Moment, Store, StoreMode};

use crate::seeds::play;
use crate::support::*;

const HISTORIES: u64 = 3000;
const OPERATIONS: u64 = 30;
const NAMES: [&str; 2] = ["INBOX", "a"];
const FLAGS: [&str; 4] = ["\\Seen", "\\Flagged", "\\Answered", "work"];

type Flags = BTreeSet<String>;

/// Number and flags by UID.
type Entries = BTreeMap<u32, (u32, Flags)>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    mailboxes: BTreeMap<String, Entries>,
}

#[derive(Clone, Debug)]
enum Operation {
    Append(String, u32, Flags),
    Flags(String, u32, StoreMode, Flags),
    Expunge(String, BTreeSet<u32>),
    Copy(String, BTreeSet<u32>, String),
    Move(String, BTreeSet<u32>, String),
    WriteBack(String, Moment),
    /// The mailbox that is not INBOX is deleted or renamed; then there is an empty one, or the same under a new name.
    Delete,
    Rename,
    Maintain,
    Idle,
    Reopen,
    Others(String, Other),
}

/// What another program does.
#[derive(Clone, Debug)]
enum Other {
    Deliver(u32),
    /// Of the messages in the file, if it is the only one like it.
    Delete(usize),
    /// Sets or clears a flag, and writes everything anew.
    Flag(usize, usize, bool),
    Reverse,
}

/// A message in a file: its lines of header and body.
#[derive(Clone, Debug)]
struct InFile {
    from: String,
    header: Vec<String>,
    body: String,
}

fn parse(text: &str) -> Vec<InFile> {
    let pieces = format!("\n{text}");
    let pieces = pieces.split("\nFrom ").skip(1);
    pieces
        .map(|piece| {
            let (head, body) = piece.split_once("\n\n").unwrap_or((piece, ""));
            let (from, header) = head.split_once('\n').unwrap();
            InFile {
                from: from.to_owned(),
                header: header.lines().map(str::to_owned).collect(),
                body: body.trim_end_matches('\n').to_owned(),
            }
        })
        .collect()
}

fn print(messages: &[InFile]) -> String {
    messages.iter().map(|one| format!("From {}\n{}\n\n{}\n\n", one.from, one.header.join("\n"), one.body)).collect()
}

impl InFile {
    fn number(&self) -> u32 {
        self.field("Subject").unwrap().parse().unwrap()
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.header.iter().find_map(|line| line.strip_prefix(&format!("{name}:"))).map(str::trim)
    }

    fn flags(&self) -> Flags {
        let (status, x_status) = (self.field("Status").unwrap_or(""), self.field("X-Status").unwrap_or(""));
        let mut flags: Flags = self.field("X-Keywords").unwrap_or("").split_whitespace().map(str::to_owned).collect();
        let has = [(status, 'R', "\\Seen"), (x_status, 'F', "\\Flagged"), (x_status, 'A', "\\Answered")];
        flags.extend(has.iter().filter(|(text, c, _)| text.contains(*c)).map(|(.., flag)| (*flag).to_owned()));
        flags.extend(x_status.contains('D').then(|| "\\Deleted".to_owned()));
        flags
    }

    fn set_flags(&mut self, flags: &Flags) {
        self.header.retain(|line| !["Status:", "X-Status:", "X-Keywords:"].iter().any(|name| line.starts_with(name)));
        let letters = |pairs: &[(&str, char)]| -> String {
            pairs.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, c)| *c).collect()
        };
        let x_status = letters(&[("\\Flagged", 'F'), ("\\Answered", 'A'), ("\\Deleted", 'D')]);
        let keywords: Vec<&str> = flags.iter().filter(|flag| !flag.starts_with('\\')).map(String::as_str).collect();
        self.header.push(format!("Status: {}O", letters(&[("\\Seen", 'R')])));
        self.header.push(format!("X-Status: {x_status}"));
        self.header.push(format!("X-Keywords: {}", keywords.join(" ")));
    }
}

impl Model {
    fn add(&mut self, mailbox: &str, next: &BTreeMap<String, u32>, number: u32, flags: Flags) {
        let entries = self.mailboxes.get_mut(mailbox).unwrap();
        let uid = entries.keys().max().copied().unwrap_or(0).max(next[mailbox]) + 1;
        entries.insert(uid, (number, flags));
    }

    /// `next`: the highest UID that was seen in each mailbox.
    fn apply(&mut self, operation: &Operation, next: &BTreeMap<String, u32>) {
        match operation {
            Operation::Append(mailbox, number, flags) => self.add(mailbox, next, *number, flags.clone()),
            Operation::Flags(mailbox, uid, mode, flags) => {
                if let Some((_, have)) = self.mailboxes.get_mut(mailbox).unwrap().get_mut(uid) {
                    match mode {
                        StoreMode::Replace => have.clone_from(flags),
                        StoreMode::Add => have.extend(flags.iter().cloned()),
                        StoreMode::Remove => have.retain(|flag| !flags.contains(flag)),
                    }
                }
            }
            Operation::Expunge(mailbox, uids) => {
                self.mailboxes.get_mut(mailbox).unwrap().retain(|uid, _| !uids.contains(uid));
            }
            Operation::Copy(from, uids, to) | Operation::Move(from, uids, to) => {
                let entries: Vec<_> = uids.iter().filter_map(|uid| self.mailboxes[from].get(uid).cloned()).collect();
                for (number, flags) in entries {
                    self.add(to, next, number, flags);
                }
                if matches!(operation, Operation::Move(..)) {
                    self.mailboxes.get_mut(from).unwrap().retain(|uid, _| !uids.contains(uid));
                }
            }
            Operation::Delete => self.mailboxes.get_mut("a").unwrap().clear(),
            _ => {}
        }
    }
}

struct Run {
    world: World,
    seed: u64,
    random: Prng,
    store: Option<Store1>,
    model: Model,
    /// The highest UID that was seen.
    highest: BTreeMap<String, u32>,
    numbers: u32,
    /// What the mailbox `a` is called now: no name is used twice.
    name: u32,
}

impl Drop for Run {
    fn drop(&mut self) {
        // What led to a failure.
        self.trace(&"the end");
    }
}

struct Store1 {
    store: std::sync::Arc<Store>,
    account: std::sync::Arc<Account>,
}

impl Run {
    /// With `TRACE` set: what the disk did since it was said last.
    fn trace(&self, next: &dyn std::fmt::Debug) {
        if std::env::var("TRACE").is_ok() {
            eprintln!("{}\n{next:?}", self.world.sim.disk.take_trace().join("\n"));
            self.world.sim.disk.start_trace();
        }
    }

    fn account(&self) -> &Account {
        &self.store.as_ref().unwrap().account
    }

    fn id(&self, mailbox: &str) -> Result<MailboxId> {
        self.account().mailbox(&self.name_of(mailbox))
    }

    fn name_of(&self, mailbox: &str) -> MailboxName {
        if mailbox == "INBOX" { name(mailbox) } else { name(&format!("a{}", self.name)) }
    }

    fn path_of(&self, mailbox: &str) -> String {
        if mailbox == "INBOX" { INBOX.to_owned() } else { format!("{ROOT}/{}", self.name_of(mailbox)) }
    }

    /// After an interrupted [`Operation::Delete`] or [`Operation::Rename`]: what `a` is called now. If it is gone there is a new one.
    fn find_name(&mut self, operation: &Operation) -> Result<()> {
        let exists = |number: u32| {
            let wanted = name(&format!("a{number}"));
            self.account().mailboxes().iter().any(|info| info.name == wanted)
        };
        let is_renamed = matches!(operation, Operation::Rename) && exists(self.name + 1);
        if is_renamed || !exists(self.name) {
            self.name += 1;
        }
        match self.account().create_mailbox(&self.name_of("a"), &[]) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn observe(&self) -> Result<Model> {
        let mut model = Model::default();
        for mailbox in NAMES {
            let id = self.id(mailbox)?;
            self.account().refresh(id)?;
            let view = self.account().view(id, false)?;
            let mut reader = self.account().reader();
            let entries = model.mailboxes.entry(mailbox.to_owned()).or_default();
            for entry in view.all_rows() {
                let mut text = Vec::new();
                reader.read(entry.email_id, 0..u64::MAX, &mut text)?;
                let text = String::from_utf8(text).unwrap();
                let number = text.lines().next().unwrap().trim_start_matches("Subject: ").parse().unwrap();
                assert_eq!(text, long(number).replace('\n', "\r\n"), "seed {}", self.seed);
                let flags = view.keywords().names(entry.flags).map(str::to_owned).collect();
                entries.insert(entry.uid.get(), (number, flags));
            }
        }
        Ok(model)
    }

    fn random_operation(&mut self) -> Operation {
        let mailbox = NAMES[self.random.index(2)].to_owned();
        let other = NAMES[self.random.index(2)].to_owned();
        let known: Vec<u32> = self.model.mailboxes[&mailbox].keys().copied().collect();
        let some = |random: &mut Prng| -> BTreeSet<u32> {
            let count = 1 + random.index(3);
            (0..count).filter(|_| !known.is_empty()).map(|_| known[random.index(known.len())]).collect()
        };
        let random = &mut self.random;
        let flags: Flags = FLAGS.into_iter().filter(|_| random.below(3) == 0).map(str::to_owned).collect();
        match random.below(28) {
            0..=2 => {
                self.numbers += 1;
                Operation::Append(mailbox, self.numbers, flags)
            }
            3..=6 => {
                let mode = [StoreMode::Replace, StoreMode::Add, StoreMode::Remove][random.index(3)];
                let uid = some(random).first().copied().unwrap_or(1);
                Operation::Flags(mailbox, uid, mode, flags)
            }
            7..=8 => Operation::Expunge(mailbox, some(random)),
            9 => Operation::Copy(mailbox, some(random), other),
            10..=11 => Operation::Move(mailbox, some(random), other),
            12..=15 => {
                let moment = [Moment::Check, Moment::Close, Moment::Logout][random.index(3)];
                Operation::WriteBack(mailbox, moment)
            }
            26 => Operation::Delete,
            27 => Operation::Rename,
            16 => Operation::Maintain,
            17 => Operation::Idle,
            18 => Operation::Reopen,
            19..=21 => {
                self.numbers += 1;
                Operation::Others(mailbox, Other::Deliver(self.numbers))
            }
            22 => Operation::Others(mailbox, Other::Delete(random.index(100))),
            23..=24 => {
                // A keyword that others take back stays where a client has changed the entry meanwhile, which the model does not know.
                let (flag, is_set) = (random.index(FLAGS.len()), random.below(2) == 0);
                let flag = Other::Flag(random.index(100), flag, is_set || !FLAGS[flag].starts_with('\\'));
                Operation::Others(mailbox, flag)
            }
            _ => Operation::Others(mailbox, Other::Reverse),
        }
    }

    fn perform(&mut self, operation: &Operation) -> Result<()> {
        if matches!(operation, Operation::Reopen) {
            self.store = None;
            let store = Store::open(self.world.env.clone(), "/data".into(), options(self.seed))?;
            let account = store.account(&ann())?;
            self.store = Some(Store1 { store, account });
            return Ok(());
        }
        let account = std::sync::Arc::clone(&self.store.as_ref().unwrap().account);
        let set = |uids: &BTreeSet<u32>| uids.iter().copied().collect();
        match operation {
            Operation::Append(mailbox, number, flags) => {
                let mut writer = account.message_writer()?;
                writer.write(long(*number).replace('\n', "\r\n").as_bytes())?;
                let flags = flag_names(&flags.iter().cloned().collect::<Vec<_>>().join(" "));
                let message = store::NewMessage { message: writer.finish()?, flags, internal_date: None };
                account.append(self.id(mailbox)?, vec![message]).map(drop)
            }
            Operation::Flags(mailbox, uid, mode, flags) => {
                let flags = flag_names(&flags.iter().cloned().collect::<Vec<_>>().join(" "));
                let request = store::StoreFlags { mode: *mode, flags, unchanged_since: None };
                account.store_flags(self.id(mailbox)?, &uids(&[*uid]), &request).map(drop)
            }
            Operation::Expunge(mailbox, uids) => {
                let id = self.id(mailbox)?;
                account.edit(|edit| {
                    let uids = set(uids);
                    let deleted = store::StoreFlags {
                        mode: StoreMode::Add,
                        flags: flag_names("\\Deleted"),
                        unchanged_since: None,
                    };
                    edit.store_flags(id, &uids, &deleted)?;
                    edit.expunge(id, Some(&uids)).map(drop)
                })
            }
            Operation::Copy(from, uids, to) => account.copy(self.id(from)?, &set(uids), self.id(to)?).map(drop),
            Operation::Move(from, uids, to) => account.move_entries(self.id(from)?, &set(uids), self.id(to)?).map(drop),
            Operation::WriteBack(mailbox, moment) => account.write_back(self.id(mailbox)?, *moment),
            Operation::Delete => account.delete_mailbox(&self.name_of("a")),
            Operation::Rename => account.rename_mailbox(&self.name_of("a"), &name(&format!("a{}", self.name + 1))),
            Operation::Maintain => self.store.as_ref().unwrap().store.maintain().map(drop),
            Operation::Idle => {
                self.world.sim.clock.advance(Duration::from_secs(40));
                Ok(())
            }
            Operation::Reopen | Operation::Others(..) => Ok(()),
        }
    }

    /// Another program at work; says what the model is when the log has seen it.
    fn others(&mut self, mailbox: &str, other: &Other) {
        let path = self.path_of(mailbox);
        let mut messages = match self.world.env.disk.read(std::path::Path::new(&path)) {
            Ok(bytes) => parse(&String::from_utf8(bytes).unwrap()),
            Err(_) => Vec::new(),
        };
        let count = messages.len();
        let all: Vec<u32> = self.model.mailboxes.values().flat_map(|one| one.values().map(|entry| entry.0)).collect();
        let entries = self.model.mailboxes.get_mut(mailbox).unwrap();
        let only = |entries: &Entries, messages: &[InFile], number: u32| {
            let uids: Vec<u32> = entries.iter().filter(|(_, one)| one.0 == number).map(|(uid, _)| *uid).collect();
            let is_only = messages.iter().filter(|one| one.number() == number).count() == 1;
            // A copy elsewhere may be on its way.
            let is_only = is_only && all.iter().filter(|one| **one == number).count() == 1;
            (is_only && uids.len() == 1).then(|| uids[0])
        };
        match other {
            Other::Deliver(number) => {
                let text = format!("From x@y Thu Aug 22 12:36:23 2002\n{}\n", long(*number));
                self.world.deliver(&path, &text);
                let uid = entries.keys().max().copied().unwrap_or(0).max(self.highest[mailbox]) + 1;
                entries.insert(uid, (*number, Flags::new()));
                return;
            }
            _ if count == 0 => return,
            Other::Delete(n) => {
                let number = messages[n % count].number();
                let Some(uid) = only(entries, &messages, number) else { return };
                entries.remove(&uid);
                messages.remove(n % count);
            }
            Other::Flag(n, flag, on) => {
                let one = &mut messages[n % count];
                let (number, mut flags) = (one.number(), one.flags());
                let flag = FLAGS[*flag].to_owned();
                let is_new = if *on { flags.insert(flag.clone()) } else { flags.remove(&flag) };
                one.set_flags(&flags);
                if let Some(uid) = only(entries, &messages, number) {
                    let have = &mut entries.get_mut(&uid).unwrap().1;
                    match (is_new, on) {
                        (true, true) => drop(have.insert(flag)),
                        (true, false) => drop(have.remove(&flag)),
                        _ => {}
                    }
                } else {
                    return;
                }
            }
            // Copies of one message that have different flags are told apart by their order, if the map that knew them is lost.
            Other::Reverse
                if entries.values().any(|(number, flags)| {
                    entries.values().any(|(other, others)| other == number && others != flags)
                }) =>
            {
                return;
            }
            Other::Reverse => messages.reverse(),
        }
        self.world.write(&path, &print(&messages));
    }

    fn schedule(&mut self) {
        let (disk, random) = (&self.world.sim.disk, &mut self.random);
        match random.below(8) {
            0..=3 => disk.crash_at(1 + random.below(60)),
            4..=5 => disk.fail_at(1 + random.below(60)),
            6 => disk.set_capacity(Some(disk.used_bytes() + random.below(20_000))),
            _ => {}
        }
    }

    /// After an operation that may have changed the name of `a`.
    fn named(&mut self, operation: &Operation) {
        if !matches!(operation, Operation::Delete | Operation::Rename) {
            return;
        }
        let before = self.name;
        if self.find_name(operation).is_err() {
            // The log was closed by what failed behind the operation.
            self.restart();
            self.find_name(operation).unwrap();
        }
        if matches!(operation, Operation::Delete) && self.name != before {
            // Another UIDVALIDITY.
            self.highest.insert("a".to_owned(), 0);
        }
    }

    fn clear(&self) {
        self.world.sim.disk.clear_faults();
        self.world.sim.disk.set_capacity(None);
    }

    /// A new process finds what is there.
    fn restart(&mut self) {
        self.store = None;
        self.clear();
        let disk = &self.world.sim.disk;
        if disk.is_off() || self.random.below(2) == 0 {
            disk.crash();
            disk.restart();
        }
        let store = Store::open(self.world.env.clone(), "/data".into(), options(self.seed)).unwrap();
        if self.random.below(4) == 0 {
            store.repair(&ann()).unwrap();
        }
        let account = store.account(&ann()).unwrap();
        self.store = Some(Store1 { store, account });
    }

    /// The mailboxes are as the model, or as `before`; as `interrupted` as well when a restart undid what another program did.
    fn check<'m>(&mut self, operation: &Operation, mut before: Option<&'m Model>, interrupted: Option<&'m Model>) {
        let mut found = self.observe();
        if found.as_ref().is_err_and(|error| is_machine_error(error.kind())) {
            // What failed behind the operation, in a file, may have closed the log.
            self.restart();
            found = self.observe();
            if may_be_undone(operation) {
                before = interrupted;
            }
        }
        let found = found.unwrap_or_else(|error| {
            let files = NAMES.map(|name| self.world.env.disk.read(std::path::Path::new(&self.path_of(name))));
            let files = files.map(|file| String::from_utf8(file.unwrap_or_default()).unwrap()).join("-----\n");
            panic!("seed {}: {operation:?}: {error:?}\n{files}", self.seed)
        });
        let is_right = found == self.model || before == Some(&found);
        assert!(
            is_right,
            "seed {}: {operation:?}:\nfound  {found:?}\nmodel  {:?}\nbefore {before:?}\nINBOX:\n{}",
            self.seed,
            self.model,
            self.world
                .env
                .disk
                .read(std::path::Path::new(INBOX))
                .map(|b| String::from_utf8(b).unwrap())
                .unwrap_or_default()
        );
        self.model = found;
        for (mailbox, entries) in &self.model.mailboxes {
            let highest = self.highest.get_mut(mailbox).unwrap();
            *highest = (*highest).max(entries.keys().max().copied().unwrap_or(0));
        }
    }

    /// What a write-back has done.
    fn check_file(&self, mailbox: &str) {
        let text = self.world.env.disk.read(std::path::Path::new(&self.path_of(mailbox))).unwrap_or_default();
        let mut in_file: Vec<(u32, Flags)> =
            parse(&String::from_utf8(text).unwrap()).iter().map(|one| (one.number(), one.flags())).collect();
        let mut entries: Vec<(u32, Flags)> = self.model.mailboxes[mailbox].values().cloned().collect();
        in_file.sort();
        entries.sort();
        assert_eq!(in_file, entries, "seed {}: {mailbox}", self.seed);
    }
}

/// A power cut may take the map, and with it what was in the file and what the fields said: then the log counts.
fn may_be_undone(operation: &Operation) -> bool {
    matches!(operation, Operation::Others(_, Other::Flag(..) | Other::Delete(_)))
}

/// A message whose length is not that of its neighbours.
fn long(number: u32) -> String {
    format!("Subject: {number}\n\nbody {number}\n{}", "line of text\n".repeat((number * 7 % 40) as usize))
}

fn options(seed: u64) -> store::Options {
    let mut options = store::Options::default();
    options.log.tail_bytes_max = 4000;
    options.log.checkpoint_bytes = 3000;
    options.log.preallocate_bytes_min = 512;
    options.log.preallocate_bytes_max = 1024;
    options.mbox.idle_seconds = 30;
    if seed.is_multiple_of(3) {
        // As if the files were large.
        options.mbox.whole_bytes_max = 0;
    }
    // A dotlock that lost its octets with the power is anybody's: it would have to grow old first.
    options.mbox.locks.write = vec![store::format::mbox::lock::Method::Fcntl];
    options
}

fn is_machine_error(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Io | ErrorKind::ReadOnlyAfterFailure | ErrorKind::DiskFull)
}

fn history(seed: u64) {
    let world = World::new(seed);
    let mut run = Run {
        world,
        seed,
        random: Prng::new(seed ^ 0x5eed),
        store: None,
        model: Model::default(),
        highest: NAMES.iter().map(|mailbox| ((*mailbox).to_owned(), 0)).collect(),
        numbers: 0,
        name: 0,
    };
    run.perform(&Operation::Reopen).unwrap();
    run.account().create_mailbox(&run.name_of("a"), &[]).unwrap();
    for mailbox in NAMES {
        run.model.mailboxes.insert(mailbox.to_owned(), Entries::new());
    }
    run.schedule();
    for _ in 0..OPERATIONS {
        let operation = run.random_operation();
        run.trace(&operation);
        let before = run.model.clone();
        let next = run.highest.clone();
        run.model.apply(&operation, &next);
        let is_faulty = run.random.below(2) == 0;
        if let Operation::Others(mailbox, other) = &operation {
            run.clear();
            run.others(mailbox, other);
            run.schedule();
            if is_faulty {
                let seen = run.observe();
                if seen.is_err() {
                    run.restart();
                    run.check(&operation, may_be_undone(&operation).then_some(&before), Some(&before));
                    run.schedule();
                }
            }
        }
        match run.perform(&operation) {
            Ok(()) => {
                let is_off = run.world.sim.disk.is_off();
                run.clear();
                if is_off {
                    run.restart();
                }
                run.named(&operation);
                run.check(&operation, (is_off && may_be_undone(&operation)).then_some(&before), Some(&before));
                if let Operation::WriteBack(mailbox, _) = &operation {
                    // Something of another file may have failed, without harm.
                    run.check(&operation, None, None);
                    run.perform(&operation).unwrap();
                    run.check_file(mailbox);
                }
            }
            Err(error) if is_machine_error(error.kind()) => {
                run.restart();
                run.named(&operation);
                run.check(&operation, Some(&before), None);
            }
            Err(error) => panic!("seed {seed}: {operation:?}: {error:?}"),
        }
        run.schedule();
    }
    run.clear();
    if run.world.sim.disk.is_off() {
        run.restart();
    }
    run.check(&Operation::Idle, None, None);
    let findings = run.account().check().unwrap().findings;
    assert_eq!(findings, [], "seed {seed}");
}

#[test]
fn power_cuts() {
    play(HISTORIES, history);
}
