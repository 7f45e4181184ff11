//! What the simulated disk does when the power goes, writes and syncs fail, or it is full: the model in the header of
//! `sim`, statement by statement. Each test runs over many seeds and also checks that the shapes it allows turn up.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mailyard_platform::sim::{Effect, Operation, RandomFaults, SimDisk, SimEnv};
use mailyard_platform::{Clock, Disk, File, OpenMode, Prng, Random};

const SECTOR: usize = 512;
const LOG: &str = "/log";

/// A disk with a synced file of these bytes.
fn disk_with(seed: u64, bytes: &[u8]) -> (SimDisk, Arc<dyn File>) {
    let disk = SimDisk::new(seed);
    let file = disk.open(Path::new(LOG), OpenMode::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    (disk, file)
}

fn log(disk: &SimDisk) -> Vec<u8> {
    disk.read(Path::new(LOG)).unwrap()
}

fn exists(disk: &SimDisk, path: &str) -> bool {
    disk.exists(Path::new(path)).unwrap()
}

fn put(disk: &SimDisk, path: &str, bytes: &[u8]) {
    let file = disk.open(Path::new(path), OpenMode::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
}

/// The outcomes of a crash after the same operations, over many seeds.
fn outcomes<T: Eq + std::hash::Hash>(seeds: u64, history: impl Fn(u64) -> T) -> HashSet<T> {
    (0..seeds).map(history).collect()
}

#[test]
fn what_was_synced_survives_and_nothing_else_must() {
    let seen = outcomes(200, |seed| {
        let (disk, file) = disk_with(seed, b"durable");
        file.write_at(b"DURABLE, pending", 0).unwrap();
        disk.crash();
        log(&disk)
    });
    let zeros = [&b"durable"[..], &[0; 9]].concat();
    let allowed = HashSet::from([b"durable".to_vec(), b"DURABLE, pending".to_vec(), zeros]);
    assert_eq!(seen, allowed, "lost, kept, or only the length grown");
}

#[test]
fn the_sync_of_a_batch_keeps_bytes_and_names_of_all() {
    for seed in 0..100 {
        let (disk, file) = disk_with(seed, b"durable");
        let batch = disk.batch(Path::new("/")).unwrap();
        file.write_at(b"DURABLE", 0).unwrap();
        disk.create_dir_all(Path::new("/a/b")).unwrap();
        for path in ["/a/b/1", "/a/2"] {
            disk.open(Path::new(path), OpenMode::CreateNew).unwrap().write_at(b"new", 0).unwrap();
        }
        disk.rename(Path::new("/a/2"), Path::new("/a/b/2")).unwrap();
        batch.sync().unwrap();
        disk.crash();
        assert_eq!(log(&disk), b"DURABLE");
        for path in ["/a/b/1", "/a/b/2"] {
            assert_eq!(disk.read(Path::new(path)).unwrap(), b"new");
        }
        assert!(!exists(&disk, "/a/2"));
        assert!(batch.sync().is_err(), "it is from before the power cut");
    }
}

#[test]
fn the_sync_of_a_batch_that_fails_may_lose_anything() {
    let seen = outcomes(300, |seed| {
        let (disk, file) = disk_with(seed, b"durable");
        let batch = disk.batch(Path::new("/")).unwrap();
        file.write_at(b"DURABLE", 0).unwrap();
        put(&disk, "/new", b"");
        disk.schedule(Some(Operation::SyncAll), 1, Effect::Fail);
        assert!(batch.sync().is_err());
        batch.sync().unwrap();
        disk.crash();
        (log(&disk), exists(&disk, "/new"))
    });
    // The next one says nothing of the bytes that the first has lost; names stay in the journal.
    assert_eq!(seen, HashSet::from([(b"durable".to_vec(), true), (b"DURABLE".to_vec(), true)]));
    let dies = |seed| {
        let (disk, _file) = disk_with(seed, b"durable");
        let batch = disk.batch(Path::new("/")).unwrap();
        put(&disk, "/new", b"");
        disk.schedule(Some(Operation::SyncAll), 1, Effect::Crash);
        assert!(batch.sync().is_err() && disk.is_off());
        disk.restart();
        exists(&disk, "/new")
    };
    assert_eq!(outcomes(100, dies), HashSet::from([false, true]));
}

#[test]
fn torn_writes_have_every_shape() {
    let seen = outcomes(2000, |seed| {
        let (disk, file) = disk_with(seed, &[b'.'; 4 * SECTOR]);
        file.write_at(&[b'x'; 4 * SECTOR], 0).unwrap();
        disk.crash();
        let bytes = log(&disk);
        assert_eq!(bytes.len(), 4 * SECTOR);
        let shape: String = bytes.chunks(SECTOR).map(|sector| sector[0] as char).collect();
        let uniform = |sector: &[u8]| sector.iter().all(|byte| *byte == sector[0]);
        assert!(bytes.chunks(SECTOR).all(uniform), "no cut inside a sector");
        shape
    });
    assert_eq!(seen.len(), 16, "all subsets of four sectors: {seen:?}");
}

#[test]
fn sectors_are_those_of_the_file_not_of_the_write() {
    let seen = outcomes(300, |seed| {
        let (disk, file) = disk_with(seed, &[b'.'; 2 * SECTOR]);
        file.write_at(&[b'x'; 200], 412).unwrap();
        disk.crash();
        let bytes = log(&disk);
        assert!(bytes[..412].iter().chain(&bytes[612..]).all(|byte| *byte == b'.'));
        let whole = |part: &[u8]| part.iter().all(|byte| *byte == part[0]);
        assert!(whole(&bytes[412..512]) && whole(&bytes[512..612]));
        (bytes[412], bytes[512])
    });
    assert_eq!(seen.len(), 4);
}

#[test]
fn later_writes_may_survive_earlier_ones() {
    let seen = outcomes(300, |seed| {
        let (disk, file) = disk_with(seed, &[b'.'; 4 * SECTOR]);
        file.write_at(b"1", 0).unwrap();
        file.write_at(b"2", 3 * SECTOR as u64).unwrap();
        disk.crash();
        let bytes = log(&disk);
        (bytes[0], bytes[3 * SECTOR])
    });
    assert_eq!(seen, HashSet::from([(b'.', b'.'), (b'1', b'.'), (b'.', b'2'), (b'1', b'2')]));
}

#[test]
fn within_a_sector_a_later_write_carries_the_earlier_ones() {
    let seen = outcomes(300, |seed| {
        let (disk, file) = disk_with(seed, &[b'.'; SECTOR]);
        file.write_at(b"1", 0).unwrap();
        file.write_at(b"2", 1).unwrap();
        file.write_at(b"3", 0).unwrap();
        disk.crash();
        log(&disk)[..2].to_vec()
    });
    let versions = [b"..", b"1.", b"12", b"32"];
    assert_eq!(seen, versions.iter().map(|version| version.to_vec()).collect());
}

#[test]
fn a_write_behind_the_end_may_leave_a_longer_file_of_zeros() {
    let mut lengths = HashSet::new();
    let seen = outcomes(1000, |seed| {
        let (disk, file) = disk_with(seed, b"");
        file.write_at(&[b'x'; 3 * SECTOR], 0).unwrap();
        disk.crash();
        let bytes = log(&disk);
        assert!(bytes.iter().all(|byte| [0, b'x'].contains(byte)));
        bytes
    });
    lengths.extend(seen.iter().map(|bytes| bytes.len() / SECTOR));
    assert_eq!(lengths, HashSet::from([0, 1, 2, 3]));
    assert!(seen.contains([0; 3 * SECTOR].as_slice()));
}

#[test]
fn cuts_and_holes_are_pending_too() {
    let seen = outcomes(300, |seed| {
        let (disk, file) = disk_with(seed, b"0123456789");
        file.set_len(5).unwrap();
        file.punch_hole(0, 2).unwrap();
        disk.crash();
        log(&disk)
    });
    let expected = [&b"0123456789"[..], b"01234", b"\0\x00234"];
    assert_eq!(seen, expected.iter().map(|bytes| bytes.to_vec()).collect(), "a first few, in order");

    let (disk, file) = disk_with(1, b"0123456789");
    file.set_len(5).unwrap();
    file.set_len(8).unwrap();
    file.sync_all().unwrap();
    disk.crash();
    assert_eq!(log(&disk), b"01234\0\0\0");
}

#[test]
fn a_hole_may_be_there_in_part() {
    let seen = outcomes(500, |seed| {
        let (disk, file) = disk_with(seed, &[b'x'; 3 * SECTOR]);
        file.punch_hole(0, 3 * SECTOR as u64).unwrap();
        disk.crash();
        let bytes = log(&disk);
        assert_eq!(bytes.len(), 3 * SECTOR);
        bytes.chunks(SECTOR).map(|sector| sector[0] == 0).collect::<Vec<_>>()
    });
    assert_eq!(seen.len(), 8);
}

#[test]
fn growing_by_allocation_is_pending_until_synced() {
    let seen = outcomes(100, |seed| {
        let (disk, file) = disk_with(seed, b"x");
        file.allocate(0, 8192).unwrap();
        disk.crash();
        log(&disk).len()
    });
    assert_eq!(seen, HashSet::from([1, 8192]));
}

#[test]
fn a_synced_file_without_a_synced_name_may_be_gone() {
    let seen = outcomes(100, |seed| {
        let disk = SimDisk::new(seed);
        put(&disk, "/new", b"all of it");
        disk.crash();
        exists(&disk, "/new").then(|| disk.read(Path::new("/new")).unwrap())
    });
    assert_eq!(seen, HashSet::from([None, Some(b"all of it".to_vec())]));
}

#[test]
fn a_rename_is_undone_or_done_but_never_half() {
    for sync in [false, true] {
        let seen = outcomes(100, |seed| {
            let disk = SimDisk::new(seed);
            put(&disk, "/manifest", b"old");
            disk.sync_dir(Path::new("/")).unwrap();
            put(&disk, "/manifest.new", b"new");
            disk.rename(Path::new("/manifest.new"), Path::new("/manifest")).unwrap();
            if sync {
                disk.sync_dir(Path::new("/")).unwrap();
            }
            disk.crash();
            (disk.read(Path::new("/manifest")).unwrap(), exists(&disk, "/manifest.new"))
        });
        let new = (b"new".to_vec(), false);
        let old = [(b"old".to_vec(), false), (b"old".to_vec(), true)];
        let expected = if sync { HashSet::from([new]) } else { old.into_iter().chain([new]).collect() };
        assert_eq!(seen, expected);
    }
}

#[test]
fn a_rename_between_directories_is_in_both_or_in_neither() {
    let seen = outcomes(300, |seed| {
        let disk = SimDisk::new(seed);
        disk.create_dir_all_durable(Path::new("/new")).unwrap();
        disk.create_dir_all_durable(Path::new("/cur")).unwrap();
        put(&disk, "/new/1", b"mail");
        disk.sync_dir(Path::new("/new")).unwrap();
        disk.rename(Path::new("/new/1"), Path::new("/cur/1")).unwrap();
        put(&disk, "/cur/2", b"more");
        if seed % 3 == 0 {
            disk.sync_dir(Path::new(if seed % 2 == 0 { "/new" } else { "/cur" })).unwrap();
        }
        disk.crash();
        let found = (exists(&disk, "/new/1"), exists(&disk, "/cur/1"), exists(&disk, "/cur/2"));
        assert!(found.0 != found.1, "the mail is in one place");
        assert!(!found.2 || found.1, "a directory's changes survive in order");
        if seed % 3 == 0 {
            assert!(found.1, "a sync of either directory is enough");
        }
        found
    });
    assert_eq!(seen.len(), 3);
}

#[test]
fn removed_files_may_come_back_until_the_directory_is_synced() {
    for sync in [false, true] {
        let seen = outcomes(50, |seed| {
            let (disk, _) = disk_with(seed, b"x");
            disk.remove(Path::new(LOG)).unwrap();
            if sync {
                disk.sync_dir(Path::new("/")).unwrap();
            }
            disk.crash();
            exists(&disk, LOG)
        });
        assert_eq!(seen, if sync { HashSet::from([false]) } else { HashSet::from([false, true]) });
    }
}

#[test]
fn durable_directories_are_there_and_others_take_their_files_along() {
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        disk.create_dir_all_durable(Path::new("/a/b/c")).unwrap();
        disk.create_dir_all(Path::new("/x/y")).unwrap();
        put(&disk, "/x/y/file", b"1");
        disk.sync_dir(Path::new("/x/y")).unwrap();
        disk.crash();
        assert!(exists(&disk, "/a/b/c"));
        assert_eq!(exists(&disk, "/x/y/file"), exists(&disk, "/x/y"));
    }
}

#[test]
fn hard_links_stay_one_file() {
    for seed in 0..20 {
        let (disk, file) = disk_with(seed, &[b'.'; SECTOR]);
        disk.link(Path::new(LOG), Path::new("/second")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        file.write_at(b"x", 0).unwrap();
        disk.crash();
        assert_eq!(log(&disk), disk.read(Path::new("/second")).unwrap());
        let inode = |path| disk.metadata(Path::new(path)).unwrap().inode;
        assert_eq!(inode(LOG), inode("/second"));
    }
}

#[test]
fn after_a_crash_handles_are_stale_locks_free_and_maps_readable() {
    let (disk, file) = disk_with(1, b"bytes");
    let guard = disk.lock(Path::new("/lock")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    let map = disk.map(Path::new(LOG)).unwrap();
    disk.crash();
    assert!(file.read_at(&mut [0; 1], 0).is_err());
    assert!(file.write_at(b"x", 0).is_err() && file.sync_data().is_err() && file.len().is_err());
    assert_eq!(&*map, b"bytes");
    let _new = disk.lock(Path::new("/lock")).unwrap();
    drop(guard);
    assert_eq!(disk.lock(Path::new("/lock")).unwrap_err().kind(), ErrorKind::WouldBlock, "an old guard frees nothing");
    let file = disk.open(Path::new(LOG), OpenMode::ReadWrite).unwrap();
    file.write_at(b"again", 0).unwrap();
    assert_eq!(log(&disk), b"again");
}

#[test]
fn a_scheduled_crash_hits_its_operation_and_all_after_it() {
    let history = |disk: &SimDisk| -> std::io::Result<()> {
        let file = disk.open(Path::new("/a"), OpenMode::Create)?;
        file.write_at(b"1", 0)?;
        file.sync_data()?;
        disk.rename(Path::new("/a"), Path::new("/b"))?;
        disk.sync_dir(Path::new("/"))
    };
    let disk = SimDisk::new(0);
    history(&disk).unwrap();
    assert_eq!(disk.stats().operations, 5);
    for n in 1..=6 {
        let mut seen = HashSet::new();
        for seed in 0..400 {
            let disk = SimDisk::new(seed);
            disk.crash_at(n);
            assert_eq!(history(&disk).is_err(), n <= 5);
            assert_eq!(disk.is_off(), n <= 5);
            if disk.is_off() {
                assert!(disk.list(Path::new("/")).is_err() && disk.exists(Path::new("/a")).is_err(), "reads as well");
                assert_eq!(disk.stats().operations, n);
                disk.restart();
            }
            let found: Vec<_> = disk.list(Path::new("/")).unwrap().into_iter().map(|entry| entry.name).collect();
            let bytes = found.first().map(|name| disk.read(&Path::new("/").join(name)).unwrap());
            assert!(found.len() <= 1);
            seen.insert((found, bytes));
        }
        // Nothing or an empty "/a"; then its bytes, in any state; then both names; in the end "/b" for certain.
        assert_eq!(seen.len(), [2, 4, 4, 3, 3, 1][n as usize - 1], "crash at {n}: {seen:?}");
    }
}

#[test]
fn a_failed_write_leaves_a_first_part() {
    let seen = outcomes(200, |seed| {
        let (disk, file) = disk_with(seed, b"....");
        disk.fail_at(1);
        let error = file.write_at(b"xxxx", 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(5));
        file.write_at(b"", 0).unwrap();
        String::from_utf8(log(&disk)).unwrap()
    });
    let expected = ["....", "x...", "xx..", "xxx.", "xxxx"];
    assert_eq!(seen, expected.iter().map(|bytes| (*bytes).to_owned()).collect());
}

#[test]
fn a_failed_sync_forgets_its_writes() {
    let seen = outcomes(300, |seed| {
        let (disk, file) = disk_with(seed, &[b'.'; 2 * SECTOR]);
        file.write_at(b"1", 0).unwrap();
        disk.schedule(Some(Operation::Sync), 1, Effect::Fail);
        assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(5));
        let visible = log(&disk)[0];
        file.write_at(b"2", SECTOR as u64).unwrap();
        file.sync_data().unwrap();
        disk.crash();
        let bytes = log(&disk);
        assert_eq!(bytes[SECTOR], b'2', "what was written after it is synced by the next one");
        (visible, bytes[0])
    });
    assert_eq!(seen, HashSet::from([(b'1', b'1'), (b'1', b'.'), (b'.', b'.')]), "the next sync says nothing of it");
}

#[test]
fn a_failed_sync_keeps_the_length_in_sight() {
    for seed in 0..100 {
        let (disk, file) = disk_with(seed, b"x");
        file.write_at(&[b'y'; 3000], 1).unwrap();
        file.set_len(2500).unwrap();
        disk.fail_at(1);
        assert!(file.sync_data().is_err());
        assert_eq!(file.len().unwrap(), 2500);
    }
}

#[test]
fn failures_of_names_change_nothing() {
    for seed in 0..20 {
        let (disk, _) = disk_with(seed, b"x");
        let (from, to) = (Path::new(LOG), Path::new("/to"));
        disk.schedule(Some(Operation::Rename), 1, Effect::Fail);
        assert!(disk.rename(from, to).is_err());
        assert!(exists(&disk, LOG) && !exists(&disk, "/to"));
        disk.rename(from, to).unwrap();
        disk.schedule(Some(Operation::SyncDir), 1, Effect::Fail);
        assert!(disk.sync_dir(Path::new("/")).is_err());
        disk.sync_dir(Path::new("/")).unwrap();
        disk.crash();
        assert!(exists(&disk, "/to"), "a later sync of the directory does count");
    }
}

#[test]
fn random_faults_come_at_their_rate_and_stop() {
    let (disk, file) = disk_with(7, b"");
    disk.set_random_faults(RandomFaults { write_fails_one_in: 10, sync_fails_one_in: 4, names_fail_one_in: 5 });
    let failures = |count: u32, run: &dyn Fn() -> bool| (0..count).filter(|_| !run()).count();
    assert!((60..140).contains(&failures(1000, &|| file.write_at(b"x", 0).is_ok())));
    assert!((190..310).contains(&failures(1000, &|| file.sync_data().is_ok())));
    assert!((140..260).contains(&failures(1000, &|| disk.sync_dir(Path::new("/")).is_ok())));
    disk.clear_faults();
    assert_eq!(failures(1000, &|| file.write_at(b"x", 0).is_ok() && file.sync_data().is_ok()), 0);
}

#[test]
fn a_full_disk_takes_what_fits() {
    let (disk, file) = disk_with(1, b"x");
    disk.set_capacity(Some(3 * 4096));
    assert_eq!(disk.used_bytes(), 4096);
    file.write_at(&[1; 4096], 0).unwrap();
    let error = file.write_at(&[2; 20_000], 4000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 3 * 4096);
    file.write_at(&[3; 3 * 4096], 0).unwrap();
    assert_eq!(file.allocate(0, 3 * 4096 + 1).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 3 * 4096, "an allocation takes all or nothing");
    file.punch_hole(100, 9000).unwrap();
    assert_eq!(disk.used_bytes(), 2 * 4096);
    file.write_at(b"x", 3 * 4096).unwrap();
    assert_eq!(file.write_at(b"x", 5000).unwrap_err().kind(), ErrorKind::StorageFull);
    file.set_len(0).unwrap();
    assert_eq!(disk.used_bytes(), 0);
    disk.set_capacity(None);
    file.write_at(&[4; 100_000], 0).unwrap();
}

#[test]
fn space_comes_back_when_nothing_can_bring_the_file_back() {
    for seed in 0..20 {
        let (disk, file) = disk_with(seed, &[1; 10_000]);
        disk.remove(Path::new(LOG)).unwrap();
        drop(file);
        assert_eq!(disk.used_bytes(), 3 * 4096);
        disk.sync_dir(Path::new("/")).unwrap();
        assert_eq!(disk.used_bytes(), 0);
    }
    for seed in 0..50 {
        let (disk, file) = disk_with(seed, &[1; 10_000]);
        file.punch_hole(0, 8192).unwrap();
        file.write_at(&[1; 10_000], 50_000).unwrap();
        disk.crash();
        let held = disk.metadata(Path::new(LOG)).unwrap().allocated_bytes;
        assert_eq!(disk.used_bytes(), held);
        let bytes = log(&disk);
        let needed = bytes.chunks(4096).filter(|block| block.iter().any(|byte| *byte != 0)).count();
        assert!(held >= needed as u64 * 4096);
    }
}

#[test]
fn rot_is_seen_by_readers_and_survives() {
    let (disk, file) = disk_with(1, b"abc");
    disk.corrupt(Path::new(LOG), 1, 0x20).unwrap();
    assert_eq!(log(&disk), b"aBc");
    file.sync_data().unwrap();
    disk.crash();
    assert_eq!(log(&disk), b"aBc");
    assert!(disk.corrupt(Path::new(LOG), 3, 1).is_err());
}

#[test]
fn operations_are_counted() {
    let (disk, file) = disk_with(1, b"abc");
    let before = disk.stats();
    file.write_at(b"12", 0).unwrap();
    file.write_vectored_at(&[std::io::IoSlice::new(b"34"), std::io::IoSlice::new(b"5")], 2).unwrap();
    file.sync_data().unwrap();
    file.read_at(&mut [0; 10], 0).unwrap();
    let after = disk.stats();
    assert_eq!(after.writes - before.writes, 2, "a vectored write is one");
    assert_eq!(after.write_bytes - before.write_bytes, 5);
    assert_eq!(after.syncs - before.syncs, 1);
    assert_eq!(after.operations - before.operations, 3);
    assert_eq!((after.reads - before.reads, after.read_bytes - before.read_bytes), (1, 5));
    assert_eq!(disk.file_stats(Path::new(LOG)).unwrap().syncs, 2);
}

#[test]
fn what_is_written_during_a_sync_is_not_covered_by_it() {
    let mut lost = false;
    for seed in 0..50 {
        let (disk, file) = disk_with(seed, &[b'.'; 2 * SECTOR]);
        let writer = disk.open(Path::new(LOG), OpenMode::ReadWrite).unwrap();
        let calls = Arc::new(Mutex::new(0));
        let count = Arc::clone(&calls);
        disk.on_sync(move |path| {
            assert_eq!(path, Path::new(LOG));
            writer.write_at(b"2", SECTOR as u64).unwrap();
            *count.lock().unwrap() += 1;
        });
        file.write_at(b"1", 0).unwrap();
        file.sync_data().unwrap();
        assert_eq!(*calls.lock().unwrap(), 1);
        disk.crash();
        assert_eq!(log(&disk)[0], b'1');
        lost |= log(&disk)[SECTOR] == b'.';
    }
    assert!(lost);
}

#[test]
#[should_panic(expected = "the contract of Disk::map is broken")]
fn writing_a_mapped_file_is_caught() {
    let (disk, file) = disk_with(1, b"abc");
    let _map = disk.map(Path::new(LOG)).unwrap();
    file.write_at(b"x", 0).unwrap();
}

#[test]
fn a_crash_image_leaves_the_disk_alone() {
    let (disk, file) = disk_with(3, &[b'.'; 4 * SECTOR]);
    file.write_at(&[b'x'; 4 * SECTOR], 0).unwrap();
    put(&disk, "/second", b"2");
    let shapes: HashSet<Vec<u8>> = (0..100).map(|seed| log(&disk.crash_image(seed))).collect();
    assert!(shapes.len() > 5);
    assert_eq!(log(&disk.crash_image(5)), log(&disk.crash_image(5)));
    file.sync_data().unwrap();
    assert_eq!(log(&disk), [b'x'; 4 * SECTOR]);
    assert_eq!(log(&disk.crash_image(1)), [b'x'; 4 * SECTOR]);
}

/// A random history with crashes and faults; everything that can be seen of it, as text.
fn random_history(seed: u64) -> String {
    let sim = SimEnv::new(seed);
    let disk = &sim.disk;
    disk.start_trace();
    disk.set_random_faults(RandomFaults { write_fails_one_in: 20, sync_fails_one_in: 10, names_fail_one_in: 20 });
    disk.set_capacity(Some(200 * 1024));
    let mut prng = Prng::new(seed ^ 0xABCD);
    let mut seen = String::new();
    let mut note = |result: std::io::Result<()>| seen.push_str(&format!("{:?}\n", result.map_err(|e| e.to_string())));
    for _ in 0..200 {
        let path = format!("/d{}/f{}", prng.below(2), prng.below(4));
        let (path, other) = (Path::new(&path), format!("/d{}/f{}", prng.below(2), prng.below(4)));
        let at = prng.below(20_000);
        note(match prng.below(14) {
            0 => disk.create_dir_all(path.parent().unwrap()),
            1 => disk.rename(path, Path::new(&other)),
            2 => disk.remove(path),
            3 => disk.link(path, Path::new(&other)),
            4 => disk.sync_dir(path.parent().unwrap()),
            5 if prng.one_in(4) => {
                disk.crash();
                Ok(())
            }
            6 => disk.open(path, OpenMode::Create).and_then(|file| file.set_len(at)),
            7 => disk.open(path, OpenMode::ReadWrite).and_then(|file| file.punch_hole(at, at)),
            8 | 9 => disk.open(path, OpenMode::ReadWrite).and_then(|file| file.sync_data()),
            10 => disk.open(path, OpenMode::Create).and_then(|file| file.allocate(at, 4000)),
            11 => disk.read(path).map(drop),
            _ => disk.open(path, OpenMode::Create).and_then(|file| {
                let mut bytes = vec![0; prng.index(5000)];
                sim.random.fill(&mut bytes);
                file.write_at(&bytes, at)
            }),
        });
    }
    disk.clear_faults();
    disk.crash();
    for dir in disk.list(Path::new("/")).unwrap() {
        let dir = Path::new("/").join(dir.name);
        for entry in disk.list(&dir).unwrap() {
            let path = dir.join(entry.name);
            seen.push_str(&format!("{path:?} {:?} {:?}\n", disk.metadata(&path).unwrap(), disk.read(&path).unwrap()));
        }
    }
    let held: u64 = unique_files(disk).values().sum();
    assert_eq!(disk.used_bytes(), held, "seed {seed}: the space adds up after a crash");
    seen + &disk.take_trace().join("\n")
}

fn unique_files(disk: &SimDisk) -> std::collections::HashMap<u64, u64> {
    let mut files = std::collections::HashMap::new();
    for dir in disk.list(Path::new("/")).unwrap() {
        let dir = Path::new("/").join(dir.name);
        for entry in disk.list(&dir).unwrap() {
            let metadata = disk.metadata(&dir.join(entry.name)).unwrap();
            files.insert(metadata.inode, metadata.allocated_bytes);
        }
    }
    files
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..100 {
        assert!(random_history(seed) == random_history(seed), "seed {seed}");
    }
    assert_ne!(random_history(1), random_history(2));
}

#[test]
fn after_everything_is_synced_a_crash_changes_nothing() {
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let mut prng = Prng::new(seed);
        disk.create_dir_all_durable(Path::new("/d")).unwrap();
        let files: Vec<_> =
            (0..3).map(|i| disk.open(Path::new(&format!("/d/{i}")), OpenMode::Create).unwrap()).collect();
        for _ in 0..50 {
            let (file, at) = (prng.pick(&files).unwrap(), prng.below(10_000));
            match prng.below(5) {
                0 => file.set_len(at).unwrap(),
                1 => file.punch_hole(at, prng.below(9000)).unwrap(),
                2 => file.write_zeros(at, prng.below(3000)).unwrap(),
                3 if prng.one_in(3) => file.sync_data().unwrap(),
                _ => {
                    let mut bytes = vec![0; prng.index(3000)];
                    prng.fill(&mut bytes);
                    file.write_at(&bytes, at).unwrap();
                }
            }
        }
        files.iter().for_each(|file| file.sync_data().unwrap());
        disk.sync_dir(Path::new("/d")).unwrap();
        let all =
            |disk: &SimDisk| (0..3).map(|i| disk.read(Path::new(&format!("/d/{i}"))).unwrap()).collect::<Vec<_>>();
        let before = all(&disk);
        disk.crash();
        assert!(before == all(&disk), "seed {seed}");
    }
}

#[test]
fn the_clock_moves_only_by_hand() {
    let sim = SimEnv::new(1);
    let env = sim.env();
    let (now, monotonic) = (env.clock.now(), env.clock.monotonic());
    assert_eq!((env.clock.now(), env.clock.monotonic()), (now, monotonic));
    sim.clock.advance(Duration::from_millis(1500));
    assert_eq!(env.clock.now().seconds, now.seconds + 1);
    assert_eq!(env.clock.now().nanoseconds, 500_000_000);
    assert_eq!(env.clock.monotonic() - monotonic, Duration::from_millis(1500));
    sim.clock.set(mailyard_platform::Timestamp::from_seconds(5));
    assert_eq!(sim.clock.now().seconds, 5);
    assert_eq!(sim.clock.monotonic(), Duration::from_millis(1500));
    assert_ne!(sim.random.u64(), sim.random.u64());
    assert_eq!(SimEnv::new(9).random.u64(), SimEnv::new(9).random.u64());
}
