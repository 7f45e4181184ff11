//! Rotten bytes anywhere in an account: it opens, says what is wrong, gives no wrong octet away, and goes on.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store as store;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AccountName, ErrorKind, MailboxName, NumSet};
use platform::sim::SimEnv;
use platform::{Disk, Prng};
use store::search::{Query, Search};
use store::{Account, FlagNames, NewMessage, Options, Store, View};

fn options() -> Options {
    let mut options = Options::default();
    options.log.tail_bytes_max = 30_000;
    options.log.preallocate_bytes_min = 0;
    options
}

fn open(sim: &SimEnv) -> (Arc<Store>, Arc<Account>) {
    let store = Store::open(sim.env(), PathBuf::from("/data"), options()).unwrap();
    let account = store.account(&AccountName::new("ann").unwrap()).unwrap();
    (store, account)
}

fn append(account: &Account, bytes: &[u8]) {
    let mut writer = account.message_writer().unwrap();
    writer.write(bytes).unwrap();
    let message = writer.finish().unwrap();
    let new = NewMessage { message, flags: FlagNames::default(), internal_date: None };
    account.append(account.mailbox(&MailboxName::inbox()).unwrap(), vec![new]).unwrap();
}

fn files(disk: &dyn Disk, dir: &Path, into: &mut Vec<(PathBuf, u64)>) {
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        match entry.is_dir {
            true => files(disk, &path, into),
            false => into.push((path.clone(), disk.metadata(&path).unwrap().len)),
        }
    }
}

/// An account with sealed and fresh mail.
fn sample() -> (SimEnv, BTreeMap<u32, Vec<u8>>) {
    let sim = SimEnv::new(77);
    let store = Store::open(sim.env(), PathBuf::from("/data"), options()).unwrap();
    let ann = AccountName::new("ann").unwrap();
    store.create_account(&ann).unwrap();
    let account = store.account(&ann).unwrap();
    let mut random = Prng::new(78);
    let mut messages = BTreeMap::new();
    for n in 0..60u32 {
        let words = (0..random.below(300)).map(|_| format!("{:x} ", random.below(5000))).collect::<String>();
        let message = format!("Subject: {n}\r\nDate: {} Jan 2004 00:00:00 +0000\r\n\r\n{words}\r\n", 1 + n % 28);
        append(&account, message.as_bytes());
        messages.insert(n + 1, message.into_bytes());
        store.maintain().unwrap();
    }
    drop((account, store));
    // From here on nothing waits for a sync: every image is the same, and has the checkpoint.
    sim.env().disk.sync_dir(Path::new("/data/accounts/ann")).unwrap();
    sim.disk.crash();
    sim.disk.restart();
    (sim, messages)
}

#[test]
fn rotten_bytes() {
    let (sim, messages) = sample();
    let mut paths = Vec::new();
    files(&*sim.env().disk, Path::new("/data/accounts/ann"), &mut paths);
    paths.retain(|(_, len)| *len > 0);
    assert!(paths.iter().any(|(path, _)| path.to_string_lossy().contains("segment-")), "{paths:?}");
    let mut random = Prng::new(79);
    let (mut noticed, mut damaged_reads) = (0, 0);
    for round in 0..400 {
        let machine = sim.with_disk(sim.disk.crash_image(round));
        let (path, len) = &paths[random.index(paths.len())];
        let (offset, mask) = (random.below(*len), 1 << random.below(8));
        machine.disk.corrupt(path, offset, mask).unwrap();
        let place = format!("round {round}: {} at {offset}", path.display());
        let (store, account) = open(&machine);
        let inbox = account.mailbox(&MailboxName::inbox()).unwrap_or_else(|_| panic!("{place}: {:?}", account.check()));
        let view = account.view(inbox, false).unwrap();
        let mut reader = account.reader();
        let mut is_noticed = false;
        for entry in view.all_rows() {
            let mut bytes = Vec::new();
            match reader.read(entry.email_id, 0..u64::MAX, &mut bytes) {
                Ok(()) => assert_eq!(bytes, messages[&entry.uid.get()], "{place}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{place}: {error}");
                    (is_noticed, damaged_reads) = (true, damaged_reads + 1);
                }
            }
            let expected =
                format!("(\"{} Jan 2004 00:00:00 +0000\" \"{}\" ", 1 + (entry.uid.get() - 1) % 28, entry.uid.get() - 1);
            match reader.envelope(entry.email_id) {
                Ok(envelope) => assert!(envelope.starts_with(expected.as_bytes()), "{place}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{place}: {error}"),
            }
        }
        let report = account.check().unwrap();
        is_noticed |= view.exists() as usize != messages.len();
        assert!(!is_noticed || !report.findings.is_empty(), "{place}: the check says nothing of it");
        noticed += u32::from(!report.findings.is_empty());
        // Life goes on.
        append(&account, b"Subject: new\r\n\r\n");
        drop((view, reader, account, store));
    }
    assert!(noticed > 200, "{noticed} of 400 found by the check, {damaged_reads} reads refused");
}

#[test]
fn a_search_passes_over_damage() {
    let (sim, messages) = sample();
    let mut paths = Vec::new();
    files(&*sim.env().disk, Path::new("/data/accounts/ann"), &mut paths);
    let mut random = Prng::new(80);
    let mut passed_over = 0;
    for round in 0..100 {
        let machine = sim.with_disk(sim.disk.crash_image(round));
        let (path, len) = &paths[random.index(paths.len())];
        if *len == 0 {
            continue;
        }
        let offset = random.below(*len);
        machine.disk.corrupt(path, offset, 1 << random.below(8)).unwrap();
        let place = format!("round {round}: {} at {offset}", path.display());
        let (_store, account) = open(&machine);
        let view = account.view(account.mailbox(&MailboxName::inbox()).unwrap(), false).unwrap();
        let is_scan = round % 2 == 0;
        let run = |query: Query| {
            let begin = if is_scan { Search::scanning } else { Search::new };
            let mut search = begin(view.clone(), account.reader(), query, 0);
            let mut answer = search.step();
            while let Ok(None) = answer {
                answer = search.step();
            }
            (answer.unwrap_or_else(|error| panic!("{place}: {error}")).unwrap().0, search.damage().is_some())
        };
        let key = || Query::Body("1f".to_owned());
        let (has, damage) = run(key());
        let (has_not, damage_again) = run(Query::Not(Box::new(key())));
        assert_eq!(damage, damage_again, "{place}");
        assert!(has.intersection(&has_not).is_empty(), "{place}");
        let mut reader = account.reader();
        let mut unknown = 0;
        for entry in view.all_rows() {
            let seq = entry.seq.get();
            let message = &messages[&entry.uid.get()];
            let body = message.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            let expected = message[body..].windows(2).any(|two| two == b"1f");
            // The answers that are given are right; none is missing of a message that can be read.
            assert!(!(if expected { &has_not } else { &has }).contains(seq), "{place}: {seq}");
            if !has.contains(seq) && !has_not.contains(seq) {
                unknown += 1;
                let readable = reader.read(entry.email_id, 0..u64::MAX, &mut Vec::new()).is_ok();
                assert!(!readable || reader.structure(entry.email_id).is_err(), "{place}: {seq} can be read");
            }
        }
        assert_eq!(damage, unknown > 0, "{place}");
        // The index may know what a message said that can no longer be read.
        assert!(is_scan || unknown <= unreadable(&account, &view), "{place}");
        passed_over += if is_scan { unknown } else { 0 };
        // Keys that need nothing but the entry find all, and say of those that cannot be read what the rest of the query says.
        let all = Query::Or(Box::new(key()), Box::new(Query::Larger(0)));
        assert_eq!(run(all), (NumSet::range(1, view.exists()), false), "{place}");
        assert!(run(Query::And(vec![key(), Query::Smaller(1)])).0.is_empty(), "{place}");
    }
    assert!(passed_over > 5, "{passed_over}");
}

fn unreadable(account: &Account, view: &View) -> u32 {
    let mut reader = account.reader();
    let mut is_unreadable =
        |id| reader.read(id, 0..u64::MAX, &mut Vec::new()).is_err() || reader.structure(id).is_err();
    view.all_rows().filter(|entry| is_unreadable(entry.email_id)).count() as u32
}
