//! Group commit: what is written and synced when, what others see when, and what a full disk or a failed sync leaves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use mailyard_index::{
    ANNOTATION_KEY_BYTES_MAX, ANNOTATION_VALUE_BYTES_MAX, Budget, FRAME_MESSAGES_MAX, Job, Log, NewEntry, Options,
    Transaction, Wake,
};
use model::{DateTime, ErrorKind, FlagChange, Flags, MailboxId, MailboxName, Result, SystemFlag, Uid, UidSet, limits};
use platform::Disk;
use platform::sim::{Effect, Operation, SimEnv};

const DIR: &str = "/mail/ann";

fn machine() -> (SimEnv, Arc<Log>, MailboxId) {
    let sim = SimEnv::new(1);
    sim.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
    let log = open(&sim);
    let inbox = log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
    (sim, log, inbox)
}

fn open(sim: &SimEnv) -> Arc<Log> {
    Log::open(&sim.env(), Path::new(DIR), Options::default(), None, None).unwrap()
}

fn append(log: &Arc<Log>, tx: &mut Transaction, mailbox: MailboxId, text: &[u8]) -> Result<Uid> {
    let mut writer = log.message_writer();
    writer.write(text)?;
    let email = tx.add_message(writer.finish(0)?)?;
    let entry = NewEntry { uid: None, flags: Flags::NONE, internal_date: DateTime::utc(0), save_date: None };
    tx.add_entry(mailbox, email, &entry)
}

#[test]
fn transactions_that_wait_together_share_one_write_and_one_sync() {
    let (sim, log, inbox) = machine();
    let before = sim.disk.stats();
    let tickets: Vec<_> = (0..20).map(|_| log.transact(|tx| append(&log, tx, inbox, b"hello")).unwrap().1).collect();
    assert_eq!(log.state().mailbox(inbox).unwrap().exists(), 0, "nothing is visible before it is durable");
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    let after = sim.disk.stats();
    assert_eq!((after.syncs - before.syncs, after.writes - before.writes), (1, 1));
    assert_eq!(log.state().mailbox(inbox).unwrap().exists(), 20);
}

/// Polls that hand over write nothing themselves; whoever is in the next batch is woken only when that is done.
#[test]
fn who_polls_hands_the_writing_over() {
    let (sim, log, inbox) = machine();
    let jobs: Arc<Mutex<Vec<Job>>> = Arc::default();
    let taken = Arc::clone(&jobs);
    log.hand_over_to(Arc::new(move |job| {
        taken.lock().unwrap().push(job);
        Ok(())
    }));
    let woken = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&woken);
    let wake: Wake = Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let begin = || log.transact(|tx| append(&log, tx, inbox, b"hello")).unwrap().1;

    let before = sim.disk.stats();
    let tickets = [begin(), begin()];
    assert!(tickets.iter().all(|ticket| ticket.poll(&wake).is_none()));
    assert_eq!(sim.disk.stats().operations, before.operations, "nobody has written yet");
    let job = |jobs: &Mutex<Vec<Job>>| {
        let mut jobs = jobs.lock().unwrap();
        assert_eq!(jobs.len(), 1, "one job for all that wait");
        jobs.pop().unwrap()
    };
    job(&jobs)();
    assert_eq!((sim.disk.stats().syncs - before.syncs, woken.load(Ordering::Relaxed)), (1, 2));
    assert!(tickets.iter().all(|ticket| ticket.poll(&wake).unwrap().is_ok()));

    // A failed sync is the answer of those who were in it, and the log is closed.
    let ticket = begin();
    assert!(ticket.poll(&wake).is_none());
    sim.disk.fail_at(1);
    job(&jobs)();
    assert_eq!(woken.load(Ordering::Relaxed), 3);
    assert_eq!(ticket.poll(&wake).unwrap().unwrap_err().kind(), ErrorKind::Io);
    assert!(log.is_closed());
}

#[test]
fn a_commit_of_nothing_syncs_nothing() {
    let (sim, log, inbox) = machine();
    let before = sim.disk.stats();
    log.commit(|tx| tx.set_flags(inbox, &UidSet::range(1, 9), FlagChange::Add(Flags(1)), None)).unwrap();
    log.commit(|tx| tx.expunge(inbox, &UidSet::range(1, 9))).unwrap();
    assert_eq!(sim.disk.stats().operations, before.operations);
}

#[test]
fn store_and_expunge_of_many_are_one_small_frame() {
    let (sim, log, inbox) = machine();
    for _ in 0..20 {
        log.commit(|tx| (0..500).try_for_each(|_| append(&log, tx, inbox, b"x").map(drop))).unwrap();
    }
    let before = sim.disk.stats();
    let every_fifth: UidSet = (1..=10_000).step_by(5).collect();
    log.commit(|tx| tx.expunge(inbox, &every_fifth)).unwrap();
    let seen = FlagChange::Add(Flags::system(SystemFlag::Seen));
    log.commit(|tx| tx.set_flags(inbox, &UidSet::range(1, u32::MAX), seen, None)).unwrap();
    log.commit(|tx| tx.copy(inbox, &UidSet::range(1, 100), inbox)).unwrap();
    let after = sim.disk.stats();
    assert_eq!(after.syncs - before.syncs, 3);
    let prefilled = 3 * (1 << 20);
    assert!(after.write_bytes - before.write_bytes < 20_000 + prefilled, "{after:?}");
    let state = log.state();
    let mailbox = state.mailbox(inbox).unwrap();
    assert_eq!((mailbox.exists(), mailbox.unseen()), (8080, 0));
    assert_eq!(mailbox.vanished_since(model::ModSeq(0)), every_fifth);
}

#[test]
fn a_view_stays_and_says_what_changed() {
    let (_sim, log, inbox) = machine();
    log.commit(|tx| (0..3000).try_for_each(|_| append(&log, tx, inbox, b"x").map(drop))).unwrap();
    let state = log.state();
    let view = Arc::clone(state.mailbox(inbox).unwrap());
    log.commit(|tx| {
        tx.expunge(inbox, &UidSet::range(10, 12))?;
        tx.set_flags(inbox, &UidSet::range(2000, 2001), FlagChange::Add(Flags(4)), None)?;
        append(&log, tx, inbox, b"new")
    })
    .unwrap();
    assert_eq!((view.exists(), view.deleted()), (3000, 0));
    let changes = log.state().mailbox(inbox).unwrap().changes_since(&view);
    assert_eq!(changes.expunged.to_string(), "10:12");
    assert_eq!(changes.changed.to_string(), "2000:2001");
    assert_eq!(changes.appended.to_string(), "3001");
}

#[test]
fn a_full_disk_fails_its_batch_and_nothing_else() {
    let (sim, log, inbox) = machine();
    sim.disk.set_capacity(Some(sim.disk.used_bytes()));
    let big = vec![b'x'; 15_000];
    let many = |tx: &mut Transaction| (0..100).try_for_each(|_| append(&log, tx, inbox, &big).map(drop));
    let error = log.commit(many).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DiskFull);
    assert_eq!(log.state().mailbox(inbox).unwrap().exists(), 0);
    log.commit(|tx| append(&log, tx, inbox, b"small")).unwrap();
    sim.disk.set_capacity(None);
    log.commit(many).unwrap();
    assert_eq!(log.state().mailbox(inbox).unwrap().exists(), 101);
    drop(log);
    assert_eq!(open(&sim).state().mailbox(inbox).unwrap().exists(), 101);
}

#[test]
fn after_a_failed_sync_the_log_is_read_only_until_it_is_opened_again() {
    let (sim, log, inbox) = machine();
    log.commit(|tx| append(&log, tx, inbox, b"there")).unwrap();
    sim.disk.schedule(Some(Operation::Sync), 1, Effect::Fail);
    let error = log.commit(|tx| append(&log, tx, inbox, b"lost")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(log.state().mailbox(inbox).unwrap().exists(), 1, "what is durable stays readable");
    let error = log.commit(|tx| append(&log, tx, inbox, b"again")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnlyAfterFailure);
    drop(log);
    let log = open(&sim);
    log.commit(|tx| append(&log, tx, inbox, b"again")).unwrap();
}

#[test]
fn one_process_at_a_time() {
    let (sim, log, _) = machine();
    let error = Log::open(&sim.env(), Path::new(DIR), Options::default(), None, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse);
    log.close().unwrap();
    open(&sim);
}

#[test]
fn an_abandoned_message_leaves_nothing() {
    let (sim, log, _) = machine();
    let mut writer = log.message_writer();
    writer.write(&vec![b'x'; 100_000]).unwrap();
    let spool = Path::new(DIR).join("spool");
    assert_eq!(sim.disk.list(&spool).unwrap().len(), 1);
    drop(writer);
    assert_eq!(sim.disk.list(&spool).unwrap().len(), 0);
}

#[test]
fn appenders_on_threads_share_syncs_with_real_files() {
    let dir = std::env::temp_dir().join(format!("mailyard-index-{}", std::process::id()));
    let log = Log::open(&platform::Env::real(), &dir, Options::default(), None, None).unwrap();
    let inbox = log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
    let told = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&told);
    log.set_listener(Some(Box::new(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    })));
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..20 {
                    let uid = log.commit(|tx| append(&log, tx, inbox, b"hello")).unwrap();
                    assert!(log.state().mailbox(inbox).unwrap().row_of(uid).is_some(), "a writer sees its own");
                }
            });
        }
    });
    assert_eq!(log.state().mailbox(inbox).unwrap().exists(), 160);
    assert!((1..=160).contains(&told.load(Ordering::Relaxed)));
    log.maintain(Budget { bytes: 1 }).unwrap();
    log.set_listener(None);
    log.close().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_account_has_so_many_mailboxes_and_subscriptions_and_no_more() {
    let (_sim, log, _inbox) = machine();
    let name = |n: usize| MailboxName::new(&format!("m{n}")).unwrap();
    // INBOX is one of them.
    log.commit(|tx| {
        for n in 1..limits::MAILBOXES_MAX {
            tx.create_mailbox(&name(n), &[])?;
        }
        for n in 1..=limits::MAILBOXES_MAX {
            tx.subscribe(&name(n))?;
        }
        Ok(())
    })
    .unwrap();
    let over = name(limits::MAILBOXES_MAX + 1);
    let full = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Limit);
    full(log.commit(|tx| tx.create_mailbox(&over, &[]).map(drop)));
    full(log.commit(|tx| tx.subscribe(&over)));
    log.commit(|tx| tx.subscribe(&name(1))).unwrap();
    // A mailbox that comes back counts like a new one.
    let gone = log.state().mailbox_named(&name(1)).unwrap().id();
    log.commit(|tx| tx.delete_mailbox(gone)).unwrap();
    log.commit(|tx| tx.create_mailbox(&over, &[])).unwrap();
    full(log.commit(|tx| tx.undelete_mailbox(gone, &name(1))));
    assert_eq!(log.state().mailbox_count(), limits::MAILBOXES_MAX);
}

#[test]
fn a_transaction_adds_so_many_messages_and_no_more() {
    let (_sim, log, inbox) = machine();
    log.commit(|tx| (0..FRAME_MESSAGES_MAX).try_for_each(|_| append(&log, tx, inbox, b"x").map(drop))).unwrap();
    let over = log.commit(|tx| (0..=FRAME_MESSAGES_MAX).try_for_each(|_| append(&log, tx, inbox, b"x").map(drop)));
    assert_eq!(over.unwrap_err().limit(), Some("frame_messages_max"));
    assert_eq!(
        log.state().mailbox(inbox).unwrap().exists() as usize,
        FRAME_MESSAGES_MAX,
        "all of one, none of the other"
    );
}

#[test]
fn annotations_are_small() {
    let (_sim, log, _inbox) = machine();
    for (key, value, limit) in [
        (ANNOTATION_KEY_BYTES_MAX, ANNOTATION_VALUE_BYTES_MAX, None),
        (ANNOTATION_KEY_BYTES_MAX + 1, 0, Some("annotation_key_bytes_max")),
        (1, ANNOTATION_VALUE_BYTES_MAX + 1, Some("annotation_value_bytes_max")),
    ] {
        let result = log.commit(|tx| tx.annotate_account(&"k".repeat(key), Some(&vec![b'v'; value])));
        assert_eq!(result.err().and_then(|error| error.limit()), limit);
    }
}
