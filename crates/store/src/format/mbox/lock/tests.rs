//! Locks on the simulated disk: who gets them, when they are given up, and what a power cut or another program does in between.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::ErrorKind;
use platform::sim::{SimClock, SimEnv};
use platform::{Clock, Disk, OpenMode, Timestamp};

use super::{Access, LockPolicy, Locker, Method};

const BOX: &str = "/mail/box";
const LOCK: &str = "/mail/box.lock";

fn machine() -> SimEnv {
    let env = SimEnv::new(1);
    env.disk.create_dir_all(Path::new("/mail")).unwrap();
    put(&env, BOX, b"mail");
    env
}

fn put(env: &SimEnv, path: &str, bytes: &[u8]) {
    let file = env.disk.open(Path::new(path), OpenMode::Create).unwrap();
    file.set_len(0).unwrap();
    file.write_at(bytes, 0).unwrap();
}

fn names(env: &SimEnv) -> Vec<String> {
    env.disk.list(Path::new("/mail")).unwrap().into_iter().map(|entry| entry.name.into_string().unwrap()).collect()
}

fn locker(env: &SimEnv, methods: &[Method]) -> Locker {
    let policy = LockPolicy { read: methods.to_vec(), write: methods.to_vec(), ..LockPolicy::default() };
    Locker::new(env.env(), policy)
}

/// Whether the lock is to be had now.
fn is_free(locker: &Locker, access: Access) -> bool {
    match locker.try_lock(Path::new(BOX), access) {
        Ok(lock) => lock.release().is_ok(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
            false
        }
    }
}

#[test]
fn each_method_keeps_others_away_who_use_it() {
    use Method::{Dotlock, Fcntl, Flock};
    let env = machine();
    for methods in [&[Fcntl][..], &[Flock], &[Dotlock], &[Fcntl, Dotlock], &[Dotlock, Flock, Fcntl]] {
        let locker = locker(&env, methods);
        let lock = locker.try_lock(Path::new(BOX), Access::Write).unwrap();
        for method in [Fcntl, Flock, Dotlock] {
            let other = self::locker(&env, &[method]);
            assert_eq!(is_free(&other, Access::Write), !methods.contains(&method), "{methods:?} {method:?}");
            assert_eq!(is_free(&other, Access::Read), !methods.contains(&method), "{methods:?} {method:?}");
        }
        drop(lock);
        assert!(is_free(&locker, Access::Write));
        assert_eq!(names(&env), ["box"], "nothing stays");
    }
}

#[test]
fn readers_share_and_writers_do_not() {
    let env = machine();
    let locker = Locker::new(env.env(), LockPolicy::default());
    let first = locker.try_lock(Path::new(BOX), Access::Read).unwrap();
    let second = locker.try_lock(Path::new(BOX), Access::Read).unwrap();
    assert_eq!(names(&env), ["box"], "reading makes no dotlock");
    assert!(!is_free(&locker, Access::Write));
    drop(first);
    assert!(!is_free(&locker, Access::Write));
    drop(second);
    let writer = locker.try_lock(Path::new(BOX), Access::Write).unwrap();
    assert_eq!(names(&env), ["box", "box.lock"]);
    assert!(!is_free(&locker, Access::Read));
    writer.file().write_at(b"M", 0).unwrap();
    writer.release().unwrap();
    assert!(is_free(&locker, Access::Read));
}

#[test]
fn missing_files_and_other_things() {
    let env = machine();
    let locker = Locker::new(env.env(), LockPolicy::default());
    let missing = Path::new("/mail/new");
    for access in [Access::Read, Access::Write] {
        assert_eq!(locker.try_lock(missing, access).err().unwrap().kind(), ErrorKind::NotFound);
    }
    assert_eq!(locker.lock(missing, Access::Create).unwrap().file().len().unwrap(), 0);
    assert_eq!(locker.try_lock(Path::new("/mail"), Access::Read).err().unwrap().kind(), ErrorKind::Invalid);
    for method in [Method::Fcntl, Method::Dotlock, Method::Flock] {
        assert_eq!(Method::parse(method.name()), Some(method));
    }
    assert_eq!(Method::parse("lockf"), None);
}

/// A clock during whose n-th pause something happens.
struct Busy {
    inner: SimClock,
    pauses: AtomicU64,
    nth: u64,
    event: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Busy")
    }
}

impl Clock for Busy {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn monotonic(&self) -> Duration {
        self.inner.monotonic()
    }

    fn sleep(&self, time: Duration) {
        self.inner.sleep(time);
        if self.pauses.fetch_add(1, Ordering::Relaxed) + 1 == self.nth {
            self.event.lock().unwrap().take().unwrap()();
        }
    }
}

#[test]
fn waiting_ends_with_the_lock_or_with_the_time() {
    let env = machine();
    for method in [Method::Fcntl, Method::Dotlock, Method::Flock] {
        let held = locker(&env, &[method]).try_lock(Path::new(BOX), Access::Write).unwrap();
        let begin = env.clock.monotonic();
        let error = locker(&env, &[method]).lock(Path::new(BOX), Access::Write).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InUse);
        assert_eq!(env.clock.monotonic() - begin, LockPolicy::default().wait_max);

        let clock = Arc::new(Busy {
            inner: env.clock.clone(),
            pauses: AtomicU64::new(0),
            nth: 7,
            event: Mutex::new(Some(Box::new(move || drop(held)))),
        });
        let policy = LockPolicy { write: vec![method], ..LockPolicy::default() };
        let waiting = Locker::new(platform::Env { clock: clock.clone(), ..env.env() }, policy);
        let _lock = waiting.lock(Path::new(BOX), Access::Write).unwrap();
        assert_eq!(clock.pauses.load(Ordering::Relaxed), 7);
    }
}

#[test]
fn dotlocks_of_unknown_holders_go_by_age() {
    let env = machine();
    let locker = locker(&env, &[Method::Dotlock]);
    // A host alone, a number alone (liblockfile), what procmail writes, another machine, and nothing yet.
    for contents in ["", "0", "17\n", "1000", ":simulated", "-1:simulated", "17:elsewhere", "\u{fffd}:simulated", "x\0"]
    {
        put(&env, LOCK, contents.as_bytes());
        assert!(!is_free(&locker, Access::Write), "{contents:?}");
        env.clock.advance(Duration::from_secs(119));
        assert!(!is_free(&locker, Access::Write), "{contents:?}");
        put(&env, BOX, b"its holder works");
        env.clock.advance(Duration::from_secs(119));
        assert!(!is_free(&locker, Access::Write), "the mailbox changed: {contents:?}");
        env.clock.advance(Duration::from_secs(1));
        assert!(is_free(&locker, Access::Write), "{contents:?}");
        assert_eq!(names(&env), ["box"]);
    }
}

#[test]
fn dotlocks_of_processes_that_ended_go_at_once_and_those_of_living_ones_never() {
    let env = machine();
    let locker = locker(&env, &[Method::Dotlock]);
    put(&env, LOCK, b"4711:simulated\n");
    assert!(is_free(&locker, Access::Write), "no such process");
    let other = env.as_process(4711);
    put(&env, LOCK, b"4711:simulated");
    env.clock.advance(Duration::from_secs(100_000));
    assert!(!is_free(&locker, Access::Write), "it runs");
    other.host.end(4711);
    assert!(is_free(&locker, Access::Write));
    // A number that is used again, be it by this very process: the younger one did not make the lock, if no clock was set.
    for process in [4712, 1000] {
        put(&env, LOCK, format!("{process}:simulated").as_bytes());
        env.clock.advance(Duration::from_secs(60));
        env.host.start(process, env.clock.now());
        assert!(!is_free(&locker, Access::Write));
        env.clock.advance(Duration::from_secs(60));
        assert!(is_free(&locker, Access::Write));
    }
}

#[test]
fn a_holder_that_works_is_not_taken_for_dead_from_another_machine() {
    let env = machine();
    let far = SimEnv { host: env.host.on_machine("far"), ..env.clone() };
    let (near, far) = (locker(&env, &[Method::Dotlock]), locker(&far, &[Method::Dotlock]));
    let lock = near.try_lock(Path::new(BOX), Access::Write).unwrap();
    for _ in 0..20 {
        env.clock.advance(Duration::from_secs(40));
        lock.file().read_at(&mut [0; 4], 0).unwrap();
        assert!(!is_free(&far, Access::Write));
        env.clock.advance(Duration::from_secs(40));
        lock.keep().unwrap();
        assert!(!is_free(&far, Access::Write));
    }
    // One that is suspended for too long finds out before it does anything, and harms nobody.
    env.clock.advance(Duration::from_secs(120));
    let stolen = far.try_lock(Path::new(BOX), Access::Write).unwrap();
    assert_eq!(lock.file().write_at(b"late", 0).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(lock.keep().unwrap_err().kind(), ErrorKind::InUse);
    assert_eq!(env.disk.read(Path::new(BOX)).unwrap(), b"mail");
    let file = Arc::clone(lock.file());
    lock.release().unwrap();
    assert!(env.disk.exists(Path::new(LOCK)).unwrap(), "the other's lock stays");
    stolen.file().write_at(b"M", 0).unwrap();
    assert!(file.len().is_ok());
}

/// Another process tries at every change of names that taking a stale lock away makes: never do both have it.
#[test]
fn two_who_take_a_stale_lock_away_do_not_both_get_it() {
    let mut both_tried = 0;
    for nth in 1..20 {
        let env = machine();
        put(&env, LOCK, b"17:elsewhere");
        env.clock.advance(Duration::from_secs(500));
        let other = Arc::new(locker(&env.as_process(2000), &[Method::Dotlock]));
        let (count, got) = (AtomicU64::new(0), Arc::new(Mutex::new(None)));
        let of_listener = Arc::clone(&got);
        let listener = move || {
            if count.fetch_add(1, Ordering::Relaxed) + 1 == nth {
                *of_listener.lock().unwrap() = Some(other.try_lock(Path::new(BOX), Access::Write));
            }
        };
        let watch = env.env().watch.watch(Path::new("/mail"), Arc::new(listener)).unwrap();
        let first = locker(&env, &[Method::Dotlock]).try_lock(Path::new(BOX), Access::Write);
        drop(watch);
        let second = got.lock().unwrap().take();
        let Some(second) = second else { continue };
        both_tried += 1;
        assert!(!(first.is_ok() && second.is_ok()), "both have it: change {nth}");
        assert!(first.is_ok() || second.is_ok() || is_free(&locker(&env, &[Method::Dotlock]), Access::Write));
        drop((first, second));
        assert_eq!(names(&env), ["box"], "change {nth}");
    }
    assert!(both_tried >= 5, "{both_tried}");
}

/// Others replace the file while it is being locked: what is locked is what the path leads to then.
#[test]
fn a_file_that_is_replaced_is_opened_again() {
    let env = machine();
    put(&env, "/new", b"the new file");
    let (disk, done) = (env.disk.clone(), AtomicU64::new(0));
    let listener = move || {
        if done.fetch_add(1, Ordering::Relaxed) == 1 {
            disk.rename(Path::new("/new"), Path::new(BOX)).unwrap();
        }
    };
    let _watch = env.env().watch.watch(Path::new("/mail"), Arc::new(listener)).unwrap();
    let lock = locker(&env, &[Method::Dotlock, Method::Fcntl]).try_lock(Path::new(BOX), Access::Write).unwrap();
    assert_eq!(lock.file().len().unwrap(), 12);
}

/// After a power cut at any operation the file can be locked again, at once where the process is known to be gone.
#[test]
fn a_power_cut_leaves_nothing_that_keeps_us_out() {
    for (seed, nth) in (0..200).map(|seed| (seed, seed % 10 + 1)) {
        let env = SimEnv::new(seed);
        env.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
        put(&env, BOX, b"mail");
        env.disk.open(Path::new(BOX), OpenMode::ReadWrite).unwrap().sync_data().unwrap();
        env.disk.sync_dir(Path::new("/mail")).unwrap();
        env.disk.crash_at(nth);
        if let Ok(lock) = locker(&env, &[Method::Fcntl, Method::Dotlock]).try_lock(Path::new(BOX), Access::Write) {
            env.clock.advance(Duration::from_secs(60));
            let _off = lock.keep();
        }
        env.disk.restart();
        env.host.end(1000);
        let after = locker(&env.as_process(1001), &[Method::Fcntl, Method::Dotlock]);
        if !is_free(&after, Access::Write) {
            // The lock's name survived and its contents did not.
            env.clock.advance(Duration::from_secs(120));
            assert!(is_free(&after, Access::Write), "seed {seed}");
        }
    }
}
