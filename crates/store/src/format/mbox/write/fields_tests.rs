//! Headers before and after.
#![allow(clippy::unwrap_used)]

use super::*;

const BASE: ImapBase = ImapBase { uid_validity: 5, last_uid: 6, keywords: Vec::new() };

fn style(base: Option<&ImapBase>) -> Style<'_> {
    Style { is_crlf: false, padding: 8, base, drop_length: false }
}

fn wanted(uid: u32, flags: FileFlags, names: &[&str]) -> Wanted {
    Wanted { uid, flags, keywords: names.iter().map(|name| Keyword::new(name).unwrap()).collect() }
}

fn changed(header: &str, wanted: &Wanted) -> Option<Change> {
    Header::new(header.as_bytes()).in_place(wanted, &style(None))
}

/// The header with the values that are written into it.
fn values(header: &str, wanted: &Wanted) -> String {
    let mut bytes = header.as_bytes().to_vec();
    match changed(header, wanted) {
        Some(Change::None) => {}
        Some(Change::Values(values)) => {
            for (at, value) in values {
                bytes[at..at + value.len()].copy_from_slice(&value);
            }
        }
        other => panic!("{other:?}"),
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_new_block() {
    let all = wanted(7, FileFlags::SEEN.with(FileFlags::OLD).with(FileFlags::FLAGGED), &["a", "$b"]);
    let block = new_block(&all, &style(Some(&BASE)));
    assert_eq!(
        String::from_utf8(block).unwrap(),
        "X-IMAPbase: 5 0000000006        \nX-UID: 7\nStatus: RO\nX-Status: F   \nX-Keywords: a $b        \n"
    );
}

#[test]
fn values_in_the_room_of_their_lines() {
    let header = "Subject: x\nX-UID: 7\nStatus:   \nX-Status:     \nX-Keywords:          \n\n";
    let seen = wanted(7, FileFlags::SEEN.with(FileFlags::DELETED), &["one"]);
    let now = values(header, &seen);
    assert_eq!(now, "Subject: x\nX-UID: 7\nStatus: R \nX-Status: D   \nX-Keywords: one      \n\n");
    assert_eq!(values(&now, &wanted(7, FileFlags::default(), &[])), header);
    assert_eq!(changed(&now, &seen), Some(Change::None));
    assert_eq!(
        values(&now, &wanted(7, FileFlags::OLD, &["a", "b"])),
        now.replace("R ", "O ").replace("D ", "  ").replace("one", "a b")
    );
}

/// As Dovecot writes them: the padding is behind the keywords only.
#[test]
fn lines_share_the_room_of_their_block() {
    let header = "A: b\nX-UID: 7\nStatus: O\nX-Status: \nX-Keywords:          \nContent-Length: 1\n\n";
    let change = changed(header, &wanted(7, FileFlags::SEEN.with(FileFlags::OLD).with(FileFlags::ANSWERED), &["x"]));
    let Some(Change::Lines(now)) = change else { panic!("{change:?}") };
    assert_eq!(
        String::from_utf8(now).unwrap(),
        "A: b\nX-UID: 7\nStatus: RO\nX-Status: A   \nX-Keywords: x   \nContent-Length: 1\n\n"
    );
    // Too much for it.
    assert_eq!(changed(header, &wanted(7, FileFlags::SEEN, &["a-keyword-that-is-long"])), None);
    assert_eq!(changed("A: b\n\n", &wanted(7, FileFlags::SEEN, &[])), None);
}

#[test]
fn a_header_anew() {
    let rebuilt = |header: &str, room| {
        let flags = wanted(7, FileFlags::SEEN, &[]);
        let now = Header::new(header.as_bytes()).rebuilt(Content::Wanted(&flags), &style(None), room)?;
        Some(String::from_utf8(now).unwrap())
    };
    let block = "X-UID: 7\nStatus: R \nX-Status:     \nX-Keywords:         \n";
    let natural = |header: &str| rebuilt(header, Room::Natural).unwrap();
    assert_eq!(natural("A: b\n\n"), format!("A: b\n{block}\n"));
    assert_eq!(natural("A: b"), format!("A: b\n{block}"));
    assert_eq!(natural(""), block);
    assert_eq!(natural("\n"), format!("{block}\n"));
    // Duplicates and what belongs to a first message go; all comes together where the last one stood.
    assert_eq!(
        natural("Status: RO\nA: b\nX-IMAPbase: 1 2\nX-UID: 3\nX-UID: 4\nC: d\nContent-Length: 3\n\n"),
        format!("A: b\n{block}C: d\nContent-Length: 3\n\n")
    );
    for len in 0..3000 {
        let now = rebuilt("A: b\nStatus: R\nC: d\n\n", Room::Exactly(len));
        let least = "A: b\nX-UID: 7\nStatus: R\nX-Status: \nX-Keywords: \nC: d\n\n".len();
        assert_eq!(now.as_ref().map(String::len), (len >= least).then_some(len));
        if let Some(now) = now {
            assert!(now.lines().all(|line| line.len() < super::super::block::LINE_BYTES_MAX));
            let header = Header::new(now.as_bytes());
            assert!(header.is_ended() && now.lines().filter(|line| line.is_empty()).count() == 1);
            assert_eq!(header.in_place(&wanted(7, FileFlags::SEEN, &[]), &style(None)), Some(Change::None));
        }
    }
}

#[test]
fn many_keywords_are_folded() {
    let names: Vec<String> = (0..120).map(|n| format!("{n}-{}", "k".repeat(120))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let many = wanted(7, FileFlags::SEEN, &names);
    let base = ImapBase { keywords: many.keywords.clone(), ..BASE };
    let block = new_block(&many, &style(Some(&base)));
    assert!(block.split(|byte| *byte == b'\n').all(|line| line.len() < 998));
    let fields = all_fields(&block);
    let meta = crate::format::mbox::values::meta(&block, &fields, true);
    assert_eq!((meta.keywords.len(), meta.base.unwrap().keywords.len()), (120, 120));
}

#[test]
fn keywords_hash_is_of_the_set() {
    let hash = |names: &[&str]| keywords_hash(&wanted(1, FileFlags::default(), names).keywords);
    assert_eq!((hash(&[]), hash(&["a", "B"])), (0, hash(&["b", "A"])));
    assert!(hash(&["a"]) != hash(&["b"]) && hash(&["ab"]) != hash(&["a", "b"]) && hash(&["a"]) != 0);
}
