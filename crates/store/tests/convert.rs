//! Accounts that move from one format into another: nothing changes for clients, whatever moves, and wherever the power goes.
//!
//! `MAILYARD_CUTS=n` tries n cuts instead; `MAILYARD_SEED=n` runs one seed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

extern crate mailyard_store as store;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AccountName, DateTime, ErrorKind, Keyword, MailboxName, SystemFlag, UidSet};
use platform::sim::SimEnv;
use platform::{Disk, OpenMode, Prng};
use store::convert::{self, ConvertReport, Phase};
use store::{Account, AccountFormat, FlagNames, MaildirLayout, NewMessage, Options, Store, StoreFlags, StoreMode};

const CUTS: u64 = 150;
const INBOX: &str = "/var/mail/ann";
const ROOT: &str = "/home/ann/mail";
const MAILDIR: &str = "/home/ann/Maildir";

/// What a client sees of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    uid: u32,
    flags: Vec<String>,
    date: DateTime,
    saved: i64,
    modseq: u64,
    octets: Vec<u8>,
    header_octets: usize,
}

/// And of a mailbox: UIDVALIDITY, UIDNEXT, HIGHESTMODSEQ, entries.
type Mailboxes = BTreeMap<String, (u32, Option<u32>, u64, Vec<Seen>)>;

fn ann() -> AccountName {
    AccountName::new("ann").unwrap()
}

fn name(text: &str) -> MailboxName {
    MailboxName::new(text).unwrap()
}

fn mbox() -> AccountFormat {
    AccountFormat::Mbox { inbox: PathBuf::from(INBOX), root: PathBuf::from(ROOT) }
}

fn maildir(layout: MaildirLayout) -> AccountFormat {
    AccountFormat::Maildir { root: PathBuf::from(MAILDIR), layout }
}

fn open(sim: &SimEnv) -> model::Result<(Arc<Store>, Arc<Account>)> {
    let mut options = Options::default();
    options.log.tail_bytes_max = 30_000;
    options.log.preallocate_bytes_min = 0;
    // A dotlock that lost its octets with the power is anybody's: it would have to grow old first.
    options.mbox.locks.write = vec![store::format::mbox::lock::Method::Fcntl];
    let store = Store::open(sim.env(), PathBuf::from("/data"), options)?;
    let account = store.account(&ann())?;
    Ok((store, account))
}

fn flags(text: &str) -> FlagNames {
    let mut names = FlagNames::default();
    for word in text.split_whitespace() {
        match SystemFlag::parse(word) {
            Some(flag) => names.system.push(flag),
            None => names.keywords.push(Keyword::new(word).unwrap()),
        }
    }
    names
}

fn append(account: &Account, mailbox: &str, octets: &[u8], words: &str, date: i64) {
    let mut writer = account.message_writer().unwrap();
    writer.write(octets).unwrap();
    let internal_date = Some(DateTime { unix_seconds: date, offset_minutes: 120 });
    let message = NewMessage { message: writer.finish().unwrap(), flags: flags(words), internal_date };
    account.append(account.mailbox(&name(mailbox)).unwrap(), vec![message]).unwrap();
}

/// Messages of every kind that a format may stumble over.
fn odd_messages() -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = [
        "Subject: plain\r\n\r\nbody\r\n",
        "Subject: no line end\r\n\r\nbody",
        "Subject: bare LF\n\nbody\nmore\n",
        "Subject: mixed\r\n\r\na\nb\r\nc\rd\r\n",
        "Subject: CR CR LF\r\n\r\na\r\r\nb\r\n",
        "Subject: from\r\n\r\nFrom the start\r\n>From quoted\r\n>>From twice\r\n",
        "Subject: status\r\nStatus: RO\r\nX-UID: 77\r\nX-Keywords: a b\r\nContent-Length: 3\r\n\r\nbody\r\n",
        "Subject: no body\r\n",
        "Subject: empty body\r\n\r\n",
        "no header at all",
        "\r\nonly a body\r\n",
        "",
        "\n",
        "\r\n",
        "From somebody Thu Aug 22 12:36:23 2002\r\nSubject: separator first\r\n\r\nbody\r\n",
        "Subject: blanks\r\n\r\nbody\r\n\r\n\r\n",
        "Subject: NUL\r\n\r\na\0b\r\n",
        "Subject: eight bits \u{e4}\r\n\r\n\u{20ac}\r\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    messages.push([b"Subject: octets\r\n\r\n".to_vec(), (0..=255).collect(), b"\r\n".to_vec()].concat());
    let long = [b"Subject: long\r\n\r\n".to_vec(), b"x y z \r\n".repeat(40_000)].concat();
    messages.push(long);
    messages
}

fn odd_account(sim: &SimEnv) {
    platform::Disk::create_dir_all_durable(&sim.disk, Path::new("/var/mail")).unwrap();
    platform::Disk::create_dir_all_durable(&sim.disk, Path::new("/home/ann")).unwrap();
    let store = Store::open(sim.env(), PathBuf::from("/data"), Options::default()).unwrap();
    store.create_account(&ann()).unwrap();
    let account = store.account(&ann()).unwrap();
    for mailbox in ["a", "a/b", "Entw\u{fc}rfe", "empty"] {
        account.create_mailbox(&name(mailbox), &[]).unwrap();
    }
    let words = ["", "\\Seen", "\\Answered \\Flagged", "\\Deleted \\Draft $Label1", "\\Seen work Later $Forwarded"];
    for (n, octets) in odd_messages().iter().enumerate() {
        let mailbox = ["INBOX", "a/b", "Entw\u{fc}rfe"][n % 3];
        append(&account, mailbox, octets, words[n % words.len()], 1_000_000_000 + 86_400 * n as i64);
    }
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    let a = account.mailbox(&name("a")).unwrap();
    account.copy(inbox, &UidSet::range(1, 4), a).unwrap();
    let request = StoreFlags { mode: StoreMode::Add, flags: flags("\\Deleted"), unchanged_since: None };
    account.store_flags(inbox, &UidSet::range(2, 2), &request).unwrap();
    account.expunge(inbox, None).unwrap();
}

fn seen(account: &Account) -> Mailboxes {
    let mut mailboxes = Mailboxes::new();
    let mut reader = account.reader();
    for info in account.mailboxes() {
        let Some(id) = info.id else { continue };
        let view = account.view(id, false).unwrap();
        let entries = view.all_rows().map(|entry| {
            let mut octets = Vec::new();
            reader.read(entry.email_id, 0..u64::MAX, &mut octets).unwrap_or_else(|error| {
                panic!("UID {} of {}: {error}", entry.uid, info.name);
            });
            let header_octets = reader.header(entry.email_id).unwrap().len();
            assert_eq!(reader.header(entry.email_id).unwrap(), &octets[..header_octets]);
            let mut flags: Vec<String> = view.keywords().names(entry.flags).map(str::to_owned).collect();
            flags.sort();
            let (date, saved, modseq) = (entry.internal_date, entry.save_date, entry.modseq.0);
            Seen { uid: entry.uid.get(), flags, date, saved, modseq, octets, header_octets }
        });
        let entries = entries.collect();
        let status = account.status(id).unwrap();
        let next = status.uid_next.map(model::Uid::get);
        mailboxes.insert(info.name.to_string(), (status.uid_validity.get(), next, status.highest_modseq.0, entries));
    }
    mailboxes
}

fn go_on() -> impl FnMut(u64, u64) -> ControlFlow<()> {
    |_, _| ControlFlow::Continue(())
}

fn into(account: &Account, to: &AccountFormat) -> ConvertReport {
    convert::convert(account, to, &mut go_on()).unwrap()
}

fn deliver(sim: &SimEnv, text: &str) {
    let file = sim.disk.open(Path::new(INBOX), OpenMode::Create).unwrap();
    file.write_at(text.as_bytes(), file.len().unwrap()).unwrap();
    file.sync_data().unwrap();
    sim.env().clock.sleep(std::time::Duration::from_millis(1100));
}

#[test]
fn there_and_back_nothing_changes() {
    let sim = SimEnv::new(1);
    odd_account(&sim);
    let (store, account) = open(&sim).unwrap();
    let before = seen(&account);
    let mut view = account.view(account.mailbox(&MailboxName::inbox()).unwrap(), true).unwrap();
    let report = into(&account, &mbox());
    assert_eq!((report.format, report.phase), (mbox(), Some(Phase::Kept { old: AccountFormat::Native })));
    let first = report.proof.unwrap();
    assert_eq!(first.entries as usize, before.values().map(|mailbox| mailbox.3.len()).sum::<usize>());
    assert!(!report.stayed.is_empty(), "an mbox cannot hold all of these");
    assert_eq!(first.equal as usize + report.stayed.len(), first.entries as usize);
    assert_eq!(seen(&account), before);
    assert!(view.advance(true).is_empty(), "a session has nothing to tell its client");
    let text = String::from_utf8_lossy(&sim.disk.read(Path::new(INBOX)).unwrap()).into_owned();
    assert!(text.contains("X-UID: 1\n") && text.contains("Subject: plain"), "{text}");

    let report = convert::finish(&account, &mut go_on()).unwrap();
    assert_eq!((report.phase, report.left), (None, vec![]));
    assert!(report.moved > 0 && !report.stayed.is_empty());
    assert_eq!(seen(&account), before);
    drop((view, account, store));
    let (store, account) = open(&sim).unwrap();
    assert_eq!(seen(&account), before, "opened anew");
    while store.maintain().unwrap() {}
    assert_eq!(account.check().unwrap().findings, []);

    // Back, with mail that another program delivers meanwhile.
    let report = into(&account, &AccountFormat::Native);
    assert_eq!((report.format, report.phase), (AccountFormat::Native, Some(Phase::Kept { old: mbox() })));
    assert_eq!(report.proof.unwrap().sha256, first.sha256, "the same account in both formats");
    assert_eq!(seen(&account), before);
    assert!(sim.disk.exists(Path::new(INBOX)).unwrap(), "the old files are kept");
    let error = convert::convert(&account, &mbox(), &mut go_on()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "not while they are");
    drop((account, store));
    let (store, account) = open(&sim).unwrap();
    let report = convert::finish(&account, &mut go_on()).unwrap();
    assert_eq!((report.phase, report.left), (None, vec![]));
    assert!(!sim.disk.exists(Path::new(INBOX)).unwrap(), "the old files are gone");
    assert!(sim.disk.list(Path::new(ROOT)).unwrap().is_empty());
    drop((account, store));
    let (store, account) = open(&sim).unwrap();
    while store.maintain().unwrap() {}
    assert_eq!(seen(&account), before, "without any file");
    assert_eq!(account.check().unwrap().findings, []);
}

/// Native, mbox, Maildir, native.
#[test]
fn around_and_around() {
    for layout in MaildirLayout::ALL {
        let sim = SimEnv::new(4);
        odd_account(&sim);
        let (store, account) = open(&sim).unwrap();
        let before = seen(&account);
        let mut digests = std::collections::BTreeSet::new();
        for to in [mbox(), maildir(layout), mbox(), AccountFormat::Native, maildir(layout), AccountFormat::Native] {
            let report = into(&account, &to);
            assert_eq!(report.format, to);
            digests.insert(report.proof.unwrap().sha256);
            if matches!(to, AccountFormat::Maildir { .. }) {
                assert_eq!(report.stayed, [], "a Maildir can hold everything");
            }
            assert_eq!(seen(&account), before, "{to:?}");
            convert::finish(&account, &mut go_on()).unwrap();
            assert_eq!(seen(&account), before, "{to:?}, finished");
            // What was left behind on the way from files into other files is removed by hand.
            for (path, is_used) in [
                (ROOT, matches!(to, AccountFormat::Mbox { .. })),
                (MAILDIR, matches!(to, AccountFormat::Maildir { .. })),
            ] {
                if !is_used && sim.disk.exists(Path::new(path)).unwrap() {
                    remove_all(&sim, Path::new(path)).unwrap();
                }
            }
            if !matches!(to, AccountFormat::Mbox { .. }) && sim.disk.exists(Path::new(INBOX)).unwrap() {
                sim.disk.remove(Path::new(INBOX)).unwrap();
            }
            while store.maintain().unwrap() {}
            assert_eq!(seen(&account), before, "{to:?}, after a while");
            assert_eq!(account.check().unwrap().findings, []);
        }
        assert_eq!(digests.len(), 1, "the same account in every format");
    }
}

fn remove_all(sim: &SimEnv, dir: &Path) -> std::io::Result<()> {
    for entry in sim.disk.list(dir)? {
        let path = dir.join(&entry.name);
        if entry.is_dir { remove_all(sim, &path)? } else { sim.disk.remove(&path)? }
    }
    sim.disk.remove_dir(dir)
}

#[test]
fn it_is_taken_back() {
    let sim = SimEnv::new(2);
    odd_account(&sim);
    let (store, account) = open(&sim).unwrap();
    let mut before = seen(&account);
    // Out and back, with what happened in between: another program has delivered, a client has expunged.
    into(&account, &mbox());
    deliver(&sim, "From a@b Thu Aug 22 12:36:23 2002\nSubject: delivered\n\nbody\n");
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    account.refresh(inbox).unwrap();
    let request = StoreFlags { mode: StoreMode::Replace, flags: flags("\\Deleted"), unchanged_since: None };
    account.store_flags(inbox, &UidSet::range(1, 1), &request).unwrap();
    account.expunge(inbox, Some(&UidSet::range(1, 1))).unwrap();
    let after = seen(&account);
    assert_eq!(after["INBOX"].3.len(), before["INBOX"].3.len());
    let report = convert::roll_back(&account, &mut go_on()).unwrap();
    assert_eq!((report.format, report.phase, report.left), (AccountFormat::Native, None, vec![]));
    assert_eq!(seen(&account), after);
    assert!(!sim.disk.exists(Path::new(INBOX)).unwrap());
    assert_eq!(convert::roll_back(&account, &mut go_on()).unwrap_err().kind(), ErrorKind::Invalid);

    // In and back: what was expunged meanwhile does not come back from the old files.
    into(&account, &mbox());
    convert::finish(&account, &mut go_on()).unwrap();
    into(&account, &AccountFormat::Native);
    let b = account.mailbox(&name("a/b")).unwrap();
    account.store_flags(b, &UidSet::range(1, 2), &request).unwrap();
    account.expunge(b, Some(&UidSet::range(1, 2))).unwrap();
    append(&account, "a", b"Subject: new\r\n\r\nnew\r\n", "\\Flagged", 1);
    account.create_mailbox(&name("a/new"), &[]).unwrap();
    account.rename_mailbox(&name("Entw\u{fc}rfe"), &name("Drafts")).unwrap();
    account.delete_mailbox(&name("empty")).unwrap();
    append(&account, "a/new", b"Subject: newer\r\n\r\nnew\r\n", "", 1);
    before = seen(&account);
    drop((account, store));
    let (store, account) = open(&sim).unwrap();
    let report = convert::roll_back(&account, &mut go_on()).unwrap();
    assert_eq!((report.format, report.phase), (mbox(), None));
    assert_eq!(seen(&account), before);
    drop((account, store));
    let (_store, account) = open(&sim).unwrap();
    account.mailboxes().iter().filter_map(|info| info.id).for_each(|id| account.refresh(id).unwrap());
    assert_eq!(seen(&account), before, "the files say nothing else");
    assert_eq!(account.check().unwrap().findings, []);
}

#[test]
fn what_is_refused() {
    let sim = SimEnv::new(3);
    odd_account(&sim);
    let (_store, account) = open(&sim).unwrap();
    let refused = |to: &AccountFormat| convert::convert(&account, to, &mut go_on()).unwrap_err().kind();
    assert_eq!(refused(&AccountFormat::Native), ErrorKind::Invalid);
    assert_eq!(convert::finish(&account, &mut go_on()).unwrap_err().kind(), ErrorKind::Invalid);
    deliver(&sim, "From a@b Thu Aug 22 12:36:23 2002\nSubject: delivered\n\nbody\n");
    assert_eq!(refused(&mbox()), ErrorKind::Invalid, "there is something already");
    sim.disk.remove(Path::new(INBOX)).unwrap();
    account.create_mailbox(&name(&"x".repeat(245)), &[]).unwrap();
    assert_eq!(refused(&mbox()), ErrorKind::Limit, "no file can have that name");
    assert_eq!(convert::phase(&account).unwrap(), None);
    account.delete_mailbox(&name(&"x".repeat(245))).unwrap();
    // Ended where it is, it can be gone on with, or taken back.
    let mut calls = 0;
    let stop = &mut |_, _| {
        calls += 1;
        if calls > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let report = convert::convert(&account, &mbox(), stop).unwrap();
    assert!(report.was_stopped);
    assert_eq!((report.format, report.phase), (AccountFormat::Native, Some(Phase::Filling { to: mbox() })));
    let before = seen(&account);
    convert::roll_back(&account, &mut go_on()).unwrap();
    assert_eq!(seen(&account), before);
    assert!(into(&account, &mbox()).proof.is_some());
}

/// What is done to an account.
#[derive(Clone, Debug)]
enum Step {
    Convert(AccountFormat),
    Finish,
    RollBack,
}

/// A step, and what the account is afterwards: its format, and whether an old store is kept.
type Planned = (Step, AccountFormat, bool);

/// Native, files, finished, native, finished; every second time each conversion is taken back once before.
fn plan(seed: u64) -> Vec<Planned> {
    let (native, files) = (AccountFormat::Native, files_of(seed));
    let there = (Step::Convert(files.clone()), files.clone(), true);
    let back = (Step::Convert(native.clone()), native.clone(), true);
    let finished = |format: &AccountFormat| (Step::Finish, format.clone(), false);
    let taken_back = |format: &AccountFormat| (Step::RollBack, format.clone(), false);
    match (seed / 3).is_multiple_of(2) {
        true => vec![there, finished(&files), back, finished(&native)],
        false => vec![
            there.clone(),
            taken_back(&native),
            there,
            finished(&files),
            back.clone(),
            taken_back(&files),
            back,
            finished(&native),
        ],
    }
}

/// Goes on with a plan from wherever it was interrupted.
fn steps(sim: &SimEnv, account: &Account, plan: &[Planned], done: &mut usize) -> model::Result<()> {
    while let Some((step, format, is_kept)) = plan.get(*done) {
        let result = match step {
            Step::Convert(to) => convert::convert(account, to, &mut go_on()),
            Step::Finish => convert::finish(account, &mut go_on()),
            Step::RollBack => convert::roll_back(account, &mut go_on()),
        };
        match result {
            Ok(report) => drop(report),
            // It was done before the power went, and nobody was told.
            Err(error) if error.kind() == ErrorKind::Invalid => {
                let phase = convert::phase(account)?;
                let is_done = account.format()? == *format && matches!(phase, Some(Phase::Kept { .. })) == *is_kept;
                assert!(is_done, "step {done}, {step:?}: {error}, {:?}", leftovers(sim));
            }
            Err(error) => return Err(error),
        }
        *done += 1;
    }
    Ok(())
}

/// What is where the files were: nothing, or directories with nothing in them.
fn leftovers(sim: &SimEnv) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut paths = vec![PathBuf::from(INBOX), PathBuf::from(ROOT), PathBuf::from(MAILDIR)];
    while let Some(path) = paths.pop() {
        match sim.disk.metadata(&path) {
            Ok(metadata) if metadata.is_dir => {
                paths.extend(sim.disk.list(&path).unwrap().iter().map(|entry| path.join(&entry.name)));
            }
            Ok(_) => found.push(path),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
        }
    }
    found
}

fn files_of(seed: u64) -> AccountFormat {
    [mbox(), maildir(MaildirLayout::MaildirPlusPlus), maildir(MaildirLayout::Fs)][seed as usize % 3].clone()
}

fn cut(seed: u64, operations: u64) {
    let plan = plan(seed);
    let sim = SimEnv::new(seed);
    odd_account(&sim);
    let before = {
        let (_store, account) = open(&sim).unwrap();
        seen(&account)
    };
    sim.disk.crash();
    let mut prng = Prng::new(seed);
    let mut done = 0;
    sim.disk.crash_at(prng.between(1, operations));
    for attempt in 0.. {
        let result = open(&sim).and_then(|(_store, account)| steps(&sim, &account, &plan, &mut done));
        if !sim.disk.is_off() {
            result.unwrap();
            break;
        }
        sim.disk.restart();
        let (_store, account) = open(&sim).unwrap();
        assert_eq!(seen(&account), before, "after cut {attempt}");
        if prng.one_in(3) && !matches!(plan[done].0, Step::RollBack) {
            // Somebody thinks better of it, wherever it was.
            match convert::roll_back(&account, &mut go_on()) {
                Ok(_) => done -= usize::from(matches!(plan[done].0, Step::Finish)),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Invalid, "{error}"),
            }
            assert_eq!(seen(&account), before, "taken back after cut {attempt}");
        }
        if attempt == 0 && prng.one_in(2) {
            sim.disk.crash_at(prng.between(1, operations));
        }
    }
    sim.disk.clear_faults();
    let (_store, account) = open(&sim).unwrap();
    assert_eq!((account.format().unwrap(), convert::phase(&account).unwrap()), (AccountFormat::Native, None));
    assert_eq!(seen(&account), before);
    assert_eq!(account.check().unwrap().findings, []);
    assert_eq!(leftovers(&sim), [] as [PathBuf; 0]);
}

#[test]
fn the_power_may_go_at_any_moment() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    // How many operations there are.
    let operations = [0, 1, 2, 3, 4, 5].map(|seed| {
        let sim = SimEnv::new(5);
        odd_account(&sim);
        let from = sim.disk.stats().operations;
        let (_store, account) = open(&sim).unwrap();
        steps(&sim, &account, &plan(seed), &mut 0).unwrap();
        sim.disk.stats().operations - from
    });
    let seeds = match number("MAILYARD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 100..100 + number("MAILYARD_CUTS").unwrap_or(CUTS),
    };
    for seed in seeds {
        let operations = operations[seed as usize % 6];
        if let Err(panic) = std::panic::catch_unwind(|| cut(seed, operations)) {
            eprintln!("the cut of seed {seed} of {operations} operations failed: repeat it with MAILYARD_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// So many messages that their files are made durable together, on a disk that can do that and on one that cannot.
#[test]
fn the_power_may_go_within_a_batch() {
    const MESSAGES: usize = 150;
    for seed in 0..40 {
        let sim = SimEnv::new(seed);
        if seed % 4 == 3 {
            sim.disk.refuse_batches();
        }
        platform::Disk::create_dir_all_durable(&sim.disk, Path::new("/home/ann")).unwrap();
        let before = {
            let store = Store::open(sim.env(), PathBuf::from("/data"), Options::default()).unwrap();
            store.create_account(&ann()).unwrap();
            let account = store.account(&ann()).unwrap();
            for n in 0..MESSAGES {
                let text = format!("Subject: {n}\r\n\r\nbody\r\n");
                append(&account, "INBOX", text.as_bytes(), "", 1_000_000_000 + n as i64);
            }
            seen(&account)
        };
        let to = maildir(MaildirLayout::MaildirPlusPlus);
        let plan = [(Step::Convert(to.clone()), to.clone(), true), (Step::Finish, to.clone(), false)];
        let mut done = 0;
        // Writes and renames of all files, and what stands around them.
        sim.disk.crash_at(Prng::new(seed).between(1, 4 * MESSAGES as u64));
        while let Err(error) = open(&sim).and_then(|(_store, account)| steps(&sim, &account, &plan, &mut done)) {
            assert!(sim.disk.is_off(), "seed {seed}: {error}");
            sim.disk.restart();
            let (_store, account) = open(&sim).unwrap();
            assert_eq!(seen(&account), before, "seed {seed}");
        }
        // What was told is durable.
        sim.disk.crash();
        let (_store, account) = open(&sim).unwrap();
        assert_eq!((account.format().unwrap(), convert::phase(&account).unwrap()), (to, None), "seed {seed}");
        assert_eq!(seen(&account), before, "seed {seed}");
        assert_eq!(account.check().unwrap().findings, [], "seed {seed}");
        let files = leftovers(&sim)
            .iter()
            .filter(|path| path.parent().is_some_and(|dir| dir.ends_with("cur") || dir.ends_with("new")))
            .count();
        assert_eq!(files, MESSAGES, "seed {seed}: each has one file");
    }
}
