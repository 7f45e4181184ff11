//! Random histories beside a model, with the power going anywhere and every kind of fault. After each the account is the
//! model's before or after what was not acknowledged, and everything acknowledged is there.
//!
//! `MAILYARD_HISTORIES=n` runs n histories in each test instead; `MAILYARD_SEED=n` runs one seed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::model::{
    DateTime, ErrorKind, FlagChange, Flags, Keyword, MailboxId, MailboxName, SpecialUse, SystemFlag, Uid, UidSet,
};
use mailyard_index::{Budget, ForeignMessage, Log, NewEntry, Options, Ticket, Transaction, remove_index};
use model::{Account, Ends, Entry, Expected, Files, check_foreign, check_mailbox, check_messages, digest, observe};
use platform::Clock;
use platform::random::Prng;
use platform::sim::{Effect, SimEnv};

/// Histories in each of the tests below; four of them make the 20,000 that must pass before a change goes in.
const HISTORIES: u64 = 5_000;

const DIR: &str = "/mail/ann";

fn options(prng: &mut Prng) -> Options {
    let pick = |prng: &mut Prng, of: &[u64]| of[prng.index(of.len())];
    Options {
        tail_bytes_max: pick(prng, &[300, 1_000, 4_000]),
        idle_tail_bytes_max: pick(prng, &[0, 500, 1 << 20]),
        frozen_tails_max: prng.between(1, 3) as usize,
        pending_bytes_max: pick(prng, &[2_000, 1 << 20]),
        preallocate_bytes_min: pick(prng, &[0, 4096]),
        preallocate_bytes_max: 8192,
        spool_above_bytes: 200,
        body_level: pick(prng, &[0, 1]) as i32,
        checkpoint_bytes: pick(prng, &[2_000, 10_000, 1 << 20]),
        retention_seconds: pick(prng, &[0, 100, 1_000_000]),
        dead_percent_max: 25,
        merge_bytes_max: pick(prng, &[0, 10_000]),
        tombstone_ranges_max: 1_000_000,
    }
}

struct History {
    sim: SimEnv,
    prng: Prng,
    options: Options,
    log: Option<Arc<Log>>,
    /// The model after each transaction since the last that was acknowledged.
    states: Vec<Account>,
    /// The messages' bytes, by id, as of each of `states`.
    bytes: Vec<BTreeMap<u64, Arc<Vec<u8>>>>,
    /// Tickets not waited for yet, each with the state that it promises.
    pending: Vec<(Ticket, usize)>,
    next_email: Vec<u64>,
    next_mailbox: Vec<u64>,
    validity_last: Vec<u32>,
    /// What other programs keep; what they have been given is never lost.
    files: Arc<Files>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let options = options(&mut prng);
        let sim = SimEnv::new(seed);
        platform::Disk::create_dir_all_durable(&sim.disk, Path::new("/mail")).unwrap();
        History {
            sim,
            prng,
            options,
            log: None,
            states: vec![Account::default()],
            bytes: vec![BTreeMap::new()],
            pending: Vec::new(),
            next_email: vec![1],
            next_mailbox: vec![1],
            validity_last: vec![0],
            files: Arc::default(),
        }
    }

    fn now(&self) -> i64 {
        self.sim.clock.now().seconds
    }

    fn model(&self) -> &Account {
        self.states.last().unwrap()
    }

    fn keep_only(&mut self, n: usize) {
        self.states = vec![self.states[n].clone()];
        self.bytes = vec![self.bytes[n].clone()];
        self.next_email = vec![self.next_email[n]];
        self.next_mailbox = vec![self.next_mailbox[n]];
        self.validity_last = vec![self.validity_last[n]];
    }

    /// State `n` is acknowledged: the account cannot go back behind it.
    fn forget_before(&mut self, n: usize) {
        self.states.drain(..n);
        self.bytes.drain(..n);
        self.next_email.drain(..n);
        self.next_mailbox.drain(..n);
        self.validity_last.drain(..n);
    }

    /// Opens the account, after whatever happened, and compares it with the model.
    fn open(&mut self) {
        self.pending.clear();
        self.log = None;
        for attempt in 0.. {
            if self.sim.disk.is_off() {
                self.sim.disk.restart();
            }
            if attempt > 2 {
                self.sim.disk.clear_faults();
                self.sim.disk.set_capacity(None);
            }
            let (env, derive) = (self.sim.env(), Some(Arc::new(Ends) as _));
            match Log::open(&env, Path::new(DIR), self.options.clone(), derive, Some(self.files.clone())) {
                Ok(log) => {
                    self.log = Some(log);
                    break;
                }
                Err(error) => assert!(attempt < 5, "the account does not open: {error:?}"),
            }
        }
        let log = self.log.clone().unwrap();
        assert_eq!(log.damage(), [], "damage after a power cut");
        let since = self.now() - self.options.retention_seconds as i64;
        let found = observe(&log.state(), since);
        let Some(n) = self.states.iter().position(|state| state.visible(since) == found) else {
            panic!(
                "after opening\nfound {found:?}\nnone of\n{}",
                self.states.iter().map(|s| format!("{:?}\n", s.visible(since))).collect::<String>()
            );
        };
        self.keep_only(n);
        self.compare();
    }

    /// Compares everything with the model.
    fn compare(&mut self) {
        let log = self.log.clone().unwrap();
        let since = self.now() - self.options.retention_seconds as i64;
        let state = log.state();
        let model = self.states[0].visible(since);
        assert_eq!(observe(&state, since), model, "the published state");
        for mailbox in state.mailboxes() {
            check_mailbox(mailbox, &self.states[0].mailboxes[&mailbox.id().0]);
        }
        check_foreign(&state, &self.states[0].visible(i64::MIN), &self.files);
        if !self.sim.disk.is_off() {
            check_messages(&log, &model, &self.bytes[0]);
        }
    }

    /// The log reported an error: what of the queue happened is open until it is opened again.
    fn failed(&mut self, error: &::model::Error) {
        if error.kind() == ErrorKind::DiskFull && !self.sim.disk.is_off() {
            // Nothing of the queue was done, and the log goes on.
            self.pending.clear();
            self.keep_only(0);
            self.compare();
            self.sim.disk.set_capacity(None);
            return;
        }
        if self.prng.one_in(2) {
            self.sim.disk.crash();
        }
        self.open();
    }

    fn wait(&mut self) {
        let pending: Vec<_> = self.pending.drain(..).collect();
        let mut failed = None;
        let mut acknowledged = 0;
        for (ticket, state) in pending {
            match ticket.wait() {
                Ok(()) => acknowledged = state,
                Err(error) => failed = Some(error),
            }
        }
        self.forget_before(acknowledged);
        match failed {
            None => self.keep_only(self.states.len() - 1),
            Some(error) => self.failed(&error),
        }
    }

    /// Runs a transaction on the log, and the same on the model.
    fn transact(&mut self, change: impl FnOnce(&mut Transaction, &mut Mirror<'_>)) {
        let log = self.log.clone().unwrap();
        let mut account = self.model().clone();
        let mut bytes = self.bytes.last().unwrap().clone();
        let mut next_email = *self.next_email.last().unwrap();
        let mut next_mailbox = *self.next_mailbox.last().unwrap();
        let mut validity_last = *self.validity_last.last().unwrap();
        let mut prng = self.prng.fork();
        let now = self.now();
        let retention = self.options.retention_seconds as i64;
        let files = Arc::clone(&self.files);
        let result = log.transact(|tx| {
            let mut mirror = Mirror {
                modseq: account.modseq + 1,
                account: &mut account,
                bytes: &mut bytes,
                next_email: &mut next_email,
                next_mailbox: &mut next_mailbox,
                validity_last: &mut validity_last,
                prng: &mut prng,
                log: &log,
                files: &files,
                now,
                retention,
                changed: false,
                io_error: None,
            };
            change(tx, &mut mirror);
            let changed = mirror.changed;
            match mirror.io_error {
                Some(error) => Err(error),
                None => Ok(changed),
            }
        });
        match result {
            Ok((changed, ticket)) => {
                if changed {
                    account.modseq += 1;
                    self.states.push(account);
                    self.bytes.push(bytes);
                    self.next_email.push(next_email);
                    self.next_mailbox.push(next_mailbox);
                    self.validity_last.push(validity_last);
                }
                self.pending.push((ticket, self.states.len() - 1));
            }
            Err(error) => {
                // The queue was too long and was written, or a spool file could not be: the transaction may be in the queue.
                account.modseq += 1;
                self.states.push(account);
                self.bytes.push(bytes);
                self.next_email.push(next_email);
                self.next_mailbox.push(next_mailbox);
                self.validity_last.push(validity_last);
                if error.kind() == ErrorKind::DiskFull && !self.sim.disk.is_off() {
                    self.sim.disk.set_capacity(None);
                }
                // Whatever is queued is made durable or not; then the account says which.
                drop(log);
                self.open();
            }
        }
    }
}

/// The model's side of a transaction.
struct Mirror<'a> {
    account: &'a mut Account,
    bytes: &'a mut BTreeMap<u64, Arc<Vec<u8>>>,
    next_email: &'a mut u64,
    next_mailbox: &'a mut u64,
    validity_last: &'a mut u32,
    prng: &'a mut Prng,
    log: &'a Arc<Log>,
    files: &'a Files,
    now: i64,
    retention: i64,
    modseq: u64,
    changed: bool,
    io_error: Option<::model::Error>,
}

/// The octets of a message's header: always the same of the same message.
fn header_len(message: &[u8]) -> u32 {
    (digest(message) % (message.len() as u64 + 1)) as u32
}

const NAMES: [&str; 7] = ["INBOX", "a", "a/b", "a/b/c", "a.b", "x", "x/y"];

impl Mirror<'_> {
    fn name(&mut self) -> MailboxName {
        MailboxName::new(NAMES[self.prng.index(NAMES.len())]).unwrap()
    }

    fn expected(&mut self) -> Option<u64> {
        let ids: Vec<u64> = self.account.mailboxes.keys().copied().collect();
        self.prng.pick(&ids).copied()
    }

    fn uids(&mut self, of: &[u32]) -> UidSet {
        let every = self.prng.between(1, 4);
        of.iter().copied().filter(|_| self.prng.one_in(every)).collect()
    }

    fn create(&mut self, tx: &mut Transaction) {
        let name = self.name();
        let special = if self.prng.one_in(3) { vec![SpecialUse::Drafts, SpecialUse::Sent] } else { vec![] };
        let result = tx.create_mailbox(&name, &special);
        if self.account.mailboxes.values().any(|expected| expected.name == name.as_str()) {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::AlreadyExists);
            return;
        }
        let uidvalidity = (self.now as u32).max(*self.validity_last + 1);
        let expected = Expected {
            name: name.to_string(),
            uidvalidity,
            uidnext: 1,
            modseq: self.modseq,
            special: special.iter().map(|s| s.as_str().to_owned()).collect(),
            ..Expected::default()
        };
        assert_eq!(result.unwrap().0, *self.next_mailbox);
        self.account.mailboxes.insert(*self.next_mailbox, expected);
        *self.validity_last = uidvalidity;
        *self.next_mailbox += 1;
        self.changed = true;
    }

    fn rename(&mut self, tx: &mut Transaction) {
        let Some(id) = self.expected() else { return };
        let to = self.name();
        let from = MailboxName::new(&self.account.mailboxes[&id].name).unwrap();
        let moves: Vec<(u64, String)> = self
            .account
            .mailboxes
            .iter()
            .filter_map(|(id, expected)| {
                let renamed = MailboxName::new(&expected.name).unwrap().rebased(&from, &to)?;
                Some((*id, renamed.unwrap().to_string()))
            })
            .collect();
        let taken: BTreeSet<&str> = self.account.mailboxes.values().map(|expected| expected.name.as_str()).collect();
        let is_possible = !to.is_below(&from) && moves.iter().all(|(_, name)| !taken.contains(name.as_str()));
        let result = tx.rename_mailbox(MailboxId(id), &to);
        assert_eq!(result.is_ok(), is_possible, "rename {from} to {to}");
        if is_possible {
            for (id, name) in moves {
                self.account.mailboxes.get_mut(&id).unwrap().name = name;
            }
            self.changed = true;
        }
    }

    fn delete(&mut self, tx: &mut Transaction) {
        let Some(id) = self.expected() else { return };
        tx.delete_mailbox(MailboxId(id)).unwrap();
        let foreign = self.account.mailboxes[&id].entries.iter().filter(|(_, entry)| entry.foreign.is_some());
        let foreign: UidSet = foreign.map(|(uid, _)| *uid).collect();
        self.vanish(id, &foreign);
        let expected = self.account.mailboxes.remove(&id).unwrap();
        self.account.deleted.insert(id, (expected, self.now));
        self.changed = true;
    }

    fn undelete(&mut self, tx: &mut Transaction) {
        // Only one that is still kept; at the very edge the log may have let it go.
        let horizon = self.now - self.retention;
        let found = self.account.deleted.iter().find(|(_, (_, time))| *time > horizon).map(|(id, _)| *id);
        let Some(id) = found else { return };
        let name = self.name();
        let is_taken = self.account.mailboxes.values().any(|expected| expected.name == name.as_str());
        let result = tx.undelete_mailbox(MailboxId(id), &name);
        assert_eq!(result.is_ok(), !is_taken);
        if !is_taken {
            let (mut expected, _) = self.account.deleted.remove(&id).unwrap();
            expected.name = name.to_string();
            self.account.mailboxes.insert(id, expected);
            self.changed = true;
        }
    }

    fn subscribe(&mut self, tx: &mut Transaction) {
        let name = self.name();
        if self.prng.one_in(2) {
            tx.subscribe(&name).unwrap();
            self.changed |= self.account.subscriptions.insert(name.to_string());
        } else {
            let removed = self.account.subscriptions.remove(name.as_str());
            assert_eq!(tx.unsubscribe(&name), removed);
            self.changed |= removed;
        }
    }

    fn annotate(&mut self, tx: &mut Transaction) {
        let value = if self.prng.one_in(3) { None } else { Some(vec![self.prng.index(250) as u8; 3]) };
        if let Some(id) = self.expected().filter(|_| self.prng.one_in(2)) {
            tx.annotate_mailbox(MailboxId(id), "note", value.as_deref()).unwrap();
            let expected = self.account.mailboxes.get_mut(&id).unwrap();
            self.changed |= expected.note != value;
            expected.note = value;
        } else {
            tx.annotate_account("note", value.as_deref()).unwrap();
            self.changed |= self.account.note != value;
            self.account.note = value;
        }
    }

    fn message(&mut self) -> Vec<u8> {
        let len = match self.prng.below(10) {
            0 => 0,
            1 => self.prng.between(500, 6000),
            _ => self.prng.between(1, 300),
        };
        let noise = self.prng.one_in(2);
        (0..len).map(|n| if noise { self.prng.u64() as u8 } else { b'a' + (n % 17) as u8 }).collect()
    }

    fn append(&mut self, tx: &mut Transaction) {
        let Some(id) = self.expected() else { return };
        for _ in 0..self.prng.between(1, 4) {
            let message = self.message();
            let header_len = header_len(&message);
            if self.prng.one_in(3) {
                self.append_foreign(tx, id, message, header_len);
                continue;
            }
            let mut writer = self.log.message_writer();
            for piece in message.chunks(150) {
                if let Err(error) = writer.write(piece) {
                    self.io_error = Some(error);
                    return;
                }
            }
            if self.prng.one_in(8) {
                continue; // abandoned
            }
            let pending = match writer.finish(header_len) {
                Ok(pending) => pending,
                Err(error) => {
                    self.io_error = Some(error);
                    return;
                }
            };
            let email = tx.add_message(pending).unwrap();
            assert_eq!(email.0, *self.next_email);
            *self.next_email += 1;
            for _ in 0..self.prng.between(1, 2) {
                self.add_entry(tx, id, email, &message, None);
            }
            self.bytes.insert(email.0, Arc::new(message));
        }
    }

    fn append_foreign(&mut self, tx: &mut Transaction, id: u64, message: Vec<u8>, header_len: u32) {
        let octets = message.len() as u32;
        let foreign = ForeignMessage { octets, header_octets: header_len, digest: digest(&message) };
        let email = tx.add_foreign(foreign).unwrap();
        assert_eq!(email.0, *self.next_email);
        *self.next_email += 1;
        self.files.insert(email, &message, header_len);
        for _ in 0..self.prng.between(1, 2) {
            self.add_entry(tx, id, email, &message, Some(foreign));
        }
        self.bytes.insert(email.0, Arc::new(message));
    }

    /// Every entry of a message, wherever it is.
    fn entries_of(&mut self, email: u64) -> impl Iterator<Item = &mut Entry> {
        let entries = self.account.mailboxes.values_mut().flat_map(|expected| expected.entries.values_mut());
        entries.filter(move |entry| entry.email == email)
    }

    fn some_emails(&mut self, is_foreign: bool) -> Vec<u64> {
        let all = self.account.mailboxes.values().flat_map(|expected| expected.entries.values());
        let emails: BTreeSet<u64> =
            all.filter(|entry| entry.foreign.is_some() == is_foreign).map(|entry| entry.email).collect();
        let every = self.prng.between(1, 3);
        emails.into_iter().filter(|_| self.prng.one_in(every)).collect()
    }

    /// Bytes of foreign messages come into the log.
    fn move_in(&mut self, tx: &mut Transaction) {
        let mut emails = self.some_emails(true);
        if self.prng.one_in(2) {
            emails.reverse();
        }
        for email in emails {
            let message = Arc::clone(&self.bytes[&email]);
            let mut writer = self.log.message_writer();
            let pending = writer.write(&message).and_then(|()| writer.finish(header_len(&message)));
            match pending {
                Ok(pending) => tx.bytes_here(::model::EmailId(email), pending).unwrap(),
                Err(error) => {
                    self.io_error = Some(error);
                    return;
                }
            }
            self.entries_of(email).for_each(|entry| entry.foreign = None);
            self.changed = true;
        }
    }

    /// Bytes of messages leave the log.
    fn move_out(&mut self, tx: &mut Transaction) {
        let emails = self.some_emails(false);
        let foreign = |bytes: &[u8]| ForeignMessage {
            octets: bytes.len() as u32,
            header_octets: header_len(bytes),
            digest: digest(bytes),
        };
        let asked: Vec<_> =
            emails.iter().map(|email| (::model::EmailId(*email), foreign(&self.bytes[email]))).collect();
        let moved = tx.bytes_elsewhere(&asked).unwrap();
        let horizon = self.now - self.retention;
        for (id, message) in asked {
            let expunged = self.account.mailboxes.values().flat_map(|expected| expected.expunged.values());
            let expunged = expunged.filter(|(entry, _)| entry.email == id.0).map(|(_, time)| *time);
            let deleted = self.account.deleted.values().flat_map(|(expected, time)| {
                let kept = expected.expunged.values().map(|(entry, time)| (entry.email, *time));
                let here = expected.entries.values().map(|entry| (entry.email, *time));
                kept.chain(here).filter(|(email, _)| *email == id.0).map(|(_, time)| time)
            });
            let kept: Vec<i64> = expunged.chain(deleted).collect();
            if moved.contains(&id) {
                assert!(kept.iter().all(|time| *time <= horizon), "message {id} can still be brought back");
                let bytes = Arc::clone(&self.bytes[&id.0]);
                self.files.insert(id, &bytes, message.header_octets);
                self.entries_of(id.0).for_each(|entry| entry.foreign = Some(message));
                self.changed = true;
            } else {
                assert!(!kept.is_empty(), "message {id} stayed for no reason");
            }
        }
    }

    fn add_entry(
        &mut self,
        tx: &mut Transaction,
        id: u64,
        email: ::model::EmailId,
        message: &[u8],
        foreign: Option<ForeignMessage>,
    ) {
        let keyword = Keyword::new(["k", "$Junk", "w"][self.prng.index(3)]).unwrap();
        let keyword_flag = tx.keyword(MailboxId(id), &keyword).unwrap();
        let seen = if self.prng.one_in(2) { Flags::system(SystemFlag::Seen) } else { Flags::NONE };
        let flags = if self.prng.one_in(2) { seen.with(keyword_flag) } else { seen };
        let date = self.now - self.prng.below(1 << 30) as i64;
        let expected = self.account.mailboxes.get_mut(&id).unwrap();
        if !expected.keywords.contains(&keyword.to_string()) {
            expected.keywords.push(keyword.to_string());
        }
        let skip = if self.prng.one_in(10) { self.prng.below(1000) } else { 0 };
        let uid = (expected.uidnext + skip) as u32;
        let entry = NewEntry {
            uid: (skip > 0).then(|| Uid::new(uid).unwrap()),
            flags,
            internal_date: DateTime { unix_seconds: date, offset_minutes: -90 },
            save_date: None,
        };
        assert_eq!(tx.add_entry(MailboxId(id), email, &entry).unwrap().get(), uid);
        let size = message.len() as u32;
        let entry = Entry { flags: flags.0, modseq: self.modseq, date, size, email: email.0, foreign };
        expected.entries.insert(uid, entry);
        expected.uidnext = u64::from(uid) + 1;
        expected.modseq = self.modseq;
        self.changed = true;
    }

    fn store(&mut self, tx: &mut Transaction) {
        let Some(id) = self.expected() else { return };
        let uids: Vec<u32> = self.account.mailboxes[&id].entries.keys().copied().collect();
        let uids = self.uids(&uids);
        let flag = Flags::system([SystemFlag::Seen, SystemFlag::Deleted][self.prng.index(2)]);
        let change = match self.prng.below(3) {
            0 => FlagChange::Add(flag),
            1 => FlagChange::Remove(flag),
            _ => FlagChange::Replace(flag),
        };
        let since = self.prng.one_in(3).then(|| ::model::ModSeq(self.modseq.saturating_sub(self.prng.below(4))));
        let outcome = tx.set_flags(MailboxId(id), &uids, change, since).unwrap();
        let expected = self.account.mailboxes.get_mut(&id).unwrap();
        for uid in uids.iter() {
            let entry = expected.entries.get_mut(&uid).unwrap();
            if since.is_some_and(|since| entry.modseq > since.0) {
                assert!(outcome.modified.contains(uid));
                continue;
            }
            let flags = change.apply(Flags(entry.flags)).0;
            assert_eq!(outcome.changed.contains(uid), flags != entry.flags);
            if flags != entry.flags {
                (entry.flags, entry.modseq, expected.modseq) = (flags, self.modseq, self.modseq);
                self.changed = true;
            }
        }
    }

    fn vanish(&mut self, id: u64, uids: &UidSet) {
        let expected = self.account.mailboxes.get_mut(&id).unwrap();
        for uid in uids.iter() {
            let entry = expected.entries.remove(&uid).unwrap();
            expected.vanished.insert(uid, self.modseq);
            if entry.foreign.is_none() {
                expected.expunged.insert(uid, (entry, self.now));
            }
            expected.modseq = self.modseq;
            self.changed = true;
        }
    }

    fn expunge(&mut self, tx: &mut Transaction) {
        let Some(id) = self.expected() else { return };
        let here: Vec<u32> = self.account.mailboxes[&id].entries.keys().copied().collect();
        let uids = self.uids(&here);
        let mut asked = uids.clone();
        asked.insert(4_000_000_000);
        assert_eq!(tx.expunge(MailboxId(id), &asked).unwrap(), uids);
        self.vanish(id, &uids);
    }

    fn copy_or_move(&mut self, tx: &mut Transaction) {
        let (Some(from), Some(to)) = (self.expected(), self.expected()) else { return };
        let here: Vec<u32> = self.account.mailboxes[&from].entries.keys().copied().collect();
        let uids = self.uids(&here);
        let is_move = self.prng.one_in(2);
        let copied = match is_move {
            true => tx.move_entries(MailboxId(from), &uids, MailboxId(to)).unwrap(),
            false => tx.copy(MailboxId(from), &uids, MailboxId(to)).unwrap(),
        };
        assert_eq!(copied.source, uids);
        let mut destination = UidSet::new();
        let source = self.account.mailboxes[&from].clone();
        for uid in uids.iter() {
            let entry = &source.entries[&uid];
            let mut flags = Flags(entry.flags & 0xff);
            let expected = self.account.mailboxes.get_mut(&to).unwrap();
            for index in Flags(entry.flags).keyword_indexes() {
                let name = &source.keywords[index];
                let index = expected.keywords.iter().position(|known| known == name).unwrap_or_else(|| {
                    expected.keywords.push(name.clone());
                    expected.keywords.len() - 1
                });
                flags = flags.with(Flags::keyword(index));
            }
            let new = Entry { flags: flags.0, modseq: self.modseq, ..entry.clone() };
            destination.insert(expected.uidnext as u32);
            expected.entries.insert(expected.uidnext as u32, new);
            expected.uidnext += 1;
            expected.modseq = self.modseq;
            self.changed = true;
        }
        assert_eq!(copied.destination, destination);
        if is_move {
            self.vanish(from, &uids);
        }
    }

    fn restore(&mut self, tx: &mut Transaction) {
        let Some(id) = self.expected() else { return };
        let horizon = self.now - self.retention;
        let kept = &self.account.mailboxes[&id].expunged;
        let kept: Vec<u32> = kept.iter().filter(|(_, (_, time))| *time > horizon).map(|(uid, _)| *uid).collect();
        let uids = self.uids(&kept);
        let copied = tx.restore(MailboxId(id), &uids).unwrap();
        assert_eq!(copied.source, uids);
        let expected = self.account.mailboxes.get_mut(&id).unwrap();
        for (old, new) in uids.iter().zip(copied.destination.iter()) {
            let (entry, _) = expected.expunged.remove(&old).unwrap();
            assert_eq!(u64::from(new), expected.uidnext);
            expected.entries.insert(new, Entry { modseq: self.modseq, ..entry });
            expected.uidnext += 1;
            expected.modseq = self.modseq;
            self.changed = true;
        }
    }

    fn any(&mut self, tx: &mut Transaction) {
        for _ in 0..self.prng.between(1, 2) {
            match self.prng.below(24) {
                20 | 21 => self.move_in(tx),
                22 | 23 => self.move_out(tx),
                0 | 1 => self.create(tx),
                2 => self.rename(tx),
                3 => self.delete(tx),
                4 => self.undelete(tx),
                5 => self.subscribe(tx),
                6 => self.annotate(tx),
                7..=11 => self.append(tx),
                12 | 13 => self.store(tx),
                14 | 15 => self.expunge(tx),
                16 | 17 => self.copy_or_move(tx),
                _ => self.restore(tx),
            }
        }
    }
}

fn run(seed: u64) {
    let mut history = History::new(seed);
    history.open();
    for _ in 0..3 {
        history.transact(|tx, mirror| mirror.create(tx));
    }
    history.wait();
    for _ in 0..history.prng.between(5, 60) {
        if history.prng.one_in(15) {
            history.sim.disk.clear_faults();
            let at = history.prng.between(1, 80);
            match history.prng.below(3) {
                0 => history.sim.disk.schedule(None, at, Effect::Fail),
                _ => history.sim.disk.crash_at(at),
            }
        }
        match history.prng.below(20) {
            0 => {
                let used = history.sim.disk.used_bytes();
                let room = history.prng.below(3) * 4096;
                history.sim.disk.set_capacity(Some(used + room));
            }
            1 => {
                history.wait();
                history.sim.disk.crash();
                history.open();
            }
            2 => {
                let closed = history.log.clone().unwrap().close();
                if closed.is_ok() {
                    let last = history.states.len() - 1;
                    history.keep_only(last);
                }
                history.pending.clear();
                history.log = None;
                if history.prng.one_in(2) {
                    let _ = remove_index(&history.sim.env(), Path::new(DIR));
                }
                history.open();
            }
            3..=5 => {
                history.wait();
                let log = history.log.clone().unwrap();
                let result = log.maintain(Budget { bytes: 1 << 30 });
                drop(log);
                match result {
                    Ok(_) => history.compare(),
                    Err(error) if error.kind() == ErrorKind::DiskFull && !history.sim.disk.is_off() => {
                        history.sim.disk.set_capacity(None);
                        history.compare();
                    }
                    Err(_) => history.open(),
                }
            }
            6 => history.sim.clock.advance(Duration::from_secs(history.prng.below(150))),
            7..=12 => history.wait(),
            _ => history.transact(|tx, mirror| mirror.any(tx)),
        }
    }
    history.wait();
    history.compare();
    history.sim.disk.clear_faults();
    history.sim.disk.set_capacity(None);
    history.sim.disk.crash();
    history.open();
    history.log = None;
    if remove_index(&history.sim.env(), Path::new(DIR)).is_ok() {
        history.open();
    }
    if let Some(log) = &history.log {
        assert_eq!(log.check().unwrap().findings, []);
    }
}

fn histories(part: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let count = number("MAILYARD_HISTORIES").unwrap_or(HISTORIES);
    let seeds = match number("MAILYARD_SEED") {
        Some(seed) => seed..seed + 1,
        None => part << 32..(part << 32) + count,
    };
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("the history of seed {seed} failed: repeat it with MAILYARD_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn histories_part_1() {
    histories(1);
}

#[test]
fn histories_part_2() {
    histories(2);
}

#[test]
fn histories_part_3() {
    histories(3);
}

#[test]
fn histories_part_4() {
    histories(4);
}
