//! What a file is after a change.

use platform::Prng;

use super::gen_mbox::{file, work};
use super::*;

/// Keywords in an order that does not matter.
fn sorted(keywords: &[Keyword]) -> Vec<String> {
    let mut names: Vec<String> = keywords.iter().map(|keyword| keyword.as_str().to_owned()).collect();
    names.sort();
    names
}

fn says(seen: &Seen, wanted: &Wanted) -> bool {
    let meta = &seen.measured.meta;
    meta.uid == Some(wanted.uid)
        && meta.flags == wanted.flags.with(FileFlags::COMPLETE)
        && sorted(&meta.keywords) == sorted(&wanted.keywords)
}

#[test]
fn what_is_read_is_what_was_written() {
    let (mut in_place, mut moved, mut cut) = (0, 0, 0);
    for seed in 0..20_000 {
        let mut random = Prng::new(seed);
        let content = file(&mut random);
        let settings = settings(&mut random);
        let world = World::new(seed, &content, settings);
        let Some(before) = world.look() else { continue };
        let work = work(&mut random, &before);
        let places: Vec<Place> = before.iter().enumerate().map(|(n, seen)| seen.place(n as u64)).collect();
        let context = || format!("seed {seed}: {work:?}\n{}", String::from_utf8_lossy(&content));
        let (written, placed) =
            world.write_back(&places, &work).unwrap_or_else(|error| panic!("{error}, {}", context()));
        let now = world.content();
        let shown = || format!("{}\n====\n{}", context(), String::from_utf8_lossy(&now));
        let after = world.look().unwrap_or_else(|| panic!("{}", shown()));
        assert_eq!(written.file_bytes, now.len() as u64, "{}", shown());
        let kept = before.iter().zip(&work.fates).filter(|(_, fate)| **fate != Fate::Remove);
        let mut digests: Vec<u64> = kept.clone().map(|(seen, _)| seen.measured.digest).collect();
        digests.extend(work.append.iter().map(New::digest));
        assert_eq!(after.iter().map(|seen| seen.measured.digest).collect::<Vec<_>>(), digests, "{}", shown());
        let ids = kept.clone().map(|(seen, _)| {
            let number = before.iter().position(|other| other.message == seen.message).unwrap();
            places[number].email_id
        });
        let ids = ids.chain(work.append.iter().map(|new| Some(EmailId(new.id))));
        let found: Vec<Place> =
            after.iter().zip(ids).map(|(seen, id)| Place { email_id: id, ..seen.place(0) }).collect();
        assert_eq!(placed, found, "{}", shown());
        for ((old, fate), new) in kept.zip(&after) {
            let is_cut = old.message.flags.has(MessageFlags::NO_LAST_NEWLINE);
            let sizes = |seen: &Seen| (seen.measured.octets, seen.measured.header_octets);
            assert!(is_cut || sizes(old) == sizes(new), "{:?} {:?} {}", sizes(old), sizes(new), shown());
            match fate {
                Fate::Update(wanted) => assert!(says(new, wanted), "{wanted:?} {:?} {}", new.measured.meta, shown()),
                _ => assert_eq!(old.measured.meta.uid, new.measured.meta.uid, "{}", shown()),
            }
        }
        for (new, seen) in work.append.iter().zip(after.iter().rev().take(work.append.len()).rev()) {
            assert!(says(seen, &new.wanted), "{}", shown());
        }
        if let (Some(first), Some(Fate::Update(_))) = (after.first(), work.fates.first()) {
            let base = first.measured.meta.base.clone().unwrap_or_else(|| panic!("{}", shown()));
            assert_eq!((base.uid_validity, base.last_uid), (1_000_000_000, 2000), "{}", shown());
        }
        for line in now.split(|byte| *byte == b'\n') {
            assert!(line.len() < 998);
        }
        in_place += u32::from(written.in_place_bytes > 0 && written.moved_bytes == 0);
        moved += u32::from(written.moved_bytes > 0);
        cut += u32::from(written.removed > 0 && written.moved_bytes == 0 && written.in_place_bytes == 0);

        // Once more, with nothing new to say.
        let fates = placed.iter().map(|_| Fate::Keep).collect();
        let same = Work { fates, append: Vec::new(), base: work.base.clone() };
        let (again, _) = world.write_back(&placed, &same).unwrap();
        assert!(again.is_nothing() && world.content() == now, "{}", shown());
    }
    assert!(in_place > 1000 && moved > 1000 && cut > 1000, "{in_place} {moved} {cut}");
}
