//! Every dialect of the separator that `docs/format-mbox.md` lists, and the text that is none.
#![allow(clippy::unwrap_used)]
use super::*;

fn parsed(line: &str) -> Option<String> {
    parse_from_line(line.as_bytes()).map(|date| date.to_string())
}

/// (where it is from, the line, its date)
const DIALECTS: &[(&str, &str, &str)] = &[
    ("RFC 4155 appendix A", "From a@b Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
    ("two spaces, as sendmail and procmail write", "From a@b  Thu Aug  2 12:36:23 2002", " 2-Aug-2002 12:36:23 +0000"),
    ("day with a zero", "From a@b Thu Aug 02 12:36:23 2002", " 2-Aug-2002 12:36:23 +0000"),
    ("Mozilla", "From - Thu Aug  2 12:36:23 2002", " 2-Aug-2002 12:36:23 +0000"),
    ("Eudora", "From ???@??? Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
    ("Python's mailbox", "From MAILER-DAEMON Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
    ("no sender (mutt reads it)", "From Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
    ("an empty sender (Dovecot reads it)", "From  Thu Aug 22 12:36 2002", "22-Aug-2002 12:36:00 +0000"),
    ("a login that is a weekday (mutt)", "From sun Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
    ("pipermail's hidden addresses (mutt)", "From me at b.org  Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
    ("quoted senders (Dovecot)", "From \"May Jun 1\"@b Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
    ("spaces in the sender (c-client)", "From A B Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
    ("c-client: no seconds", "From a Thu Aug 22 12:36 2002", "22-Aug-2002 12:36:00 +0000"),
    ("c-client, SysV", "From a Thu Aug 22 12:36 PST 2002", "22-Aug-2002 12:36:00 -0800"),
    ("c-client, rn", "From a Thu Aug 22 12:36:23 PST 2002", "22-Aug-2002 12:36:23 -0800"),
    ("c-client", "From a Thu Aug 22 12:36 -0700 2002", "22-Aug-2002 12:36:00 -0700"),
    ("c-client, emacs", "From a Thu Aug 22 12:36:23 -0700 2002", "22-Aug-2002 12:36:23 -0700"),
    ("c-client", "From a Thu Aug 22 12:36 2002 PST", "22-Aug-2002 12:36:00 -0800"),
    ("c-client", "From a Thu Aug 22 12:36:23 2002 PST", "22-Aug-2002 12:36:23 -0800"),
    ("c-client", "From a Thu Aug 22 12:36 2002 -0700", "22-Aug-2002 12:36:00 -0700"),
    ("c-client, Solaris", "From a Thu Aug 22 12:36:23 2002 -0700", "22-Aug-2002 12:36:23 -0700"),
    ("c-client, Amiga", "From a Thu, 6 Dec 92 05:53:22", " 6-Dec-1992 05:53:22 +0000"),
    ("Dovecot: as RFC 5322 has it", "From a Thu, 22 Aug 2002 12:36:23 -0130", "22-Aug-2002 12:36:23 -0130"),
    ("Dovecot: the same without seconds", "From a Thu, 22 Aug 2002 12:36 +0000", "22-Aug-2002 12:36:00 +0000"),
    ("Dovecot: a name and a number", "From a Fri Jan  2 10:13:52 UTC 1970 +0000", " 2-Jan-1970 10:13:52 +0000"),
    ("mutt: two zones", "From a Wed Aug  2 00:39:12 MET DST 1995", " 2-Aug-1995 00:39:12 +0100"),
    ("Google's archives", "From 123@xxx Thu Aug 22 12:36:23 +0000 2002", "22-Aug-2002 12:36:23 +0000"),
    ("smail, UUCP", "From a Thu Aug 22 12:36:23 2002 remote from uunet", "22-Aug-2002 12:36:23 +0000"),
    ("the same with a zone", "From a Thu Aug 22 12:36 EDT 2002 remote from uunet", "22-Aug-2002 12:36:00 -0400"),
    ("UUCP's bang paths", "From uunet!a Thu Aug 22 12:36:23 2002 remote from mcvax", "22-Aug-2002 12:36:23 +0000"),
    ("two digits of a year", "From a Thu Aug 22 12:36:23 02", "22-Aug-2002 12:36:23 +0000"),
    ("a zone that nobody knows, two digits", "From a@b Thu Aug 22 12:36:23 XYZ 98", "22-Aug-1998 12:36:23 +0000"),
    ("any case (Dovecot)", "From a@b THU AUG 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
    ("more behind it (mutt, Dovecot)", "From a Thu Aug 22 12:36:23 2002 (who did this)", "22-Aug-2002 12:36:23 +0000"),
    ("8-bit senders", "From \u{fc}@b Thu Aug 22 12:36:23 2002", "22-Aug-2002 12:36:23 +0000"),
];

#[test]
fn dialects() {
    for (what, line, date) in DIALECTS {
        assert_eq!(parsed(line).as_deref(), Some(*date), "{what}: {line}");
        for end in ["\n", "\r\n"] {
            assert_eq!(judge(b"x", format!("{line}{end}").as_bytes(), false), Verdict::Separator, "{what}: {line}");
        }
        assert_eq!(judge(b"x", line.as_bytes(), true), Verdict::Separator, "{what}: {line}");
    }
}

/// The table of the document and this one are the same.
#[test]
fn the_document_lists_them() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format-mbox.md");
    let document = std::fs::read_to_string(path).unwrap();
    let listed: Vec<&str> = document.lines().filter(|line| line.contains("| `From ")).collect();
    let rows: Vec<String> =
        DIALECTS.iter().map(|(what, line, date)| format!("| {what} | `{line}` | {} |", date.trim())).collect();
    assert_eq!(listed, rows);
    for (_, name) in super::super::scan::MessageFlags::NAMES {
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn text_is_no_separator() {
    for line in [
        "From here on",
        "From May to June",
        "From my notes of Aug 22 12:36 2002",
        "From a@b Thu Aug 42 12:36:23 2002",
        "From a@b Thu Aug 22 12:36:23:11 2002",
        "From a@b Thu Aug 22 25:36:23 2002",
        "From a@b Thu Aug 22 12:36:23",
        "From a@b Thu Aug 22 12:36:23 1901",
        "From a@b Thu, 22 Foo 2002 10:14:00",
        "from a@b Thu Aug 22 12:36:23 2002",
        "From: a@b Thu Aug 22 12:36:23 2002",
        "From\ta@b Thu Aug 22 12:36:23 2002",
        ">From a@b Thu Aug 22 12:36:23 2002",
        "From ",
        "",
    ] {
        assert_eq!(parsed(line), None, "{line}");
        assert_eq!(judge(b"\n\n", format!("{line}\n\ntext\n").as_bytes(), true), Verdict::Text, "{line}");
    }
}

#[test]
fn a_month_that_nobody_knows() {
    let line = b"From a@b Thu ??? 22 12:36:23 2002\n";
    assert_eq!((judge(b"x", line, false), parse_from_line(line)), (Verdict::Separator, None));
    assert_eq!(judge(b"\n\n", b"From a@b What ??? 22 12:36:23 2002\n", true), Verdict::Text);
}

#[test]
fn no_date_at_all() {
    let fields = "Received: by x\n\tfor y\nSubject: z\n";
    for (before, text, verdict) in [
        ("x\n\n", format!("From MAILER-DAEMON\n{fields}"), Verdict::Separator),
        ("x\r\n\r\n", format!("From a@b\r\n{fields}"), Verdict::Separator),
        ("", format!("From a@b\n{fields}"), Verdict::Separator),
        // No empty line before it, more than one word, too few fields.
        ("x\n", format!("From a@b\n{fields}"), Verdict::Text),
        ("x\n\n", format!("From a b\n{fields}"), Verdict::Text),
        ("x\n\n", "From a@b\nSubject: x\n\n".to_owned(), Verdict::Text),
        ("x\n\n", "From a@b\nSubject: x\n".to_owned(), Verdict::Text),
        ("x\n\n", "From Bob:\nthis is text\n".to_owned(), Verdict::Text),
    ] {
        assert_eq!(judge(before.as_bytes(), text.as_bytes(), true), verdict, "{before:?} {text:?}");
    }
    assert_eq!(judge(b"\n\n", b"From a@b\nSubject: x\nTo", false), Verdict::More);
}

#[test]
fn long_lines() {
    let line = |len: usize| format!("From {} Thu Aug 22 12:36:23 2002\n", "x".repeat(len - 31));
    assert_eq!(line(LINE_BYTES_MAX).len(), LINE_BYTES_MAX);
    assert_eq!(judge(b"", line(LINE_BYTES_MAX).as_bytes(), false), Verdict::Separator);
    assert_eq!(judge(b"", line(LINE_BYTES_MAX + 1).as_bytes(), false), Verdict::Text);
}

proptest::proptest! {
    #[test]
    fn never_panics(line in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
        let _ = parse_from_line(&line);
        let _ = parse_from_line(&[PREFIX, &line].concat());
        let _ = judge(b"\n\n", &[PREFIX, &line].concat(), true);
    }

    /// More octets never change an answer.
    #[test]
    fn answers_stand(
        line in "From (a|a@b|Thu|Aug|22|12:36:23|2002| |\n|X: y\n){0,9}",
        cut in 0usize..80,
    ) {
        let bytes = line.as_bytes();
        let whole = judge(b"\n\n", bytes, true);
        let early = judge(b"\n\n", bytes.get(..cut).unwrap_or(bytes), false);
        proptest::prop_assert!(early == Verdict::More || early == whole, "{:?} {:?}", early, whole);
    }

    /// The quick way reads what the long one does.
    #[test]
    fn both_ways_agree(day in " [0-9]|[0-3][0-9]", time in "[0-2][0-9]:[0-6][0-9]:[0-6][0-9]", year in "19[5-9][0-9]|20[0-9]{2}", month in "Feb|Aug|Foo") {
        let tail = format!("Thu {month} {day} {time} {year}");
        // A word behind it makes the quick way fail.
        proptest::prop_assert_eq!(parsed(&format!("From a {tail}")), parsed(&format!("From a {tail} x")));
    }
}
