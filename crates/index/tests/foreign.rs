//! Messages whose bytes lie elsewhere: what the log writes for them, who gives their bytes, and that they are not restored.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod model;

use std::path::Path;
use std::sync::Arc;

use ::model::{DateTime, EmailId, ErrorKind, Flags, MailboxId, MailboxName, SystemFlag, Uid, UidSet};
use mailyard_index::{Budget, ForeignMessage, Log, NewEntry, Options, Transaction, remove_index};
use model::{Files, digest};
use platform::Disk;
use platform::random::Prng;
use platform::sim::SimEnv;

const DIR: &str = "/mail/ann";

fn open(sim: &SimEnv, files: Option<&Arc<Files>>) -> Arc<Log> {
    sim.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
    let options = Options {
        retention_seconds: 1_000_000,
        preallocate_bytes_min: 0,
        idle_tail_bytes_max: 1,
        ..Options::default()
    };
    let foreign = files.map(|files| files.clone() as _);
    Log::open(&sim.env(), Path::new(DIR), options, Some(Arc::new(model::Ends)), foreign).unwrap()
}

fn entry(date: i64) -> NewEntry {
    let internal_date = DateTime { unix_seconds: date, offset_minutes: 0 };
    NewEntry { uid: None, flags: Flags::system(SystemFlag::Seen), internal_date, save_date: None }
}

fn add(tx: &mut Transaction, files: &Files, mailbox: MailboxId, bytes: &[u8]) -> (EmailId, Uid) {
    let (octets, header_octets) = (bytes.len() as u32, bytes.len() as u32 / 2);
    let id = tx.add_foreign(ForeignMessage { octets, header_octets, digest: digest(bytes) }).unwrap();
    files.insert(id, bytes, header_octets);
    (id, tx.add_entry(mailbox, id, &entry(1_000_000_000)).unwrap())
}

fn size_of(sim: &SimEnv, dir: &str) -> u64 {
    let dir = Path::new(DIR).join(dir);
    sim.disk.list(&dir).unwrap().iter().map(|entry| sim.disk.metadata(&dir.join(&entry.name)).unwrap().len).sum()
}

/// Of an mbox of 361,052 messages the first opening may write 40 MB in all, the map of the file included.
#[test]
fn a_first_open_writes_little() {
    const MESSAGES: u64 = 20_000;
    let sim = SimEnv::new(1);
    let files = Arc::default();
    let log = open(&sim, Some(&files));
    let inbox = log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
    let mut prng = Prng::new(2);
    let mut date = 900_000_000;
    log.commit(|tx| {
        for _ in 0..MESSAGES {
            let header_octets = prng.between(400, 4000) as u32;
            let octets = header_octets + (1u32 << prng.between(0, 16)) + prng.below(2000) as u32;
            let id = tx.add_foreign(ForeignMessage { octets, header_octets, digest: prng.u64() })?;
            date += prng.below(2000) as i64;
            let seen = if prng.one_in(3) { Flags::NONE } else { Flags::system(SystemFlag::Seen) };
            let internal_date = DateTime::utc(date - prng.below(1 << 20) as i64);
            tx.add_entry(inbox, id, &NewEntry { flags: seen, internal_date, ..entry(0) })?;
        }
        Ok(())
    })
    .unwrap();
    log.checkpoint().unwrap();
    let (tail, checkpoint) = (size_of(&sim, "log"), size_of(&sim, "index"));
    let state = log.state();
    let mailbox = state.mailbox(inbox).unwrap();
    assert_eq!(mailbox.foreign(&state).map(|(_, message)| u64::from(message.octets)).sum::<u64>(), mailbox.octets());
    // At the second time the account is idle.
    for _ in 0..2 {
        log.maintain(Budget { bytes: u64::MAX }).unwrap();
    }
    assert_eq!(size_of(&sim, "index"), checkpoint, "no second one is written");
    let segment = size_of(&sim, "log");
    let [tail, segment, checkpoint] = [tail, segment, checkpoint].map(|bytes| bytes as f64 / MESSAGES as f64);
    println!("bytes a message: tail {tail:.1}, segment {segment:.1}, checkpoint {checkpoint:.1}");
    assert!(tail < 26.0 && segment < 40.0 && checkpoint < 22.0, "{tail:.1} {segment:.1} {checkpoint:.1}");
}

#[test]
fn its_file_gives_the_bytes_and_takes_them_along() {
    let sim = SimEnv::new(3);
    let files: Arc<Files> = Arc::default();
    let log = open(&sim, Some(&files));
    let [inbox, other] = ["INBOX", "other"]
        .map(|name| log.commit(|tx| tx.create_mailbox(&MailboxName::new(name).unwrap(), &[])).unwrap());
    let (first, _) = log.commit(|tx| Ok(add(tx, &files, inbox, b"a: b\r\n\r\nfirst\r\n"))).unwrap();
    let (second, uid) = log.commit(|tx| Ok(add(tx, &files, inbox, b"c: d\r\n\r\nsecond\r\n"))).unwrap();
    let mut reader = log.reader();
    assert_eq!(reader.whole(second).unwrap(), b"c: d\r\n\r\nsecond\r\n");
    assert_eq!(reader.header(second).unwrap(), b"c: d\r\n\r\n");
    assert_eq!(reader.derived(second, 1).unwrap(), b"\r\nsecond\r\n");
    // A file that was changed is noticed by the lengths at least.
    files.insert(second, b"c: d\r\n\r\nsecond and more\r\n", 4);
    assert_eq!(reader.header(second).unwrap_err().kind(), ErrorKind::Corrupt);

    // One message in two mailboxes is known as long as one of them has it.
    log.commit(|tx| tx.add_entry(other, first, &entry(5))).unwrap();
    log.commit(|tx| tx.expunge(inbox, &UidSet::range(1, uid.get()))).unwrap();
    assert_eq!(log.state().foreign(second), None);
    assert!(log.state().foreign(first).is_some());
    let expunged = |log: &Arc<Log>| log.state().mailbox(inbox).unwrap().expunged_since(i64::MIN).count();
    assert_eq!(expunged(&log), 0, "nothing that could be restored");
    assert!(log.commit(|tx| tx.restore(inbox, &UidSet::range(1, 9))).unwrap().source.is_empty());
    // A deleted mailbox comes back without them, and its UIDs are not used again.
    log.commit(|tx| tx.delete_mailbox(other)).unwrap();
    assert_eq!(log.state().foreign(first), None);
    log.commit(|tx| tx.undelete_mailbox(other, &MailboxName::new("back").unwrap())).unwrap();
    let state = log.state();
    let back = state.mailbox(other).unwrap();
    assert_eq!((back.exists(), back.uidnext()), (0, Uid::new(2)));
    drop((reader, log));
    remove_index(&sim.env(), Path::new(DIR)).unwrap();
    let log = open(&sim, None);
    assert_eq!(log.check().unwrap().findings, []);
    assert_eq!((expunged(&log), log.state().foreign(first)), (0, None));
}

#[test]
fn without_whoever_has_the_file_there_are_no_bytes() {
    let sim = SimEnv::new(4);
    let files = Arc::default();
    let log = open(&sim, Some(&files));
    let inbox = log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
    let (id, _) = log.commit(|tx| Ok(add(tx, &files, inbox, b"a: b\r\n\r\n"))).unwrap();
    log.close().unwrap();
    drop(log);
    let log = open(&sim, None);
    let mut reader = log.reader();
    assert_eq!(reader.info(id).unwrap().len, 8);
    assert_eq!(reader.header(id).unwrap_err().kind(), ErrorKind::Invalid);
}

/// Records of expunged messages leave the log, whatever becomes of the others.
#[test]
fn compaction_drops_what_was_expunged() {
    let sim = SimEnv::new(5);
    let files = Arc::default();
    let log = open(&sim, Some(&files));
    let inbox = log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
    let mut prng = Prng::new(6);
    let add_many = |tx: &mut Transaction| {
        for _ in 0..100_000 {
            let id = tx.add_foreign(ForeignMessage { octets: 10, header_octets: 5, digest: prng.u64() })?;
            tx.add_entry(inbox, id, &entry(7))?;
        }
        Ok(())
    };
    log.commit(add_many).unwrap();
    let settle = || {
        for _ in 0..3 {
            sim.clock.advance(std::time::Duration::from_secs(61));
            log.maintain(Budget { bytes: u64::MAX }).unwrap();
        }
        size_of(&sim, "log")
    };
    let full = settle();
    let kept: UidSet = (1..=100_000).filter(|uid| uid % 100 == 0).collect();
    log.commit(|tx| tx.expunge(inbox, &UidSet::range(1, 100_000).difference(&kept))).unwrap();
    let left = settle();
    assert!(left * 20 < full, "{full} octets became {left}");
    let state = log.state();
    let uids: UidSet = state.mailbox(inbox).unwrap().foreign(&state).map(|(row, _)| row.uid.get()).collect();
    assert_eq!(uids, kept);
    assert_eq!(log.check().unwrap().findings, []);
}
