//! The log's figures on this machine: `figures DIRECTORY [MESSAGES [MAIL]]` fills an account in DIRECTORY with MESSAGES
//! messages (those below the directory MAIL in turn, or made-up ones) and times what matters.
#![allow(clippy::unwrap_used, reason = "a tool for developers")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mailyard_index::{Budget, Log, NewEntry, Options, Reader, remove_index};
use model::{DateTime, FlagChange, Flags, MailboxName, SystemFlag, UidSet};
use platform::Env;
use platform::random::Prng;

/// Messages in one transaction while filling.
const BATCH: usize = 100;

fn read_mail(dir: &Path, into: &mut Vec<Vec<u8>>) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            read_mail(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "txt" || extension == "eml") {
            into.push(std::fs::read(&path).unwrap());
        }
    }
}

fn made_up(prng: &mut Prng) -> Vec<u8> {
    let mut text = String::new();
    let word = |prng: &mut Prng| format!("{:x}", prng.below(5000) * 7919);
    for header in ["Received", "Received", "Message-ID", "From", "To", "Subject", "Date", "X-Mailer", "Content-Type"] {
        text += header;
        text += ":";
        for _ in 0..prng.between(4, 30) {
            text += " ";
            text += &word(prng);
        }
        text += "\r\n";
    }
    text += "\r\n";
    for n in 0..prng.between(20, 600) {
        text += &word(prng);
        text += if n % 9 == 8 { "\r\n" } else { " " };
    }
    text.into_bytes()
}

fn header_len(message: &[u8]) -> u32 {
    let crlf = message.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
    let lf = message.windows(2).position(|window| window == b"\n\n").map(|at| at + 2);
    crlf.or(lf).unwrap_or(message.len()) as u32
}

fn show(what: &str, time: Duration, more: impl std::fmt::Display) {
    println!("{what:<44} {:>10.3} ms   {more}", time.as_secs_f64() * 1e3);
}

fn rate(bytes: u64, time: Duration) -> String {
    format!("{:.0} MB/s", bytes as f64 / 1e6 / time.as_secs_f64())
}

fn size_of(dir: &Path) -> u64 {
    let sizes = std::fs::read_dir(dir).unwrap().map(|entry| {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() { size_of(&entry.path()) } else { entry.metadata().unwrap().len() }
    });
    sizes.sum()
}

fn stream_headers(log: &Arc<Log>, reader: &mut Reader) -> u64 {
    let state = log.state();
    let mailbox = state.mailbox_named(&MailboxName::inbox()).unwrap();
    let mut bytes = 0;
    for (_, row) in mailbox.all_rows() {
        bytes += reader.header(row.email_id).unwrap().len() as u64;
    }
    bytes
}

/// Commits of one small message each, one after another, with the tail prefilled in steps of so many bytes (0: never).
fn one_by_one(dir: &Path, prefill: u64) {
    const COMMITS: u32 = 300;
    let options = Options { preallocate_bytes_min: prefill, ..Options::default() };
    let log = Log::open(&Env::real(), dir, options, None, None).unwrap();
    let inbox = log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
    let start = Instant::now();
    for n in 0..COMMITS {
        log.commit(|tx| {
            let mut writer = log.message_writer();
            writer.write(&[b'x'; 4000])?;
            let id = tx.add_message(writer.finish(0)?)?;
            let internal_date = DateTime::utc(n.into());
            tx.add_entry(inbox, id, &NewEntry { uid: None, flags: Flags::NONE, internal_date, save_date: None })
        })
        .unwrap();
    }
    show("one commit of one message", start.elapsed() / COMMITS, format_args!("prefilled by {prefill}"));
    log.close().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let dir = PathBuf::from(args.get(1).expect("a directory"));
    let count: usize = args.get(2).map_or(21_282, |count| count.parse().unwrap());
    let mut prng = Prng::new(1);
    let mut mail = Vec::new();
    match args.get(3) {
        Some(path) => read_mail(Path::new(path), &mut mail),
        None => mail.extend((0..5000).map(|_| made_up(&mut prng))),
    }
    for prefill in [0, 64 << 10, 1 << 20, 0, 64 << 10] {
        one_by_one(&dir.join("one-by-one"), prefill);
    }
    let level = args.get(4).map_or(Options::default().body_level, |level| level.parse().unwrap());
    let options = Options { body_level: level, retention_seconds: 0, ..Options::default() };
    let env = Env::real();
    let open = || Log::open(&env, &dir, options.clone(), None, None).unwrap();
    let log = open();
    let inbox = log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();

    let mut bytes = 0u64;
    let mut longest = Duration::ZERO;
    let start = Instant::now();
    let mut maintenance = Duration::ZERO;
    for batch in 0..count.div_ceil(BATCH) {
        let before = Instant::now();
        log.commit(|tx| {
            for n in batch * BATCH..count.min((batch + 1) * BATCH) {
                let message = &mail[n % mail.len()];
                let mut writer = log.message_writer();
                writer.write(message)?;
                let id = tx.add_message(writer.finish(header_len(message))?)?;
                bytes += message.len() as u64;
                let entry = NewEntry {
                    uid: None,
                    flags: Flags::NONE,
                    internal_date: DateTime::utc(1_000_000_000 + n as i64),
                    save_date: None,
                };
                tx.add_entry(inbox, id, &entry)?;
            }
            Ok(())
        })
        .unwrap();
        longest = longest.max(before.elapsed());
        let before = Instant::now();
        log.maintain(Budget { bytes: 1 }).unwrap();
        maintenance += before.elapsed();
    }
    let time = start.elapsed();
    println!("{count} messages, {} MB", bytes / 1_000_000);
    show("fill, batches of 100, one sync each", time, rate(bytes, time));
    show("  of which maintenance", maintenance, rate(bytes, maintenance));
    show("  longest batch", longest, "");
    let start = Instant::now();
    // Twice: at the second time the account is idle.
    for _ in 0..2 {
        log.maintain(Budget { bytes: u64::MAX }).unwrap();
    }
    show("maintenance afterwards", start.elapsed(), "");
    let start = Instant::now();
    log.close().unwrap();
    show("close", start.elapsed(), "");
    let (log_bytes, index_bytes) = (size_of(&dir.join("log")), size_of(&dir.join("index")));
    println!("log {:.3} of the mail, index {:.3}", log_bytes as f64 / bytes as f64, index_bytes as f64 / bytes as f64);
    drop(log);

    let start = Instant::now();
    let log = open();
    show("open with a checkpoint", start.elapsed(), "");
    let start = Instant::now();
    let state = log.state();
    let mailbox = state.mailbox_named(&MailboxName::inbox()).unwrap();
    let select = (mailbox.exists(), mailbox.unseen(), mailbox.uidnext(), mailbox.first_unseen());
    show("SELECT", start.elapsed(), format_args!("{} entries", select.0));
    let start = Instant::now();
    let sum: u64 = mailbox.all_rows().map(|(_, row)| row.flags.0 as u64 ^ u64::from(row.size)).sum();
    show("all rows", start.elapsed(), sum % 10);
    let mut reader = log.reader();
    for round in ["stream headers, first", "stream headers, again"] {
        let start = Instant::now();
        let bytes = stream_headers(&log, &mut reader);
        show(round, start.elapsed(), rate(bytes, start.elapsed()));
    }
    let start = Instant::now();
    let mut whole = 0u64;
    for (_, row) in mailbox.all_rows() {
        let sink = &mut |piece: &[u8]| {
            whole += piece.len() as u64;
            Ok(())
        };
        reader.range(row.email_id, 0..u64::MAX, sink).unwrap();
    }
    show("stream whole messages", start.elapsed(), rate(whole, start.elapsed()));
    let start = Instant::now();
    for _ in 0..1000 {
        let row = mailbox.row(prng.between(1, u64::from(mailbox.exists())) as u32).unwrap();
        reader.header(row.email_id).unwrap();
    }
    show("1000 random headers", start.elapsed(), "");

    let uids: UidSet = (1..=count as u32).filter(|_| prng.one_in(5)).collect();
    let all = UidSet::range(1, u32::MAX);
    let seen = FlagChange::Add(Flags::system(SystemFlag::Seen));
    let start = Instant::now();
    log.commit(|tx| tx.set_flags(inbox, &all, seen, None)).unwrap();
    show("STORE on all", start.elapsed(), "");
    let start = Instant::now();
    log.commit(|tx| tx.expunge(inbox, &uids)).unwrap();
    show("EXPUNGE of a random 20%", start.elapsed(), format_args!("{} entries", uids.len()));
    let start = Instant::now();
    let changes = log.state().mailbox(inbox).unwrap().changes_since(mailbox);
    show("what changed", start.elapsed(), format_args!("{} expunged", changes.expunged.len()));
    let start = Instant::now();
    log.commit(|tx| tx.set_flags(inbox, &UidSet::range(7, 7), FlagChange::Replace(Flags::NONE), None)).unwrap();
    show("STORE on one", start.elapsed(), "");
    let start = Instant::now();
    log.close().unwrap();
    show("close", start.elapsed(), "");
    drop(log);
    remove_index(&env, &dir).unwrap();
    let start = Instant::now();
    let log = open();
    show("open without an index", start.elapsed(), "");
    let start = Instant::now();
    let report = log.check().unwrap();
    show("check", start.elapsed(), format_args!("{} findings", report.findings.len()));
    let start = Instant::now();
    let report = log.maintain(Budget { bytes: 1 }).unwrap();
    show("compaction, first step", start.elapsed(), format_args!("{report:?}"));
}
