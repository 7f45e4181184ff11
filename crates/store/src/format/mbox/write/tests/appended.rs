//! Messages that are added.

use super::*;

fn empty() -> World {
    World::new(1, b"", Settings::default())
}

fn new(id: u64, served: Vec<u8>) -> New {
    let wanted = Wanted { uid: id as u32, flags: FileFlags::SEEN, keywords: Vec::new() };
    New { id, served, wanted, date: DateTime::utc(1_030_019_783), piece: 100_000 }
}

fn work(append: Vec<New>) -> Work {
    let base = ImapBase { uid_validity: 7, last_uid: 9, keywords: Vec::new() };
    Work { fates: vec![Fate::Keep; 100], append, base }
}

#[test]
fn octet_by_octet() {
    let world = empty();
    let served = "Return-Path: <ann@example.org>\r\nStatus: x\r\nSubject: s\r\n\r\nFrom me\r\n>From you\r\n";
    let (written, _) = world.write_back(&[], &work(vec![new(3, served.into())])).unwrap();
    assert_eq!((written.appended, written.file_bytes), (1, written.appended_bytes));
    let padding = " ".repeat(50);
    let expected = format!(
        "From ann@example.org Thu Aug 22 12:36:23 2002\nReturn-Path: <ann@example.org>\nSubject: s\nX-IMAPbase: 7 \
         0000000009{padding}\nX-UID: 3\nStatus: R \nX-Status:     \nX-Keywords: {padding}\nContent-Length: \
         20\n\n>From me\n>>From you\n\n"
    );
    assert_eq!(String::from_utf8(world.content()).unwrap(), expected);
}

/// Larger than what is held in memory: a body, a header without an end, a last line without one.
#[test]
fn large_messages_are_streamed() {
    let line = b"0123456789 a line of text that is long enough to be one\r\n>From x\r\n".as_slice();
    let bodies = [line.repeat(60_000), [&line.repeat(60_000)[..], b"end\r"].concat()];
    for header in [b"Subject: x\r\n\r\n".as_slice(), b"", b" continued\r\n"] {
        for body in &bodies {
            let served = [header, body.as_slice()].concat();
            let world = World::new(1, b"From x Thu Aug 22 12:36:23 2002\n\nold", Settings::default());
            let before = world.look().unwrap();
            let append =
                vec![new(2, b"Subject: small\r\n\r\n".to_vec()), new(3, served.clone()), new(4, b"\r\nx".to_vec())];
            let work = work(append);
            let (written, placed) = world.write_back(&[before[0].place(0)], &work).unwrap();
            let after = world.look().unwrap();
            assert_eq!((written.appended, after.len()), (3, 4));
            for (new, seen) in work.append.iter().zip(&after[1..]) {
                assert_eq!(new.digest(), seen.measured.digest);
            }
            let found: Vec<Place> = after.iter().zip([0, 2, 3, 4]).map(|(seen, id)| seen.place(id)).collect();
            let without_fields = |place: &Place| Place { flags: FileFlags::default(), keywords: 0, ..*place };
            assert!(placed.iter().map(without_fields).eq(found.iter().map(without_fields)));
        }
    }
}

/// The first message is not among those that are given.
#[test]
fn the_last_uid_is_raised() {
    let padding = " ".repeat(50);
    let first = format!("From a Thu Aug 22 12:36:23 2002\nX-IMAPbase: 7 0000000002 x{padding}\n\n1\n\n");
    let world =
        World::new(1, format!("{first}From b Thu Aug 22 12:36:23 2002\n\n2\n\n").as_bytes(), Settings::default());
    let last = world.look().unwrap()[1].place(1);
    let (written, placed) = world.write_back(&[last], &work(vec![new(9, b"\r\n3\r\n".to_vec())])).unwrap();
    assert_eq!((placed.len(), placed[0]), (2, last));
    let after = world.look().unwrap();
    assert_eq!(after[0].measured.meta.base.as_ref().unwrap().last_uid, 9);
    assert!(after.len() == 3 && world.recover().unwrap().fields_count);
    written.unsettled.settle().unwrap();
}

proptest::proptest! {
    /// Cut anywhere, the octets become the same, and what is served of them is what was put in, but for bare LFs.
    #[test]
    fn quoting_can_be_taken_back(text in "((From )|>|[Frax: ]|\r|\n|\r\n|From x\r\n){0,40}", cut in 0usize..80, is_crlf: bool) {
        use crate::format::served::{Form, Normaliser};
        use super::super::render::Quoter;
        let text = text.as_bytes();
        let quoted = |pieces: &[&[u8]]| {
            let (mut quoter, mut out) = (Quoter::new(is_crlf), Vec::new());
            pieces.iter().for_each(|piece| quoter.push(piece, &mut out));
            quoter.finish(&mut out);
            out
        };
        let all = quoted(&[text]);
        let (one, other) = text.split_at(cut.min(text.len()));
        proptest::prop_assert_eq!(&quoted(&[one, other]), &all);
        proptest::prop_assert_eq!(&quoted(&text.chunks(1).collect::<Vec<_>>()), &all);
        let serve = |octets: &[u8], unquote| {
            let (mut normaliser, mut out) = (Normaliser::new(Form { convert: true, unquote }), Vec::new());
            normaliser.push(octets, &mut out);
            normaliser.finish(&mut out);
            out
        };
        proptest::prop_assert_eq!(serve(&all, true), serve(text, false));
        proptest::prop_assert!(!all.starts_with(b"From ") && !all.windows(6).any(|line| line == b"\nFrom "));
    }
}
