//! Bytes that decay: wherever a byte flips, nothing panics, no wrong byte is given out, the account opens, and what is damaged
//! is confined to what shares the block.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod model;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::model::{DateTime, EmailId, ErrorKind, Flags, MailboxName, SystemFlag, UidSet};
use mailyard_index::{Budget, ForeignMessage, Log, NewEntry, Options};
use model::{Ends, Files, digest, observe};
use platform::random::Prng;
use platform::sim::{SimDisk, SimEnv};
use platform::{Disk, OpenMode};

const DIR: &str = "/mail/ann";

fn options() -> Options {
    Options { tail_bytes_max: 6_000, spool_above_bytes: 400, preallocate_bytes_min: 0, ..Options::default() }
}

fn open(sim: &SimEnv, files: &Arc<Files>) -> Arc<Log> {
    Log::open(&sim.env(), Path::new(DIR), options(), Some(Arc::new(Ends)), Some(files.clone())).unwrap()
}

/// An account with segments, frozen and active tail, checkpoint and caches; all of it durable, and closed.
fn account(sim: &SimEnv) -> (BTreeMap<u64, Vec<u8>>, Arc<Files>) {
    sim.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
    let files = Arc::new(Files::default());
    let log = open(sim, &files);
    let mut prng = Prng::new(5);
    let mailboxes =
        ["INBOX", "b"].map(|name| log.commit(|tx| tx.create_mailbox(&MailboxName::new(name).unwrap(), &[])).unwrap());
    let mut messages = BTreeMap::new();
    for n in 0..40u64 {
        let message: Vec<u8> = (0..prng.between(1, 900)).map(|_| b'a' + prng.below(20) as u8).collect();
        let email = log
            .commit(|tx| {
                let (octets, header_octets) = (message.len() as u32, message.len() as u32 / 3);
                let email = if n % 4 == 3 {
                    let email = tx.add_foreign(ForeignMessage { octets, header_octets, digest: digest(&message) })?;
                    files.insert(email, &message, header_octets);
                    email
                } else {
                    let mut writer = log.message_writer();
                    writer.write(&message)?;
                    tx.add_message(writer.finish(header_octets)?)?
                };
                let flags = Flags::system(SystemFlag::Seen);
                let entry = NewEntry { uid: None, flags, internal_date: DateTime::utc(n as i64), save_date: None };
                tx.add_entry(mailboxes[n as usize % 2], email, &entry)?;
                Ok(email)
            })
            .unwrap();
        messages.insert(email.0, message);
        if n == 25 {
            move_some(&log, &files, &messages);
        }
        if n == 30 {
            log.maintain(Budget { bytes: u64::MAX }).unwrap();
        }
    }
    log.commit(|tx| tx.expunge(mailboxes[1], &UidSet::range(2, 4))).unwrap();
    // What can be brought back is there; what cannot is not.
    let is_lost = |id| id != MOVED_IN && files.ids().contains(&id) && log.state().foreign(id).is_none();
    messages.retain(|id, _| !is_lost(EmailId(*id)));
    log.close().unwrap();
    for path in files_below(&sim.disk, Path::new(DIR)) {
        sim.disk.open(&path, OpenMode::ReadWrite).unwrap().sync_data().unwrap();
        sim.disk.sync_dir(path.parent().unwrap()).unwrap();
    }
    (messages, files)
}

/// A foreign message whose bytes come into the log, and one of the log's whose bytes leave it.
const MOVED_IN: EmailId = EmailId(8);
const MOVED_OUT: EmailId = EmailId(9);

fn move_some(log: &Arc<Log>, files: &Files, messages: &BTreeMap<u64, Vec<u8>>) {
    let mut writer = log.message_writer();
    writer.write(&messages[&MOVED_IN.0]).unwrap();
    let here = writer.finish(messages[&MOVED_IN.0].len() as u32 / 3).unwrap();
    let bytes = &messages[&MOVED_OUT.0];
    let (octets, header_octets) = (bytes.len() as u32, bytes.len() as u32 / 3);
    files.insert(MOVED_OUT, bytes, header_octets);
    let elsewhere = ForeignMessage { octets, header_octets, digest: digest(bytes) };
    log.commit(|tx| {
        tx.bytes_here(MOVED_IN, here)?;
        assert_eq!(tx.bytes_elsewhere(&[(MOVED_OUT, elsewhere)])?, [MOVED_OUT]);
        Ok(())
    })
    .unwrap();
}

fn files_below(disk: &SimDisk, dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        if entry.is_dir { paths.extend(files_below(disk, &path)) } else { paths.push(path) }
    }
    paths
}

/// Flips bits of every `step`th byte of every file whose path contains `of`; `unreadable`: messages that one flip may hit.
fn flip(of: &str, step: usize, unreadable: usize, without_index: bool) {
    let sim = SimEnv::new(11);
    let (messages, files) = account(&sim);
    let whole = {
        let log = open(&sim, &files);
        assert_eq!(log.check().unwrap().findings, []);
        let whole = observe(&log.state(), 0);
        log.close().unwrap();
        whole
    };
    if without_index {
        mailyard_index::remove_index(&sim.env(), Path::new(DIR)).unwrap();
        sim.disk.sync_dir(&Path::new(DIR).join("index")).unwrap();
    }
    let paths = files_below(&sim.disk, Path::new(DIR));
    let paths: Vec<_> = paths.into_iter().filter(|path| path.to_string_lossy().contains(of)).collect();
    assert!(!paths.is_empty(), "there is a file {of}");
    let mut prng = Prng::new(3);
    for path in paths {
        let len = sim.disk.metadata(&path).unwrap().len;
        for offset in (0..len).step_by(step) {
            let disk = sim.disk.crash_image(1);
            disk.corrupt(&path, offset, 1 << prng.below(8)).unwrap();
            let machine = sim.with_disk(disk);
            let place = format!("{} at {offset}", path.display());
            let log = Log::open(&machine.env(), Path::new(DIR), options(), Some(Arc::new(Ends)), Some(files.clone()))
                .unwrap_or_else(|error| panic!("{place}: {error}"));
            let found = observe(&log.state(), 0);
            let report = log.check().unwrap();
            // Of a tail there is no second copy but the checkpoint.
            if of != "tail" || !without_index {
                assert_eq!(found, whole, "{place}");
            }
            let mut reader = log.reader();
            let mut damaged = 0;
            for (id, message) in &messages {
                let id = EmailId(*id);
                for (result, expected) in [
                    (reader.header(id).map(<[u8]>::to_vec), &message[..message.len() / 3]),
                    (reader.whole(id), &message[..]),
                    (reader.derived(id, 1).map(<[u8]>::to_vec), &message[message.len().saturating_sub(10)..]),
                ] {
                    match result {
                        Ok(bytes) => assert_eq!(bytes, expected, "{place}"),
                        Err(error) => {
                            damaged += 1;
                            let kind = error.kind();
                            assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::Expunged), "{place}: {error:?}");
                        }
                    }
                }
            }
            assert!(damaged <= unreadable * 3, "{place}: {damaged} readings failed");
            if damaged > 0 {
                assert!(!report.findings.is_empty() || !log.damage().is_empty(), "{place}: nobody noticed");
            } else if of == "segment" {
                // What is there twice was damaged once: it is noticed, and written anew.
                log.maintain(Budget { bytes: u64::MAX }).unwrap();
                assert_eq!(log.check().unwrap().findings, [], "{place}");
                assert_eq!(observe(&log.state(), 0), whole, "{place}");
            }
        }
    }
}

#[test]
fn a_decayed_segment_hurts_the_messages_of_one_block() {
    flip("segment", 3, 24, false);
}

#[test]
fn a_decayed_tail_hurts_one_message() {
    flip("tail", 2, 1, false);
}

#[test]
fn a_decayed_index_hurts_nothing() {
    flip("index", 3, 0, false);
}

#[test]
fn a_decayed_log_without_an_index_still_opens() {
    flip("segment", 1, 24, true);
    flip("tail", 5, 1, true);
}

/// Segments were written without the second copies once: what describes these in the trailer was reserved, and zero.
#[test]
fn a_segment_without_copies_is_read() {
    const TRAILER_BYTES: u64 = 192;
    let sim = SimEnv::new(12);
    let (_, files) = account(&sim);
    let open = || open(&sim, &files);
    let log = open();
    let whole = observe(&log.state(), 0);
    log.close().unwrap();
    let paths = files_below(&sim.disk, &Path::new(DIR).join("log"));
    let segments: Vec<_> = paths.iter().filter(|path| path.to_string_lossy().contains("segment")).collect();
    assert!(!segments.is_empty());
    for path in segments {
        let file = sim.disk.open(path, OpenMode::ReadWrite).unwrap();
        for at in [0, file.len().unwrap() - TRAILER_BYTES] {
            let mut trailer = [0; TRAILER_BYTES as usize];
            file.read_exact_at(&mut trailer, at).unwrap();
            assert!(trailer[132..160].iter().any(|byte| *byte != 0));
            trailer[132..160].fill(0);
            let crc = crc32c::crc32c(&trailer[..188]);
            trailer[188..].copy_from_slice(&crc.to_le_bytes());
            file.write_at(&trailer, at).unwrap();
        }
    }
    mailyard_index::remove_index(&sim.env(), Path::new(DIR)).unwrap();
    let log = open();
    assert_eq!(log.damage(), []);
    assert_eq!(observe(&log.state(), 0), whole);
    assert_eq!(log.check().unwrap().findings, []);
}
