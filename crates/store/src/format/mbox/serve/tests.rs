//! What is served against a naive conversion; how much is read for it; changes, damage and many readers.
#![allow(clippy::unwrap_used)]
use std::path::Path;

use model::EmailId;
use platform::OpenMode;
use platform::sim::SimEnv;
use proptest::prelude::*;

use super::*;
use crate::format::mbox::place::FileFlags;
use crate::format::mbox::scan::{Message, Table};

/// A message of a file as it should be served.
struct Expected {
    place: Place,
    message: ForeignMessage,
    octets: Vec<u8>,
}

impl Expected {
    fn header(&self) -> &[u8] {
        &self.octets[..self.message.header_octets as usize]
    }
}

fn expected(file: &[u8], found: &Message) -> Expected {
    let Message { start, header, body, end, next, .. } = *found;
    let form = found.form();
    let place = Place {
        email_id: Some(EmailId(start)),
        start,
        header,
        body,
        end,
        next,
        form,
        is_crlf: false,
        flags: FileFlags::default(),
        keywords: 0,
    };
    let content = &file[header as usize..end as usize];
    let measured = WholeMeasure::default().measure(content, (body - header) as usize, form, true, false);
    let mut octets = Vec::new();
    served_header(&content[..(body - header) as usize], form, &mut octets);
    let mut normaliser = Normaliser::new(form);
    normaliser.push(&content[(body - header) as usize..], &mut octets);
    normaliser.finish(&mut octets);
    assert_eq!(measured.octets, octets.len() as u64);
    let (octets_len, header_octets) = (measured.octets as u32, measured.header_octets as u32);
    Expected { place, message: ForeignMessage { octets: octets_len, header_octets, digest: measured.digest }, octets }
}

/// A file with its messages, and the machine it is on.
struct Fixture {
    sim: SimEnv,
    file: Arc<dyn File>,
    messages: Vec<Expected>,
}

fn path() -> &'static Path {
    Path::new("/box")
}

impl Fixture {
    fn new(bytes: &[u8]) -> Self {
        let sim = SimEnv::new(3);
        let file = sim.env().disk.open(path(), OpenMode::Create).unwrap();
        file.write_at(bytes, 0).unwrap();
        let messages = Table::read(&*file).unwrap().messages().iter().map(|found| expected(bytes, found)).collect();
        Fixture { sim, file, messages }
    }

    fn reader(&self) -> FileReader {
        FileReader::new(Arc::clone(&self.file), Identity::of_file(&*self.file).unwrap())
    }

    /// Somebody writes to the file, some time later.
    fn change(&self) {
        self.sim.env().clock.sleep(std::time::Duration::from_secs(1));
        self.file.write_at(b"F", 0).unwrap();
    }

    fn reads(&self) -> u64 {
        self.sim.disk.file_stats(path()).unwrap().reads
    }
}

fn message(header: &str, body: &str, times: usize) -> Vec<u8> {
    let mut bytes = b"From a@b Thu Aug 22 12:36:23 2002\n".to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.push(b'\n');
    bytes.extend(body.as_bytes().repeat(times));
    bytes.extend_from_slice(b"\n\n");
    bytes
}

fn whole(reader: &FileReader, at: &Expected, range: Range<u64>) -> Result<(Outcome, Vec<u8>)> {
    let mut octets = Vec::new();
    let outcome = reader.range(&at.place, &at.message, range, &mut |piece| {
        assert!(!piece.is_empty() && piece.len() <= PIECE_BYTES);
        octets.extend_from_slice(piece);
        Ok(())
    })?;
    Ok((outcome, octets))
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just("\n"),
            Just("\r\n"),
            Just("\r"),
            Just(">From "),
            Just("\n>From "),
            Just("\n>>From x"),
            Just("\n>"),
            Just("words of text\n")
        ],
        0..30,
    )
    .prop_map(|pieces| pieces.concat())
}

fn header() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("Status: RO\n"),
        Just("Subject: x\r\n"),
        Just("X-UID: 7   \n folded\n"),
        Just(">From me\n"),
        Just("To: a,\n b\n")
    ];
    (proptest::collection::vec(line, 0..6), prop_oneof![4 => 0usize..3, 1 => 0usize..20_000])
        .prop_map(|(lines, times)| lines.concat() + &"X-Long: yes\nX-UID: 1\n".repeat(times))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn like_a_naive_conversion(
        messages in proptest::collection::vec((header(), text(), prop_oneof![4 => 1usize..5, 1 => 1usize..3000]), 1..6),
        asked in proptest::collection::vec((any::<prop::sample::Index>(), 0u64..1000, 0u64..1000, 0u8..4), 1..60),
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|(header, body, times)| message(header, body, *times)).collect();
        let fixture = Fixture::new(&bytes);
        let reader = fixture.reader();
        for (index, from, len, what) in asked {
            let at = &fixture.messages[index.index(fixture.messages.len())];
            let octets = at.octets.len() as u64;
            let (from, len) = (octets * from / 1000, octets * len / 1000 + 1);
            let range = if what == 1 { 0..octets } else { from..octets.min(from + len) };
            if what == 0 {
                let mut out = b"before".to_vec();
                prop_assert_eq!(reader.header(&at.place, &at.message, &mut out).unwrap(), Outcome::Done);
                prop_assert!(out.strip_prefix(b"before").unwrap() == at.header());
            } else if !range.is_empty() {
                let (outcome, given) = whole(&reader, at, range.clone()).unwrap();
                prop_assert_eq!(outcome, Outcome::Done);
                prop_assert!(given == at.octets[range.start as usize..range.end as usize]);
            }
        }
        prop_assert!(reader.slots().len() <= SLOTS_MAX);
    }
}

fn many_small() -> Fixture {
    let bytes: Vec<u8> = (0..2000).flat_map(|n| message(&format!("Subject: {n}\n"), "a line of text\n", 80)).collect();
    Fixture::new(&bytes)
}

#[test]
fn headers_one_after_another_are_read_together() {
    let fixture = many_small();
    let len = fixture.file.len().unwrap();
    for is_forwards in [true, false] {
        let reader = fixture.reader();
        let before = fixture.reads();
        let read = |at: &Expected| {
            let mut out = Vec::new();
            assert_eq!(reader.header(&at.place, &at.message, &mut out).unwrap(), Outcome::Done);
            assert_eq!(out, at.header());
        };
        match is_forwards {
            true => fixture.messages.iter().for_each(read),
            false => fixture.messages.iter().rev().for_each(read),
        }
        let reads = fixture.reads() - before;
        assert!(reads <= len / (200 << 10) + 8, "{reads} reads of {len} octets, forwards: {is_forwards}");
        assert_eq!(reader.slots().len(), 1);
        reader.release();
        assert_eq!(reader.slots().len(), 0);
    }
}

#[test]
fn a_large_message_in_small_ranges_is_read_once() {
    let bytes = message("Subject: x\nStatus: RO\n", "a line of text\n>From quoted\n\r\n", 50_000);
    let fixture = Fixture::new(&bytes);
    let (reader, at) = (fixture.reader(), &fixture.messages[0]);
    let before = fixture.reads();
    for (n, expected) in at.octets.chunks(1000).enumerate() {
        let from = n as u64 * 1000;
        let (outcome, given) = whole(&reader, at, from..from + expected.len() as u64).unwrap();
        assert!(outcome == Outcome::Done && given == expected, "from {from}");
    }
    let reads = fixture.reads() - before;
    assert!(reads <= bytes.len() as u64 / (64 << 10) + 4, "{reads} reads of {} octets", bytes.len());
}

#[test]
fn a_change_is_noticed() {
    let mut bytes = message("Subject: small\n", "text\n", 3);
    bytes.extend(message("Subject: large\n", "a line of text\n", 50_000));
    let fixture = Fixture::new(&bytes);
    let reader = fixture.reader();
    let [small, large] = &fixture.messages[..] else { panic!("two messages") };
    assert_eq!(whole(&reader, small, 0..10).unwrap().1, &small.octets[..10]);
    let mut given = Vec::new();
    let outcome = reader.range(&large.place, &large.message, 0..large.octets.len() as u64, &mut |piece| {
        if given.is_empty() {
            fixture.change();
        }
        given.extend_from_slice(piece);
        Ok(())
    });
    assert_eq!(outcome.unwrap(), Outcome::Changed { given: given.len() as u64 });
    assert!(!given.is_empty() && given.len() < large.octets.len() && large.octets.starts_with(&given));
    // What was read before the change is right.
    assert_eq!(whole(&reader, small, 5..20).unwrap(), (Outcome::Done, small.octets[5..20].to_vec()));
    reader.release();
    let mut out = b"x".to_vec();
    for at in [small, large] {
        assert_eq!(reader.header(&at.place, &at.message, &mut out).unwrap(), Outcome::Changed { given: 0 });
        assert_eq!(out, b"x");
        assert_eq!(whole(&reader, at, 3..9).unwrap().0, Outcome::Changed { given: 0 });
    }
    // Also one that makes it shorter than what is asked for.
    let (fixture, later) = (Fixture::new(&bytes), Fixture::new(&bytes));
    later.sim.env().clock.sleep(std::time::Duration::from_secs(1));
    later.file.set_len(10).unwrap();
    let reader = FileReader::new(later.file, Identity::of_file(&*fixture.file).unwrap());
    assert_eq!(whole(&reader, large, 3..9).unwrap().0, Outcome::Changed { given: 0 });
}

#[test]
fn what_is_not_as_the_log_knows_it_is_damage() {
    for times in [3, 50_000] {
        let fixture = Fixture::new(&message("Subject: x\n", "a line of text\n", times));
        let at = &fixture.messages[0];
        let octets = at.octets.len() as u64;
        let fails = |place: Place, message: ForeignMessage| {
            let at = Expected { place, message, octets: Vec::new() };
            let result = whole(&fixture.reader(), &at, 0..at.message.octets.into());
            assert_eq!(result.err().map(|error| error.kind()), Some(ErrorKind::Corrupt));
        };
        fails(at.place, ForeignMessage { digest: at.message.digest ^ 1, ..at.message });
        fails(at.place, ForeignMessage { header_octets: at.message.header_octets + 1, ..at.message });
        fails(at.place, ForeignMessage { octets: at.message.octets - 3, ..at.message });
        fails(at.place, ForeignMessage { octets: at.message.octets + 1, ..at.message });
        fails(Place { start: 1, ..at.place }, at.message);
        fails(Place { end: at.place.end + 9, ..at.place }, at.message);
        let mut out = Vec::new();
        let wrong = ForeignMessage { header_octets: at.message.header_octets + 1, ..at.message };
        assert_eq!(fixture.reader().header(&at.place, &wrong, &mut out).unwrap_err().kind(), ErrorKind::Corrupt);
        // Piece after piece, the last one says it.
        let at = Expected { message: ForeignMessage { digest: 7, ..at.message }, octets: Vec::new(), place: at.place };
        if times > 3 {
            let reader = fixture.reader();
            assert!(whole(&reader, &at, 0..octets / 2).is_ok());
            assert!(whole(&reader, &at, octets / 2..octets).is_err());
        }
    }
}

/// Programs complete the last line of a file, and give all lines other ends. A message stays as it became known.
#[test]
fn what_was_told_of_the_last_line_stays() {
    let ends = ["", "\r", "\n", "\r\n"];
    for (times, is_header_ended) in [(3, true), (20_000, true), (20_000, false)] {
        let with = |end: &str, is_crlf: bool| {
            let (header, body) =
                if is_header_ended { ("Subject: x\nStatus: O\n\n", "a line\n") } else { ("", "X-A: b\n") };
            let text = format!("From a@b Thu Aug 22 12:36:23 2002\n{header}{}X-B: c", body.repeat(times));
            let text = if is_crlf { text.replace('\n', "\r\n") } else { text };
            Fixture::new((text + end).as_bytes())
        };
        for (known, (end, is_crlf)) in ends.iter().flat_map(|known| ends.map(|end| (known, (end, end.len() == 2)))) {
            let expected = with(known, false).messages.remove(0);
            let fixture = with(end, is_crlf);
            let at = Expected { place: fixture.messages[0].place, ..expected };
            let (octets, what) = (at.octets.len() as u64, format!("{known:?} {end:?}, {times} {is_header_ended}"));
            assert_eq!(whole(&fixture.reader(), &at, 0..octets).unwrap(), (Outcome::Done, at.octets.clone()), "{what}");
            let mut header = Vec::new();
            assert_eq!(fixture.reader().header(&at.place, &at.message, &mut header).unwrap(), Outcome::Done, "{what}");
            assert!(header == at.header(), "{what}");
            // One piece after another, and only the end.
            let (reader, mut all) = (fixture.reader(), Vec::new());
            for cut in [0..octets / 3, octets / 3..octets - 1, octets - 1..octets] {
                all.extend(whole(&reader, &at, cut).unwrap().1);
            }
            assert!(all == at.octets, "{what}");
            for from in 1..4 {
                let last = whole(&fixture.reader(), &at, octets - from..octets).unwrap().1;
                assert_eq!(last, &at.octets[at.octets.len() - from as usize..], "{what}");
            }
        }
    }
}

#[test]
fn many_readers_at_once() {
    let mut bytes: Vec<u8> = (0..60).flat_map(|n| message(&format!("Subject: {n}\n"), "some text\n", 40 * n)).collect();
    bytes.extend((0..4).flat_map(|n| message(&format!("Subject: large {n}\n"), "a line of text\n>From x\n", 20_000)));
    let dir = tempfile::tempdir().unwrap();
    let disk = platform::Env::real().disk;
    let file = disk.open(&dir.path().join("box"), OpenMode::Create).unwrap();
    file.write_at(&bytes, 0).unwrap();
    let messages = Fixture::new(&bytes).messages;
    let reader = FileReader::new(Arc::clone(&file), Identity::of_file(&*file).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..12_u64 {
            let (reader, messages) = (&reader, &messages);
            scope.spawn(move || {
                let mut random = platform::Prng::new(thread);
                for n in 0..150 {
                    let index = if thread % 2 == 0 { n } else { random.below(messages.len() as u64) as usize };
                    let at = &messages[index % messages.len()];
                    let octets = at.octets.len() as u64;
                    let from = random.below(octets);
                    let range = if n % 5 == 0 { 0..octets } else { from..octets.min(from + 40_000) };
                    let expected = &at.octets[range.start as usize..range.end as usize];
                    let (outcome, given) = whole(reader, at, range).unwrap();
                    assert!(outcome == Outcome::Done && given == expected);
                    let mut out = Vec::new();
                    assert_eq!(reader.header(&at.place, &at.message, &mut out).unwrap(), Outcome::Done);
                    assert_eq!(out, at.header());
                }
            });
        }
    });
    assert!(reader.slots().len() <= SLOTS_MAX);
}
