//! Reading files made to be difficult, and that neither the window nor growing matters on files made at random.
#![allow(clippy::unwrap_used)]
use std::path::Path;
use std::sync::Arc;

use platform::OpenMode;
use platform::sim::SimEnv;
use proptest::strategy::Strategy;

use super::*;
use crate::format::mbox::digest::DigestOfServed;
use crate::format::mbox::fields::served_header;
use crate::format::mbox::intake_parallel::intake_in_parts;
use crate::format::mbox::place::{FileFlags, Meta};
use crate::format::mbox::scan::Table;
use crate::format::served::Normaliser;

const LINE: &str = "From a@b Thu Aug 22 12:36:23 2002\n";

fn file(bytes: &[u8]) -> Arc<dyn File> {
    let file = SimEnv::new(1).env().disk.open(Path::new("/mbox"), OpenMode::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

fn collect(file: &dyn File, scanner: Scanner, piece: usize, window: usize) -> (Vec<Found>, Ended) {
    let mut found = Vec::new();
    let ended = intake_in_pieces(file, scanner, piece, window, &mut |message| {
        found.push(message);
        Ok(())
    });
    (found, ended.unwrap())
}

fn all(bytes: &[u8]) -> Vec<Found> {
    collect(&*file(bytes), Scanner::new(0), PIECE_BYTES, WINDOW_BYTES_MAX).0
}

/// As it is served, the slow way.
fn served(bytes: &[u8], message: &Message) -> (Vec<u8>, usize) {
    let range = |from: u64, to: u64| &bytes[from as usize..to as usize];
    let mut out = Vec::new();
    served_header(range(message.header, message.body), message.form(), &mut out);
    let header_octets = out.len();
    let mut normaliser = Normaliser::new(message.form());
    normaliser.push(range(message.body, message.end), &mut out);
    normaliser.finish(&mut out);
    (out, header_octets)
}

fn digest_of_served(served: &[u8]) -> u64 {
    let mut digest = DigestOfServed::new();
    digest.push(served);
    digest.finish()
}

#[test]
fn what_is_found() {
    let text = format!(
        "{LINE}Subject: x\nX-IMAPbase: 5 9 $a\nX-UID: 7\nStatus: RO\nX-Status: F\nX-Keywords: $a      \n\n>From y\n\n\
         From nobody\nA: b\nX-UID: 8\nX-IMAPbase: 6 9\nC: d\n\nz"
    );
    let found = all(text.as_bytes());
    let [first, second] = &found[..] else { panic!("{found:?}") };
    assert_eq!((first.octets, first.header_octets), (22, 14));
    assert_eq!(first.digest, digest_of_served(b"Subject: x\r\n\r\nFrom y\r\n"));
    assert_eq!(first.date, parse_from_line(LINE.trim_end().as_bytes()));
    let base = first.meta.base.as_ref().unwrap();
    assert_eq!((base.uid_validity, base.last_uid, base.keywords.len()), (5, 9, 1));
    assert_eq!((first.meta.uid, first.meta.keywords.len()), (Some(7), 1));
    assert_eq!((second.octets, second.header_octets, second.date), (15, 14, None));
    assert_eq!((second.meta.uid, second.meta.base.as_ref()), (Some(8), None));
}

/// As Dovecot 2.3 leaves a file: what it saved (Content-Length does not count the empty line), what it added to a message of others, and what it
/// does not write but keeps.
#[test]
fn a_file_of_dovecot() {
    let text = "From a@b Thu Aug 22 12:36:23 2002\nX-IMAPbase: 1000000000 0000000022 first $Label1 foo\nSubject: one\nX-UID: 4\nStatus: R\n\
         X-Status: F\nStatus: RO\nX-Status: AF\nX-Keywords: first $Label1 foo                       \n\nbody one\n\n\
         From a@b Thu Aug 22 12:36:25 2002\nSubject: three\nX-UID: 12\nStatus: xRO\nContent-Length: 11\nX-Status: A\n\
         X-Keywords: $Label1 foo                  \n\nbody three\n\n\
         From nobody@host  Sun Nov 22 04:23:42 2026\nSubject: s\nX-UID: 22\nStatus: \nX-Keywords:                          \n\
         Content-Length: 4\n\nnew\n\n";
    let found = all(text.as_bytes());
    let shown = |found: &Found| {
        let Meta { flags, keywords, uid, .. } = &found.meta;
        let keywords: Vec<&str> = keywords.iter().map(model::Keyword::as_str).collect();
        (*uid, *flags, keywords.join(" "), found.octets, found.digest)
    };
    let flags = |list: &[FileFlags]| list.iter().copied().fold(FileFlags::default(), FileFlags::with);
    let (seen, old, answered, flagged) = (FileFlags::SEEN, FileFlags::OLD, FileFlags::ANSWERED, FileFlags::FLAGGED);
    let digest = |text: &str| digest_of_served(text.replace('\n', "\r\n").as_bytes());
    let expected = [
        (4, flags(&[seen, old, answered, flagged]), "first $Label1 foo", "Subject: one\n\nbody one\n"),
        (12, flags(&[seen, old, answered, FileFlags::COMPLETE]), "$Label1 foo", "Subject: three\n\nbody three\n"),
        (22, FileFlags::default(), "", "Subject: s\n\nnew\n"),
    ];
    for (found, (uid, flags, keywords, text)) in found.iter().zip(expected) {
        let octets = text.replace('\n', "\r\n").len() as u64;
        assert_eq!(shown(found), (Some(uid), flags, keywords.to_owned(), octets, digest(text)));
    }
    let base = found[0].meta.base.as_ref().unwrap();
    assert_eq!((found.len(), base.uid_validity, base.last_uid, base.keywords.len()), (3, 1_000_000_000, 22, 3));
}

/// As mutt 2.2 writes messages when one before them has changed: with lengths, and an empty line behind a header that had none.
#[test]
fn mutt_makes_no_other_messages() {
    let before = format!(
        "{LINE}Subject: one\n\tfolded   \nDate: x\n\nbody one\n>From quoted\n\n\n{LINE}Subject: two\nStatus: RO\n\nbody two\n\n\
         {LINE}Subject: three\n\n{LINE}Subject: four\nLines: 99\nX-Keywords: abc\nX-UID: 12\nDate: x\n\nbody\n\n"
    );
    let after = format!(
        "{LINE}Subject: one\n\tfolded   \nDate: x\nX-Status: F\nContent-Length: 23\nLines: 3\n\nbody one\n>From quoted\n\n\n\
         {LINE}Subject: two\nStatus: RO\nX-Status: F\nContent-Length: 9\nLines: 1\n\nbody two\n\n\
         {LINE}Subject: three\nX-Status: F\nContent-Length: 0\nLines: 0\n\n\n\
         {LINE}Subject: four\nX-Keywords: abc\nX-UID: 12\nDate: x\nX-Status: F\nContent-Length: 5\nLines: 99\n\nbody\n\n"
    );
    let shown = |text: &str| -> Vec<(u64, u64, u64)> {
        all(text.as_bytes()).iter().map(|found| (found.digest, found.octets, found.header_octets)).collect()
    };
    assert_eq!(shown(&before).len(), 4);
    assert_eq!(shown(&before), shown(&after));
    assert!(all(after.as_bytes()).iter().all(|found| found.meta.flags.has(FileFlags::FLAGGED)));
}

/// What c-client puts first, with a subject of its own or without.
#[test]
fn the_pseudo_message_is_the_first_of_the_file() {
    let pseudo = "From MAILER-DAEMON Fri Feb 18 17:04:00 2005\nDate: 18 Feb 2005 17:04:00 +0000\nFrom: Mail System Internal Data <MAILER-DAEMON@a>\n\
         Subject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\nX-IMAP: 1108746240 0000000002 kw1 kw2\nStatus: RO\n\nThis text is \
         part of the internal format\n\n";
    let found = all(format!("{pseudo}{pseudo}").as_bytes());
    assert_eq!(found.iter().map(|found| found.meta.is_pseudo).collect::<Vec<_>>(), [true, false]);
    assert_eq!(found[0].meta.base.as_ref().map(|base| base.keywords.len()), Some(2));
    // Going on with a file behind its first message.
    let file = file(format!("{pseudo}{pseudo}").as_bytes());
    let (found, _) = collect(&*file, Scanner::new(pseudo.len() as u64), 0, 0);
    assert!(found.len() == 1 && !found[0].meta.is_pseudo);
}

#[test]
fn a_line_that_is_too_long_has_no_date() {
    for (spaces, has_date) in [(0, true), (LINE_BYTES_MAX - 34, true), (LINE_BYTES_MAX - 33, false), (8000, false)] {
        let text = format!("From a@b{} Thu Aug 22 12:36:23 2002\nA: b\n\nx\n", " ".repeat(spaces + 1));
        assert_eq!(all(text.as_bytes())[0].date.is_some(), has_date, "{spaces}");
        let small = collect(&*file(text.as_bytes()), Scanner::new(0), 0, 0).0;
        assert_eq!(small[0].date.is_some(), has_date, "{spaces}");
    }
}

#[test]
fn no_mbox_and_nothing() {
    let step = |text: &str| collect(&*file(text.as_bytes()), Scanner::new(0), 0, 0).1.step;
    assert_eq!((step("Subject: x\n\ny\n"), step(""), step("\n\n")), (Step::NotMbox, Step::Done, Step::Done));
}

#[test]
fn an_error_of_the_taker_ends_it() {
    let text = format!("{LINE}A: b\n\nx\n\n").repeat(3);
    let mut count = 0;
    let result = intake(&*file(text.as_bytes()), Scanner::new(0), &mut |_| {
        count += 1;
        Err(Error::new(ErrorKind::Invalid, "enough"))
    });
    assert_eq!((result.unwrap_err().kind(), count), (ErrorKind::Invalid, 1));
}

#[test]
fn a_file_that_is_cut_meanwhile_is_an_error() {
    let message = format!("{LINE}A: b\n\n{}\n\n", "text\n".repeat(500));
    let file = file(message.repeat(400).as_bytes());
    let error = intake(&*file, Scanner::new(0), &mut |found| {
        if found.message.start == 0 {
            file.set_len(400_000).unwrap();
        }
        Ok(())
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    let settled = collect(&*self::file(message.repeat(4).as_bytes()), Scanner::new(0), 0, 0).1.settled.unwrap();
    let result = intake(&*self::file(message.as_bytes()), settled.scanner, &mut |_| Ok(()));
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Invalid, "it has become shorter");
}

/// Larger than the window, in every dialect, with a Content-Length that leads far behind it or behind the file.
#[test]
fn larger_than_the_window() {
    let window = 3 * PIECE_BYTES_MIN;
    let body = format!("{}>From q\n{}", "words and words\n".repeat(window / 8), "more\n".repeat(window / 4));
    let enclosing = format!("{body}\n{LINE}{body}");
    let long = "x".repeat(2 * window);
    let fields = format!("X-UID: 3\nX-Keywords: a {}\nA: {long}\nStatus: R\n", " ".repeat(window));
    let text = [
        format!("{LINE}A: 1\n\n{body}\n"),
        format!("{LINE}{fields}Content-Length: {}\n\n{enclosing}\n", enclosing.len()),
        format!("{LINE}Content-Length: {}\n{fields}\n{body}\n", body.len()),
        format!("{LINE}Content-Length: 99999999\n\n{body}\n"),
        format!("{LINE}Content-Length: {}\n\n{body}\n", body.len() - 7),
        format!("{LINE}{fields}{LINE}A: 1\r\n\r\n{}\r\n\r\n", body.replace('\n', "\r\n")),
        format!("{LINE}A: {long}"),
    ]
    .concat();
    let whole = all(text.as_bytes());
    assert_eq!(whole.len(), 8);
    let form: String = whole.iter().map(|found| if found.message.form().unquote { 'u' } else { '-' }).collect();
    assert_eq!(form, "u-uuuuuu");
    for found in &whole {
        let (served, header_octets) = served(text.as_bytes(), &found.message);
        assert_eq!((found.octets, found.header_octets), (served.len() as u64, header_octets as u64));
        assert_eq!(found.digest, digest_of_served(&served));
    }
    for (piece, window) in [(0, 0), (0, window), (PIECE_BYTES_MIN + 77, window), (window, window)] {
        let (pieces, _) = collect(&*file(text.as_bytes()), Scanner::new(0), piece, window);
        assert_eq!(pieces, whole, "{piece} {window}");
    }
}

#[test]
fn threads_stop_when_the_taker_fails_or_the_file_is_no_mbox() {
    let text = format!("{LINE}A: b\n\nx\n\n").repeat(500);
    let mut count = 0;
    let result = intake_in_parts(&*file(text.as_bytes()), 3, 100, &mut |_| {
        count += 1;
        if count < 300 { Ok(()) } else { Err(Error::new(ErrorKind::Invalid, "enough")) }
    });
    assert_eq!((result.unwrap_err().kind(), count), (ErrorKind::Invalid, 300));
    let no_mbox = intake_in_parts(&*file(text.replace("From", "To").as_bytes()), 3, 100, &mut |_| Ok(()));
    assert_eq!(no_mbox.unwrap().step, Step::NotMbox);
}

#[test]
fn growing_reads_little() {
    let message = format!("{LINE}A: b\n\n{}\n\n", "text\n".repeat(500));
    let (found, ended) =
        collect(&*file(message.repeat(400).as_bytes()), Scanner::new(0), PIECE_BYTES, WINDOW_BYTES_MAX);
    let settled = ended.settled.unwrap();
    assert!(settled.messages >= found.len() - 2);
    assert!(needed_from(&settled.scanner) + 2 * message.len() as u64 >= ended.file_bytes);
}

/// Files in which anything may stand anywhere.
fn anything() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&str; 29] = [
        LINE,
        LINE,
        LINE,
        LINE,
        "From a@b Thu Aug 22 12:36:23 2002\r\n",
        "From a@b\n",
        "From ",
        "\n",
        "\n",
        "\n",
        "\r\n",
        "\r",
        "A: b\n",
        "A: b\nC: d\n",
        "Content-Length: 3\n",
        "Content-Length: 60\n",
        "Content-Length: 9000\n",
        "Content-Length: x",
        "X-UID: 7\n",
        "Status: RO\n",
        "X-Status: F\n",
        "X-IMAPbase: 5 6 a\n",
        "X-IMAP: 5 6 a\n",
        "x",
        ">From y\n",
        ">>From y\n",
        "From z\n",
        "\0",
        " folded\n",
    ];
    proptest::collection::vec((0..PIECES.len() + 2, 0usize..9000), 0..40).prop_map(|pieces| {
        let text = pieces.into_iter().map(|(n, len)| match PIECES.get(n) {
            Some(piece) => (*piece).to_owned(),
            None if n == PIECES.len() => format!("X-Keywords: a{}b\n", " ".repeat(len)),
            None => "long ".repeat(len / 5),
        });
        text.collect::<String>().into_bytes()
    })
}

proptest::proptest! {
    #[test]
    fn the_window_does_not_matter(bytes in anything(), piece in 0usize..9000, window in 0usize..20_000) {
        let whole = all(&bytes);
        let messages: Vec<Message> = whole.iter().map(|found| found.message).collect();
        let table = Table::read(&*file(&bytes)).map(|table| table.messages().to_vec()).unwrap_or_default();
        proptest::prop_assert_eq!(messages, table);
        for (n, found) in whole.iter().enumerate() {
            let (served, header_octets) = served(&bytes, &found.message);
            proptest::prop_assert_eq!((found.octets, found.header_octets), (served.len() as u64, header_octets as u64));
            proptest::prop_assert_eq!(found.digest, digest_of_served(&served));
            proptest::prop_assert!(n == 0 || found.meta.base.is_none());
        }
        let (pieces, ended) = collect(&*file(&bytes), Scanner::new(0), PIECE_BYTES_MIN + piece, PIECE_BYTES_MIN + window);
        proptest::prop_assert_eq!(pieces, whole);
        proptest::prop_assert_eq!(ended.file_bytes, bytes.len() as u64);
    }

    #[test]
    fn parts_do_not_matter(bytes in anything(), jobs in 2usize..4, part in 1u64..30_000) {
        let (whole, ended) = collect(&*file(&bytes), Scanner::new(0), PIECE_BYTES, WINDOW_BYTES_MAX);
        let mut found = Vec::new();
        let in_parts = intake_in_parts(&*file(&bytes), jobs, part, &mut |message| {
            found.push(message);
            Ok(())
        }).unwrap();
        proptest::prop_assert_eq!(&found, &whole);
        proptest::prop_assert_eq!((in_parts.step, in_parts.file_bytes), (ended.step, ended.file_bytes));
        // What is said to be settled is, whatever follows.
        if let Some(Settled { scanner, messages }) = in_parts.settled.filter(|_| ended.step == Step::Done) {
            let grown = [&bytes[..], b"\n", LINE.as_bytes(), b"A: b\n\nmore\n"].concat();
            found.truncate(messages);
            found.append(&mut collect(&*file(&grown), scanner, PIECE_BYTES, WINDOW_BYTES_MAX).0);
            proptest::prop_assert_eq!(found, all(&grown));
        }
    }

    /// A file that grows is read as one that was always there.
    #[test]
    fn growing_does_not_matter(bytes in anything(), mut cuts in proptest::collection::vec(0.0..1.0, 0..6), window in 0usize..20_000) {
        cuts.sort_by(f64::total_cmp);
        let mut known: Vec<Found> = Vec::new();
        let mut from = Settled::default();
        for cut in cuts.into_iter().chain([1.0]) {
            let grown = file(&bytes[..(bytes.len() as f64 * cut) as usize]);
            known.truncate(from.messages);
            let (mut found, ended) = collect(&*grown, from.scanner.clone(), 0, PIECE_BYTES_MIN + window);
            known.append(&mut found);
            from = match ended.settled {
                Some(settled) if ended.step == Step::Done => {
                    Settled { scanner: settled.scanner, messages: from.messages + settled.messages }
                }
                _ => {
                    known.clear();
                    Settled::default()
                }
            };
        }
        proptest::prop_assert_eq!(known, all(&bytes));
    }
}
