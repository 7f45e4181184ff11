//! What every disk promises, asked of the real one (in a temporary directory) and of the simulated one alike.
//!
//! Durability itself cannot be seen without cutting the power: `tests/crash.rs` does that on the simulated disk.

#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mailyard_platform::real::RealWatch;
use mailyard_platform::{
    Disk, Env, File, Host, LockMode, LockTable, NameChange, NameNews, OpenMode, Prng, Timestamp, Watch, WatchGuard,
    sim::Denial, sim::SimEnv,
};

/// Runs one check on both disks, each time in an empty directory.
macro_rules! contract {
    ($($(#[$doc:meta])* fn $name:ident($disk:ident, $dir:ident) $body:block)*) => {
        $(mod $name {
            use super::*;

            $(#[$doc])*
            fn check($disk: &dyn Disk, $dir: &Path) $body

            #[test]
            fn real() {
                let dir = tempfile::tempdir().unwrap();
                check(&*Env::real().disk, dir.path());
            }

            #[test]
            fn simulated() {
                let disk = SimEnv::new(1).env().disk;
                disk.create_dir_all(Path::new("/account")).unwrap();
                check(&*disk, Path::new("/account"));
            }
        })*
    };
}

fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.open(path, OpenMode::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

fn names(disk: &dyn Disk, dir: &Path) -> Vec<(String, bool)> {
    let entries = disk.list(dir).unwrap().into_iter();
    entries.map(|entry| (entry.name.into_string().unwrap(), entry.is_dir)).collect()
}

fn kind<T>(result: std::io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|e| e.kind())
}

contract! {
    fn what_may_be_written(disk, dir) {
        disk.check_writable(dir).unwrap();
        assert_eq!(kind(disk.check_writable(&dir.join("a"))), Some(ErrorKind::NotFound));
        put(disk, &dir.join("a"), b"x");
        disk.check_writable(&dir.join("a")).unwrap();
    }

    fn open_modes(disk, dir) {
        let path = dir.join("a");
        assert_eq!(kind(disk.open(&path, OpenMode::Read)), Some(ErrorKind::NotFound));
        assert_eq!(kind(disk.open(&path, OpenMode::ReadWrite)), Some(ErrorKind::NotFound));
        assert_eq!(kind(disk.open(&dir.join("no/a"), OpenMode::Create)), Some(ErrorKind::NotFound));
        disk.open(&path, OpenMode::CreateNew).unwrap().write_at(b"kept", 0).unwrap();
        assert_eq!(kind(disk.open(&path, OpenMode::CreateNew)), Some(ErrorKind::AlreadyExists));
        for mode in [OpenMode::Read, OpenMode::ReadWrite, OpenMode::Create] {
            assert_eq!(disk.open(&path, mode).unwrap().len().unwrap(), 4, "{mode:?} must not truncate");
        }
        assert_eq!(kind(disk.open(&path.join("b"), OpenMode::Create)), Some(ErrorKind::NotADirectory));
        assert_eq!(kind(disk.open(dir, OpenMode::ReadWrite)), Some(ErrorKind::IsADirectory));
        let reader = disk.open(&path, OpenMode::Read).unwrap();
        assert!(reader.write_at(b"x", 0).is_err());
        assert!(reader.set_len(0).is_err());
        assert_eq!(disk.read(&path).unwrap(), b"kept");
    }

    fn reads_and_writes(disk, dir) {
        let file = put(disk, &dir.join("a"), b"0123456789");
        let mut buf = [0; 4];
        assert_eq!(file.read_at(&mut buf, 3).unwrap(), 4);
        assert_eq!(&buf, b"3456");
        assert_eq!(file.read_at(&mut buf, 8).unwrap(), 2, "short at the end");
        assert_eq!(file.read_at(&mut buf, 10).unwrap(), 0);
        assert_eq!(file.read_at(&mut buf, 1 << 40).unwrap(), 0);
        assert_eq!(kind(file.read_exact_at(&mut buf, 8)), Some(ErrorKind::UnexpectedEof));
        file.read_exact_at(&mut buf, 6).unwrap();
        let mut once = buf;
        file.read_exact_once_at(&mut once, 6).unwrap();
        assert_eq!(once, buf);
        assert_eq!(kind(file.read_exact_once_at(&mut once, 8)), Some(ErrorKind::UnexpectedEof));
        assert_eq!(&buf, b"6789");
        file.write_at(b"ab", 4).unwrap();
        file.write_at(b"", 100).unwrap();
        assert_eq!(disk.read(&dir.join("a")).unwrap(), b"0123ab6789");
        file.write_at(b"z", 13).unwrap();
        assert_eq!(disk.read(&dir.join("a")).unwrap(), b"0123ab6789\0\0\0z", "a gap reads as zeros");
    }

    fn modification_times(disk, dir) {
        let file = put(disk, &dir.join("a"), b"one");
        for seconds in [1_000_000_000, 0, -86_400] {
            let when = Timestamp { seconds, nanoseconds: 500_000_000 };
            file.set_modified(when).unwrap();
            assert_eq!(disk.metadata(&dir.join("a")).unwrap().modified, when);
        }
        file.write_at(b"two", 0).unwrap();
        assert!(disk.metadata(&dir.join("a")).unwrap().modified.seconds > 0, "a write says now");
    }

    fn handles_share_a_file(disk, dir) {
        let a = put(disk, &dir.join("a"), b"one");
        let b = disk.open(&dir.join("a"), OpenMode::ReadWrite).unwrap();
        b.write_at(b"two", 0).unwrap();
        let mut buf = [0; 3];
        a.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"two");
        disk.rename(&dir.join("a"), &dir.join("b")).unwrap();
        a.write_at(b"six", 0).unwrap();
        assert_eq!(disk.read(&dir.join("b")).unwrap(), b"six", "a handle follows the file, not the name");
        disk.remove(&dir.join("b")).unwrap();
        b.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"six", "and keeps it alive");
    }

    fn vectored_writes(disk, dir) {
        let file = put(disk, &dir.join("a"), b"..");
        file.write_vectored_at(&[], 0).unwrap();
        file.write_vectored_at(&[IoSlice::new(b"")], 7).unwrap();
        let parts = [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde"), IoSlice::new(b"")];
        file.write_vectored_at(&parts, 1).unwrap();
        assert_eq!(disk.read(&dir.join("a")).unwrap(), b".abcde");
        // More than one system call takes (IOV_MAX is 1024), empty buffers among them.
        let pieces: Vec<Vec<u8>> = (0..3000usize).map(|i| vec![i as u8; i % 7]).collect();
        let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        file.write_vectored_at(&slices, 5).unwrap();
        assert_eq!(&disk.read(&dir.join("a")).unwrap()[5..], pieces.concat());
    }

    fn batches(disk, dir) {
        disk.create_dir_all(&dir.join("x/y")).unwrap();
        let batch = disk.batch(&dir.join("x"));
        let Ok(batch) = batch else {
            // Where the tests run on a file system that does not promise it.
            assert_eq!(kind(batch), Some(ErrorKind::Unsupported));
            return;
        };
        put(disk, &dir.join("a"), b"one");
        put(disk, &dir.join("x/y/b"), b"two");
        batch.sync().unwrap();
        batch.sync().unwrap();
        assert_eq!(disk.read(&dir.join("x/y/b")).unwrap(), b"two");
        assert_eq!(kind(disk.batch(&dir.join("none"))), Some(ErrorKind::NotFound));
    }

    fn lengths(disk, dir) {
        let path = dir.join("a");
        let file = put(disk, &path, b"0123456789");
        file.set_len(4).unwrap();
        assert_eq!(disk.read(&path).unwrap(), b"0123");
        file.set_len(6).unwrap();
        assert_eq!(disk.read(&path).unwrap(), b"0123\0\0", "what was cut off does not come back");
        assert_eq!(file.len().unwrap(), 6);
        assert_eq!(disk.metadata(&path).unwrap().len, 6);
        assert!(file.set_len(u64::MAX).is_err());
    }

    fn allocation_and_holes(disk, dir) {
        let path = dir.join("a");
        let file = put(disk, &path, &[7; 20_000]);
        file.allocate(0, 0).unwrap();
        file.punch_hole(0, 0).unwrap();
        file.allocate(0, 10_000).unwrap();
        assert_eq!(disk.read(&path).unwrap(), [7; 20_000], "what was there stays");
        match file.allocate(10_000, 30_000) {
            Err(e) if e.kind() == ErrorKind::Unsupported => {}
            result => {
                result.unwrap();
                assert_eq!(file.len().unwrap(), 40_000);
                assert_eq!(disk.read(&path).unwrap()[20_000..], [0; 20_000]);
                assert!(disk.metadata(&path).unwrap().allocated_bytes >= 40_000);
            }
        }
        file.sync_data().unwrap();
        let before = disk.metadata(&path).unwrap();
        match file.punch_hole(1000, 16_000) {
            Err(e) if e.kind() == ErrorKind::Unsupported => {}
            result => {
                result.unwrap();
                let bytes = disk.read(&path).unwrap();
                assert_eq!(bytes.len() as u64, before.len, "a hole changes no length");
                assert_eq!(bytes[..1000], [7; 1000]);
                assert_eq!(bytes[1000..17_000], [0; 16_000]);
                assert_eq!(bytes[17_000..20_000], [7; 3000]);
                file.sync_data().unwrap();
                assert!(disk.metadata(&path).unwrap().allocated_bytes + 8192 <= before.allocated_bytes);
                file.punch_hole(0, 1 << 20).unwrap();
                assert_eq!(file.len().unwrap(), before.len, "not even behind the end");
            }
        }
    }

    fn zeros(disk, dir) {
        let path = dir.join("a");
        let file = put(disk, &path, b"0123456789");
        file.write_zeros(4, 0).unwrap();
        file.write_zeros(4, 3).unwrap();
        assert_eq!(disk.read(&path).unwrap(), b"0123\0\0\x00789");
        file.write_zeros(8, 150_000).unwrap();
        let bytes = disk.read(&path).unwrap();
        assert_eq!(&bytes[..8], b"0123\0\0\x007");
        assert_eq!(bytes[8..], [0; 150_000]);
        file.sync_all().unwrap();
        assert!(disk.metadata(&path).unwrap().allocated_bytes >= 150_000, "zeros are written, not skipped");
    }

    fn directories(disk, dir) {
        disk.create_dir_all(&dir.join("x/y")).unwrap();
        disk.create_dir_all(&dir.join("x/y")).unwrap();
        disk.create_dir_all_durable(&dir.join("x/y/z/w")).unwrap();
        disk.create_dir_all_durable(&dir.join("x")).unwrap();
        put(disk, &dir.join("x/file"), b"1");
        assert_eq!(names(disk, &dir.join("x")), [("file".to_owned(), false), ("y".to_owned(), true)]);
        assert_eq!(names(disk, &dir.join("x/y/z")), [("w".to_owned(), true)]);
        assert!(disk.metadata(&dir.join("x")).unwrap().is_dir);
        assert!(!disk.metadata(&dir.join("x/file")).unwrap().is_dir);
        assert_eq!(kind(disk.create_dir_all(&dir.join("x/file"))), Some(ErrorKind::AlreadyExists));
        assert_eq!(kind(disk.list(&dir.join("none"))), Some(ErrorKind::NotFound));
        assert_eq!(kind(disk.list(&dir.join("x/file"))), Some(ErrorKind::NotADirectory));
        assert_eq!(kind(disk.sync_dir(&dir.join("none"))), Some(ErrorKind::NotFound));
        assert_eq!(kind(disk.remove_dir(&dir.join("x"))), Some(ErrorKind::DirectoryNotEmpty));
        assert_eq!(kind(disk.remove_dir(&dir.join("x/file"))), Some(ErrorKind::NotADirectory));
        assert!(disk.remove(&dir.join("x/y")).is_err(), "remove is for files");
        disk.remove_dir(&dir.join("x/y/z/w")).unwrap();
        assert_eq!(names(disk, &dir.join("x/y/z")), []);
        disk.sync_dir(&dir.join("x/y/z")).unwrap();
    }

    fn listing_is_in_byte_order(disk, dir) {
        for name in ["b", "a", "B", "10", "9"] {
            put(disk, &dir.join(name), b"");
        }
        let listed: Vec<String> = names(disk, dir).into_iter().map(|(name, _)| name).collect();
        assert_eq!(listed, ["10", "9", "B", "a", "b"]);
    }

    fn renames(disk, dir) {
        let at = |name: &str| dir.join(name);
        put(disk, &at("a"), b"new");
        put(disk, &at("b"), b"old");
        let old = disk.open(&at("b"), OpenMode::Read).unwrap();
        disk.rename(&at("a"), &at("b")).unwrap();
        assert!(!disk.exists(&at("a")).unwrap());
        assert_eq!(disk.read(&at("b")).unwrap(), b"new");
        let mut buf = [0; 3];
        old.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"old", "a handle of the replaced file still reads it");
        disk.rename(&at("b"), &at("b")).unwrap();
        assert_eq!(kind(disk.rename(&at("a"), &at("b"))), Some(ErrorKind::NotFound));
        disk.create_dir_all(&at("d/e")).unwrap();
        put(disk, &at("d/e/f"), b"deep");
        assert_eq!(kind(disk.rename(&at("b"), &at("d"))), Some(ErrorKind::IsADirectory));
        assert_eq!(kind(disk.rename(&at("d"), &at("b"))), Some(ErrorKind::NotADirectory));
        assert!(disk.rename(&at("d"), &at("d/e/g")).is_err(), "not into itself");
        disk.create_dir_all(&at("full/x")).unwrap();
        assert_eq!(kind(disk.rename(&at("d"), &at("full"))), Some(ErrorKind::DirectoryNotEmpty));
        disk.rename(&at("d"), &at("full/x")).unwrap();
        assert_eq!(disk.read(&at("full/x/e/f")).unwrap(), b"deep", "over an empty directory it goes, with all in it");
        assert!(!disk.exists(&at("d")).unwrap());
    }

    fn links(disk, dir) {
        put(disk, &dir.join("a"), b"1");
        disk.link(&dir.join("a"), &dir.join("b")).unwrap();
        assert_eq!(kind(disk.link(&dir.join("a"), &dir.join("b"))), Some(ErrorKind::AlreadyExists));
        assert_eq!(kind(disk.link(&dir.join("none"), &dir.join("c"))), Some(ErrorKind::NotFound));
        let inode = |name: &str| disk.metadata(&dir.join(name)).unwrap().inode;
        assert_eq!(inode("a"), inode("b"));
        disk.rename(&dir.join("a"), &dir.join("b")).unwrap();
        assert!(disk.exists(&dir.join("a")).unwrap(), "renaming one name of a file to another does nothing");
        disk.remove(&dir.join("a")).unwrap();
        assert_eq!(disk.read(&dir.join("b")).unwrap(), b"1");
        put(disk, &dir.join("c"), b"");
        assert_ne!(inode("b"), inode("c"));
    }

    fn absence(disk, dir) {
        let none = dir.join("none");
        assert!(!disk.exists(&none).unwrap());
        assert_eq!(kind(disk.metadata(&none)), Some(ErrorKind::NotFound));
        assert_eq!(kind(disk.remove(&none)), Some(ErrorKind::NotFound));
        assert_eq!(kind(disk.remove_dir(&none)), Some(ErrorKind::NotFound));
        assert_eq!(kind(disk.map(&none)), Some(ErrorKind::NotFound));
        assert_eq!(kind(disk.read(&none)), Some(ErrorKind::NotFound));
    }

    fn locks(disk, dir) {
        let path = dir.join("lock");
        let guard = disk.lock(&path).unwrap();
        assert!(disk.exists(&path).unwrap());
        assert_eq!(kind(disk.lock(&path)), Some(ErrorKind::WouldBlock));
        let _other = disk.lock(&dir.join("other")).unwrap();
        drop(guard);
        let again = disk.lock(&path).unwrap();
        assert_eq!(kind(disk.lock(&path)), Some(ErrorKind::WouldBlock));
        // The lock is on the file: a new file under the name is free, and the old guard does no harm to its lock.
        disk.remove(&path).unwrap();
        let new = disk.lock(&path).unwrap();
        drop(again);
        assert_eq!(kind(disk.lock(&path)), Some(ErrorKind::WouldBlock));
        drop(new);
        disk.lock(&path).unwrap();
    }

    fn locks_on_handles(disk, dir) {
        let path = dir.join("a");
        put(disk, &path, b"1");
        let handles: Vec<_> = (0..3).map(|_| disk.open(&path, OpenMode::ReadWrite).unwrap()).collect();
        let [a, b, c] = &handles[..] else { unreachable!() };
        for table in [LockTable::Fcntl, LockTable::Flock] {
            let first = a.try_lock(table, LockMode::Shared).unwrap();
            let second = b.try_lock(table, LockMode::Shared).unwrap();
            assert_eq!(kind(a.try_lock(table, LockMode::Shared)), Some(ErrorKind::WouldBlock), "one guard a handle");
            assert_eq!(kind(a.try_lock(table, LockMode::Exclusive)), Some(ErrorKind::WouldBlock), "it is no upgrade");
            assert_eq!(kind(c.try_lock(table, LockMode::Exclusive)), Some(ErrorKind::WouldBlock));
            drop(first);
            assert_eq!(kind(c.try_lock(table, LockMode::Exclusive)), Some(ErrorKind::WouldBlock));
            drop(second);
            let only = c.try_lock(table, LockMode::Exclusive).unwrap();
            drop(disk.open(&path, OpenMode::ReadWrite).unwrap()); // closing another handle loses nothing
            for mode in [LockMode::Shared, LockMode::Exclusive] {
                assert_eq!(kind(a.try_lock(table, mode)), Some(ErrorKind::WouldBlock));
            }
            drop(only);
            a.try_lock(table, LockMode::Exclusive).unwrap();
        }
        let _fcntl = a.try_lock(LockTable::Fcntl, LockMode::Exclusive).unwrap();
        let flock = b.try_lock(LockTable::Flock, LockMode::Exclusive).unwrap();
        assert_eq!(kind(disk.lock(&path)), Some(ErrorKind::WouldBlock), "it is of the second table");
        drop(flock);
        let whole = disk.lock(&path).unwrap();
        assert_eq!(kind(b.try_lock(LockTable::Flock, LockMode::Shared)), Some(ErrorKind::WouldBlock));
        drop(whole);
        let reader = disk.open(&path, OpenMode::Read).unwrap();
        assert!(reader.try_lock(LockTable::Fcntl, LockMode::Exclusive).is_err());
        drop(handles);
        assert_eq!(kind(reader.try_lock(LockTable::Fcntl, LockMode::Shared)), Some(ErrorKind::WouldBlock), "a guard outlives its handle");
    }

    fn what_names_a_file(disk, dir) {
        let path = dir.join("a");
        let file = put(disk, &path, b"123");
        let before = file.metadata().unwrap();
        assert_eq!(before, disk.metadata(&path).unwrap());
        assert_eq!((before.len, before.links), (3, 1));
        disk.link(&path, &dir.join("b")).unwrap();
        assert_eq!(file.metadata().unwrap().links, 2);
        disk.remove(&path).unwrap();
        put(disk, &path, b"another");
        let after = file.metadata().unwrap();
        assert_eq!((after.len, after.links), (3, 1));
        assert!(after.is_same_file(&before) && after.changed >= before.changed);
        assert!(!after.is_same_file(&disk.metadata(&path).unwrap()));
        disk.rename(&path, &dir.join("b")).unwrap();
        assert_eq!(file.metadata().unwrap().links, 0);
        assert_eq!(disk.metadata(dir).unwrap().device, before.device);
        file.set_modified(Timestamp::from_seconds(5)).unwrap();
        assert!(file.metadata().unwrap().changed >= before.changed, "nobody can set it");
    }

    fn maps(disk, dir) {
        let path = dir.join("a");
        put(disk, &path, b"");
        assert_eq!(&*disk.map(&path).unwrap(), b"");
        put(disk, &path, &[5; 10_000]);
        let map = disk.map(&path).unwrap();
        let clone = map.clone();
        drop(map);
        put(disk, &dir.join("b"), b"other");
        disk.rename(&dir.join("b"), &path).unwrap();
        assert_eq!(clone.as_ref(), [5; 10_000], "a map outlives the name");
        assert_eq!(&*disk.map(&path).unwrap(), b"other");
    }

    fn replacing_a_file(disk, dir) {
        let (path, temporary) = (dir.join("a"), dir.join("a.new"));
        put(disk, &temporary, b"left over from a crash, and longer");
        for bytes in [&b"first"[..], b"", b"second"] {
            disk.replace_file(&path, &temporary, bytes).unwrap();
            assert_eq!(disk.read(&path).unwrap(), bytes);
            assert!(!disk.exists(&temporary).unwrap());
        }
    }

    fn appended(disk, dir) {
        let path = dir.join("a");
        assert_eq!(disk.append(&path, b"1").unwrap_err().kind(), ErrorKind::NotFound);
        put(disk, &path, b"1");
        disk.append(&path, b"23").unwrap();
        disk.append(&path, b"4").unwrap();
        assert_eq!(disk.read(&path).unwrap(), b"1234");
    }

    fn times(disk, dir) {
        let path = dir.join("a");
        let file = put(disk, &path, b"1");
        let before = disk.metadata(&path).unwrap().modified;
        file.write_at(b"2", 0).unwrap();
        let after = disk.metadata(&path).unwrap().modified;
        assert!(after >= before);
        assert!(before.seconds >= 1_000_000_000 && before.nanoseconds < 1_000_000_000);
        assert!(disk.metadata(dir).unwrap().modified.seconds >= 1_000_000_000);
    }
}

/// Watches a path; each call is an item of the receiver.
fn watch(watch: &dyn Watch, path: &Path) -> (WatchGuard, Receiver<()>) {
    let (sender, receiver) = channel();
    let guard = watch.watch(path, Arc::new(move || sender.send(()).unwrap_or_default())).unwrap();
    (guard, receiver)
}

/// Something was told; whatever else is there is taken too, as one change may be several events.
fn is_told(receiver: &Receiver<()>) -> bool {
    let told = receiver.recv_timeout(Duration::from_secs(20)).is_ok();
    while receiver.try_recv().is_ok() {}
    told
}

/// What every watch promises. Where a name changes twice in one step, a watch that looks now and then sees it all the same.
fn check_watch(disk: &dyn Disk, watcher: &dyn Watch, dir: &Path) {
    let path = dir.join("inbox");
    let (_of_file, file_news) = watch(watcher, &path);
    let (_of_dir, dir_news) = watch(watcher, dir);
    put(disk, &path, b"");
    assert!(is_told(&file_news), "created");
    assert!(is_told(&dir_news), "a new name");
    disk.open(&path, OpenMode::ReadWrite).unwrap().write_at(b"mail", 0).unwrap();
    assert!(is_told(&file_news), "written");
    disk.open(&path, OpenMode::ReadWrite).unwrap().set_len(1).unwrap();
    assert!(is_told(&file_news), "cut");
    put(disk, &dir.join("new"), b"all new");
    assert!(is_told(&dir_news));
    disk.rename(&dir.join("new"), &path).unwrap();
    assert!(is_told(&file_news), "replaced");
    disk.open(&path, OpenMode::ReadWrite).unwrap().write_at(b"more mail", 0).unwrap();
    assert!(is_told(&file_news), "the new file is written");
    disk.remove(&path).unwrap();
    assert!(is_told(&file_news), "removed");
    assert!(is_told(&dir_news));
    let missing = dir.join("later/box");
    let (of_missing, missing_news) = watch(watcher, &missing);
    disk.create_dir_all(&dir.join("later")).unwrap();
    put(disk, &missing, b"1");
    assert!(is_told(&missing_news), "in a directory that was not there");
    drop(of_missing);
    let (_of_second, second_news) = watch(watcher, &dir.join("second"));
    put(disk, &dir.join("second"), b"");
    assert!(is_told(&second_news));
    // A call that was under way is over now.
    while missing_news.try_recv().is_ok() {}
    put(disk, &missing, b"12");
    disk.remove(&dir.join("second")).unwrap();
    assert!(is_told(&second_news));
    assert!(missing_news.try_recv().is_err(), "its guard is gone");
}

#[test]
fn the_kernel_tells_of_changes() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    check_watch(&*env.disk, &*env.watch, dir.path());
}

#[test]
fn looking_finds_changes() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    check_watch(&*env.disk, &RealWatch::looking_every(Duration::from_millis(5)), dir.path());
}

#[test]
fn the_simulated_disk_tells_of_changes() {
    let env = SimEnv::new(1).env();
    env.disk.create_dir_all(Path::new("/mail")).unwrap();
    check_watch(&*env.disk, &*env.watch, Path::new("/mail"));
}

/// Every name that changed, in order, at the latest when [`Watch::settle`] returns.
fn check_names(disk: &dyn Disk, watcher: &dyn Watch, dir: &Path) {
    let (sender, receiver) = channel();
    let on_names = move |news: NameNews<'_>| {
        let NameNews::Name(name, change) = news else { panic!("nothing was lost") };
        sender.send((name.to_str().unwrap().to_owned(), change)).unwrap_or_default();
    };
    let guard = watcher.watch_names(dir, Arc::new(on_names)).unwrap();
    put(disk, &dir.join("a"), b"1");
    disk.rename(&dir.join("a"), &dir.join("b")).unwrap();
    disk.open(&dir.join("b"), OpenMode::ReadWrite).unwrap().write_at(b"written", 0).unwrap();
    disk.link(&dir.join("b"), &dir.join("c")).unwrap();
    disk.remove(&dir.join("b")).unwrap();
    watcher.settle();
    let told: Vec<_> = receiver.try_iter().collect();
    let told: Vec<_> = told.iter().map(|(name, change)| (name.as_str(), *change)).collect();
    let (came, left, removed) = (NameChange::Came, NameChange::Left, NameChange::Removed);
    assert_eq!(told, [("a", came), ("a", left), ("b", came), ("c", came), ("b", removed)]);
    drop(guard);
    put(disk, &dir.join("d"), b"1");
    watcher.settle();
    assert_eq!(receiver.try_iter().count(), 0);
}

#[test]
fn names_are_told() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    check_names(&*env.disk, &*env.watch, dir.path());
    let env = SimEnv::new(1).env();
    env.disk.create_dir_all(Path::new("/mail")).unwrap();
    check_names(&*env.disk, &*env.watch, Path::new("/mail"));
}

/// Where the system does not tell of names, that is said at once, and later that something may have changed.
#[test]
fn names_that_nobody_tells() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    let watcher = RealWatch::looking_every(Duration::from_millis(5));
    let (sender, receiver) = channel();
    let on_names = move |news: NameNews<'_>| {
        sender.send(news == NameNews::Any).unwrap_or_default();
    };
    let _guard = watcher.watch_names(dir.path(), Arc::new(on_names)).unwrap();
    assert!(!receiver.recv().unwrap());
    put(&*env.disk, &dir.path().join("a"), b"1");
    assert!(receiver.recv_timeout(Duration::from_secs(20)).unwrap());
}

/// A watched directory that moves away or goes is looked for from then on.
#[test]
fn a_directory_that_was_replaced_is_found_again() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    let (mail, away) = (dir.path().join("mail"), dir.path().join("away"));
    for _ in 0..2 {
        env.disk.create_dir_all(&mail).unwrap();
        let (_guard, news) = watch(&*env.watch, &mail.join("a"));
        env.disk.rename(&mail, &away).unwrap();
        assert!(is_told(&news));
        env.disk.create_dir_all(&mail).unwrap();
        put(&*env.disk, &mail.join("a"), b"1");
        assert!(is_told(&news));
        std::fs::remove_dir_all(&mail).unwrap();
        std::fs::remove_dir_all(&away).unwrap();
    }
}

/// A listener may use the disk and end its own watch.
#[test]
fn listeners_are_called_without_locks() {
    let env = SimEnv::new(1).env();
    let held: Arc<std::sync::Mutex<Option<WatchGuard>>> = Arc::default();
    let (inner, disk) = (Arc::clone(&held), Arc::clone(&env.disk));
    let listener = move || {
        assert!(disk.exists(Path::new("/a")).unwrap());
        drop(inner.lock().unwrap().take());
    };
    let guard = env.watch.watch(Path::new("/a"), Arc::new(listener)).unwrap();
    *held.lock().unwrap() = Some(guard);
    put(&*env.disk, Path::new("/a"), b"1");
    assert!(held.lock().unwrap().is_none());
}

#[test]
fn processes_run_or_do_not() {
    let host = Env::real().host;
    assert!(!host.name().is_empty());
    assert_eq!(host.process(), std::process::id());
    let (now, own) = (Env::real().clock.now(), host.running_since(host.process()).unwrap());
    assert!(own <= now && now <= own.saturating_add(Duration::from_secs(86_400)), "{own:?} {now:?}");
    assert!(host.running_since(1).unwrap() <= own);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    assert!([child.id(), 0, u32::MAX].iter().all(|process| host.running_since(*process).is_none()));
    let simulated = SimEnv::new(1);
    let other = simulated.as_process(7).env().host;
    assert!(other.process() == 7 && simulated.env().host.running_since(7).is_some());
    simulated.host.start(8, Timestamp::from_seconds(5));
    assert_eq!(other.running_since(8), Some(Timestamp::from_seconds(5)));
    simulated.host.end(7);
    assert_eq!(other.running_since(7), None);
    assert_eq!(simulated.host.on_machine("far").running_since(8), None);
}

/// What one random operation gives: its result, or the kind of its error.
fn random_operation(disk: &dyn Disk, dir: &Path, prng: &mut Prng) -> Result<Vec<u8>, ErrorKind> {
    let mut path = || dir.join(prng.pick(&["a", "b", "c", "d", "d/a", "d/b", "e/a", "e/d", "e", "a/b"]).unwrap());
    let (path, other) = (path(), path());
    let (at, len) = (prng.below(20_000), prng.below(9000));
    let open = |mode| disk.open(&path, mode);
    let none = |()| Vec::new();
    let result = match prng.below(15) {
        0 => disk.create_dir_all(&path).map(none),
        1 | 2 => disk.rename(&path, &other).map(none),
        3 => disk.remove(&path).map(none),
        4 => disk.remove_dir(&path).map(none),
        5 => disk.link(&path, &other).map(none),
        6 => disk.list(&path).map(|entries| format!("{entries:?}").into_bytes()),
        7 => disk.metadata(&path).map(|of| vec![u8::from(of.is_dir)]),
        8 => open(OpenMode::ReadWrite).and_then(|file| file.set_len(at)).map(none),
        9 => open(OpenMode::ReadWrite).and_then(|file| file.punch_hole(at, len)).map(none),
        10 => open(OpenMode::ReadWrite).and_then(|file| file.allocate(at, len)).map(none),
        11 => open(OpenMode::ReadWrite).and_then(|file| file.write_zeros(at, len)).map(none),
        12 => open(OpenMode::CreateNew).map(|_| Vec::new()),
        _ => open(OpenMode::Create).and_then(|file| file.write_at(&vec![len as u8; len as usize], at)).map(none),
    };
    result.map_err(|e| e.kind())
}

/// Every file below a directory with its bytes, every directory with its names.
fn everything(disk: &dyn Disk, dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            found.extend(everything(disk, &path));
            found.push((PathBuf::from(entry.name), Vec::new()));
        } else {
            found.push((PathBuf::from(entry.name), disk.read(&path).unwrap()));
        }
    }
    found
}

/// The same random operations on both disks give the same results, error kinds included.
#[test]
fn the_simulation_does_what_the_system_does() {
    let real = Env::real().disk;
    for seed in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        let simulated = SimEnv::new(seed).env().disk;
        let mut prng = Prng::new(seed);
        for step in 0..150 {
            let mut same = prng.clone();
            let expected = random_operation(&*real, dir.path(), &mut prng);
            let got = random_operation(&*simulated, Path::new("/"), &mut same);
            assert_eq!(got, expected, "seed {seed}, step {step}");
        }
        assert_eq!(everything(&*simulated, Path::new("/")), everything(&*real, dir.path()), "seed {seed}");
    }
}

/// The lock holds between processes, and the death of one frees it.
#[test]
fn the_lock_is_between_processes() {
    const CHILD: &str = "MAILYARD_LOCK_TEST";
    let disk = Env::real().disk;
    if let Some(path) = std::env::var_os(CHILD) {
        let _guard = disk.lock(&PathBuf::from(path)).unwrap();
        println!("locked");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        unreachable!("the parent kills this process");
    }

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_lock_is_between_processes", "--nocapture"])
        .env(CHILD, &path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    assert!(std::io::BufRead::lines(output).any(|line| line.unwrap().ends_with("locked")), "the child got it");
    assert_eq!(kind(disk.lock(&path)), Some(ErrorKind::WouldBlock));
    child.kill().unwrap();
    child.wait().unwrap();
    disk.lock(&path).unwrap();
}

/// Refusals of the simulated disk: tests run as root, whom a real file system refuses next to nothing.
#[test]
fn denials() {
    let sim = SimEnv::new(1);
    let disk = sim.env().disk;
    let (dir, a, b) = (Path::new("/d"), Path::new("/d/a"), Path::new("/d/b"));
    disk.create_dir_all(dir).unwrap();
    put(&*disk, a, b"x");
    let denied = Some(ErrorKind::PermissionDenied);
    sim.disk.deny(a, Denial::Opening);
    assert_eq!((kind(disk.open(a, OpenMode::Read)), disk.exists(a).unwrap()), (denied, true));
    sim.disk.allow_all();
    sim.disk.deny(dir, Denial::Names);
    let changes = |refused: Option<ErrorKind>| {
        assert_eq!(kind(disk.open(b, OpenMode::Create)), refused);
        assert_eq!(kind(disk.rename(a, Path::new("/c"))), refused);
        assert_eq!(kind(disk.link(a, b)), refused);
        assert_eq!(kind(disk.remove(a)), refused);
        assert_eq!(kind(disk.create_dir_all(b)), refused);
        assert_eq!(kind(disk.check_writable(dir)), refused);
    };
    changes(denied);
    disk.open(a, OpenMode::Create).unwrap();
    disk.check_writable(a).unwrap();
    sim.disk.allow_all();
    sim.disk.deny(dir, Denial::Writing);
    changes(Some(ErrorKind::ReadOnlyFilesystem));
    assert_eq!(kind(disk.open(a, OpenMode::ReadWrite)), Some(ErrorKind::ReadOnlyFilesystem));
    disk.open(a, OpenMode::Read).unwrap();
}
