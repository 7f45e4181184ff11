//! Everything public, on octets that look like mail and are not: nothing panics, and what has a stated bound
//! keeps it.

#![allow(clippy::unwrap_used)]
use mailyard_mime::*;
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Counts what it is given.
#[derive(Default)]
struct Count {
    octets: usize,
    boundaries: usize,
}

impl TextSink for Count {
    fn text(&mut self, chunk: &str) -> ControlFlow<()> {
        self.octets += chunk.len();
        ControlFlow::Continue(())
    }
    fn boundary(&mut self) -> ControlFlow<()> {
        self.boundaries += 1;
        ControlFlow::Continue(())
    }
}

fn everything(message: &[u8]) {
    let (structure, _) = scan(message);
    assert_eq!(Structure::decode(&structure.encode()).unwrap(), structure);
    assert_eq!(structure.message.root.header.end, header_len(message) as u64);

    assert!(preview(message, &structure).chars().count() <= PREVIEW_CHARS_MAX);
    let mut count = Count::default();
    assert!(body_text(message, &structure, &mut count).is_continue());
    let header = &message[..header_len(message)];
    assert!(header_text(header, &mut count).is_continue());

    // A subset and its opposite have each field once, and the empty line twice.
    let fields: usize = HeaderBlock::new(header).fields().map(|field| field.full.len()).sum();
    let (with, without) = (fields_subset(header, &["To"], false), fields_subset(header, &["To"], true));
    let empty_line = fields_subset(header, &["no-such"], false).len();
    assert!(empty_line <= 2);
    assert_eq!(with.len() + without.len(), fields + 2 * empty_line);

    for field in HeaderBlock::new(message).fields() {
        assert!(parse_addresses(field.value, 5).len() <= 6);
        parse_date(field.value);
        decode_unstructured(field.value);
        field_text(field.name);
        parse_addresses(field.value, 100).iter().for_each(|address| drop(address.text()));
    }
    for part in structure.parts() {
        part.filename();
        for parameter in &part.parameters {
            part.parameter(&String::from_utf8_lossy(&parameter.name));
        }
        assert!(part_text(message, part, 10).len() <= 10);
    }
    // The structure of one message must do no harm with another.
    let other = &message[message.len() / 2..];
    let _ = body_text(other, &structure, &mut Count::default());
    preview(other, &structure);
}

/// Pieces that mean something somewhere.
fn mail_like() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"\n",
        b"\r\n",
        b"\n\n",
        b" ",
        b"\nTo: ",
        b"\nSubject: ",
        b"\nDate: ",
        b"\nContent-Type: multipart/mixed; boundary=b\n\n",
        b"\nContent-Type: message/rfc822\n\n",
        b"\nContent-Type: text/html; charset=",
        b"\nContent-Disposition: attachment; filename*0*=",
        b"\nContent-Transfer-Encoding: base64\n\n",
        b"\nContent-Transfer-Encoding: quoted-printable\n\n",
        b"\n--b\n",
        b"\n--b--\n",
        b"utf-8",
        b"utf-7",
        b"iso-2022-jp",
        b"=?utf-8?Q?",
        b"=?big5?b?",
        b"?=",
        b"=41",
        b"\"",
        b"\\",
        b"(",
        b")",
        b"<",
        b">",
        b"@",
        b",",
        b";",
        b":",
        b"[x",
        b"]",
        b"1 Jan 70",
        b"99:99:99 +9999",
        b"<script>",
        b"&#x10ffff;",
        b"\xff\xfe",
        b"\0",
        b"\x1b$B",
        "\u{e9}\u{301}".as_bytes(),
    ];
    proptest::collection::vec(proptest::sample::select(PIECES), 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn mail_like_octets(message in mail_like()) {
        everything(&message);
    }

    #[test]
    fn any_octets(message in proptest::collection::vec(any::<u8>(), 0..400)) {
        everything(&message);
    }

    #[test]
    fn any_date(text in "[0-9A-Za-z:+ ,/()-]{0,40}") {
        if let Some(date) = parse_date(text.as_bytes()) {
            prop_assert!((1..=12).contains(&date.month) && (1..=31).contains(&date.day));
            prop_assert!((date.unix_seconds() - date.civil_days() * 86_400).abs() <= 3 * 86_400);
        }
    }
}

#[test]
fn large_headers_cost_linear_time() {
    for piece in ["\"(<", "a:", "@:", "a,", "=?u?q?=?=", ";a*0=b", "(\\", "<@"] {
        let value = piece.repeat(200_000);
        let header = format!("To: {value}\n\n");
        everything_once(header.as_bytes(), value.as_bytes());
    }
}

fn everything_once(header: &[u8], value: &[u8]) {
    scan(header);
    parse_addresses(value, 1_000_000);
    decode_unstructured(value);
    parse_date(value);
    let _ = header_text(header, &mut Count::default());
}
