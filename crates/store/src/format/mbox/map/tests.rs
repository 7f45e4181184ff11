//! The map beside a list, on disks that fail, and against its document.
#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{EmailId, ModSeq};
use platform::sim::SimEnv;
use platform::{Disk, OpenMode, Timestamp};
use proptest::prelude::*;

use super::layout::{MAP_HEADER_BYTES, MAP_MAGIC, ROW_BYTES, write_header};
use super::*;
use crate::format::mbox::identity::tail_digest;
use crate::format::mbox::place::FileFlags;
use crate::format::served::Form;

fn facts(n: u64) -> Facts {
    let time = |seconds: i64| Timestamp { seconds, nanoseconds: 999_999_999 - seconds.unsigned_abs() as u32 };
    let identity = Identity { device: n, inode: n + 1, len: n + 2, modified: time(-3), changed: time(4) };
    Facts {
        identity,
        tail_digest: n + 5,
        settled: 0,
        written: ModSeq(n + 6),
        is_fresh: n.is_multiple_of(2),
        is_grown: n.is_multiple_of(3),
    }
}

fn disk() -> Arc<dyn Disk> {
    SimEnv::new(1).env().disk
}

fn path() -> PathBuf {
    PathBuf::from("/account/index/mbox-7")
}

/// A place without its neighbours: what the places before it make of it.
#[derive(Clone, Debug)]
struct Shape {
    id: Option<EmailId>,
    parts: [u64; 4],
    bits: u8,
}

impl Shape {
    fn at(&self, start: u64) -> Place {
        let [from_line, header, body, gap] = self.parts;
        let end = start + from_line + header + body;
        let has = |bit: u8| self.bits & 1 << bit != 0;
        Place {
            email_id: self.id,
            start,
            header: start + from_line,
            body: start + from_line + header,
            end,
            next: end + gap,
            form: Form { convert: has(0), unquote: has(1) },
            is_crlf: has(2),
            flags: FileFlags::from_bits(self.bits >> 1),
            keywords: self.bits.rotate_left(3),
        }
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    let large = prop_oneof![5 => 0u64..5000, 1 => 0..1u64 << 32];
    let id = proptest::option::weighted(0.9, 1u64..40);
    (id, 0u64..1 << 24, 0u64..1 << 32, large, 0u64..8, any::<u8>()).prop_map(|(id, a, b, c, d, bits)| Shape {
        id: id.map(EmailId),
        parts: [a, b, c, d],
        bits,
    })
}

#[derive(Clone, Debug)]
enum Change {
    Push(Vec<Shape>, usize),
    Truncate(usize),
    Save,
    Reopen,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (proptest::collection::vec(shape(), 0..5), 1usize..700).prop_map(|(places, times)| Change::Push(places, times)),
        1 => (0usize..3000).prop_map(Change::Truncate),
        1 => Just(Change::Save),
        1 => Just(Change::Reopen),
    ]
}

fn hold(map: &Map, model: &[Place], facts: &Facts) {
    assert_eq!(map.len(), model.len());
    assert_eq!(map.facts(), facts);
    assert!(map.places().eq(model.iter().copied()));
    assert!(map.email_ids().eq(model.iter().map(|place| place.email_id)));
    assert_eq!(map.place(model.len()), None);
    let mut by_id: BTreeMap<u64, Vec<usize>> = (0..45).map(|id| (id, Vec::new())).collect();
    for (n, place) in model.iter().enumerate() {
        if let Some(id) = place.email_id {
            by_id.get_mut(&id.0).unwrap().push(n);
        }
    }
    for (id, expected) in by_id {
        assert_eq!(map.find(EmailId(id)).collect::<Vec<_>>(), expected, "{id}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_map_and_a_list_beside_it(changes in proptest::collection::vec(change(), 1..12)) {
        let (disk, mut facts) = (disk(), facts(1));
        let mut map = Map::empty(facts);
        let (mut model, mut saved) = (Vec::<Place>::new(), None);
        for change in changes {
            let (before, expected) = (map.clone(), model.clone());
            match change {
                Change::Push(places, times) => {
                    for shape in std::iter::repeat_n(&places, times).flatten() {
                        let place = shape.at(model.last().map_or(3, |last| last.next));
                        map.push(&place).unwrap();
                        model.push(place);
                    }
                }
                Change::Truncate(n) => {
                    map.truncate_from(n);
                    model.truncate(n);
                    facts.settled = facts.settled.min(model.len() as u32);
                }
                Change::Save => {
                    facts.settled = model.len() as u32 / 2;
                    facts.tail_digest += 1;
                    map.set_facts(facts);
                    map.save(&disk, &path()).unwrap();
                    prop_assert_eq!(map.changes(), 0);
                    saved = Some((model.clone(), facts));
                }
                Change::Reopen => {
                    let opened = Map::open(&*disk, &path());
                    prop_assert_eq!(opened.is_some(), saved.is_some());
                    if let (Some(opened), Some(saved)) = (opened, &saved) {
                        (map, (model, facts)) = (opened, saved.clone());
                    }
                }
            }
            hold(&map, &model, &facts);
            prop_assert!(before.places().eq(expected), "a clone has changed");
        }
        prop_assert!(!disk.exists(Path::new("/account/index/mbox-7.new")).unwrap());
    }

    #[test]
    fn what_a_row_cannot_say_is_refused(shape in shape(), part in 0usize..4, more in 0u64..1 << 40) {
        let mut shape = shape;
        shape.parts[part] = [1 << 24, 1 << 32, 1 << 48, 8][part] + more;
        let mut map = Map::empty(facts(1));
        prop_assert!(map.push(&shape.at(0)).is_err());
        hold(&map, &[], &facts(1));
    }
}

fn some_places() -> Vec<Place> {
    let mut places = Vec::new();
    for n in 0..1500 {
        let shape = Shape { id: (n > 0).then_some(EmailId(n)), parts: [40, n, n / 2, n % 3], bits: n as u8 };
        places.push(shape.at(places.last().map_or(0, |last: &Place| last.next)));
    }
    places
}

#[test]
fn streamed() {
    let disk = disk();
    let mut builder = MapBuilder::create(&disk, &path()).unwrap();
    let places = some_places();
    places.iter().for_each(|place| builder.push(place).unwrap());
    assert!(builder.push(&places[3]).is_err(), "it does not follow");
    assert!(Map::open(&*disk, &path()).is_none(), "not before it is finished");
    let facts = Facts { settled: 7, ..facts(5) };
    let built = builder.finish(&facts).unwrap();
    for map in [built, Map::open(&*disk, &path()).unwrap()] {
        assert!(map.rises && map.changes() == 0);
        assert_eq!((map.facts(), map.end()), (&facts, places.last().unwrap().next));
        assert!(map.places().eq(places.iter().copied()));
        assert_eq!(map.find(EmailId(1499)).collect::<Vec<_>>(), [1499]);
        assert_eq!(map.find(EmailId(1500)).count(), 0);
    }
    drop(MapBuilder::create(&disk, &path()).unwrap());
    assert_eq!(disk.list(Path::new("/account/index")).unwrap().len(), 1, "one that was given up leaves nothing");
}

#[test]
fn email_ids_far_from_each_other() {
    let place = |id, start| Shape { id: Some(EmailId(id)), parts: [1; 4], bits: 0 }.at(start);
    let mut map = Map::empty(facts(1));
    map.push(&place(1 << 40, 0)).unwrap();
    map.push(&place((1 << 40) + (1 << 30), 4)).unwrap();
    map.push(&place((1 << 40) - (1 << 30), 8)).unwrap();
    assert!(map.push(&place(1, 12)).is_err());
    assert!(map.push(&place(1 << 50, 12)).is_err());
    assert_eq!(map.find(EmailId((1 << 40) - (1 << 30))).collect::<Vec<_>>(), [2]);
    map.truncate_from(0);
    map.push(&place(1, 12)).unwrap();
    assert_eq!(map.find(EmailId(1)).collect::<Vec<_>>(), [0]);
}

#[test]
fn damage_of_any_octet_means_no_map() {
    let disk = disk();
    let mut map = Map::empty(facts(1));
    some_places().iter().take(20).for_each(|place| map.push(place).unwrap());
    map.save(&disk, &path()).unwrap();
    let whole = disk.read(&path()).unwrap();
    let other = Path::new("/account/index/mbox-8");
    let opens = |bytes: &[u8]| {
        let _ = disk.remove(other);
        disk.open(other, OpenMode::CreateNew).unwrap().write_at(bytes, 0).unwrap();
        Map::open(&*disk, other).is_some()
    };
    assert!(opens(&whole));
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(!opens(&damaged), "octet {at}");
        assert!(!opens(&whole[..at]), "cut at {at}");
    }
    assert!(!opens(&[&whole[..], b"\0"].concat()));
}

#[test]
fn after_a_power_cut_there_is_a_whole_map_or_none() {
    let (mut outcomes, sim) = (std::collections::BTreeSet::new(), SimEnv::new(9));
    let disk = sim.env().disk;
    disk.create_dir_all_durable(path().parent().unwrap()).unwrap();
    let places = some_places();
    let mut map = Map::empty(facts(1));
    places.iter().take(700).for_each(|place| map.push(place).unwrap());
    map.save(&disk, &path()).unwrap();
    disk.open(&path(), OpenMode::Read).unwrap().sync_data().unwrap();
    disk.sync_dir(path().parent().unwrap()).unwrap();
    places.iter().skip(700).for_each(|place| map.push(place).unwrap());
    map.save(&disk, &path()).unwrap();
    for seed in 0..300 {
        let after = sim.disk.crash_image(seed);
        match Map::open(&after, &path()) {
            Some(map) => {
                assert!(map.places().eq(places.iter().take(map.len()).copied()));
                assert!(map.len() == 700 || map.len() == places.len());
                outcomes.insert(map.len());
            }
            None => drop(outcomes.insert(0)),
        }
    }
    assert!(outcomes.contains(&0) && outcomes.contains(&700), "{outcomes:?}");
}

#[test]
fn the_tail_of_a_file() {
    let file = disk().open(Path::new("/x"), OpenMode::Create).unwrap();
    file.write_at(&[b'a'; 6000], 0).unwrap();
    let digest = tail_digest(&*file, 6000).unwrap();
    file.write_at(b"b", 6000).unwrap();
    file.write_at(b"b", 6000 - 4097).unwrap();
    assert_eq!(tail_digest(&*file, 6000).unwrap(), digest);
    file.write_at(b"b", 6000 - 4096).unwrap();
    assert_ne!(tail_digest(&*file, 6000).unwrap(), digest);
    assert_ne!(tail_digest(&*file, 10).unwrap(), tail_digest(&*file, 0).unwrap());
    assert!(tail_digest(&*file, 9000).is_err());
}

/// The rows of the first table behind `heading`: offset, octets, field.
fn table(heading: &str) -> Vec<(usize, usize, String)> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format-index.md");
    let document = std::fs::read_to_string(document).unwrap();
    let (_, rest) = document.split_once(heading).unwrap();
    let lines = rest.lines().skip_while(|line| !line.starts_with("| offset")).skip(2);
    lines
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let mut cell = || cells.next().unwrap();
            (cell().parse().unwrap(), cell().parse().unwrap(), cell().to_owned())
        })
        .collect()
}

/// Each field stands where the document says, has the value that the code was given, and the table covers all.
fn hold_document(heading: &str, bytes: &[u8], fields: &[(&str, u64)]) {
    let mut at = 0;
    let mut names = Vec::new();
    for (offset, size, name) in table(heading) {
        assert_eq!(offset, at, "{heading}: {name}");
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(&bytes[at..at + size]);
        let value = u64::from_le_bytes(wide);
        match name.as_str() {
            "reserved" => assert_eq!(value, 0),
            "crc" => assert_eq!(value, u64::from(crc32c::crc32c(&bytes[..at]))),
            _ => names.push((name, value)),
        }
        at += size;
    }
    assert_eq!(at, bytes.len(), "{heading}: length");
    let expected: Vec<(String, u64)> = fields.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    assert_eq!(names, expected, "{heading}");
}

#[test]
fn the_document_has_the_same_offsets() {
    let mut facts = facts(100);
    facts.settled = 11;
    let rows = Rows { count: 12, crc: 13, base: 14, end: 15, rises: true };
    let header = write_header(&facts, &rows);
    assert_eq!(header.len(), MAP_HEADER_BYTES);
    let fields = [
        ("magic", MAP_MAGIC),
        ("device", 100),
        ("inode", 101),
        ("len", 102),
        ("modified", (-3i64) as u64),
        ("modified_ns", u64::from(facts.identity.modified.nanoseconds)),
        ("changed", 4),
        ("changed_ns", 999_999_995),
        ("tail_digest", 105),
        ("written", 106),
        ("base", 14),
        ("end", 15),
        ("count", 12),
        ("settled", 11),
        ("marks", 3),
        ("rows_crc", 13),
    ];
    hold_document("## Map of an mbox", &header, &fields);

    let shape = Shape { id: Some(EmailId(1000)), parts: [31, 32, 33, 5], bits: 0b1111_1111 };
    let place = Place { flags: FileFlags::FLAGGED.with(FileFlags::COMPLETE), keywords: 77, ..shape.at(1 << 40) };
    let row = pack(&place, 900).unwrap();
    assert_eq!(row.len(), ROW_BYTES);
    let fields = [
        ("email_id", 100),
        ("start", 1 << 40),
        ("from_line_bytes", 31),
        ("header_bytes", 32),
        ("bits", 0b11_1101),
        ("flags", 0b100_1000),
        ("keywords", 77),
    ];
    hold_document("### Row of a map", &row, &fields);
    assert_eq!(unpack(&row, 900, place.next), place);
}
