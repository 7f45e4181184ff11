//! The store's figures on this machine: `figures DIRECTORY MAIL [MESSAGES]` imports an mbox of MESSAGES messages, made of the `.txt`
//! files below MAIL in turn, into a store in DIRECTORY, and times what matters.
#![allow(clippy::unwrap_used, reason = "a tool for developers")]

extern crate mailyard_store as store;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{AccountName, MailboxName, NumSet, SystemFlag, UidSet};
use platform::{Disk, Env, OpenMode, Prng};
use store::import::{ImportOptions, import};
use store::order::{Algorithm, Sort, SortCriterion, SortKey, Thread};
use store::search::{Query, Search};
use store::{FlagNames, Options, Store, StoreFlags, StoreMode};

fn read_mail(disk: &dyn Disk, dir: &Path, into: &mut Vec<Vec<u8>>) {
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            read_mail(disk, &path, into);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            into.push(disk.read(&path).unwrap());
        }
    }
}

/// Writes an mbox; returns its octets.
fn write_mbox(disk: &dyn Disk, path: &Path, mail: &[Vec<u8>], count: usize) -> u64 {
    let file = disk.open(path, OpenMode::Create).unwrap();
    let (mut at, mut out) = (0, Vec::new());
    for message in mail.iter().cycle().take(count) {
        out.extend_from_slice(b"From a@b Thu Aug 22 12:36:23 2002\n");
        for line in message.split_inclusive(|byte| *byte == b'\n') {
            if line.starts_with(b"From ") {
                out.push(b'>');
            }
            out.extend_from_slice(line);
        }
        out.extend_from_slice(b"\n\n");
        if out.len() > 1 << 20 {
            file.write_at(&out, at).unwrap();
            at += out.len() as u64;
            out.clear();
        }
    }
    file.write_at(&out, at).unwrap();
    at + out.len() as u64
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let dir = PathBuf::from(args.get(1).expect("a directory"));
    let mail_dir = PathBuf::from(args.get(2).expect("where the mail is"));
    let count: usize = args.get(3).map_or(21_282, |count| count.parse().unwrap());
    let env = Env::real();
    let (clock, disk) = (&env.clock, &*env.disk);
    let show = |what: &str, time: Duration, bytes: u64| {
        let rate =
            if bytes > 0 { format!("{:8.0} MB/s", bytes as f64 / 1e6 / time.as_secs_f64()) } else { String::new() };
        println!("{what:<44} {:>10.3} ms {rate}", time.as_secs_f64() * 1e3);
    };
    let mut mail = Vec::new();
    read_mail(disk, &mail_dir, &mut mail);
    disk.create_dir_all(&dir).unwrap();
    let mbox = dir.join("mail.mbox");
    let bytes = write_mbox(disk, &mbox, &mail, count);
    println!("{count} messages, {} MB", bytes / 1_000_000);

    let store = Store::open(env.clone(), dir.join("store"), Options::default()).unwrap();
    let ann = AccountName::new("ann").unwrap();
    store.create_account(&ann).unwrap();
    let account = store.account(&ann).unwrap();
    let options = ImportOptions { mailbox: Some(MailboxName::inbox()), ..ImportOptions::default() };
    let start = clock.monotonic();
    let report = import(&account, &mbox, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    show("import", clock.monotonic() - start, bytes);
    println!("    {} imported, {} skipped, {} notes", report.imported, report.skipped, report.notes.len());
    let start = clock.monotonic();
    while store.maintain().unwrap() {}
    show("maintenance afterwards", clock.monotonic() - start, bytes);
    let start = clock.monotonic();
    import(&account, &mbox, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    show("import again", clock.monotonic() - start, 0);
    println!("    {:?}", account.stats().unwrap());

    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    let start = clock.monotonic();
    let view = account.view(inbox, true).unwrap();
    let unseen = view.unseen();
    show("view (SELECT)", clock.monotonic() - start, 0);
    println!("    {} entries, unseen {unseen:?}", view.exists());
    let start = clock.monotonic();
    let sum: u64 = view.all_rows().map(|entry| u64::from(entry.size) + entry.flags.0 as u64).sum();
    let time = clock.monotonic() - start;
    show("all rows", time, 0);
    println!("    {:.1} million a second, {sum}", f64::from(view.exists()) / 1e6 / time.as_secs_f64());

    let mut reader = account.reader();
    let mut stream = |what: &str, read: &mut dyn FnMut(&mut store::Reader, model::EmailId) -> u64| {
        let start = clock.monotonic();
        let bytes = view.all_rows().map(|entry| read(&mut reader, entry.email_id)).sum();
        show(what, clock.monotonic() - start, bytes);
    };
    stream("headers", &mut |reader, id| reader.header(id).unwrap().len() as u64);
    stream("ENVELOPE", &mut |reader, id| reader.envelope(id).unwrap().len() as u64);
    stream("BODYSTRUCTURE", &mut |reader, id| reader.body_structure(id).unwrap().len() as u64);
    stream("headers and ENVELOPE", &mut |reader, id| {
        reader.header(id).unwrap().len() as u64 + reader.envelope(id).unwrap().len() as u64
    });
    let mut whole = Vec::new();
    stream("whole messages", &mut |reader, id| {
        whole.clear();
        reader.read(id, 0..u64::MAX, &mut whole).unwrap();
        whole.len() as u64
    });
    for (what, query) in [
        ("SEARCH FROM", Query::Header("From".into(), "exmh".into())),
        ("SEARCH SENTSINCE", Query::Sent(store::search::DateTest::Since(model::CivilDate::new(2002, 9, 1).unwrap()))),
        ("SEARCH TEXT", Query::Text("nowhere to be found".into())),
    ] {
        let start = clock.monotonic();
        let (found, _) = Search::new(view.clone(), account.reader(), query, 0).finish().unwrap();
        show(what, clock.monotonic() - start, bytes);
        println!("    {} found", found.len());
    }

    let everything = NumSet::range(1, view.exists());
    for (what, key, reverse) in [
        ("SORT (ARRIVAL)", SortKey::Arrival, false),
        ("SORT (REVERSE DATE)", SortKey::Date, true),
        ("SORT (SUBJECT)", SortKey::Subject, false),
        ("SORT (REVERSE FROM)", SortKey::From, true),
    ] {
        // The second time everything is in memory.
        for _ in 0..2 {
            let criteria = [SortCriterion { key, reverse }];
            let start = clock.monotonic();
            let sorted = Sort::new(view.clone(), account.reader(), &criteria, &everything).finish().unwrap();
            show(what, clock.monotonic() - start, 0);
            assert_eq!(sorted.len() as u64, everything.len());
        }
    }
    for (what, algorithm) in [
        ("THREAD REFERENCES", Algorithm::References),
        ("THREAD REFS", Algorithm::Refs),
        ("THREAD ORDEREDSUBJECT", Algorithm::OrderedSubject),
    ] {
        for _ in 0..2 {
            let start = clock.monotonic();
            let mut thread = Thread::new(view.clone(), account.reader(), algorithm, &everything);
            let (mut longest, mut steps) = (Duration::ZERO, 0);
            let threads = loop {
                let start = clock.monotonic();
                let threads = thread.step().unwrap();
                longest = longest.max(clock.monotonic() - start);
                steps += 1;
                if let Some(threads) = threads {
                    break threads;
                }
            };
            show(what, clock.monotonic() - start, 0);
            println!("    {} tokens, {steps} steps, the longest {longest:?}", threads.into_iter().count());
        }
    }

    let request = |mode, flag| StoreFlags {
        mode,
        flags: FlagNames { system: vec![flag], keywords: Vec::new() },
        unchanged_since: None,
    };
    let all = UidSet::range(1, u32::MAX);
    let start = clock.monotonic();
    account.store_flags(inbox, &all, &request(StoreMode::Add, SystemFlag::Seen)).unwrap();
    show("STORE +FLAGS on all", clock.monotonic() - start, 0);
    let mut prng = Prng::new(1);
    let fifth: UidSet = (1..=count as u32).filter(|_| prng.below(5) == 0).collect();
    let start = clock.monotonic();
    account.store_flags(inbox, &fifth, &request(StoreMode::Add, SystemFlag::Deleted)).unwrap();
    show("STORE +FLAGS on a random 20%", clock.monotonic() - start, 0);
    let start = clock.monotonic();
    account.expunge(inbox, None).unwrap();
    show("EXPUNGE of these", clock.monotonic() - start, 0);
    let mut behind = view.clone();
    let start = clock.monotonic();
    let changes = behind.advance(false);
    show("advance, without expunges", clock.monotonic() - start, 0);
    let start = clock.monotonic();
    let told = behind.advance(true);
    show("advance, with expunges", clock.monotonic() - start, 0);
    println!("    {} flags, {} gone", changes.flags_changed.len(), told.expunged_uids.len());
    drop((view, behind, reader, account));
    drop(store);
    let start = clock.monotonic();
    let store = Store::open(env.clone(), dir.join("store"), Options::default()).unwrap();
    let account = store.account(&ann).unwrap();
    show("open", clock.monotonic() - start, 0);
    let start = clock.monotonic();
    let report = account.check().unwrap();
    show("check", clock.monotonic() - start, bytes);
    println!("    {} findings", report.findings.len());
}
