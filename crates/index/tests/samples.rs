//! A log of each format version, as that version wrote it, opens for ever and says the same.
//!
//! A new version adds a sample: `MAILYARD_WRITE_SAMPLE=n` writes `samples/n` anew. Those of older versions are never written again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod model;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::model::{DateTime, EmailId, FlagChange, Flags, Keyword, MailboxName, SpecialUse, SystemFlag, UidSet};
use mailyard_index::{Budget, ForeignMessage, Log, NewEntry, Options, PendingMessage};
use model::{Ends, Files, digest};
use platform::sim::SimEnv;
use platform::{Disk, OpenMode};

const DIR: &str = "/mail/ann";

/// Without merging, late messages stay late.
fn options(merge_bytes_max: u64) -> Options {
    let retention_seconds = 1 << 40;
    Options { preallocate_bytes_min: 0, retention_seconds, tail_bytes_max: 500, merge_bytes_max, ..Options::default() }
}

/// Message number `n` of a sample.
fn message(n: u64) -> Vec<u8> {
    format!("Subject: message {n}\r\nX-Long: {}\r\n\r\nThe text of {n}.\r\n", "x".repeat(n as usize * 7)).into_bytes()
}

fn header_len(message: &[u8]) -> u32 {
    message.windows(4).position(|four| four == b"\r\n\r\n").unwrap() as u32 + 4
}

fn open(sim: &SimEnv, files: &Arc<Files>, merge_bytes_max: u64) -> Arc<Log> {
    sim.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
    Log::open(&sim.env(), Path::new(DIR), options(merge_bytes_max), Some(Arc::new(Ends)), Some(files.clone())).unwrap()
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

fn foreign(bytes: &[u8]) -> ForeignMessage {
    ForeignMessage { octets: bytes.len() as u32, header_octets: header_len(bytes), digest: digest(bytes) }
}

fn pending(log: &Arc<Log>, bytes: &[u8]) -> PendingMessage {
    let mut writer = log.message_writer();
    writer.write(bytes).unwrap();
    writer.finish(header_len(bytes)).unwrap()
}

/// An account in which every kind of record of a version is: in segments and in a tail.
fn write(sim: &SimEnv, files: &Arc<Files>, version: u32) {
    let log = open(sim, files, 0);
    let names = ["INBOX", "Sent", "old", "old/er", "gone"].map(|name| MailboxName::new(name).unwrap());
    let ids = names.each_ref().map(|name| {
        let special: &[SpecialUse] = if name.as_str() == "Sent" { &[SpecialUse::Sent] } else { &[] };
        log.commit(|tx| tx.create_mailbox(name, special)).unwrap()
    });
    let entry = |n: u64| NewEntry {
        uid: None,
        flags: Flags::system(SystemFlag::Seen),
        internal_date: DateTime { unix_seconds: 1_000_000_000 + n as i64, offset_minutes: -90 },
        save_date: None,
    };
    for n in 1..=12u64 {
        let bytes = message(n);
        let own = (n % 3 > 0).then(|| pending(&log, &bytes));
        log.commit(|tx| {
            let id = match own {
                Some(own) => tx.add_message(own)?,
                None => {
                    files.insert(EmailId(n), &bytes, header_len(&bytes));
                    tx.add_foreign(foreign(&bytes))?
                }
            };
            assert_eq!(id, EmailId(n));
            let flags = tx.keyword(ids[(n % 2) as usize], &Keyword::new("$Label").unwrap())?.with(entry(n).flags);
            tx.add_entry(ids[(n % 2) as usize], id, &NewEntry { flags, ..entry(n) }).map(drop)
        })
        .unwrap();
    }
    log.commit(|tx| {
        tx.set_flags(ids[0], &UidSet::range(2, 4), FlagChange::Add(Flags::system(SystemFlag::Flagged)), None)?;
        tx.copy(ids[0], &UidSet::range(1, 4), ids[2])?;
        tx.move_entries(ids[0], &UidSet::range(1, 1), ids[3])?;
        tx.expunge(ids[1], &UidSet::range(1, 2))?;
        tx.set_recent_floor(ids[0], 4)?;
        tx.skip_uids(ids[3], ::model::Uid::new(77).unwrap())?;
        tx.annotate_mailbox(ids[0], "note", Some(b"value"))?;
        tx.annotate_account("note", Some(b"of the account"))
    })
    .unwrap();
    log.commit(|tx| tx.restore(ids[1], &UidSet::range(1, 1))).unwrap();
    log.commit(|tx| {
        tx.rename_mailbox(ids[2], &MailboxName::new("new").unwrap())?;
        tx.set_special_uses(ids[1], &[SpecialUse::Sent, SpecialUse::Archive])?;
        tx.subscribe(&names[1])?;
        tx.subscribe(&names[2])?;
        tx.unsubscribe(&names[2]);
        tx.delete_mailbox(ids[4])?;
        tx.undelete_mailbox(ids[4], &MailboxName::new("back").unwrap())
    })
    .unwrap();
    if version >= 2 {
        for round in 0..2 {
            let (inwards, outwards) = ([6, 9][round], [4, 8][round]);
            let here = pending(&log, &message(inwards));
            let bytes = message(outwards);
            files.insert(EmailId(outwards), &bytes, header_len(&bytes));
            log.commit(|tx| {
                tx.bytes_here(EmailId(inwards), here)?;
                assert_eq!(tx.bytes_elsewhere(&[(EmailId(outwards), foreign(&bytes))])?.len(), 1);
                Ok(())
            })
            .unwrap();
            if round == 0 {
                log.maintain(Budget { bytes: u64::MAX }).unwrap();
            }
        }
    }
    // The tail is full, and the next frame begins another.
    for value in [&[b'-'; 600][..], b"-"] {
        log.commit(|tx| tx.annotate_account("fill", Some(value))).unwrap();
    }
    log.maintain(Budget { bytes: u64::MAX }).unwrap();
    // The newest frames are in a tail.
    log.commit(|tx| tx.annotate_account("last", Some(b"one"))).unwrap();
    log.close().unwrap();
}

/// The account in words, messages and all.
fn described(log: &Arc<Log>) -> String {
    let state = log.state();
    let mut out = String::new();
    let mut reader = log.reader();
    writeln!(out, "modseq {} notes {:?} {:?}", state.modseq(), state.annotation("note"), state.annotation("last"))
        .unwrap();
    writeln!(out, "subscribed {:?}", state.subscriptions().iter().map(ToString::to_string).collect::<Vec<_>>())
        .unwrap();
    for mailbox in state.mailboxes() {
        let special: Vec<_> = mailbox.special_uses().map(|special| special.as_str().to_owned()).collect();
        let keywords: Vec<_> = mailbox.keywords().iter().map(ToString::to_string).collect();
        writeln!(
            out,
            "{} uidvalidity {} uidnext {:?} highest {} {special:?} {keywords:?} note {:?} recent {}",
            mailbox.name(),
            mailbox.uidvalidity(),
            mailbox.uidnext().map(::model::Uid::get),
            mailbox.highest_modseq(),
            mailbox.annotation("note"),
            mailbox.recent_floor(),
        )
        .unwrap();
        for (_, row) in mailbox.all_rows() {
            assert_eq!(reader.whole(row.email_id).unwrap(), message(row.email_id.0), "{}", row.email_id);
            let lies = if state.foreign(row.email_id).is_some() { "elsewhere" } else { "here" };
            writeln!(
                out,
                "  {} {} flags {:x} modseq {} date {} {} saved {} octets {} {lies}",
                row.uid,
                row.email_id,
                row.flags.0,
                row.modseq,
                row.internal_date.unix_seconds,
                row.internal_date.offset_minutes,
                row.save_date,
                row.size
            )
            .unwrap();
        }
        for gone in mailbox.expunged_since(i64::MIN) {
            writeln!(out, "  expunged {} {}", gone.row.uid, gone.row.email_id).unwrap();
        }
    }
    out
}

#[test]
fn every_version_is_read() {
    for version in [1, 2] {
        let dir = samples().join(version.to_string());
        let sim = SimEnv::new(u64::from(version));
        let files = Arc::new(Files::default());
        (1..=12).for_each(|n| files.insert(EmailId(n), &message(n), header_len(&message(n))));
        if std::env::var("MAILYARD_WRITE_SAMPLE").is_ok_and(|wanted| wanted == version.to_string()) {
            write(&sim, &files, version);
            std::fs::create_dir_all(&dir).unwrap();
            for entry in sim.disk.list(&Path::new(DIR).join("log")).unwrap() {
                let file = sim.disk.open(&Path::new(DIR).join("log").join(&entry.name), OpenMode::Read).unwrap();
                let mut bytes = vec![0; file.len().unwrap() as usize];
                file.read_exact_at(&mut bytes, 0).unwrap();
                std::fs::write(dir.join(&entry.name), bytes).unwrap();
            }
            let log = open(&sim, &files, 0);
            std::fs::write(dir.join("says.txt"), described(&log)).unwrap();
        }
        let sim = SimEnv::new(99);
        sim.disk.create_dir_all_durable(&Path::new(DIR).join("log")).unwrap();
        let (mut kinds, mut has_late) = (0, false);
        for entry in std::fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if name != "says.txt" {
                let path = Path::new(DIR).join("log").join(&name);
                let bytes = std::fs::read(entry.path()).unwrap();
                has_late |= bytes.starts_with(b"MYSEGM\x02\n");
                sim.disk.open(&path, OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
                kinds |= if name.starts_with("tail") { 1 } else { 2 };
            }
        }
        assert_eq!(kinds, 3, "a sample has a segment and a tail");
        assert_eq!(has_late, version > 1);
        let says = std::fs::read_to_string(dir.join("says.txt")).unwrap();
        let log = open(&sim, &files, 1 << 20);
        assert_eq!(described(&log), says, "version {version}");
        assert_eq!(log.check().unwrap().findings, []);
        // It goes on: sealed, rewritten and replayed, it says the same.
        log.maintain(Budget { bytes: u64::MAX }).unwrap();
        log.close().unwrap();
        drop(log);
        mailyard_index::remove_index(&sim.env(), Path::new(DIR)).unwrap();
        assert_eq!(described(&open(&sim, &files, 0)), says, "version {version}, rewritten");
    }
}
