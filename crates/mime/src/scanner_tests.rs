//! Tests of the scanner: known answers, limits, cuts, and the invariants of [`crate::Structure`].

#![allow(clippy::unwrap_used)]
use super::*;
use crate::Section;
use proptest::prelude::*;

/// The structure as one line: type, body octets and lines, children.
fn shape(part: &Part) -> String {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).to_lowercase();
    let mut out =
        format!("{}/{} {}/{}", text(&part.media_type), text(&part.media_subtype), part.body_size(), part.body_lines);
    match &part.content {
        Content::Leaf => {}
        Content::Multipart(children) => {
            let children: Vec<_> = children.iter().map(shape).collect();
            out += &format!(" [{}]", children.join(", "));
        }
        Content::Message(message) => out += &format!(" <{}>", shape(&message.root)),
    }
    out
}

fn kinds(defects: &[Defect]) -> Vec<DefectKind> {
    defects.iter().map(|defect| defect.kind).collect()
}

fn check(message: &[u8], expected: &str, defects: &[DefectKind]) -> Structure {
    let (structure, found) = scan(message);
    assert_eq!(shape(&structure.message.root), expected, "{}", String::from_utf8_lossy(message));
    assert_eq!(kinds(&found), defects, "{}", String::from_utf8_lossy(message));
    check_invariants(message, &structure);
    check_cuts(message, &Limits::default());
    structure
}

/// Ranges nest, stand in order and cover the message.
fn check_invariants(message: &[u8], structure: &Structure) {
    assert_eq!(structure.message.root.header.start, 0);
    assert_eq!(structure.size(), message.len() as u64);
    for part in structure.parts() {
        assert!(part.header.start <= part.header.end && part.header.end == part.body.start, "{part:?}");
        assert!(part.body.start <= part.body.end && part.body.end <= message.len() as u64, "{part:?}");
        let body = &message[part.body.start as usize..part.body.end as usize];
        assert_eq!(part.body_lines, body.iter().filter(|octet| **octet == b'\n').count() as u64, "{part:?}");
        let mut inner: Vec<&Part> = Vec::new();
        match &part.content {
            Content::Leaf => {}
            Content::Multipart(children) => {
                assert!(!children.is_empty());
                inner.extend(children);
            }
            Content::Message(message) => {
                inner.push(&message.root);
                assert_eq!((message.root.header.start, message.root.body.end), (part.body.start, part.body.end));
            }
        }
        let mut at = part.body.start;
        for child in inner {
            assert!(child.header.start >= at, "{part:?}");
            at = child.body.end;
        }
        assert!(at <= part.body.end, "{part:?}");
    }
    assert_eq!(Structure::decode(&structure.encode()).as_ref(), Ok(structure));
}

/// Cut in two at every octet, and into single octets: always the same.
fn check_cuts(message: &[u8], limits: &Limits) {
    let scan_pieces = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut scanner = Scanner::with_limits(limits.clone());
        pieces.for_each(|piece| scanner.push(piece));
        scanner.finish()
    };
    let whole = scan_pieces(&mut std::iter::once(message));
    for at in 0..=message.len() {
        let (head, tail) = message.split_at(at);
        assert_eq!(scan_pieces(&mut [head, tail].into_iter()), whole, "cut at {at}");
    }
    assert_eq!(scan_pieces(&mut message.chunks(1)), whole);
    assert_eq!(scan_pieces(&mut message.chunks(3)), whole);
}

use DefectKind::*;

#[test]
fn simple_messages() {
    check(b"", "text/plain 0/0", &[HeaderWithoutEnd]);
    check(b"\n", "text/plain 0/0", &[]);
    check(b"\r\nx\r\ny", "text/plain 4/1", &[]);
    check(b"A: 1\n\nx\n", "text/plain 2/1", &[]);
    check(b"A: 1\r\n", "text/plain 0/0", &[HeaderWithoutEnd]);
    check(b"A: 1", "text/plain 0/0", &[HeaderWithoutEnd]);
    check(b"no header at all\nreally\n\nbody\n", "text/plain 5/1", &[JunkInHeader]);
    check(b"From x\nA: 1\n\n", "text/plain 0/0", &[]);
    check(b"Subject: \xe9\0\n\nx", "text/plain 1/0", &[RawEightBitHeader, NulInHeader]);
    check(b"Content-Type: text/html\n\nx", "text/html 1/0", &[]);
    check(b"Content-Type: html\n\nx", "text/plain 1/0", &[BadContentType]);
    check(b"Content-Type: text/html\nContent-Type: a/b\n\nx", "text/html 1/0", &[]);
}

#[test]
fn fields_of_a_part() {
    let structure = check(
        b"Content-Type: Text/Plain; Charset=\"utf-8\"; x*0=a; x*1=b\r\nContent-Transfer-Encoding: Base64 (yes)\r\n\
          Content-ID: <1@x>\r\nContent-Description: a\r\n b\r\nContent-MD5: Q2hlY2s=\r\nContent-Language: de, en\r\n\
          Content-Location: http://x/\r\nContent-Disposition: Attachment; filename*=utf-8''%C3%A9\r\nSubject: s\r\n\r\n",
        "text/plain 0/0",
        &[],
    );
    let root = &structure.message.root;
    assert_eq!(root.encoding, b"BASE64");
    assert_eq!(root.transfer_encoding(), Encoding::Base64);
    assert_eq!(root.parameter("charset").unwrap(), "utf-8");
    assert_eq!(root.parameter("x").unwrap(), "ab");
    assert_eq!(root.id.as_deref(), Some(&b"<1@x>"[..]));
    assert_eq!(root.description.as_deref(), Some(&b"a b"[..]));
    assert_eq!(root.md5.as_deref(), Some(&b"Q2hlY2s="[..]));
    assert_eq!(root.language, [b"de", b"en"]);
    assert_eq!(root.location.as_deref(), Some(&b"http://x/"[..]));
    assert_eq!(root.disposition.as_ref().unwrap().kind, b"ATTACHMENT");
    assert_eq!(root.filename().unwrap(), "\u{e9}");
    assert_eq!(structure.message.envelope.subject.as_deref(), Some(&b"s"[..]));
}

#[test]
fn multiparts() {
    let head = "Content-Type: multipart/mixed; boundary=b\n\n";
    let with = |body: &str| format!("{head}{body}").into_bytes();
    check(&with("--b\n\nx\n--b\n\ny\nz\n--b--\n"), "multipart/mixed 22/8 [text/plain 1/0, text/plain 3/1]", &[]);
    check(&with("pre\r\n--b\r\n\r\nx\r\n--b--\r\npost\r\n"), "multipart/mixed 28/6 [text/plain 1/0]", &[]);
    // White space after the boundary, text after it (RFC 2046 §5.1.2), no line end at the end.
    check(&with("--b  \n\nx\n--bb\n\ny\n--b--"), "multipart/mixed 22/6 [text/plain 1/0, text/plain 1/0]", &[]);
    check(&with("--b\n\nx"), "multipart/mixed 6/2 [text/plain 1/0]", &[MultipartWithoutEnd]);
    check(&with("--b\n\n--b--\n"), "multipart/mixed 11/3 [text/plain 0/0]", &[]);
    check(&with("--b\n--b--\n"), "multipart/mixed 10/2 [text/plain 0/0]", &[HeaderWithoutEnd]);
    check(&with("--b\nContent-Type: a/b\n--b--\n"), "multipart/mixed 28/3 [a/b 0/0]", &[HeaderWithoutEnd]);
    check(&with("--b"), "multipart/mixed 3/0 [text/plain 3/0]", &[MultipartWithoutParts]);
    check(&with("--b--"), "multipart/mixed 5/0 [text/plain 5/0]", &[MultipartWithoutParts]);
    check(&with("just text\n"), "multipart/mixed 10/1 [text/plain 10/1]", &[MultipartWithoutParts]);
    check(&with(""), "multipart/mixed 0/0 [text/plain 0/0]", &[MultipartWithoutParts]);
    check(&with("-\n--\n--x\n -b\n--b\n\n-\n-- b\n--b--\n"), "multipart/mixed 31/9 [text/plain 6/1]", &[]);
    // After the end, its delimiter means nothing.
    check(&with("--b\n\nx\n--b--\n--b\n\ny\n"), "multipart/mixed 20/7 [text/plain 1/0]", &[]);
    check(b"Content-Type: multipart/mixed\n\n--b\n\nx\n--b--\n", "text/plain 13/4", &[MultipartWithoutBoundary]);
    check(b"Content-Type: multipart; boundary=b\n\n--b\n\nx\n--b--", "multipart/mixed 12/3 [text/plain 1/0]", &[]);
    check(
        b"Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: x\n\ny\n--b--",
        "multipart/digest 24/5 [message/rfc822 13/2 <text/plain 1/0>]",
        &[],
    );
}

#[test]
fn nested_multiparts() {
    let head = "Content-Type: multipart/mixed; boundary=out\r\n\r\n";
    let inner = "--out\r\nContent-Type: multipart/alternative; boundary=outer2\r\n\r\n";
    let with = |body: &str| format!("{head}{inner}{body}").into_bytes();
    // The longer boundary wins although both begin alike.
    check(
        &with("--outer2\r\n\r\na\r\n--outer2\r\n\r\nb\r\n--outer2--\r\n--out\r\n\r\nc\r\n--out--\r\n"),
        "multipart/mixed 126/14 [multipart/alternative 40/6 [text/plain 1/0, text/plain 1/0], text/plain 1/0]",
        &[],
    );
    // The inner one never ends.
    check(
        &with("--outer2\r\n\r\na\r\n--out\r\n\r\nc\r\n--out--\r\n"),
        "multipart/mixed 99/10 [multipart/alternative 13/2 [text/plain 1/0], text/plain 1/0]",
        &[MultipartWithoutEnd],
    );
    // The outer delimiter comes at once.
    check(
        &with("--out\r\n\r\nc\r\n--out--\r\n"),
        "multipart/mixed 84/7 [multipart/alternative 0/0 [text/plain 0/0], text/plain 1/0]",
        &[MultipartWithoutParts],
    );
    check(
        &with("--outer2\r\n\r\n--out--\r\n"),
        "multipart/mixed 84/6 [multipart/alternative 12/2 [text/plain 0/0]]",
        &[MultipartWithoutEnd],
    );
}

#[test]
fn messages_inside() {
    let structure = check(
        b"Subject: out\n\
          Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\n\
          From: a@b\nSubject: in\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nx\n--c--\n--b--\n",
        "multipart/mixed 118/12 [message/rfc822 77/7 <multipart/mixed 12/3 [text/plain 1/0]>]",
        &[],
    );
    let Content::Multipart(children) = &structure.message.root.content else { panic!() };
    let Content::Message(inner) = &children[0].content else { panic!() };
    assert_eq!(inner.envelope.subject.as_deref(), Some(&b"in"[..]));
    assert_eq!(inner.envelope.sender, inner.envelope.from);
    check(b"Content-Type: message/rfc822\n\n", "message/rfc822 0/0 <text/plain 0/0>", &[HeaderWithoutEnd]);
    check(
        b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogeA==\n",
        "message/rfc822 17/1 <text/plain 0/0>",
        &[EncodedComposite, HeaderWithoutEnd, JunkInHeader],
    );
    // A delimiter inside the header of a nested message.
    check(
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nSubject: x\n--b\n\ny\n--b--\n",
        "multipart/mixed 58/8 [message/rfc822 11/1 <text/plain 0/0>, text/plain 1/0]",
        &[HeaderWithoutEnd],
    );
}

/// The example of RFC 9051 §6.4.5.1, with its part numbers.
#[test]
fn part_numbers() {
    let message = b"Content-Type: multipart/mixed; boundary=a\n\n\
        --a\n\none\n\
        --a\nContent-Type: application/octet-stream\n\ntwo\n\
        --a\nContent-Type: message/rfc822\nX: 3\n\nSubject: three\nContent-Type: multipart/mixed; boundary=b\n\n\
        --b\n\nthree-one\n--b\nContent-Type: application/x\n\nthree-two\n--b--\n\
        --a\nContent-Type: multipart/mixed; boundary=c\n\n\
        --c\nContent-Type: image/gif\n\nfour-one\n\
        --c\nContent-Type: message/rfc822\n\nSubject: four-two\nContent-Type: multipart/mixed; boundary=d\n\n\
        --d\n\nfour-two-one\n\
        --d\nContent-Type: multipart/alternative; boundary=e\n\n--e\n\nfour-two-two-one\n--e--\n--d--\n--c--\n--a--\n";
    let structure = scan(message).0;
    check_invariants(message, &structure);
    let text = |number: &[u32], section| {
        let range = structure.section(number, section)?;
        Some(std::str::from_utf8(&message[range.start as usize..range.end as usize]).unwrap())
    };
    assert_eq!(text(&[1], Section::Whole), Some("one"));
    assert_eq!(text(&[2], Section::Whole), Some("two"));
    assert!(text(&[3], Section::Whole).unwrap().starts_with("Subject: three\n"));
    assert_eq!(text(&[3], Section::Mime), Some("Content-Type: message/rfc822\nX: 3\n\n"));
    assert_eq!(text(&[3], Section::Header), Some("Subject: three\nContent-Type: multipart/mixed; boundary=b\n\n"));
    assert!(text(&[3], Section::Text).unwrap().starts_with("--b\n"));
    assert_eq!(text(&[3, 1], Section::Whole), Some("three-one"));
    assert_eq!(text(&[3, 2], Section::Mime), Some("Content-Type: application/x\n\n"));
    assert_eq!(text(&[4, 1], Section::Mime), Some("Content-Type: image/gif\n\n"));
    assert_eq!(text(&[4, 2, 1], Section::Whole), Some("four-two-one"));
    assert_eq!(text(&[4, 2, 2, 1], Section::Whole), Some("four-two-two-one"));
    assert!(text(&[4, 2], Section::Header).unwrap().starts_with("Subject: four-two\n"));
    assert_eq!(text(&[], Section::Whole).unwrap().len(), message.len());
    assert!(text(&[], Section::Text).unwrap().starts_with("--a\n"));
    for (number, section) in [
        (&[5][..], Section::Whole),
        (&[0], Section::Whole),
        (&[1, 1], Section::Whole),
        (&[1], Section::Header),
        (&[4], Section::Text),
        (&[], Section::Mime),
        (&[3, 3], Section::Whole),
        (&[3, 1, 1], Section::Whole),
        (&[u32::MAX], Section::Whole),
    ] {
        assert_eq!(text(number, section), None, "{number:?} {section:?}");
    }
}

#[test]
fn part_numbers_without_multipart() {
    let plain = scan(b"A: 1\n\nbody").0;
    assert_eq!(plain.section(&[1], Section::Whole), Some(6..10));
    assert_eq!(plain.section(&[1], Section::Mime), Some(0..6));
    assert_eq!(plain.section(&[], Section::Text), Some(6..10));
    assert_eq!(plain.section(&[2], Section::Whole), None);
    assert_eq!(plain.section(&[1, 1], Section::Whole), None);
    // The message is itself a message/rfc822, which holds a plain one.
    let nested = scan(b"Content-Type: message/rfc822\n\nB: 2\n\nbody").0;
    assert_eq!(nested.section(&[1], Section::Whole), Some(30..40));
    assert_eq!(nested.section(&[1], Section::Header), Some(30..36));
    assert_eq!(nested.section(&[1, 1], Section::Whole), Some(36..40));
    assert_eq!(nested.section(&[1, 1], Section::Mime), Some(30..36));
    assert_eq!(nested.section(&[1, 1, 1], Section::Whole), None);
}

#[test]
fn limit_on_depth() {
    let limits = Limits { depth_max: 2, ..Limits::default() };
    let nested = |levels: usize| {
        let mut message = String::new();
        for level in 0..levels {
            message += &format!("Content-Type: multipart/mixed; boundary=b{level}.\n\n--b{level}.\n");
        }
        (message + "\nx\n").into_bytes()
    };
    let run = |message: &[u8]| {
        let mut scanner = Scanner::with_limits(limits.clone());
        scanner.push(message);
        scanner.finish()
    };
    let (_, defects) = run(&nested(2));
    assert_eq!(kinds(&defects), [MultipartWithoutEnd; 2]);
    let (structure, defects) = run(&nested(3));
    assert!(kinds(&defects).contains(&TooDeep));
    assert!(shape(&structure.message.root).contains("application/octet-stream"));
    check_invariants(&nested(3), &structure);
    check_cuts(&nested(3), &limits);
    // Far beyond: no deep recursion anywhere.
    for deep in [nested(10_000), b"Content-Type: message/rfc822\n\n".repeat(10_000)] {
        let (structure, _) = scan(&deep);
        check_invariants(&deep, &structure);
    }
}

#[test]
fn limit_on_parts() {
    let limits = Limits { parts_max: 3, ..Limits::default() };
    let message = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\n1\n--b\n\n2\n--b\n\n3\n--b--\n";
    let mut scanner = Scanner::with_limits(limits.clone());
    scanner.push(message);
    let (structure, defects) = scanner.finish();
    assert_eq!(shape(&structure.message.root), "multipart/mixed 27/10 [text/plain 1/0, text/plain 15/5]");
    assert_eq!(kinds(&defects), [TooManyParts, MultipartWithoutEnd]);
    check_cuts(message, &limits);
}

#[test]
fn limits_on_headers() {
    let limits =
        Limits { header_bytes_max: 20, headers_max: 2, parameters_max: 1, addresses_max: 2, ..Limits::default() };
    let run = |message: &[u8]| {
        check_cuts(message, &limits);
        let mut scanner = Scanner::with_limits(limits.clone());
        scanner.push(message);
        scanner.finish()
    };
    let (structure, defects) = run(b"Subject: 890123456\n\nbody");
    assert_eq!(structure.message.envelope.subject.as_deref(), Some(&b"890123456"[..]));
    assert_eq!(defects, []);
    let (structure, defects) = run(b"Date: x\nSubject: 890123456\n\nbody");
    assert_eq!(structure.message.envelope.date.as_deref(), Some(&b"x"[..]));
    assert_eq!(structure.message.envelope.subject, None);
    assert_eq!(structure.message.root.body, 28..32);
    assert_eq!(kinds(&defects), [HeaderTooLong]);
    let (structure, defects) = run(b"a: 1\nb: 2\nDate: 3\n\n");
    assert_eq!(structure.message.envelope.date, None);
    assert_eq!(kinds(&defects), [TooManyHeaders]);
    let (structure, defects) = run(b"To: a@b,c@d,e@f\n\n");
    assert_eq!(structure.message.envelope.to.len(), 2);
    assert_eq!(kinds(&defects), [TooManyAddresses]);
    let limits = Limits { parameters_max: 1, ..Limits::default() };
    let mut scanner = Scanner::with_limits(limits);
    scanner.push(b"Content-Type: a/b; c=1; d=2\n\n");
    let (structure, defects) = scanner.finish();
    assert_eq!(structure.message.root.parameters.len(), 1);
    assert_eq!(kinds(&defects), [TooManyParameters]);
}

#[test]
fn long_lines_are_not_held() {
    let mut message = b"Content-Type: multipart/mixed; boundary=b\n\n--b".to_vec();
    message.extend(b" ".repeat(100_000));
    message.extend_from_slice(b"\n\n--");
    message.extend(b"y".repeat(100_000));
    message.extend_from_slice(b"\r\n--b--\n");
    let (structure, defects) = scan(&message);
    assert_eq!(shape(&structure.message.root), "multipart/mixed 200015/4 [text/plain 100002/0]");
    assert_eq!(defects, []);
    check_invariants(&message, &structure);
}

/// Lines that mean something to the scanner, and junk.
fn junk() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("--a"),
        Just("--a--"),
        Just("--ab"),
        Just("--ab--"),
        Just(""),
        Just("text"),
        Just("-"),
        Just("--"),
        Just("Content-Type: multipart/mixed; boundary=a"),
        Just("Content-Type: multipart/digest; boundary=ab"),
        Just("Content-Type: message/rfc822"),
        Just("Content-Type: text/html; charset=x"),
        Just("Subject: =?x?q?"),
        Just("To: a@b, \"c"),
        Just(" folded"),
        Just("\0\u{e9}"),
        Just("\r"),
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r"), Just("")];
    let lines = proptest::collection::vec((line, end), 0..30);
    (any::<bool>(), lines).prop_map(|(is_multipart, lines)| {
        let mut message = Vec::new();
        if is_multipart {
            message.extend_from_slice(b"Content-Type: multipart/mixed; boundary=a\n\n");
        }
        for (line, end) in lines {
            message.extend_from_slice(line.as_bytes());
            message.extend_from_slice(end.as_bytes());
        }
        message
    })
}

proptest! {
    #[test]
    fn structured_junk(message in junk()) {
        check_invariants(&message, &scan(&message).0);
        check_cuts(&message, &Limits::default());
        check_cuts(&message, &Limits { parts_max: 3, depth_max: 2, header_bytes_max: 50, ..Limits::default() });
    }

    #[test]
    fn any_octets(message in proptest::collection::vec(any::<u8>(), 0..300)) {
        check_invariants(&message, &scan(&message).0);
        check_cuts(&message, &Limits::default());
    }
}

#[test]
fn limit_on_all_headers_together() {
    // The header of the message, 30 octets, and that of the message in it, 17 with the empty line.
    let message = b"Content-Type: message/rfc822\n\nSubject: 012345\n\nx";
    let is_cut = |header_bytes_total_max: usize| {
        let limits = Limits { header_bytes_total_max, ..Limits::default() };
        check_cuts(message, &limits);
        let mut scanner = Scanner::with_limits(limits);
        scanner.push(message);
        let (structure, defects) = scanner.finish();
        check_invariants(message, &structure);
        kinds(&defects).contains(&HeaderTooLong)
    };
    let fits = (0..=message.len()).find(|max| !is_cut(*max)).unwrap();
    assert!((45..=48).contains(&fits), "{fits}");
    assert!(is_cut(fits - 1));
}

#[test]
fn limit_on_defects() {
    // Two defects: a line that is no field, and a multipart without an end.
    let count = |defects_max: usize| {
        let mut scanner = Scanner::with_limits(Limits { defects_max, ..Limits::default() });
        scanner.push(b"no field\nContent-Type: multipart/mixed; boundary=b\n\n");
        scanner.finish().1.len()
    };
    assert_eq!([0, 1, 2, 3].map(count), [0, 1, 2, 2]);
}
