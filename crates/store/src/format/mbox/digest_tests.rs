//! The digest on messages made to be difficult, and its properties on messages made at random.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::format::mbox::fields::served_header;

const UNQUOTE: Form = Form { convert: true, unquote: true };
const KEEP: Form = Form { convert: true, unquote: false };

/// By the rule, with everything in memory.
fn canonical(content: &[u8], form: Form) -> (Vec<u8>, Vec<u8>, usize) {
    let (header, body) = content.split_at(mime::header_len(content));
    let mut served = Vec::new();
    served_header(header, form, &mut served);
    let header_octets = served.len();
    let mut normaliser = Normaliser::new(form);
    normaliser.push(body, &mut served);
    normaliser.finish(&mut served);
    let mut octets = served.clone();
    if octets.last() != Some(&b'\n') {
        octets.push(b'\n');
    }
    let mut canonical = Vec::new();
    let mut rest = &octets[..];
    while let Some((byte, after)) = rest.split_first() {
        if !rest.starts_with(b"\r\n") {
            canonical.push(*byte);
        }
        rest = after;
    }
    (canonical, served, header_octets)
}

fn of(content: &[u8], form: Form) -> Measured {
    WholeMeasure::default().measure(content, mime::header_len(content), form, true, true)
}

fn in_pieces(content: &[u8], form: Form, piece: usize) -> Measured {
    let mut measure = Measure::new(form.unquote);
    content.chunks(piece).for_each(|piece| measure.push(piece));
    measure.finish(true)
}

fn of_served(served: &[u8], piece: usize) -> u64 {
    let mut digest = DigestOfServed::new();
    served.chunks(piece).for_each(|piece| digest.push(piece));
    digest.finish()
}

#[test]
fn known_answers() {
    for (content, form, canonical, octets, header_octets) in [
        ("A: 1\n\nx\n", UNQUOTE, "A: 1\n\nx\n", 11, 8),
        ("A: 1\r\n\r\nx\r\n", UNQUOTE, "A: 1\n\nx\n", 11, 8),
        ("Status: R\nA: 1\nX-UID: 1\n 2\n\nx\n", UNQUOTE, "A: 1\n\nx\n", 11, 8),
        ("A: 1\nX-Mailyard-Filler: x\n\nx", UNQUOTE, "A: 1\n\nx\n", 9, 8),
        (">From a\n\n>From b\n>>From c\n", UNQUOTE, "From a\n\nFrom b\n>From c\n", 27, 10),
        (">From a\n\n>From b\n>>From c\n", KEEP, ">From a\n\n>From b\n>>From c\n", 30, 11),
        ("A: 1\n\nx\r", UNQUOTE, "A: 1\n\nx\n", 10, 8),
        ("A: 1\n\nx\ry\r\r\n", UNQUOTE, "A: 1\n\nx\ry\r\n", 14, 8),
        ("A: 1\n", UNQUOTE, "A: 1\n\n", 8, 8),
        ("X-UID", UNQUOTE, "X-UID\n\n", 9, 9),
        ("A: 1\r", UNQUOTE, "A: 1\n\n", 8, 8),
        ("A: 1\n\r", UNQUOTE, "A: 1\n\n", 8, 8),
        ("A: 1\nX-UID: 1", UNQUOTE, "A: 1\n\n", 8, 8),
        ("X-UID: 1", UNQUOTE, "\n", 2, 2),
        ("", UNQUOTE, "\n", 2, 2),
        ("\n", UNQUOTE, "\n", 2, 2),
    ] {
        let measured = of(content.as_bytes(), form);
        let expected = (xxh3_64(canonical.as_bytes()), octets, header_octets);
        assert_eq!((measured.digest, measured.octets, measured.header_octets), expected, "{content:?}");
    }
}

/// It is written on disk, in logs and maps: it must never be another.
#[test]
fn the_digest_is_for_ever() {
    assert_eq!(of(b"Subject: x\nX-UID: 7\n\nHello\n", UNQUOTE).digest, 0xfa65_5bf5_21e8_ac4d);
    assert_eq!(of_served(b"Subject: x\r\n\r\nHello\r\n", 3), 0xfa65_5bf5_21e8_ac4d);
}

#[test]
fn fields_beyond_the_limit_are_hidden_but_not_read() {
    let long = format!("X-Keywords: {}\nX-UID: 7\n\nx\n", "a ".repeat(FIELD_BYTES_MAX / 2));
    let measured = of(long.as_bytes(), UNQUOTE);
    assert_eq!((measured.octets, measured.header_octets, measured.meta.uid), (5, 2, None));
    assert_eq!(measured, in_pieces(long.as_bytes(), UNQUOTE, 1000));
    let crlf = long.replace('\n', "\r\n").replace("a ", "a\r\n ");
    assert_eq!(of(crlf.as_bytes(), UNQUOTE), in_pieces(crlf.as_bytes(), UNQUOTE, 1000));
    let filler = format!("X-Mailyard-Filler: {}\nX-UID: 7\n\nx\n", "a ".repeat(FIELD_BYTES_MAX / 2));
    let measured = of(filler.as_bytes(), UNQUOTE);
    assert_eq!((measured.octets, measured.meta.uid), (5, Some(7)));
    assert_eq!(measured, in_pieces(filler.as_bytes(), UNQUOTE, 1000));
}

const ANYTHING: &str = "(Status: RO\n|X-UID: 7 |X-Keywords: a b\n|x-imapbase: 5 6\n|Content-Length|Subject: x\n|\n >+From |[>From :\r\na\u{0}\u{e9}]|\n\n|\r\n\r\n){0,30}";

proptest::proptest! {
    #[test]
    fn every_way_is_the_rule(content in ANYTHING, unquote: bool, piece in 1usize..50) {
        let content = content.as_bytes();
        let form = Form { convert: true, unquote };
        let (canonical, served, header_octets) = canonical(content, form);
        let measured = of(content, form);
        proptest::prop_assert_eq!(measured.digest, xxh3_64(&canonical));
        proptest::prop_assert_eq!(measured.octets, served.len() as u64);
        proptest::prop_assert_eq!(measured.header_octets, header_octets as u64);
        proptest::prop_assert_eq!(measured.header_octets, mime::header_len(&served) as u64);
        proptest::prop_assert_eq!(&in_pieces(content, form, piece), &measured);
        proptest::prop_assert_eq!(of_served(&served, piece), measured.digest);
        let header: Vec<MetaField> = meta_fields(content).collect();
        proptest::prop_assert_eq!(measured.meta, values::meta(content, &header, true));
    }

    /// Line ends, quoting and the fields that programs write do not make another message; anything else does.
    #[test]
    fn what_makes_another_message(
        header in proptest::collection::vec("(Subject|To|X-U|Statusx|Content-Lengths): [a-z]{0,9}(\n [a-z]{1,5})?", 0..5),
        body in "([a-z]{0,5}|>{0,2}From x|\n){0,6}",
        fields in proptest::collection::vec((0..MetaName::ALL.len(), 0usize..6, "[0-9 a-zRO\t]{0,9}(\n [a-z]{0,5}| {0,40})"), 0..6),
        change in 0.0..1.0,
    ) {
        let plain = format!("{}\n{body}\n", header.iter().map(|line| format!("{line}\n")).collect::<String>());
        let digest = of(plain.as_bytes(), KEEP).digest;

        let mut lines = header.clone();
        for (name, at, value) in fields {
            lines.insert(at.min(lines.len()), format!("{}:{value}", MetaName::ALL[name].1));
        }
        let noted = format!("{}\n{body}\n", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        let quoted: String = noted.split_inclusive('\n').map(|line| {
            let is_from = line.trim_start_matches('>').starts_with("From ");
            if is_from { format!(">{line}") } else { line.to_owned() }
        }).collect();
        for (text, form) in [(noted, KEEP), (quoted, UNQUOTE)] {
            proptest::prop_assert_eq!(of(text.as_bytes(), form).digest, digest);
            proptest::prop_assert_eq!(of(text.replace('\n', "\r\n").as_bytes(), form).digest, digest);
        }

        let mut other = plain.clone().into_bytes();
        let at = ((other.len() as f64 * change) as usize).min(other.len() - 1);
        other[at] = if other[at] == b'q' { b'p' } else { b'q' };
        proptest::prop_assert_ne!(of(&other, KEEP).digest, digest);
        proptest::prop_assert_ne!(of(format!("{plain}\n").as_bytes(), KEEP).digest, digest);
    }
}
