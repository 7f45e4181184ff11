//! Backups: snapshots under commits, compaction and power cuts; what verifying finds; what comes back, and under which UIDs.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

mod encrypted;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use model::{AccountName, DateTime, ErrorKind, MailboxId, MailboxName, Result, SystemFlag, Uid, UidSet};
use platform::Prng;
use platform::sim::SimEnv;
use store::backup::{BackupFinding, Pick, Repository, RestoreOptions, RestoreReport, SaveReport, Snapshot};
use store::{Account, AccountFormat, FlagNames, MaildirLayout, NewMessage, Options, Store, StoreFlags, StoreMode};

const HISTORIES: u64 = 1000;

/// UIDVALIDITY, and by UID flags, date and octets.
type Seen = BTreeMap<String, (u32, BTreeMap<u32, (Vec<String>, i64, Vec<u8>)>)>;

fn name(text: &str) -> AccountName {
    AccountName::new(text).unwrap()
}

fn mailbox(text: &str) -> MailboxName {
    MailboxName::new(text).unwrap()
}

fn open(sim: &SimEnv) -> Arc<Store> {
    let mut options = Options::default();
    // Small, so that every path is met.
    options.log.tail_bytes_max = 4 << 10;
    options.log.idle_tail_bytes_max = 256;
    options.log.merge_bytes_max = 16 << 10;
    options.log.retention_seconds = 100;
    Store::open(sim.env(), PathBuf::from("/data"), options).unwrap()
}

fn with_account(sim: &SimEnv) -> (Arc<Store>, Arc<Account>, MailboxId) {
    let store = open(sim);
    store.create_account(&name("ann")).unwrap();
    let account = store.account(&name("ann")).unwrap();
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    (store, account, inbox)
}

fn message(account: &Account, number: u32, octets: usize) -> Result<NewMessage> {
    let mut writer = account.message_writer()?;
    let mut random = Prng::new(number.into());
    writer.write(format!("Subject: {number}\r\n\r\n").as_bytes())?;
    writer.write(&(0..octets).map(|_| random.u64() as u8).collect::<Vec<u8>>())?;
    let keywords = vec![model::Keyword::new(&format!("k{}", number % 3)).unwrap()];
    let system = if number.is_multiple_of(2) { vec![SystemFlag::Seen] } else { vec![] };
    let internal_date = Some(DateTime::utc(1_000_000_000 + i64::from(number)));
    Ok(NewMessage { message: writer.finish()?, flags: FlagNames { system, keywords }, internal_date })
}

fn append(account: &Account, id: MailboxId, number: u32, octets: usize) -> Result<Uid> {
    Ok(account.append(id, vec![message(account, number, octets)?])?.entries[0].0)
}

fn expunge(account: &Account, id: MailboxId, uids: &UidSet) -> Result<()> {
    let flags = FlagNames { system: vec![SystemFlag::Deleted], keywords: vec![] };
    account.store_flags(id, uids, &StoreFlags { mode: StoreMode::Add, flags, unchanged_since: None })?;
    account.expunge(id, Some(uids)).map(drop)
}

fn observe(account: &Account) -> Seen {
    let mut reader = account.reader();
    let mut seen = Seen::new();
    for info in account.mailboxes() {
        let Some(id) = info.id else { continue };
        let view = account.view(id, false).unwrap();
        let entries = view.all_rows().map(|entry| {
            let mut bytes = Vec::new();
            reader.read(entry.email_id, 0..u64::MAX, &mut bytes).unwrap();
            let mut flags: Vec<String> = view.keywords().names(entry.flags).map(str::to_owned).collect();
            flags.sort();
            (entry.uid.get(), (flags, entry.internal_date.unix_seconds, bytes))
        });
        seen.insert(info.name.to_string(), (view.uid_validity().get(), entries.collect()));
    }
    seen
}

fn repository(sim: &SimEnv) -> Result<Repository> {
    Repository::create(sim.env(), Path::new("/backup"), None)
}

fn save(sim: &SimEnv, account: &Account) -> Result<SaveReport> {
    save_into(&repository(sim)?, account)
}

fn save_into(repository: &Repository, account: &Account) -> Result<SaveReport> {
    Ok(repository.save(account, &mut |_, _| ControlFlow::Continue(()))?.unwrap())
}

fn restore(sim: &SimEnv, store: &Store, snapshot: &Snapshot, to: &str, from: &str, into: &str) -> RestoreReport {
    let some = |text: &str| (!text.is_empty()).then(|| mailbox(text));
    let options = RestoreOptions { account: name(to), mailbox: some(from), into: some(into) };
    store.restore_backup(&reading(sim), snapshot, &options, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

/// The backup, with the keys that open it if it is encrypted.
fn reading(sim: &SimEnv) -> Repository {
    Repository::open(sim.env(), Path::new("/backup")).unwrap().with_identities(Some(encrypted::identities()))
}

fn findings(sim: &SimEnv) -> Vec<BackupFinding> {
    reading(sim).verify(&name("ann"), &mut |_, _| ControlFlow::Continue(())).unwrap().findings
}

/// Does something to the account by chance.
fn change(random: &mut Prng, store: &Store, account: &Account, sim: &SimEnv, number: &mut u32) -> Result<()> {
    let mailboxes = account.mailboxes();
    let id = mailboxes.get(random.index(mailboxes.len())).and_then(|info| info.id).unwrap();
    match random.below(10) {
        0..=4 => {
            *number += 1;
            let octets = if random.below(4) == 0 { 3000 } else { 200 };
            append(account, id, *number, octets).map(drop)
        }
        5 => expunge(account, id, &(0..4).map(|_| 1 + random.below(20) as u32).collect()),
        6 => {
            let to = mailbox(["a", "a/b", "c"][random.index(3)]);
            match account.create_mailbox(&to, &[]) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                result => result.map(drop),
            }
        }
        _ => {
            // Past the retention, so that compaction has something to leave out.
            sim.clock.advance(Duration::from_secs(101));
            while store.maintain()? {}
            Ok(())
        }
    }
}

/// Random changes and backups with a disk that dies anywhere: each snapshot that is listed is whole and is the account at that moment.
/// In every fourth history the backup is encrypted.
fn history(seed: u64) {
    let recipients = || if seed.is_multiple_of(4) { encrypted::recipients() } else { None };
    let repository = |sim: &SimEnv| Repository::create(sim.env(), Path::new("/backup"), recipients());
    let save = |sim: &SimEnv, account: &Account| save_into(&repository(sim)?, account);
    let mut random = Prng::new(seed);
    let sim = SimEnv::new(seed);
    let (mut store, mut account, _) = with_account(&sim);
    let mut expected: BTreeMap<String, Seen> = BTreeMap::new();
    let mut number = 0;
    for _ in 0..12 {
        if random.below(2) == 0 {
            sim.disk.crash_at(1 + random.below(60));
        }
        let result = (0..random.below(8))
            .try_for_each(|_| change(&mut random, &store, &account, &sim, &mut number))
            .and_then(|()| save(&sim, &account));
        match result {
            Ok(report) => {
                assert_eq!(expected.insert(report.snapshot.id, observe(&account)), None, "seed {seed}");
                if sim.disk.is_off() {
                    continue;
                }
            }
            Err(error) => assert!(sim.disk.is_off(), "seed {seed}: {error}"),
        }
        sim.disk.clear_faults();
        if sim.disk.is_off() || random.below(4) == 0 {
            drop((account, store));
            sim.disk.crash();
            store = open(&sim);
            account = store.account(&name("ann")).unwrap();
        }
        if sim.env().disk.exists(Path::new("/backup/mailyard-backup")).unwrap() {
            assert_eq!(findings(&sim), [], "seed {seed}");
        }
        if random.below(6) == 0 && !expected.is_empty() {
            let gone = repository(&sim).unwrap().forget(&name("ann"), 2).unwrap();
            gone.iter().for_each(|snapshot| drop(expected.remove(&snapshot.id)));
        }
    }
    for (number, (id, seen)) in expected.into_iter().enumerate() {
        let snapshot = repository(&sim).unwrap().pick(&name("ann"), &Pick::Id(id)).unwrap();
        let new = format!("new{number}");
        let report = restore(&sim, &store, &snapshot, &new, "", "");
        assert!(report.account_is_new && report.damaged.is_empty(), "seed {seed}: {report:?}");
        let restored = store.account(&name(&new)).unwrap();
        assert_eq!(observe(&restored), seen, "seed {seed}: {}", snapshot.id);
        assert_eq!(restored.check().unwrap().findings, [], "seed {seed}");
    }
}

#[test]
fn histories() {
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (0..HISTORIES).filter(|seed| seed % 2 == half).for_each(history));
        }
    });
}

#[test]
fn a_snapshot_taken_under_commits_and_compaction_is_one_moment() {
    let sim = SimEnv::new(5);
    let (store, account, inbox) = with_account(&sim);
    let acknowledged = AtomicU32::new(0);
    let mut saved = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=400 {
                append(&account, inbox, number, 300).unwrap();
                acknowledged.store(number, Ordering::SeqCst);
                if number % 16 == 0 {
                    store.maintain().unwrap();
                }
            }
        });
        while acknowledged.load(Ordering::SeqCst) < 400 {
            let before = acknowledged.load(Ordering::SeqCst);
            let snapshot = save(&sim, &account).unwrap().snapshot;
            saved.push((before, snapshot, acknowledged.load(Ordering::SeqCst)));
        }
    });
    assert_eq!(findings(&sim), []);
    let step = saved.len().div_ceil(10);
    for (number, (before, snapshot, after)) in saved.into_iter().enumerate().step_by(step) {
        let new = format!("new{number}");
        restore(&sim, &store, &snapshot, &new, "", "");
        let seen = observe(&store.account(&name(&new)).unwrap());
        let entries = &seen["INBOX"].1;
        let count = entries.len() as u32;
        assert!((before..=after + 1).contains(&count), "{before} {count} {after}");
        assert!(entries.keys().copied().eq(1..=count));
    }
}

#[test]
fn only_what_is_new_is_copied() {
    let sim = SimEnv::new(6);
    let (store, account, inbox) = with_account(&sim);
    for number in 1..=100 {
        append(&account, inbox, number, 500).unwrap();
    }
    while store.maintain().unwrap() {}
    let first = save(&sim, &account).unwrap();
    assert_eq!(first.copied_bytes, first.snapshot.bytes());
    append(&account, inbox, 101, 500).unwrap();
    let second = save(&sim, &account).unwrap();
    assert!(second.copied_bytes < 5000 && second.copied_files <= 1, "{second:?}");
    assert_ne!(first.snapshot.id, second.snapshot.id, "two in one second");
    assert_eq!(repository(&sim).unwrap().snapshots(&name("ann")).unwrap(), [first.snapshot, second.snapshot]);
}

#[test]
fn an_account_made_anew_is_not_taken_for_the_old_one() {
    let sim = SimEnv::new(7);
    let (store, account, _) = with_account(&sim);
    let fill = |account: &Account, from: u32| {
        let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
        (from..from + 40).for_each(|number| assert!(append(account, inbox, number, 500).is_ok()));
        while store.maintain().unwrap() {}
    };
    fill(&account, 1000);
    let old = save(&sim, &account).unwrap().snapshot;
    drop(account);
    store.delete_account(&name("ann")).unwrap();
    store.create_account(&name("ann")).unwrap();
    let account = store.account(&name("ann")).unwrap();
    fill(&account, 2000);
    let new = save(&sim, &account).unwrap().snapshot;
    let segments = |snapshot: &Snapshot| -> Vec<String> {
        snapshot.files.iter().map(|file| file.name.clone()).filter(|name| name.starts_with("segment")).collect()
    };
    assert_eq!(segments(&old)[0], segments(&new)[0], "the test means something");
    restore(&sim, &store, &new, "bob", "", "");
    assert_eq!(observe(&store.account(&name("bob")).unwrap()), observe(&account));
}

#[test]
fn damage_is_found_and_costs_what_it_hits() {
    let sim = SimEnv::new(8);
    let (store, account, inbox) = with_account(&sim);
    for number in 1..=60 {
        append(&account, inbox, number, 3000).unwrap();
        store.maintain().unwrap();
    }
    let before = observe(&account);
    let snapshot = save(&sim, &account).unwrap().snapshot;
    let dir = Path::new("/backup/accounts/ann/files");
    for file in &snapshot.files {
        let path = dir.join(file.stored_name());
        for offset in [0, file.len / 2, file.len - 1] {
            sim.disk.corrupt(&path, offset, 1).unwrap();
            let found = findings(&sim);
            assert_eq!(found.len(), 1, "{}", file.name);
            assert_eq!((&found[0].file, &found[0].snapshots), (&path, &vec![snapshot.id.clone()]));
            sim.disk.corrupt(&path, offset, 1).unwrap();
        }
    }
    assert_eq!(findings(&sim), []);
    // In the middle of the bodies of a segment.
    let segment = snapshot.files.iter().find(|file| file.name.starts_with("segment")).unwrap();
    let path = dir.join(segment.stored_name());
    sim.disk.corrupt(&path, segment.len / 2, 1).unwrap();
    let report = restore(&sim, &store, &snapshot, "bob", "INBOX", "");
    assert!(!report.damaged.is_empty());
    let after = observe(&store.account(&name("bob")).unwrap());
    let (all, some) = (&before["INBOX"].1, &after["INBOX"].1);
    assert!(some.len() < all.len() && some.len() > all.len() / 2, "{} of {}", some.len(), all.len());
    assert!(some.iter().all(|(uid, entry)| all[uid] == *entry));
    // A manifest that is damaged is told, and nothing is forgotten.
    sim.disk.corrupt(&Path::new("/backup/accounts/ann/snapshots").join(&snapshot.id), 30, 1).unwrap();
    assert!(findings(&sim).iter().any(|finding| finding.what.contains("manifest")));
    assert_eq!(repository(&sim).unwrap().forget(&name("ann"), 1).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn into_place_beside_and_into_another_account() {
    let sim = SimEnv::new(9);
    let (store, account, inbox) = with_account(&sim);
    let work = account.create_mailbox(&mailbox("work"), &[]).unwrap();
    for number in 1..=20 {
        append(&account, inbox, number, 100).unwrap();
        append(&account, work, 100 + number, 100).unwrap();
    }
    let before = observe(&account);
    let snapshot = save(&sim, &account).unwrap().snapshot;
    let put = |to: &str, from: &str, into: &str| restore(&sim, &store, &snapshot, to, from, into);

    // Nothing is missing.
    let report = put("ann", "", "");
    assert_eq!((report.restored, report.already_there, report.mailboxes), (0, 40, 2));
    assert_eq!(observe(&account), before);

    // Expunged messages come back with new UIDs: clients were told that the old ones are gone.
    expunge(&account, inbox, &(3..=5).collect()).unwrap();
    let report = put("ann", "INBOX", "");
    assert_eq!((report.restored, report.other_uids, report.already_there), (3, 3, 17));
    let now = observe(&account);
    let entries = &now["INBOX"].1;
    assert!(entries.keys().copied().eq((1..=2).chain(6..=23)));
    for (new, old) in [(21, 3), (22, 4), (23, 5)] {
        assert_eq!(entries[&new], before["INBOX"].1[&old]);
    }
    assert_eq!(put("ann", "INBOX", "").restored, 0, "a second time nothing is missing");

    // A mailbox that is gone comes back with its UIDs, and goes on far above them.
    append(&account, work, 999, 100).unwrap();
    account.delete_mailbox(&mailbox("work")).unwrap();
    assert_eq!(put("ann", "work", "").restored, 20);
    assert_eq!(observe(&account)["work"], before["work"]);
    let work = account.mailbox(&mailbox("work")).unwrap();
    assert_eq!(append(&account, work, 1, 1).unwrap().get(), 1_000_021);

    // Beside the present one.
    assert_eq!(put("ann", "INBOX", "rescued/inbox").restored, 20);
    let now = observe(&account);
    assert!(now["rescued/inbox"].1.values().eq(before["INBOX"].1.values()));
    assert_ne!(now["rescued/inbox"].0, now["INBOX"].0);

    // One mailbox into another account, which is made; then all of it.
    let report = put("bob", "work", "");
    assert!(report.account_is_new);
    let bob = store.account(&name("bob")).unwrap();
    assert_eq!(observe(&bob)["work"], before["work"]);
    assert_eq!(put("bob", "", "").restored, 20);
    assert_eq!(observe(&bob), before);

    // An account that is lost: as it was, and no number is used twice.
    append(&account, inbox, 77, 100).unwrap();
    let modseq = account.status(inbox).unwrap().highest_modseq;
    drop(account);
    store.delete_account(&name("ann")).unwrap();
    assert_eq!(put("ann", "", "").restored, 40);
    let account = store.account(&name("ann")).unwrap();
    assert_eq!(observe(&account), before);
    let status = account.status(account.mailbox(&MailboxName::inbox()).unwrap()).unwrap();
    assert!(status.highest_modseq > modseq && status.uid_next.unwrap().get() > 1_000_000);

    let missing = RestoreOptions { account: name("ann"), mailbox: Some(mailbox("none")), into: None };
    let (repository, mut listener) = (repository(&sim).unwrap(), |_, _| ControlFlow::Continue(()));
    let error = store.restore_backup(&repository, &snapshot, &missing, &mut listener).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(repository.pick(&name("ann"), &Pick::At(0)).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(repository.pick(&name("ann"), &Pick::At(snapshot.time)).unwrap(), snapshot);
    assert_eq!(repository.pick(&name("ann"), &Pick::At(snapshot.time - 1)).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(repository.pick(&name("ann"), &Pick::Newest).unwrap(), snapshot);
}

#[test]
fn a_directory_with_something_else_is_left_alone() {
    let sim = SimEnv::new(10);
    let env = sim.env();
    env.disk.create_dir_all(Path::new("/home/photos")).unwrap();
    let error = Repository::create(env.clone(), Path::new("/home"), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(Repository::open(env, Path::new("/nowhere")).unwrap_err().kind(), ErrorKind::NotFound);
}

/// Accounts in files of others: their octets are read through the format, each once.
#[test]
fn mail_in_files_is_saved_and_comes_back() {
    let mbox = AccountFormat::Mbox { inbox: "/var/mail/ann".into(), root: "/home/ann/mail".into() };
    let maildir = AccountFormat::Maildir { root: "/home/ann/Maildir".into(), layout: MaildirLayout::default() };
    for (format, recipients) in [(mbox, None), (maildir.clone(), None), (maildir, encrypted::recipients())] {
        let repository = |sim: &SimEnv| Repository::create(sim.env(), Path::new("/backup"), recipients.clone());
        let save = |sim: &SimEnv, account: &Account| save_into(&repository(sim)?, account);
        let sim = SimEnv::new(12);
        let store = open(&sim);
        store.create_account_as(&name("ann"), &format).unwrap();
        let account = store.account(&name("ann")).unwrap();
        let deliver = |number: u32| {
            let text = format!("Subject: {number}\n\n{}\n", "delivered ".repeat(100));
            let disk = sim.env().disk;
            let (path, text) = match &format {
                AccountFormat::Mbox { inbox, .. } => {
                    (inbox.clone(), format!("From a@b Thu Aug 22 12:36:23 2002\n{text}\n"))
                }
                _ => (PathBuf::from(format!("/home/ann/Maildir/new/1000{number}.M1.host")), text),
            };
            disk.create_dir_all_durable(path.parent().unwrap()).unwrap();
            let file = disk.open(&path, platform::OpenMode::Create).unwrap();
            file.write_at(text.as_bytes(), file.len().unwrap()).unwrap();
            file.sync_data().unwrap();
            sim.clock.advance(Duration::from_secs(2));
        };
        (1..=40).for_each(deliver);
        let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
        account.refresh(inbox).unwrap();
        append(&account, inbox, 1, 300).unwrap();
        account.create_mailbox(&mailbox("work"), &[]).unwrap();
        let work = account.mailbox(&mailbox("work")).unwrap();
        account.copy(inbox, &UidSet::range(1, 3), work).unwrap();
        expunge(&account, inbox, &UidSet::range(2, 2)).unwrap();
        let flags = FlagNames { system: vec![SystemFlag::Flagged], keywords: vec![] };
        let request = StoreFlags { mode: StoreMode::Add, flags, unchanged_since: None };
        account.store_flags(inbox, &UidSet::range(3, 9), &request).unwrap();
        let first = save(&sim, &account).unwrap();
        let before = observe(&account);
        assert_eq!(before["INBOX"].1.len(), 40);
        // Only what is new is copied, and what is gone is in the older one.
        deliver(41);
        expunge(&account, inbox, &UidSet::range(4, 20)).unwrap();
        account.write_back(inbox, store::Moment::Close).unwrap();
        let second = save(&sim, &account).unwrap();
        let after = observe(&account);
        let packs = |report: &SaveReport| report.snapshot.octets.len();
        assert_eq!((packs(&first), packs(&second)), (1, 2));
        let of_packs: u64 = second.snapshot.octets.iter().skip(1).map(|pack| pack.len).sum();
        assert!(of_packs < 700, "one message: {of_packs}");
        assert_eq!(findings(&sim), []);
        let third = save(&sim, &account).unwrap();
        assert_eq!(third.snapshot.octets, second.snapshot.octets);
        for (snapshot, seen, to) in [(&first.snapshot, &before, "bob"), (&second.snapshot, &after, "cid")] {
            let report = restore(&sim, &store, snapshot, to, "", "");
            assert_eq!((report.damaged, report.account_is_new), (vec![], true));
            let restored = store.account(&name(to)).unwrap();
            assert_eq!(restored.format().unwrap(), AccountFormat::Native);
            assert_eq!(observe(&restored), *seen);
            assert_eq!(restored.check().unwrap().findings, []);
        }
        // Into place: what was expunged comes back, and into its files as well.
        let report = restore(&sim, &store, &first.snapshot, "ann", "INBOX", "");
        assert_eq!((report.restored, report.damaged), (17, vec![]));
        account.write_back(inbox, store::Moment::Close).unwrap();
        let texts = |seen: &Seen| -> Vec<Vec<u8>> {
            let mut texts: Vec<_> = seen["INBOX"].1.values().map(|(_, _, text)| text.clone()).collect();
            texts.sort();
            texts
        };
        let mut wanted = texts(&before);
        wanted.extend(
            after["INBOX"].1.values().map(|(_, _, text)| text.clone()).filter(|text| !texts(&before).contains(text)),
        );
        wanted.sort();
        assert_eq!(texts(&observe(&account)), wanted);
        // What only the first needed goes with it.
        let gone = repository(&sim).unwrap().forget(&name("ann"), 1).unwrap();
        assert_eq!((gone.len(), findings(&sim)), (2, vec![]));
    }
}

#[test]
fn messages_are_chosen() {
    let sim = SimEnv::new(13);
    let (store, account, inbox) = with_account(&sim);
    account.create_mailbox(&mailbox("work"), &[]).unwrap();
    let work = account.mailbox(&mailbox("work")).unwrap();
    for number in 1..=20 {
        append(&account, if number % 2 == 0 { work } else { inbox }, number, 300).unwrap();
    }
    let saved = save(&sim, &account).unwrap();
    expunge(&account, inbox, &UidSet::range(1, 10)).unwrap();
    expunge(&account, work, &UidSet::range(1, 10)).unwrap();
    let choice = |source: &Account, view: &store::View| {
        let query = store::search::Query::Header("Subject".to_owned(), "1".to_owned());
        let (seqs, _) = store::search::Search::new(view.clone(), source.reader(), query, 0).finish()?;
        Ok(view.uids_of(&seqs))
    };
    let options = RestoreOptions { account: name("ann"), mailbox: None, into: Some(mailbox("back")) };
    let again = |into: &RestoreOptions| {
        let repository = repository(&sim).unwrap();
        let listener = &mut |_, _| ControlFlow::Continue(());
        store.restore_chosen(&repository, &saved.snapshot, into, Some(&choice), listener).unwrap()
    };
    // 1, 10 to 19.
    assert_eq!(again(&options).restored, 11);
    let report = again(&options);
    assert_eq!((report.restored, report.already_there), (0, 11));
    // Into an account that is not there: only these.
    let report = again(&RestoreOptions { account: name("bob"), mailbox: Some(mailbox("work")), into: None });
    assert_eq!((report.account_is_new, report.restored), (true, 5));
    assert_eq!(observe(&store.account(&name("bob")).unwrap())["work"].1.len(), 5);
}
