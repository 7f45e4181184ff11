//! Responses from octets and to octets: known answers, the round trip, what clients forgive.
#![allow(clippy::unwrap_used, reason = "tests")]

use mailyard_imap_proto::response::{
    Code, ListAttribute, PlainCode, Response, ResponseError, ResponseReader, StatusKind, StatusText, Value, response,
    status,
};
use mailyard_imap_proto::{NameEncoding, limits};
use proptest::prelude::*;

fn write(response: &Response, encoding: NameEncoding) -> Vec<u8> {
    let mut out = Vec::new();
    response.write(&mut out, encoding);
    out
}

fn canonical(line: &str) -> String {
    let first = response(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
    let written = write(&first, NameEncoding::Utf7);
    let again = response(&written[..written.len() - 2]).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(first, again, "{line}");
    String::from_utf8(written).unwrap().strip_suffix("\r\n").unwrap().to_owned()
}

#[test]
fn responses_are_written_as_they_were_read() {
    let lines = include_str!("responses.txt");
    for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        // The writer has one order for the items of ESEARCH and of STATUS codes; the file keeps to it.
        assert_eq!(canonical(line), line);
    }
}

#[test]
fn other_spellings_mean_the_same() {
    for (line, same) in [
        ("+", "+ "),
        ("* ok", "* OK "),
        ("* OK [FOO", "error"),
        ("* OK [uidnext 0] x", "* OK [uidnext 0] x"),
        ("* OK [UNSEEN x] y", "* OK [UNSEEN x] y"),
        ("* list (\\noselect) \"\" \"a\"", "* LIST (\\Noselect) NIL a"),
        (
            "* LIST () \"/\" a (X-FOO (b (c) 1:2) childinfo (\"SUBSCRIBED\"))",
            "* LIST () \"/\" a (\"CHILDINFO\" (\"SUBSCRIBED\"))",
        ),
        ("* STATUS a (FOO (1 2) MESSAGES 3)", "* STATUS a (MESSAGES 3)"),
        ("* STATUS a ()", "* STATUS a ()"),
        ("* ESEARCH (TAG a) ALL 3:1 FOO (x) COUNT 3", "* ESEARCH (TAG \"a\") COUNT 3 ALL 1:3"),
        ("* NAMESPACE ((\"\" \"/\" \"X\" (\"Y\"))) NIL nil", "* NAMESPACE ((\"\" \"/\")) NIL NIL"),
        ("* SEARCH 2 3 ", "* SEARCH 2 3"),
        ("* 1 FETCH (body[] {3}\r\na\0b uid 4)", "* 1 FETCH (BODY[] ~{3}\r\na\0b UID 4)"),
        ("* 1 FETCH (BODY ((\"a\")(\"b\") \"MIXED\"))", "* 1 FETCH (BODY ((\"a\") (\"b\") \"MIXED\"))"),
        ("* 1 FETCH (FLAGS ())", "* 1 FETCH (FLAGS ())"),
    ] {
        match response(line.as_bytes()) {
            Ok(_) => assert_eq!(canonical(line), same, "{line}"),
            Err(_) => assert_eq!(same, "error", "{line}"),
        }
    }
    for line in [
        "",
        "* ",
        "*",
        "a",
        "a FOO x",
        "* 1",
        "* 1 FOO",
        "* 4294967296 EXISTS",
        "* 1 FETCH",
        "* 1 FETCH (UID",
        "* 1 FETCH (UID )",
        "* LIST () a b",
        "* LIST () \"ab\" b",
        "* VANISHED 1:*",
        "* SEARCH 0",
        "* 1 EXISTS x",
    ] {
        assert!(response(line.as_bytes()).is_err(), "{line}");
    }
}

#[test]
fn every_plain_code_comes_back() {
    for code in PlainCode::EVERY {
        for line in [format!("a NO [{}] x", code.as_str()), format!("* OK [{}]", code.as_str().to_lowercase())] {
            let (Response::Tagged(_, text) | Response::Status(text)) = response(line.as_bytes()).unwrap() else {
                panic!()
            };
            assert_eq!(text.code, Some(Code::Plain(*code)), "{line}");
        }
    }
    assert_eq!(Code::TryCreate, Code::Plain(PlainCode::TryCreate));
}

#[test]
fn text_never_breaks_a_line() {
    let mut out = Vec::new();
    status(&mut out, StatusKind::No, Some(&Code::TryCreate), "a\r\n* BYE \0 é", NameEncoding::Utf7);
    assert_eq!(out, b"* NO [TRYCREATE] a??* BYE ? ?\r\n");
    out.clear();
    status(&mut out, StatusKind::Ok, None, "[é]", NameEncoding::Utf8);
    assert_eq!(out, "* OK  [é]\r\n".as_bytes());
}

fn read_all(input: &[u8], cuts: &[usize], bytes_max: usize) -> Vec<Result<Response, ResponseError>> {
    let mut reader = ResponseReader::new(bytes_max);
    let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).chain([0, input.len()]).collect();
    bounds.sort_unstable();
    let mut all = Vec::new();
    for pair in bounds.windows(2) {
        let mut piece = &input[pair[0]..pair[1]];
        while let Some(result) = reader.next(&mut piece) {
            let ends = result == Err(ResponseError::TooLarge);
            all.push(result);
            if ends {
                return all;
            }
        }
    }
    all
}

#[test]
fn a_stream_is_cut_into_responses() {
    let input = b"* OK ready {3}\r\n* 1 FETCH (BODY[] {7}\r\na\r\n)\r\nb UID 5)\r\n* LIST () NIL {1}\r\nx\r\n\
        + go {4}\na OK {5}\r\n* junk(\r\n* 2 EXISTS\r\n";
    let whole = read_all(input, &[], 1000);
    assert_eq!(whole.len(), 7);
    assert!(matches!(whole[5], Err(ResponseError::Syntax(_))) || matches!(whole[5], Ok(Response::Other { .. })));
    assert_eq!(whole[6], Ok(Response::Exists(2)));
    let Ok(Response::Fetch { items, .. }) = &whole[1] else { panic!() };
    assert_eq!(items[0].value.octets(), Some(&b"a\r\n)\r\nb"[..]));
    assert_eq!(items[1].value.number(), Some(5));
    for cut in 0..input.len() {
        assert_eq!(read_all(input, &[cut], 1000), whole);
    }
    assert_eq!(read_all(input, &(0..input.len()).collect::<Vec<_>>(), 1000), whole);
    // The limit, at and one over: the line with its line end.
    assert_eq!(read_all(b"* 2 EXISTS\r\n", &[], 12).len(), 1);
    assert_eq!(read_all(b"* 2 EXISTS\r\n", &[], 11), [Err(ResponseError::TooLarge)]);
    assert_eq!(read_all(b"* 1 FETCH (X {99999999999999999999}\r\n", &[], 100), [Err(ResponseError::TooLarge)]);
}

#[test]
fn nesting_ends() {
    let nested = |depth: usize| format!("* 1 FETCH (X {}{})", "(".repeat(depth), ")".repeat(depth));
    // FETCH's own list is one level.
    assert!(response(nested(99).as_bytes()).is_ok());
    assert_eq!(response(nested(100).as_bytes()).unwrap_err().limit, Some("nesting_max"));
    assert!(
        response("* LIST () NIL a (X ".chars().chain("(".repeat(100_000).chars()).collect::<String>().as_bytes())
            .is_err()
    );
}

#[test]
fn limits_hold_at_and_one_over() {
    let cases: [(&str, usize, &str, &str, &str); 4] = [
        ("capabilities_max", limits::CAPABILITIES_MAX, "* CAPABILITY", " X", ""),
        ("search_numbers_max", limits::SEARCH_NUMBERS_MAX, "* SEARCH", " 1", ""),
        ("response_list_max", limits::RESPONSE_LIST_MAX, "* 1 FETCH (X (", "1 ", "))"),
        ("response_items_max", limits::RESPONSE_ITEMS_MAX, "* 1 FETCH (", "X 1 ", ")"),
    ];
    for (name, max, head, item, tail) in cases {
        let line = |count: usize| format!("{head}{}{tail}", item.repeat(count));
        assert!(response(line(max).as_bytes()).is_ok(), "{name}");
        assert_eq!(response(line(max + 1).as_bytes()).unwrap_err().limit, Some(name));
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        "[a-z0-9$\\\\:.]{1,8}"
            .prop_filter("NIL is no atom", |text| !text.eq_ignore_ascii_case("nil"))
            .prop_map(Value::Atom),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| proptest::collection::vec(inner, 0..6).prop_map(Value::List))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn trees_come_back(value in value()) {
        let sent = Response::Fetch {
            sequence: 3,
            items: vec![mailyard_imap_proto::response::FetchItem { name: "X".into(), section: None, origin: Some(9), value }],
        };
        let written = write(&sent, NameEncoding::Utf7);
        prop_assert_eq!(response(&written[..written.len() - 2]), Ok(sent.clone()));
        prop_assert_eq!(read_all(&written, &[], 100_000), vec![Ok(sent)]);
    }

    #[test]
    fn texts_come_back(text in "[^\\x00\\r\\n\\[][^\\x00\\r\\n]{0,40}", name in "\\PC{1,10}") {
        let sent = Response::Status(StatusText { kind: StatusKind::No, code: Some(Code::Limit), text });
        let written = write(&sent, NameEncoding::Utf8);
        prop_assert_eq!(response(&written[..written.len() - 2]), Ok(sent));
        let list = Response::List(mailyard_imap_proto::response::ListItem {
            attributes: vec![ListAttribute::HasNoChildren],
            delimiter: Some(b'/'),
            mailbox: mailyard_imap_proto::MailboxArg(name.into_bytes()),
            child_info: Vec::new(),
            old_name: None,
        });
        for encoding in [NameEncoding::Utf7, NameEncoding::Utf8] {
            let written = write(&list, encoding);
            prop_assert_eq!(response(&written[..written.len() - 2]), Ok(list.clone()));
        }
    }

    #[test]
    fn junk_is_read_or_refused(pieces in proptest::collection::vec(prop_oneof![
        Just("* "), Just("OK "), Just("["), Just("]"), Just("LIST "), Just("("), Just(")"), Just("\""), Just("\\"), Just("{3}\r\n"),
        Just("abc"), Just("1 "), Just("FETCH "), Just("BODY[1.HEADER.FIELDS ("), Just("ESEARCH "), Just("\r\n"), Just("NIL "),
        Just("STATUS "), Just("~{1}\r\n"), Just("COPYUID 1 2:3 "), Just("NAMESPACE "), Just("\u{0}é"), Just("<0>"), Just("+ "),
    ], 0..30), cuts in proptest::collection::vec(0usize..200, 0..6)) {
        let input = pieces.concat();
        let _ = response(input.as_bytes());
        prop_assert_eq!(read_all(input.as_bytes(), &[], 500), read_all(input.as_bytes(), &cuts, 500));
    }
}
