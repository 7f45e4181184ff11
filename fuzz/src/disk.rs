//! Everything that is read from a disk: a good account, damaged anywhere, opens or says why not, and never gives out wrong bytes.
//!
//! The input is a list of edits to the files of a small account that has everything an account can have on disk: sealed segments, a tail,
//! a checkpoint, a cache. They are put on a simulated disk, so a case costs no system call.

use index::{Budget, Log, NewEntry, Options, State};
use model::{DateTime, FlagChange, Flags, Keyword, MailboxName, SystemFlag, UidSet};
use platform::sim::SimEnv;
use platform::{Disk, OpenMode};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const DIR: &str = "/mail/ann";

/// Edits to the log, the only truth: damage there may cost messages, and is found.
pub fn log_files(data: &[u8]) {
    damaged(data, "log");
}

/// Edits to the index, which can be derived: damage there changes nothing that can be seen.
pub fn index_files(data: &[u8]) {
    let seen = damaged(data, "index").map(|log| summary(&log.state()));
    assert_eq!(seen.as_ref(), Some(&sample().summary), "the index is believed where the log says otherwise");
}

/// An account as it lies on disk, and what is in it.
struct Sample {
    files: BTreeMap<PathBuf, Vec<u8>>,
    messages: BTreeMap<u64, Vec<u8>>,
    summary: Vec<String>,
}

/// Small files, so that an edit often hits something that matters.
fn options() -> Options {
    Options { tail_bytes_max: 6_000, checkpoint_bytes: 4_000, preallocate_bytes_min: 0, ..Options::default() }
}

fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(make_sample)
}

fn make_sample() -> Sample {
    let sim = SimEnv::new(1);
    sim.disk.create_dir_all_durable(Path::new("/mail")).expect("an empty disk has room");
    let log = Log::open(&sim.env(), Path::new(DIR), options(), None, None).expect("a new account opens");
    let mut messages = BTreeMap::new();
    let names = ["INBOX", "Größe/Maß"].map(|name| MailboxName::new(name).expect("a good name"));
    let boxes: Vec<_> = log
        .commit(|tx| names.iter().map(|name| tx.create_mailbox(name, &[])).collect())
        .expect("mailboxes can be made");
    for number in 0..40usize {
        let body = "Words of a message, over and over. ".repeat(number % 7 * 4);
        let message = format!("Subject: number {number}\r\nFrom: a{number}@example.org\r\n\r\n{body}\r\n").into_bytes();
        let header = message.windows(4).position(|end| end == b"\r\n\r\n").expect("it has one") + 4;
        let mut writer = log.message_writer();
        writer.write(&message).expect("room");
        let pending = writer.finish(header as u32).expect("room");
        let id = log
            .commit(|tx| {
                let id = tx.add_message(pending)?;
                let flags = if number % 3 == 0 { Flags::system(SystemFlag::Seen) } else { Flags::NONE };
                let date = DateTime::utc(1_000_000_000 + number as i64);
                let entry = NewEntry { uid: None, flags, internal_date: date, save_date: None };
                for mailbox in boxes.iter().take(1 + number % 2) {
                    tx.add_entry(*mailbox, id, &entry)?;
                }
                Ok(id)
            })
            .expect("messages can be added");
        messages.insert(id.0, message);
        if number == 25 {
            log.maintain(Budget { bytes: u64::MAX }).expect("it can be sealed");
        }
    }
    log.commit(|tx| {
        let inbox = *boxes.first().expect("two were made");
        let keyword = tx.keyword(inbox, &Keyword::new("$Junk").expect("a good keyword"))?;
        tx.set_flags(inbox, &(3..=9).collect::<UidSet>(), FlagChange::Add(keyword), None)?;
        tx.expunge(inbox, &(5..=6).collect::<UidSet>())
    })
    .expect("flags can be set");
    log.checkpoint().expect("room");
    let summary = summary(&log.state());
    log.close().expect("it closes");
    drop(log);
    let files = files(&sim, Path::new(DIR));
    let count = |part| files.keys().filter(|path| path.starts_with(Path::new(DIR).join(part))).count();
    assert!(count("log") > 1 && count("index") > 0, "a segment and a tail, and an index: {:?}", files.keys());
    Sample { files, messages, summary }
}

/// Opens the account with edits to the files below `part`, and reads all of it. `None` when it does not open.
fn damaged(data: &[u8], part: &str) -> Option<Arc<Log>> {
    let sample = sample();
    let mut files = sample.files.clone();
    let below = Path::new(DIR).join(part);
    let mut chosen: Vec<&mut Vec<u8>> =
        files.iter_mut().filter(|(path, _)| path.starts_with(&below)).map(|(_, bytes)| bytes).collect();
    edit(&mut chosen, data);

    let sim = SimEnv::new(2);
    for (path, bytes) in &files {
        sim.disk.create_dir_all(path.parent().expect("it is in a folder")).expect("room");
        let file = sim.disk.open(path, OpenMode::CreateNew).expect("room");
        file.write_at(bytes, 0).expect("room");
    }
    let log = Log::open(&sim.env(), Path::new(DIR), options(), None, None).ok()?;
    let state = log.state();
    let mut reader = log.reader();
    for mailbox in state.mailboxes() {
        for (_, row) in mailbox.all_rows() {
            // An error is a good answer; other bytes than were stored are none.
            if let Ok(bytes) = reader.whole(row.email_id) {
                let stored = sample.messages.get(&row.email_id.0);
                assert!(stored.is_none_or(|stored| *stored == bytes), "message {} has other bytes", row.email_id.0);
            }
        }
    }
    let _ = log.check();
    let _ = log.maintain(Budget { bytes: u64::MAX });
    Some(log)
}

/// Each edit is six bytes: which file, what, where (two bytes), how much, with what.
fn edit(files: &mut [&mut Vec<u8>], data: &[u8]) {
    for edit in data.chunks_exact(6).take(16) {
        let [file, what, high, low, count, value] = *edit else { continue };
        let number = usize::from(file) % files.len().max(1);
        let Some(bytes) = files.get_mut(number) else { continue };
        let at = usize::from(u16::from_be_bytes([high, low])) % (bytes.len() + 1);
        let end = (at + usize::from(count)).min(bytes.len());
        match what % 6 {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= value.max(1)),
            1 => bytes.iter_mut().skip(at).take(usize::from(count)).for_each(|byte| *byte = value),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => drop(bytes.splice(at..at, std::iter::repeat_n(value, usize::from(count)))),
            // A stretch of another place of the same file: good bytes, wrong place.
            _ => {
                let piece: Vec<u8> =
                    bytes.iter().copied().skip(usize::from(value) * 16).take(usize::from(count)).collect();
                let end = (at + piece.len()).min(bytes.len());
                drop(bytes.splice(at..end, piece));
            }
        }
    }
}

fn files(sim: &SimEnv, folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in sim.disk.list(folder).expect("the folder is there") {
        let path = folder.join(&entry.name);
        match sim.disk.list(&path) {
            Ok(_) => found.extend(files(sim, &path)),
            Err(_) => drop(found.insert(path.clone(), sim.disk.read(&path).expect("the file is there"))),
        }
    }
    found
}

/// What a client could see, but for the messages themselves.
fn summary(state: &State) -> Vec<String> {
    let mut lines = Vec::new();
    for mailbox in state.mailboxes() {
        let (name, validity, next) = (mailbox.name(), mailbox.uidvalidity(), mailbox.uidnext());
        let (modseq, keywords) = (mailbox.highest_modseq(), mailbox.keywords());
        lines.push(format!("{name} {validity:?} {next:?} {modseq:?} {keywords:?}"));
        lines.extend(mailbox.all_rows().map(|(number, row)| format!("{number:?} {row:?}")));
    }
    lines
}
