//! Power cuts, failures and full disks in the middle of a change.

use std::collections::HashMap;

use model::ErrorKind;

use super::gen_mbox::{file, work};
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
}

fn case(seed: u64) -> Option<Case> {
    let mut random = Prng::new(seed);
    let content = file(&mut random);
    let settings = settings(&mut random);
    let world = World::new(seed, &content, settings);
    let before = world.look()?;
    let work = work(&mut random, &before);
    let places = before.iter().enumerate().map(|(n, seen)| seen.place(n as u64)).collect();
    Some(Case { world, random, before, places, work })
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
        let sim = self.world.sim.with_disk(self.world.sim.disk.crash_image(0));
        let world = World { env: sim.env(), sim, settings: self.world.settings };
        let before = world.sim.disk.stats().operations;
        let _ = world.write_back(&self.places, &self.work).unwrap();
        world.sim.disk.stats().operations - before
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
        let recovered = case.world.recover().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let after = case.world.look().unwrap_or_else(|| panic!("seed {seed}: no mbox"));
        case.check(&after, &[], seed);
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
        cases += 1;
        marked += u32::from(!recovered.fields_count);
        changed += u32::from(recovered.is_changed);
    }
    assert!(cases > 4000 && marked > 500 && changed > 500, "{cases} {marked} {changed}");
}

/// A delivery agent appends to what a power cut left, before anybody has recovered it.
#[test]
fn mail_that_comes_before_the_recovery_stays() {
    const MAIL: &[u8] = b"From agent Thu Aug 22 12:36:23 2002\nSubject: delivered\n\nnew\n";
    let mut digest = DigestOfServed::new();
    digest.push(b"Subject: delivered\r\n\r\nnew\r\n");
    let delivered = digest.finish();
    let mut behind = 0;
    for seed in 0..12_000 {
        let Some(mut case) = case(seed) else { continue };
        // What becomes of the last message, and whether the delivered one is told from it, must not depend on how the file ended.
        let is_plain = case.world.content().ends_with(b"\n") && case.before.iter().all(|seen| !has_length(&case, seen));
        let operations = case.operations();
        if !is_plain || operations == 0 {
            continue;
        }
        case.world.sim.disk.crash_at(1 + case.random.below(operations));
        if case.world.write_back(&case.places, &case.work).is_ok() {
            continue;
        }
        restart(&case.world);
        let before = case.world.content().len();
        case.world.deliver(MAIL);
        for _ in 0..case.random.below(4) {
            case.world.sim.disk.crash_at(1 + case.random.below(20));
            let _interrupted = case.world.recover();
            restart(&case.world);
        }
        case.world.recover().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let content = case.world.content();
        let after = case.world.look().unwrap_or_else(|| panic!("seed {seed}: no mbox"));
        assert!(content.ends_with(MAIL), "seed {seed}: {}", String::from_utf8_lossy(&content));
        case.check(&after, &[delivered], seed);
        behind += u32::from(content.len() < before + MAIL.len());
    }
    assert!(behind > 150, "{behind}");
}

fn has_length(case: &Case, seen: &Seen) -> bool {
    let content = case.world.content();
    let header = &content[seen.message.header as usize..seen.message.body as usize];
    super::super::fields::Header::new(header).content_length().is_some()
}

#[test]
fn a_full_disk_leaves_every_message() {
    let (mut refused, mut done) = (0, 0);
    for seed in 0..6000 {
        let Some(mut case) = case(seed) else { continue };
        let disk = &case.world.sim.disk;
        disk.set_capacity(Some(disk.used_bytes() + case.random.below(12) * 4096));
        let result = case.world.write_back(&case.places, &case.work);
        disk.set_capacity(None);
        let was_whole = case.world.look().unwrap_or_else(|| panic!("seed {seed}: no mbox"));
        // Before any recovery, too: nothing has moved.
        case.check(&was_whole, &[], seed);
        case.world.recover().unwrap();
        case.check(&case.world.look().unwrap(), &[], seed);
        match result {
            Ok(_) => done += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::DiskFull, "seed {seed}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 500 && done > 500, "{refused} {done}");
}

/// Changes one after another, other programs in between, power cuts now and then: the file never has a message that it should not, and every one
/// that it should.
#[test]
fn long_lives() {
    for seed in 0..600 {
        let Some(Case { world, mut random, .. }) = case(seed) else { continue };
        let mut next_id = 5000;
        for step in 0..12 {
            let context = format!("seed {seed}, step {step}");
            let before = world.look().unwrap_or_else(|| panic!("{context}"));
            let mut work = work(&mut random, &before);
            for new in &mut work.append {
                new.id = next_id;
                next_id += 1;
            }
            let places: Vec<Place> = before.iter().enumerate().map(|(n, seen)| seen.place(n as u64)).collect();
            if random.one_in(3) {
                world.sim.disk.crash_at(1 + random.below(40));
            }
            let fates = work.fates.clone();
            let case = Case { before, places, work, random: Prng::new(0), world: image(&world) };
            let done = case.world.write_back(&case.places, &case.work);
            if done.is_err() {
                restart(&world);
                world.recover().unwrap_or_else(|error| panic!("{context}: {error}"));
            }
            world.sim.disk.clear_faults();
            let after = world.look().unwrap_or_else(|| panic!("{context}"));
            case.check(&after, &[], seed);
            if let Ok((written, _)) = done {
                assert_eq!(written.removed as usize, fates.iter().filter(|fate| **fate == Fate::Remove).count());
                written.unsettled.settle().unwrap();
                assert!(world.recover().unwrap().fields_count, "{context}");
            }
            if random.one_in(3) {
                let content = world.content();
                let begin = if content.is_empty() || content.ends_with(b"\n\n") { "" } else { "\n\n" };
                let mail =
                    format!("{begin}From agent Thu Aug 22 12:36:23 2002\nSubject: {step}\n\nnew {}\n\n", random.u64());
                world.deliver(mail.as_bytes());
            }
        }
    }
}

fn image(world: &World) -> World {
    World { sim: world.sim.clone(), env: world.env.clone(), settings: world.settings }
}
