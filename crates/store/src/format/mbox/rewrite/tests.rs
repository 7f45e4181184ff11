//! Random plans on a simulated disk that loses power at every operation.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use platform::sim::{SimDisk, SimEnv};
use platform::{Disk, OpenMode, Prng};

use super::{Limits, Recovered, Rewrite, recover};

const TARGET: &str = "/mail/box";
const JOURNAL: &str = "/account/rewrite";

/// One step of a plan.
#[derive(Clone, Debug)]
enum Step {
    Keep(u64),
    Skip(u64),
    Insert(Vec<u8>),
}

fn limits(random: &mut Prng) -> Limits {
    let window_bytes = 1 << random.below(9);
    Limits {
        window_bytes,
        redo_bytes_max: window_bytes + random.below(500),
        chunk_bytes_max: 1 + random.below(4000),
        copy_bytes: 1 + random.index(300),
    }
}

/// Long and short pieces, so that small shifts of large pieces and large shifts of small ones both happen.
fn steps(random: &mut Prng, len: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut left = len;
    let scale = 1 + random.below(1 + len);
    let kinds = 1 + random.below(7);
    while left > 0 {
        let some = (1 + random.below(scale)).min(left);
        match random.below(3) {
            0 if kinds & 1 != 0 => {
                steps.push(Step::Skip(some));
                left -= some;
            }
            1 if kinds & 2 != 0 => {
                let mut bytes = vec![0; 1 + random.index(80)];
                random.fill(&mut bytes);
                steps.push(Step::Insert(bytes));
            }
            _ => {
                steps.push(Step::Keep(some));
                left -= some;
            }
        }
        if random.one_in(20) {
            break;
        }
    }
    steps
}

fn new_content(old: &[u8], steps: &[Step]) -> Vec<u8> {
    let (mut new, mut rest) = (Vec::new(), old);
    for step in steps {
        match step {
            Step::Keep(len) => {
                let (kept, behind) = rest.split_at(*len as usize);
                new.extend_from_slice(kept);
                rest = behind;
            }
            Step::Skip(len) => rest = &rest[*len as usize..],
            Step::Insert(bytes) => new.extend_from_slice(bytes),
        }
    }
    new.extend_from_slice(rest);
    new
}

fn set_up(disk: &SimDisk, content: &[u8]) {
    for dir in ["/mail", "/account"] {
        disk.create_dir_all_durable(Path::new(dir)).unwrap();
    }
    let file = disk.open(Path::new(TARGET), OpenMode::Create).unwrap();
    file.write_at(content, 0).unwrap();
    file.sync_all().unwrap();
    disk.sync_dir(Path::new("/mail")).unwrap();
}

fn rewrite(disk: &SimDisk, steps: &[Step], limits: Limits) -> model::Result<u64> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let file = disk.open(Path::new(TARGET), OpenMode::ReadWrite)?;
    let mut rewrite = Rewrite::begin(&shared, Path::new(TARGET), file, Path::new(JOURNAL), limits)?;
    for step in steps {
        match step {
            Step::Keep(len) => rewrite.keep(*len)?,
            Step::Skip(len) => rewrite.skip(*len),
            Step::Insert(bytes) => rewrite.insert(bytes)?,
        }
    }
    rewrite.run()
}

fn recovered(disk: &SimDisk, limits: Limits) -> model::Result<Recovered> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    recover(&shared, Path::new(TARGET), None, Path::new(JOURNAL), limits)
}

fn content(disk: &SimDisk) -> Vec<u8> {
    disk.read(Path::new(TARGET)).unwrap()
}

fn case(seed: u64) -> (SimEnv, Prng, Vec<u8>, Vec<Step>, Limits) {
    let mut random = Prng::new(seed);
    let sim = SimEnv::new(random.u64());
    let mut old = vec![0; random.index(6000)];
    random.fill(&mut old);
    let steps = steps(&mut random, old.len() as u64);
    let limits = limits(&mut random);
    set_up(&sim.disk, &old);
    (sim, random, old, steps, limits)
}

#[test]
fn every_plan_is_carried_out() {
    for seed in 0..3000 {
        let (sim, _, old, steps, limits) = case(seed);
        let inode = sim.disk.metadata(Path::new(TARGET)).unwrap().inode;
        let wanted = new_content(&old, &steps);
        let len = rewrite(&sim.disk, &steps, limits).unwrap();
        assert_eq!(len, wanted.len() as u64, "seed {seed}");
        assert!(content(&sim.disk) == wanted, "seed {seed}");
        assert_eq!(sim.disk.metadata(Path::new(TARGET)).unwrap().inode, inode, "seed {seed}");
        assert!(
            sim.disk.list(Path::new("/account")).unwrap().is_empty(),
            "seed {seed}: nothing is left of the journal"
        );
    }
}

/// A power cut at a random operation, often another one during recovery; now and then a failing write or sync instead.
#[test]
fn a_power_cut_leaves_the_old_file_or_the_new_one() {
    let mut ends = [0u32; 3];
    for seed in 0..12_000 {
        let (sim, mut random, old, steps, limits) = case(seed);
        let wanted = new_content(&old, &steps);
        let image = sim.disk.crash_image(0);
        let before = image.stats().operations;
        rewrite(&image, &steps, limits).unwrap();
        let operations = image.stats().operations - before;
        match random.below(4) {
            0 => sim.disk.fail_at(1 + random.below(operations.max(1))),
            _ => sim.disk.crash_at(1 + random.below(operations.max(1))),
        }
        let done = rewrite(&sim.disk, &steps, limits);
        sim.disk.clear_faults();
        sim.disk.crash();
        sim.disk.restart();
        for _ in 0..random.below(4) {
            sim.disk.crash_at(1 + random.below(20));
            let _ = recovered(&sim.disk, limits);
            sim.disk.clear_faults();
            sim.disk.crash();
            sim.disk.restart();
        }
        let found = recovered(&sim.disk, limits).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let now = content(&sim.disk);
        assert!(now == wanted || now == old, "seed {seed}: {found:?}");
        assert!(done.is_err() || now == wanted, "seed {seed}: acknowledged and not there");
        assert_ne!(found, Recovered::Replaced, "seed {seed}");
        assert_eq!(recovered(&sim.disk, limits).unwrap(), Recovered::Nothing, "seed {seed}: once is enough");
        ends[usize::from(now == wanted) + usize::from(now == wanted && found == Recovered::Finished)] += 1;
    }
    assert!(ends.iter().all(|count| *count > 500), "old, new, finished by recovery: {ends:?}");
}

#[test]
fn a_full_disk_stops_it_before_anything_moves() {
    let mut refused = 0;
    for seed in 0..500 {
        let (sim, mut random, old, mut steps, limits) = case(seed);
        let mut bytes = vec![0; 30_000];
        random.fill(&mut bytes);
        steps.insert(0, Step::Insert(bytes));
        sim.disk.set_capacity(Some(sim.disk.used_bytes() + random.below(90_000)));
        match rewrite(&sim.disk, &steps, limits) {
            Ok(_) => assert!(content(&sim.disk) == new_content(&old, &steps), "seed {seed}"),
            Err(error) => {
                sim.disk.set_capacity(None);
                recovered(&sim.disk, limits).unwrap();
                assert_eq!(error.kind(), model::ErrorKind::DiskFull, "seed {seed}");
                assert!(content(&sim.disk) == old, "seed {seed}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

/// A delivery agent appends to what a power cut left.
#[test]
fn mail_that_came_before_the_recovery_stays() {
    for seed in 0..4000 {
        let (sim, mut random, old, steps, limits) = case(seed);
        let wanted = new_content(&old, &steps);
        sim.disk.crash_at(1 + random.below(60));
        if rewrite(&sim.disk, &steps, limits).is_ok() {
            continue;
        }
        sim.disk.clear_faults();
        sim.disk.crash();
        sim.disk.restart();
        let mail = b"From a\n\nnew\n".as_slice();
        let file = sim.disk.open(Path::new(TARGET), OpenMode::ReadWrite).unwrap();
        file.write_at(mail, file.len().unwrap()).unwrap();
        file.sync_data().unwrap();
        for _ in 0..random.below(4) {
            sim.disk.crash_at(1 + random.below(20));
            let _ = recovered(&sim.disk, limits);
            sim.disk.clear_faults();
            sim.disk.crash();
            sim.disk.restart();
        }
        recovered(&sim.disk, limits).unwrap();
        let now = content(&sim.disk);
        let is_whole = |content: &[u8]| now.strip_suffix(mail).is_some_and(|rest| rest == content);
        assert!(is_whole(&wanted) || is_whole(&old), "seed {seed}");
    }
}

#[test]
fn another_file_in_its_place_is_left_alone() {
    let (sim, _, old, _, limits) = case(1);
    let steps = vec![Step::Skip(1), Step::Insert(b"ab".to_vec())];
    sim.disk.crash_at(14);
    assert!(rewrite(&sim.disk, &steps, limits).is_err());
    sim.disk.restart();
    assert!(!old.is_empty());
    let other = Path::new("/mail/other");
    let file = sim.disk.open(other, OpenMode::CreateNew).unwrap();
    file.write_at(b"another", 0).unwrap();
    sim.disk.rename(other, Path::new(TARGET)).unwrap();
    let found = recovered(&sim.disk, limits).unwrap();
    assert!(matches!(found, Recovered::Replaced | Recovered::Undone | Recovered::Nothing), "{found:?}");
    assert_eq!(content(&sim.disk), b"another");
}

#[test]
fn a_plan_behind_the_end_is_refused() {
    let (sim, _, old, _, limits) = case(2);
    let refused = rewrite(&sim.disk, &[Step::Skip(old.len() as u64 + 1)], limits);
    assert_eq!(refused.unwrap_err().kind(), model::ErrorKind::Invalid);
    assert_eq!(content(&sim.disk), old);
}
