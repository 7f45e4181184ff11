//! Power cuts, failures and full disks in the middle of a change.

use std::collections::HashMap;

use model::ErrorKind;
use platform::sim::{Effect, Operation};

use super::gen_mbox::{file, message, work};
use super::*;

/// How often each message is there.
fn count(digests: impl Iterator<Item = u64>) -> HashMap<u64, i32> {
    let mut counts = HashMap::new();
    for digest in digests {
        *counts.entry(digest).or_default() += 1;
    }
    counts
}

/// A case that can be repeated: the world before, and what is to be done.
struct Case {
    world: World,
    random: Prng,
    before: Vec<Seen>,
    places: Vec<Place>,
    work: Work,
    old: Vec<u8>,
}

fn case(seed: u64) -> Option<Case> {
    let mut random = Prng::new(seed);
    let content = file(&mut random);
    let settings = settings(&mut random);
    let world = World::new(seed, &content, settings);
    let before = world.look()?;
    let work = work(&mut random, &before);
    let places = before.iter().enumerate().map(|(n, seen)| seen.place(n as u64)).collect();
    Some(Case { world, random, before, places, work, old: content })
}

impl Case {
    /// Every message that must be there, and those that may.
    fn expected(&self) -> (HashMap<u64, i32>, HashMap<u64, i32>) {
        let fates = || self.before.iter().zip(&self.work.fates);
        let is_removed = |fate: &Fate| *fate == Fate::Remove;
        let kept = fates().filter(|(_, fate)| !is_removed(fate)).map(|(seen, _)| seen.measured.digest);
        let gone = fates().filter(|(_, fate)| is_removed(fate)).map(|(seen, _)| seen.measured.digest);
        (count(kept), count(gone.chain(self.work.append.iter().map(New::digest))))
    }

    /// What is there is what must be, and some of what may.
    fn check(&self, after: &[Seen], also: &[u64], seed: u64) {
        let (must, may) = self.expected();
        let mut found = count(after.iter().map(|seen| seen.measured.digest));
        for digest in also {
            *found.entry(*digest).or_default() -= 1;
        }
        for (digest, count) in &must {
            assert!(found.get(digest).is_some_and(|found| found >= count), "seed {seed}: a message is lost");
        }
        for (digest, count) in &found {
            let most = must.get(digest).unwrap_or(&0) + may.get(digest).unwrap_or(&0);
            assert!((0..=most).contains(count), "seed {seed}: {count} of a message, {most} at most");
        }
    }

    /// Operations that the change takes.
    fn operations(&self) -> u64 {
        let world = World { sim: self.world.sim.with_disk(self.world.sim.disk.crash_image(0)), ..self.image() };
        let world = World { env: world.sim.env(), ..world };
        let before = world.sim.disk.stats().operations;
        let _ = world.write_back(&self.places, &self.work).unwrap();
        world.sim.disk.stats().operations - before
    }

    fn image(&self) -> World {
        World { sim: self.world.sim.clone(), env: self.world.env.clone(), settings: self.world.settings }
    }
}

fn restart(world: &World) {
    world.sim.disk.clear_faults();
    world.sim.disk.crash();
    world.sim.disk.restart();
}

/// Fields are those from before or those that were wanted, of every message, unless the marker says otherwise.
fn check_fields(case: &Case, after: &[Seen], seed: u64) {
    let flags = |seen: &Seen| (seen.measured.meta.flags.without(FileFlags::COMPLETE), seen.measured.meta.uid);
    for seen in after {
        let digest = seen.measured.digest;
        let same = case.before.iter().zip(&case.work.fates).filter(|(old, _)| old.measured.digest == digest);
        let mut allowed: Vec<_> = same.clone().map(|(old, _)| flags(old)).collect();
        allowed.extend(same.filter_map(|(_, fate)| match fate {
            Fate::Update(wanted) => Some((wanted.flags, Some(wanted.uid))),
            _ => None,
        }));
        let new = case.work.append.iter().filter(|new| new.digest() == digest);
        allowed.extend(new.map(|new| (new.wanted.flags, Some(new.wanted.uid))));
        assert!(allowed.is_empty() || allowed.contains(&flags(seen)), "seed {seed}: {:?} of {allowed:?}", flags(seen));
    }
}

/// A power cut at any operation, often more during the recovery; or a failing write or sync.
#[test]
fn no_message_is_lost_or_doubled() {
    let (mut cases, mut marked, mut changed) = (0, 0, 0);
    for seed in 0..8000 {
        let Some(mut case) = case(seed) else { continue };
        let operations = case.operations();
        if operations == 0 {
            continue;
        }
        let at = 1 + case.random.below(operations);
        match case.random.below(5) {
            0 => case.world.sim.disk.fail_at(at),
            _ => case.world.sim.disk.crash_at(at),
        }
        let done = case.world.write_back(&case.places, &case.work).is_ok();
        restart(&case.world);
        for _ in 0..case.random.below(4) {
            case.world.sim.disk.crash_at(1 + case.random.below(20));
            let _interrupted = case.world.recover();
            restart(&case.world);
        }
        let mut also = Vec::new();
        let recovered = case.world.recover().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let after = case.world.look().unwrap_or_else(|| panic!("seed {seed}: no mbox"));
        if std::env::var("SEED").is_ok_and(|s| s == seed.to_string()) {
            eprintln!("{recovered:?} at {at} of {operations} {:?}\n{}\n=====\n{}", case.work, String::from_utf8_lossy(&case.old).replace(char::from(13), "%"), String::from_utf8_lossy(&case.world.content()).replace(char::from(13), "%"));
        }
        case.check(&after, &also, seed);
        if recovered.fields_count {
            check_fields(&case, &after, seed);
        }
        if done {
            let (must, _) = case.expected();
            let new = case.work.append.iter().map(New::digest);
            let mut all = must;
            new.for_each(|digest| *all.entry(digest).or_default() += 1);
            let found = count(after.iter().map(|seen| seen.measured.digest));
            assert_eq!(found, all, "seed {seed}: acknowledged and not there");
        }
        let again = case.world.recover().unwrap();
        assert!(!again.is_changed, "seed {seed}: once is enough");
        also.clear();
        cases += 1;
        marked += u32::from(!recovered.fields_count);
        changed += u32::from(recovered.is_changed);
    }
    assert!(cases > 4000 && marked > 500 && changed > 500, "{cases} {marked} {changed}");
}
