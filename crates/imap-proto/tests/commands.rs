//! Commands from octets: known answers, what is refused, and the round trip through the writer.
#![allow(clippy::unwrap_used, reason = "tests")]

use mailyard_imap_proto::command::{Command, CommandErrorKind, LiteralForm, command};

/// Reads `line`, writes it, and returns what was written after reading that again.
fn canonical(line: &str) -> String {
    let first = command(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error:?}"));
    let written = first.write(LiteralForm::NonSynchronising).concat();
    let again = command(&written[..written.len() - 2]).unwrap_or_else(|error| panic!("{line}: {error:?}"));
    assert_eq!(first, again, "{line}");
    String::from_utf8(written).unwrap().strip_suffix("\r\n").unwrap().to_owned()
}

#[test]
fn commands_are_written_as_they_were_read() {
    let lines = include_str!("commands.txt");
    for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert_eq!(canonical(line), line);
    }
}

#[test]
fn other_spellings_mean_the_same() {
    for (line, same) in [
        ("a  noop  ", "a NOOP"),
        ("a login \"ann\" {2}\r\npw", "a LOGIN ann pw"),
        ("a LOGIN {3+}\r\nann \"\"", "a LOGIN ann \"\""),
        ("a fetch 1 ( flags   uid )", "a FETCH 1 (FLAGS UID)"),
        ("a FETCH 1 all", "a FETCH 1 (FLAGS INTERNALDATE RFC822.SIZE ENVELOPE)"),
        ("a FETCH 1 FAST", "a FETCH 1 (FLAGS INTERNALDATE RFC822.SIZE)"),
        ("a FETCH 1 FULL", "a FETCH 1 (FLAGS INTERNALDATE RFC822.SIZE ENVELOPE BODY)"),
        ("a FETCH 1 (UID uid)", "a FETCH 1 (UID)"),
        (
            "a FETCH 1 body.peek[header.fields (\"Subject\" date)]<0.7>",
            "a FETCH 1 (BODY.PEEK[HEADER.FIELDS (Subject date)]<0.7>)",
        ),
        ("a UID FETCH 1 FLAGS (CHANGEDSINCE 7)", "a UID FETCH 1 (FLAGS) (CHANGEDSINCE 7)"),
        ("a FETCH 1 PREVIEW (CHANGEDSINCE 7)", "a FETCH 1 (PREVIEW) (CHANGEDSINCE 7)"),
        ("a FETCH 1 PREVIEW (LAZY) (CHANGEDSINCE 7)", "a FETCH 1 (PREVIEW (LAZY)) (CHANGEDSINCE 7)"),
        ("a STORE 1 +flags.silent \\seen $Junk", "a STORE 1 +FLAGS.SILENT (\\Seen $Junk)"),
        ("a SEARCH RETURN () ALL", "a SEARCH RETURN (ALL) ALL"),
        ("a uid sort return () (reverse subject) utf-8 all", "a UID SORT RETURN (ALL) (REVERSE SUBJECT) utf-8 ALL"),
        ("a SORT ( DATE  reverse  TO ) \"UTF-8\" all", "a SORT (DATE REVERSE TO) UTF-8 ALL"),
        ("a UID ESEARCH FROM frobozz 1:100", "a ESEARCH FROM frobozz 1:100"),
        ("a ESEARCH IN (MAILBOXES \"f\" SUBTREE f2) unseen", "a ESEARCH IN (mailboxes (f) subtree (f2)) UNSEEN"),
        ("a CANCELUPDATE B01 \"B02\"", "a CANCELUPDATE \"B01\" \"B02\""),
        ("a SEARCH (SEEN) (OLD NEW)", "a SEARCH SEEN (OLD NEW)"),
        ("a SEARCH SINCE \"01-feb-1994\"", "a SEARCH SINCE 1-Feb-1994"),
        ("a LIST \"\" %", "a LIST \"\" \"%\""),
        ("a LIST () \"\" (a* b%)", "a LIST \"\" (\"a*\" \"b%\") RETURN ()"),
        ("a STATUS inbox (messages MESSAGES)", "a STATUS inbox (MESSAGES)"),
        ("a CREATE a]b", "a CREATE a]b"),
        ("a enable condstore x-foo", "a ENABLE CONDSTORE X-FOO"),
        ("a AUTHENTICATE plain =", "a AUTHENTICATE PLAIN ="),
        ("a ID (\"name\" NIL)", "a ID (\"name\" NIL)"),
    ] {
        assert_eq!(canonical(line), same, "{line}");
    }
}

#[test]
fn what_is_no_command() {
    for line in [
        "a",
        "a ",
        "+a NOOP",
        "a NOOP x",
        "a LOGIN ann",
        "a LOGIN ann pw x",
        "a LOGIN \"an\\n\" pw",
        "a SELECT",
        "a SELECT x ()",
        "a SELECT x (CONDSTORE CONDSTORE)",
        "a SELECT x (QRESYNC (1 0))",
        "a SELECT x (QRESYNC (1 5 1:*))",
        "a SELECT x (QRESYNC (1 5 1:9 (1:2 5)))",
        "a CREATE x (USE)",
        "a CREATE x (USE (Sent))",
        "a LIST (RECURSIVEMATCH) \"\" *",
        "a LIST (FOO) \"\" *",
        "a LIST \"\" * RETURN (FOO)",
        "a LIST \"\" ()",
        "a STATUS x ()",
        "a STATUS x MESSAGES",
        "a STATUS x (FOO)",
        "a ENABLE",
        "a FETCH 1",
        "a FETCH 0 FLAGS",
        "a FETCH 1 ()",
        "a FETCH 1 (ALL)",
        "a FETCH 1 BODY[MIME]",
        "a FETCH 1 BODY[1.]",
        "a FETCH 1 BODY[0]",
        "a FETCH 1 BODY[1 ]",
        "a FETCH 1 BODY[HEADER.FIELDS ()]",
        "a FETCH 1 BODY[]<0.0>",
        "a FETCH 1 BODY[]<5>",
        "a FETCH 1 FLAGS[]",
        "a FETCH 1 BINARY",
        "a FETCH 1 BINARY[HEADER]",
        "a FETCH 1 FLAGS (VANISHED CHANGEDSINCE 1)",
        "a UID FETCH 1 FLAGS (VANISHED)",
        "a FETCH 1 FLAGS (PARTIAL 1:2)",
        "a UID FETCH 1 FLAGS (FOO)",
        "a STORE 1 FLAGS",
        "a STORE 1 FLAGS (\\*)",
        "a STORE 1 FOO (x)",
        "a STORE 1 (FOO 1) FLAGS (x)",
        "a SEARCH",
        "a SEARCH FOO",
        "a SEARCH NOT",
        "a SEARCH OR SEEN",
        "a SEARCH ()",
        "a SEARCH KEYWORD \\Seen",
        "a SEARCH OLDER 0",
        "a SEARCH BEFORE 1-1-2000",
        "a SEARCH RETURN (FOO) ALL",
        "a SEARCH RETURN (ALL PARTIAL 1:2) ALL",
        "a SEARCH RETURN (PARTIAL 1:-2) ALL",
        "a SEARCH MODSEQ \"/flags/\" all 1",
        "a SEARCH EMAILID a.b",
        "a SORT () UTF-8 ALL",
        "a SORT (FOO) UTF-8 ALL",
        "a SORT (REVERSE) UTF-8 ALL",
        "a SORT (REVERSE REVERSE DATE) UTF-8 ALL",
        "a SORT (DATE) UTF-8",
        "a SORT (DATE) ALL",
        "a SORT DATE UTF-8 ALL",
        "a SORT RETURN (FOO) (DATE) UTF-8 ALL",
        "a SORT RETURN (ALL PARTIAL 1:2) (DATE) UTF-8 ALL",
        "a SORT RETURN () UTF-8 ALL",
        "a THREAD UTF-8 ALL",
        "a THREAD FOO UTF-8 ALL",
        "a THREAD REFERENCES UTF-8",
        "a ESEARCH",
        "a ESEARCH IN () ALL",
        "a ESEARCH IN (selected-delayed) ALL",
        "a ESEARCH IN (mailboxes) ALL",
        "a ESEARCH IN (mailboxes ()) ALL",
        "a ESEARCH IN (selected)",
        "a ESEARCH IN (personal (x)) ALL",
        "a CANCELUPDATE",
        "a UID EXPUNGE",
        "a COPY 1",
        "a APPEND x",
        "a UID REPLACE 1 x",
        "a COMPRESS",
        "a NOOP\r",
        "a DELETE \"\0\"",
    ] {
        let error = command(line.as_bytes()).expect_err(line);
        assert!(matches!(error.kind, CommandErrorKind::Syntax(_)), "{line}: {error:?}");
        assert_eq!(error.tag.is_some(), line.starts_with("a "), "{line}");
    }
    for line in ["a FOO", "a UID NOOP", "a UID CANCELUPDATE \"a\"", "a XSORT (DATE) UTF-8 ALL"] {
        let error = command(line.as_bytes()).expect_err(line);
        assert!(matches!(error.kind, CommandErrorKind::UnknownCommand(_)), "{line}: {error:?}");
    }
}

#[test]
fn synchronising_literals_cut_a_command_in_pieces() {
    let command: Command = command(b"a LOGIN {2}\r\n\xc3\xa9 {3}\r\na\nb").unwrap();
    let pieces = command.write(LiteralForm::Synchronising);
    assert_eq!(pieces, [&b"a LOGIN {2}\r\n"[..], b"\xc3\xa9 {3}\r\n", b"a\nb\r\n"]);
}
