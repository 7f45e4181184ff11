//! The scanner on files made to be difficult, and its properties on files made at random.
#![allow(clippy::unwrap_used)]
use std::path::Path;
use std::sync::Arc;

use platform::sim::SimEnv;
use platform::{File, OpenMode};

use super::*;

const LINE: &str = "From a@b Thu Aug 22 12:36:23 2002\n";

fn file(bytes: &[u8]) -> Arc<dyn File> {
    let file = SimEnv::new(1).env().disk.open(Path::new("/mbox"), OpenMode::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

fn scan(bytes: &[u8]) -> Vec<Message> {
    Table::read(&*file(bytes)).map(|table| table.messages().to_vec()).unwrap_or_default()
}

/// (header, body, flags) of each message.
fn shown(text: &str) -> Vec<(String, String, String)> {
    let messages = scan(text.as_bytes());
    let piece = |from: u64, to: u64| text[from as usize..to as usize].to_owned();
    let show =
        |m: &Message| (piece(m.header, m.body), piece(m.body, m.end), m.flags.names().collect::<Vec<_>>().join(" "));
    messages.iter().map(show).collect()
}

fn row(header: &str, body: &str, flags: &str) -> (String, String, String) {
    (header.to_owned(), body.to_owned(), flags.to_owned())
}

#[test]
fn one_and_none() {
    assert_eq!(shown(""), []);
    assert_eq!(shown("\n\r\n\n"), []);
    assert_eq!(shown(&format!("{LINE}A: b\n\nc\n")), [row("A: b\n\n", "c\n", "")]);
    assert_eq!(shown(&format!("\n\n{LINE}A: b\n\nc\n\n")), [row("A: b\n\n", "c\n", "")]);
    // The first line may be anything that begins with From.
    assert_eq!(shown("From here\nA: b\n\nc\n"), [row("A: b\n\n", "c\n", "")]);
    let no_mbox = Table::read(&*file(b"Subject: x\n\nFrom here on text\n"));
    assert_eq!(no_mbox.unwrap_err().kind(), model::ErrorKind::Invalid);
}

#[test]
fn ends_and_line_ends() {
    let text =
        [LINE, "A: 1\n\nx\n\n\n", LINE, "A: 2\n\n", LINE, "A: 3\n\n\n", LINE, "A: 4\n", LINE, "\ny\n", LINE].concat();
    assert_eq!(
        shown(&text),
        [
            row("A: 1\n\n", "x\n\n", ""),
            row("A: 2\n", "", ""),
            row("A: 3\n\n", "", ""),
            row("A: 4\n", "", "no-header-end"),
            row("\n", "y\n", "no-blank-before"),
            row("", "", "no-blank-before truncated"),
        ]
    );
    let crlf = format!("{LINE}A: 1\n\nx\n\n{LINE}A: 2\n\ny").replace('\n', "\r\n");
    assert_eq!(shown(&crlf), [row("A: 1\r\n\r\n", "x\r\n", "crlf"), row("A: 2\r\n\r\n", "y", "crlf no-last-newline")]);
    // Mixed line ends, and a CR that ends none.
    assert_eq!(
        shown(&format!("{LINE}A: 1\n\rB: 2\n\r\nx\r\n\r\n{LINE}A: 2\r\n\nz\n")),
        [row("A: 1\n\rB: 2\n\r\n", "x\r\n", ""), row("A: 2\r\n\n", "z\n", "")]
    );
    assert_eq!(shown("From a"), [row("", "", "no-last-newline truncated")]);
    assert_eq!(shown(&format!("{LINE}A: b")), [row("A: b", "", "no-last-newline truncated")]);
}

#[test]
fn quoting_shows() {
    let text = |body: &str| format!("{LINE}A: b\n\n{body}\n");
    for (body, dialect, flags) in [
        ("x\n", Dialect::Plain, ""),
        (">From y\n", Dialect::Mboxo, "quoted"),
        ("x\n>>>From y\n", Dialect::Mboxrd, "quoted quoted-twice"),
        ("From y\nx From z\n>x>From \n> From \n", Dialect::Plain, "unquoted"),
    ] {
        let found = scan(text(body).as_bytes());
        assert_eq!(found.len(), 1, "{body}");
        assert_eq!(found[0].dialect(), dialect, "{body}");
        assert_eq!(found[0].flags.names().collect::<Vec<_>>().join(" "), flags, "{body}");
        assert!(found[0].form().unquote);
    }
    let marks = |count: usize| scan(text(&format!("{}From y\n", ">".repeat(count))).as_bytes())[0].dialect();
    assert_eq!((marks(LOOK_BACK_BYTES - 2), marks(LOOK_BACK_BYTES + 1)), (Dialect::Mboxrd, Dialect::Plain));
}

#[test]
fn content_length_is_believed_where_it_leads_somewhere() {
    let message = |length: usize, body: &str| format!("{LINE}content-LENGTH : {length} \n\n{body}");
    let enclosing = format!("x\n{LINE}>From y\n");
    let len = enclosing.len();
    let header = |length: usize| format!("content-LENGTH : {length} \n\n");
    let after = format!("{LINE}A: b\n\nz\n");
    let last = row("A: b\n\n", "z\n", "");
    for (what, text) in [
        ("an empty line", format!("{}\n{after}", message(len, &enclosing))),
        ("three", format!("{}\n\n\n{after}", message(len, &enclosing))),
        ("CRLF", format!("{}\r\n{after}", message(len, &enclosing))),
    ] {
        let first = row(&header(len), &enclosing, "quoted content-length encloses-separator");
        assert_eq!(shown(&text), [first, last.clone()], "{what}");
        let found = scan(text.as_bytes());
        assert_eq!((found[0].dialect(), found[0].form().unquote), (Dialect::Mboxcl2, false));
    }
    // The empty line counted, the last line end not counted, nothing behind it, the end of the file.
    for (length, body, rest) in [(3, "x\n\n", ""), (1, "x", "\n\n"), (2, "x\n", "\n"), (0, "", "\n")] {
        let found = shown(&format!("{}{rest}{after}", message(length, body)));
        assert_eq!(found, [row(&header(length), body, "content-length"), last.clone()], "{length}");
        let found = shown(&format!("{}{rest}", message(length, body)));
        assert_eq!(found, [row(&header(length), body, "content-length")], "{length}");
    }
    assert_eq!(scan(message(2, "x\n").as_bytes())[0].dialect(), Dialect::Mboxcl);
    // Liars: into the text, behind the file, behind so many empty lines, no number.
    for (text, flags) in [
        (format!("{}\n", message(1, "xy\n")), "content-length-wrong"),
        (format!("{}\n", message(9, "xy\n")), "truncated content-length-wrong"),
        (format!("{}{}", message(3, "xy\n"), "\n".repeat(5)), "content-length-wrong"),
        (format!("{LINE}Content-Length: many\n\nxy\n"), "content-length-wrong"),
        (format!("{LINE}Content-Length: 99999999999999999999999\n\nxy\n"), "content-length-wrong"),
    ] {
        let found = shown(&text);
        assert_eq!((found.len(), found[0].2.as_str()), (1, flags), "{text}");
    }
    // It leads to a From line, but one in the middle of a line; and one that the next message's header holds is not this one's.
    assert_eq!(shown(&format!("{}x{after}", message(2, "y\n"))).len(), 1);
    assert_eq!(shown(&format!("{LINE}A: b\n{}", message(2, "y\n"))).len(), 2);
}

#[test]
fn damage_stays_where_it_is() {
    let text = format!("{LINE}A: b\n\nx\0\n\n{LINE}A: \0\n\nx\n\n{LINE}A: b\n\nx\n\n");
    let flags: Vec<String> = shown(&text).into_iter().map(|(_, _, flags)| flags).collect();
    assert_eq!(flags, ["nul", "nul", ""]);
    let text = format!("\nLost: header\n\nFrom nowhere\n\n{LINE}A: b\n\nx\n");
    let found = scan(text.as_bytes());
    assert_eq!((found.len(), found[0].flags.names().next()), (1, Some("text-before")));
    let file = file(text.as_bytes());
    let before = Reader::new(&*file, 0).unwrap().preamble().unwrap().unwrap();
    assert_eq!(before, 1..text.find(LINE).unwrap() as u64);
}

#[test]
fn text_before_the_first_message_has_a_limit() {
    for (bytes, count) in [(PREAMBLE_BYTES_MAX, 1), (PREAMBLE_BYTES_MAX + 1, 0)] {
        let text = format!("{}\n{LINE}A: b\n\nx\n", "x".repeat(bytes as usize - 1));
        assert_eq!(scan(text.as_bytes()).len(), count, "{bytes}");
    }
}

#[test]
fn longer_than_a_piece() {
    let body = "words and words\n".repeat(PIECE_BYTES_MIN / 4);
    let line = "x".repeat(PIECE_BYTES_MIN * 3);
    let text = format!(
        "{LINE}A: 1\n\n{body}\n{LINE}B: {line}\nC: 3\nContent-Length: {}\n\n{body}\n{LINE}{body}\n{LINE}{line}\n\n{line}\n\nFrom {line}\n",
        body.len()
    );
    let whole = scan(text.as_bytes());
    assert_eq!(whole.len(), 4);
    assert!(whole[1].flags.has(MessageFlags::CONTENT_LENGTH));
    assert_eq!(in_pieces(text.as_bytes(), PIECE_BYTES_MIN), whole);
    assert_eq!(in_pieces(text.as_bytes(), PIECE_BYTES_MIN + 777), whole);
}

fn in_pieces(bytes: &[u8], piece: usize) -> Vec<Message> {
    let file = file(bytes);
    let mut reader = Reader::new(&*file, 0).unwrap().with_piece_bytes(piece);
    std::iter::from_fn(|| reader.next_message().unwrap()).collect()
}

/// Files in which anything may stand anywhere.
fn anything() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    const PIECES: [&str; 22] = [
        LINE,
        LINE,
        LINE,
        "From a@b Thu Aug 22 12:36:23 2002\r\n",
        "From a@b\n",
        "From ",
        "\n",
        "\n",
        "\r\n",
        "A: b\n",
        "A: b\nC: d\n",
        "Content-Length: 3\n",
        "Content-Length: 60\n",
        "Content-Length: 42\n",
        "Content-Length: 4000\n",
        "Content-Length: x",
        "x",
        ">From y\n",
        ">>From y\n",
        "From z\n",
        "\0",
        "F",
    ];
    use proptest::strategy::Strategy;
    proptest::collection::vec((0..PIECES.len() + 1, 0usize..9000), 0..30).prop_map(|pieces| {
        let text = pieces.into_iter().map(|(n, len)| match PIECES.get(n) {
            Some(piece) => (*piece).to_owned(),
            None => "long ".repeat(len / 5),
        });
        text.collect::<String>().into_bytes()
    })
}

proptest::proptest! {
    #[test]
    fn messages_cover_the_file(bytes in anything()) {
        let messages = scan(&bytes);
        for m in &messages {
            let is_ordered = m.start < m.header && m.header <= m.body && m.body <= m.end && m.end <= m.next;
            proptest::prop_assert!(is_ordered, "{:?}", m);
            proptest::prop_assert!(m.next - m.end <= BLANKS_MAX as u64);
        }
        for pair in messages.windows(2) {
            proptest::prop_assert_eq!(pair[0].next, pair[1].start);
        }
        if let Some(last) = messages.last() {
            proptest::prop_assert_eq!(last.next, bytes.len() as u64);
        }
    }

    #[test]
    fn pieces_do_not_matter(bytes in anything(), more in 0usize..5000) {
        proptest::prop_assert_eq!(in_pieces(&bytes, PIECE_BYTES_MIN + more), scan(&bytes));
    }

    #[test]
    fn parts_do_not_matter(bytes in anything(), jobs in 2u64..9) {
        let whole = Table::read(&*file(&bytes)).map(|table| table.messages().to_vec());
        let parts = scan_in_parts(&*file(&bytes), jobs).map(|table| table.messages().to_vec());
        proptest::prop_assert_eq!(format!("{parts:?}"), format!("{whole:?}"));
    }

    /// A file that grows is read as one that was always there.
    #[test]
    fn growing_does_not_matter(bytes in anything(), mut cuts in proptest::collection::vec(0.0..1.0, 0..6), jobs in 1u64..4) {
        cuts.sort_by(f64::total_cmp);
        let mut table: Option<Table> = None;
        for cut in cuts.into_iter().chain([1.0]) {
            let grown = file(&bytes[..(bytes.len() as f64 * cut) as usize]);
            match &mut table {
                // A file that is no mbox yet may become one.
                None => table = scan_in_parts(&*grown, jobs).ok(),
                Some(known) => {
                    let before = known.messages().to_vec();
                    match known.extend(&*grown) {
                        Ok(first) => proptest::prop_assert_eq!(&before[..first], &known.messages()[..first]),
                        // What looked like a separator while the file ended in it is none.
                        Err(_) => {
                            proptest::prop_assert!(Table::read(&*grown).is_err());
                            proptest::prop_assert_eq!(known.messages(), &before);
                            table = None;
                        }
                    }
                }
            }
        }
        let found = table.map(|table| table.messages().to_vec()).unwrap_or_default();
        proptest::prop_assert_eq!(found, scan(&bytes));
    }
}

#[test]
fn growing_reads_little() {
    let message = format!("{LINE}A: b\n\n{}\n\n", "text\n".repeat(500));
    let mut table = Table::read(&*file(message.repeat(400).as_bytes())).unwrap();
    assert!(table.settled_bytes() + 2 * LOOK_AHEAD_BYTES as u64 > table.file_bytes());
    let first = table.extend(&*file(message.repeat(401).as_bytes())).unwrap();
    assert!((398..=400).contains(&first), "{first}");
    assert_eq!(table.messages().len(), 401);
    assert!(table.extend(&*file(message.as_bytes())).is_err(), "it has become shorter");
    assert_eq!(table.messages().len(), 401);
}

#[test]
fn a_file_that_is_cut_meanwhile_is_an_error() {
    let message = format!("{LINE}A: b\n\n{}\n\n", "text\n".repeat(500));
    let file = file(message.repeat(300).as_bytes());
    let mut reader = Reader::new(&*file, 0).unwrap();
    assert!(reader.next_message().unwrap().is_some());
    file.set_len(400_000).unwrap();
    let error = std::iter::from_fn(|| reader.next_message().transpose()).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), model::ErrorKind::Invalid, "{error}");
}
