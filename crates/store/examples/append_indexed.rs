//! What the search index costs those who bring mail, and how soon it has caught up: `append_indexed STORE DIRECTORY [MEGABYTES]` takes messages
//! from a store that `search fill` made, and appends them to new accounts in DIRECTORY.
//!
//! Beside the appends runs what a server has in the background, at its pace and priority: everything, or only the sealing (no index, no
//! derived columns, no compaction), in turn. Each append is acknowledged before the next one begins, one message each ("single") or 64
//! ("bulk"). Behind the appends a search that must look at all bodies is timed until the index answers it.
#![allow(clippy::unwrap_used, reason = "a tool for developers")]

extern crate mailyard_store as store;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{AccountName, MailboxName};
use platform::Env;
use store::search::{Query, Search};
use store::{Account, FlagNames, NewMessage, Options, Store};

/// Rounds of every kind; the best counts.
const ROUNDS: usize = 3;
/// Messages that one bulk append brings.
const BULK: usize = 64;
/// How often a search is asked until the index has caught up, and how often at most.
const ASKED_EVERY: Duration = Duration::from_millis(250);
const ASKED_MAX: usize = 120;
/// A search is answered by the index when it takes no longer.
const INDEXED_MS: f64 = 10.0;

fn user() -> AccountName {
    AccountName::new("ann").unwrap()
}

fn open(dir: &Path) -> Arc<Store> {
    Store::open(Env::real(), dir.to_owned(), Options::default()).unwrap()
}

/// The octets of the first messages, about so many.
fn messages(from: &Path, bytes: usize) -> Vec<Vec<u8>> {
    let store = open(from);
    let account = store.account(&user()).unwrap();
    let view = account.view(account.mailbox(&MailboxName::inbox()).unwrap(), true).unwrap();
    let mut reader = account.reader();
    let mut sum = 0;
    let mut all = Vec::new();
    for entry in view.all_rows() {
        let mut message = Vec::new();
        reader.read(entry.email_id, 0..u64::MAX, &mut message).unwrap();
        sum += message.len();
        all.push(message);
        if sum >= bytes {
            break;
        }
    }
    all
}

/// What a server does in the background, until it is told to end.
fn maintain(store: &Store, is_all: bool, is_over: &AtomicBool) {
    // On Linux a thread has a priority of its own.
    if let Ok(thread) = std::fs::read_link("/proc/thread-self") {
        let number = thread.file_name().unwrap_or_default().to_owned();
        let _ = Command::new("renice").args(["-n", "10", "-p"]).arg(number).stdout(Stdio::null()).status();
    }
    let clock = &store.env().clock;
    while !is_over.load(Ordering::Relaxed) {
        let began = clock.monotonic();
        let is_more = if is_all { store.maintain() } else { store.seal() }.unwrap();
        let pause = match is_more {
            true if store.is_awaited() => Duration::ZERO,
            true => clock.monotonic() - began,
            false => ASKED_EVERY,
        };
        std::thread::sleep(pause.max(Duration::from_millis(1)));
    }
}

/// Appends all, `bulk` at a time.
fn append(account: &Account, messages: &[Vec<u8>], bulk: usize) {
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    for some in messages.chunks(bulk) {
        let new = some.iter().map(|message| {
            let mut writer = account.message_writer().unwrap();
            writer.write(message).unwrap();
            NewMessage { message: writer.finish().unwrap(), flags: FlagNames::default(), internal_date: None }
        });
        account.append(inbox, new.collect()).unwrap();
    }
}

/// Searches until the index answers; says how that went.
fn catch_up(store: &Store, account: &Account) {
    let clock = &store.env().clock;
    let began = clock.monotonic();
    let mut times = Vec::new();
    for _ in 0..ASKED_MAX {
        let view = account.view(account.mailbox(&MailboxName::inbox()).unwrap(), true).unwrap();
        let start = clock.monotonic();
        Search::new(view, account.reader(), Query::Body("zqxj".to_owned()), 0).finish().unwrap();
        let time = (clock.monotonic() - start).as_secs_f64() * 1e3;
        times.push(format!("{time:.0}"));
        if time < INDEXED_MS {
            break;
        }
        std::thread::sleep(ASKED_EVERY);
    }
    let seconds = (clock.monotonic() - began).as_secs_f64();
    println!("    searches behind it, ms: {}; caught up after {seconds:.1} s", times.join(" "));
}

/// Seconds that the appends took.
fn run(dir: &Path, messages: &[Vec<u8>], bulk: usize, is_all: bool) -> f64 {
    let store = open(dir);
    store.create_account(&user()).unwrap();
    let account = store.account(&user()).unwrap();
    let is_over = AtomicBool::new(false);
    let clock = &store.env().clock;
    let seconds = std::thread::scope(|scope| {
        scope.spawn(|| maintain(&store, is_all, &is_over));
        let began = clock.monotonic();
        append(&account, messages, bulk);
        let seconds = (clock.monotonic() - began).as_secs_f64();
        if is_all {
            catch_up(&store, &account);
        }
        is_over.store(true, Ordering::Relaxed);
        seconds
    });
    drop((account, store));
    std::fs::remove_dir_all(dir).unwrap();
    seconds
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (Some(from), Some(dir)) = (args.get(1), args.get(2)) else {
        return eprintln!("append_indexed STORE DIRECTORY [MEGABYTES]");
    };
    let megabytes = args.get(3).and_then(|arg| arg.parse().ok()).unwrap_or(34);
    let messages = messages(Path::new(from), megabytes * 1_000_000);
    let bytes = messages.iter().map(Vec::len).sum::<usize>() as f64 / 1e6;
    println!("{} messages, {bytes:.1} MB; the best of {ROUNDS}", messages.len());
    for (name, bulk, share) in [("bulk", BULK, 1), ("single", 1, 8)] {
        let messages = messages.get(..messages.len() / share).unwrap_or_default();
        let mut best = [f64::INFINITY; 2];
        for round in 0..ROUNDS * 2 {
            let is_all = round % 2 == 1;
            let seconds = run(&Path::new(dir).join(format!("append-{name}-{round}")), messages, bulk, is_all);
            if let Some(best) = best.get_mut(usize::from(is_all)) {
                *best = best.min(seconds);
            }
        }
        let [without, with] = best.map(|seconds| messages.len() as f64 / seconds);
        println!("{name}: {without:.0} messages/s without, {with:.0} with: {:.3}", with / without);
    }
}
