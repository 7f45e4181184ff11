//! Bytes that move into the log and out of it: what stays, what is refused, and that the room is given back.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod model;

use std::path::Path;
use std::sync::Arc;

use ::model::{DateTime, EmailId, ErrorKind, Flags, MailboxId, MailboxName, SystemFlag, UidSet};
use mailyard_index::{Budget, ForeignMessage, Log, NewEntry, Options, PendingMessage, remove_index};
use model::{Ends, Files, digest};
use platform::Disk;
use platform::random::Prng;
use platform::sim::SimEnv;

const DIR: &str = "/mail/ann";
const COUNT: u32 = 3_000;

fn open(sim: &SimEnv, files: &Arc<Files>) -> Arc<Log> {
    sim.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
    let options = Options {
        retention_seconds: 100,
        preallocate_bytes_min: 0,
        tail_bytes_max: 200_000,
        idle_tail_bytes_max: 1,
        ..Options::default()
    };
    Log::open(&sim.env(), Path::new(DIR), options, Some(Arc::new(Ends)), Some(files.clone())).unwrap()
}

fn entry() -> NewEntry {
    let internal_date = DateTime { unix_seconds: 1_000_000_000, offset_minutes: 60 };
    NewEntry { uid: None, flags: Flags::system(SystemFlag::Seen), internal_date, save_date: None }
}

fn header_len(message: &[u8]) -> u32 {
    message.len() as u32 / 3
}

fn known(message: &[u8]) -> ForeignMessage {
    ForeignMessage { octets: message.len() as u32, header_octets: header_len(message), digest: digest(message) }
}

fn pending(log: &Arc<Log>, message: &[u8]) -> PendingMessage {
    let mut writer = log.message_writer();
    writer.write(message).unwrap();
    writer.finish(header_len(message)).unwrap()
}

/// Messages that do not shrink.
fn messages() -> Vec<Vec<u8>> {
    let mut prng = Prng::new(9);
    (0..COUNT).map(|_| (0..prng.between(50, 400)).map(|_| prng.u64() as u8).collect()).collect()
}

fn add_foreign(log: &Arc<Log>, files: &Files, inbox: MailboxId, messages: &[Vec<u8>]) -> Vec<EmailId> {
    log.commit(|tx| {
        let add = |message: &Vec<u8>| {
            let id = tx.add_foreign(known(message))?;
            files.insert(id, message, header_len(message));
            tx.add_entry(inbox, id, &entry())?;
            Ok(id)
        };
        messages.iter().map(add).collect()
    })
    .unwrap()
}

/// What lies in `log/`, once all is sealed and compacted.
fn settled(sim: &SimEnv, log: &Arc<Log>) -> u64 {
    for _ in 0..4 {
        sim.clock.advance(std::time::Duration::from_secs(101));
        log.maintain(Budget { bytes: u64::MAX }).unwrap();
    }
    let dir = Path::new(DIR).join("log");
    sim.disk.list(&dir).unwrap().iter().map(|entry| sim.disk.metadata(&dir.join(&entry.name)).unwrap().len).sum()
}

fn check(log: &Arc<Log>, ids: &[EmailId], messages: &[Vec<u8>], what: &str) {
    let mut reader = log.reader();
    for (id, message) in ids.iter().zip(messages) {
        assert_eq!(reader.whole(*id).unwrap(), *message, "{what}: {id}");
        assert_eq!(reader.info(*id).unwrap().header_len, header_len(message), "{what}: {id}");
        assert_eq!(reader.derived(*id, 0).unwrap(), header_len(message).to_string().as_bytes(), "{what}: {id}");
    }
    assert_eq!(log.check().unwrap().findings, [], "{what}");
}

#[test]
fn into_the_log_and_out_again() {
    let sim = SimEnv::new(1);
    let files = Arc::new(Files::default());
    let log = open(&sim, &files);
    let inbox = log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
    let messages = messages();
    let octets: u64 = messages.iter().map(|message| message.len() as u64).sum();
    let ids = add_foreign(&log, &files, inbox, &messages);
    let before = log.state().mailbox(inbox).unwrap().clone();
    let outside = settled(&sim, &log);
    let mut reader = log.reader();
    assert_eq!(reader.whole(ids[7]).unwrap(), messages[7]);

    // In pieces of no order that anybody would choose.
    let mut order: Vec<usize> = (0..messages.len()).collect();
    let mut prng = Prng::new(3);
    (1..order.len()).for_each(|n| order.swap(n, prng.index(n + 1)));
    for (number, piece) in order.chunks(700).enumerate() {
        log.commit(|tx| piece.iter().try_for_each(|n| tx.bytes_here(ids[*n], pending(&log, &messages[*n])))).unwrap();
        assert_eq!(log.state().foreign(ids[piece[0]]), None);
        check(&log, &ids, &messages, "in pieces");
        if number == 2 {
            settled(&sim, &log);
            check(&log, &ids, &messages, "half of it sealed");
        }
    }
    let inside = settled(&sim, &log);
    assert!(inside > outside + octets, "{octets} octets came to {outside}: {inside}");
    // A reader that knew them elsewhere finds them here, although the files are gone.
    let nothing = Arc::new(Files::default());
    files.clear();
    assert_eq!(reader.whole(ids[7]).unwrap(), messages[7]);
    check(&log, &ids, &messages, "all here");
    let after = log.state().mailbox(inbox).unwrap().clone();
    assert!(before.all_rows().eq(after.all_rows()), "UIDs, flags, dates and modseqs stay");
    assert_eq!(before.highest_modseq(), after.highest_modseq(), "nobody has to be told");
    drop((reader, log));
    remove_index(&sim.env(), Path::new(DIR)).unwrap();
    let log = open(&sim, &nothing);
    check(&log, &ids, &messages, "without the index");

    ids.iter().zip(&messages).for_each(|(id, message)| nothing.insert(*id, message, header_len(message)));
    let moved: Vec<_> = ids.iter().copied().zip(messages.iter().map(|message| known(message))).collect();
    for piece in moved.chunks(1_000) {
        let piece_ids: Vec<EmailId> = piece.iter().map(|(id, _)| *id).collect();
        assert_eq!(log.commit(|tx| tx.bytes_elsewhere(piece)).unwrap(), piece_ids);
        check(&log, &ids, &messages, "out of the log");
    }
    assert_eq!(log.commit(|tx| tx.bytes_elsewhere(&moved)).unwrap(), [], "they are elsewhere already");
    let outside = settled(&sim, &log);
    assert!(outside * 4 < octets, "of {octets} octets {outside} stayed");
    check(&log, &ids, &messages, "and compacted");
    drop(log);
    remove_index(&sim.env(), Path::new(DIR)).unwrap();
    let log = open(&sim, &nothing);
    check(&log, &ids, &messages, "and without the index");
    assert!(before.all_rows().eq(log.state().mailbox(inbox).unwrap().all_rows()));
}

#[test]
fn what_can_be_brought_back_stays() {
    let sim = SimEnv::new(2);
    let files = Arc::new(Files::default());
    let log = open(&sim, &files);
    let names = ["INBOX", "copies", "gone"].map(|name| MailboxName::new(name).unwrap());
    let [inbox, copies, gone] = names.each_ref().map(|name| log.commit(|tx| tx.create_mailbox(name, &[])).unwrap());
    let messages = [&b"a: b\r\n\r\none"[..], b"c: d\r\n\r\ntwo", b"e: f\r\n\r\nthree", b"g: h\r\n\r\nfour"];
    let ids = messages.map(|message| {
        let message = pending(&log, message);
        log.commit(|tx| {
            let id = tx.add_message(message)?;
            tx.add_entry(inbox, id, &entry())?;
            Ok(id)
        })
        .unwrap()
    });
    // One has an expunged entry, one is in a deleted mailbox as well, one is in two.
    log.commit(|tx| tx.copy(inbox, &UidSet::range(1, 1), copies)).unwrap();
    log.commit(|tx| tx.expunge(copies, &UidSet::range(1, 1))).unwrap();
    log.commit(|tx| tx.copy(inbox, &UidSet::range(2, 2), gone)).unwrap();
    log.commit(|tx| tx.delete_mailbox(gone)).unwrap();
    log.commit(|tx| tx.copy(inbox, &UidSet::range(3, 3), copies)).unwrap();
    let all = [0, 1, 2, 3].map(|n| (ids[n], known(messages[n])));
    all.iter().zip(messages).for_each(|((id, _), message)| files.insert(*id, message, header_len(message)));
    assert_eq!(log.commit(|tx| tx.bytes_elsewhere(&all)).unwrap(), [ids[2], ids[3]]);
    assert_eq!(log.state().foreign_entries(ids[2]), 2);
    // Both can still be brought back, after everything that forgets what is not needed.
    log.maintain(Budget { bytes: u64::MAX }).unwrap();
    files.clear();
    log.commit(|tx| tx.undelete_mailbox(gone, &names[2])).unwrap();
    assert_eq!(log.commit(|tx| tx.restore(copies, &UidSet::range(1, 1))).unwrap().source, UidSet::range(1, 1));
    let mut reader = log.reader();
    assert_eq!(reader.whole(ids[0]).unwrap(), messages[0]);
    assert_eq!(reader.whole(ids[1]).unwrap(), messages[1]);
    assert_eq!(reader.whole(ids[3]).unwrap_err().kind(), ErrorKind::Expunged, "its file is gone");

    // Other bytes are refused, and bytes of what is no foreign message.
    let refused = |id, bytes: &[u8]| {
        let message = pending(&log, bytes);
        log.commit(|tx| tx.bytes_here(id, message)).unwrap_err().kind()
    };
    assert_eq!(refused(ids[3], b"g: h\r\n\r\nfour and more"), ErrorKind::Invalid);
    assert_eq!(refused(ids[0], messages[0]), ErrorKind::NotFound);
    let longer = ForeignMessage { octets: 99, ..known(messages[0]) };
    let error = log.commit(|tx| tx.bytes_elsewhere(&[(ids[0], longer)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(log.state().foreign(ids[0]), None);
}
