//! `dovecot-uidlist` and Courier's `courierimapuiddb`: which UIDs the files of a Maildir have.
//!
//! ```text
//! 3 V1275660208 N25022 G3085f01b7f11094c501100008c4a11c1      1 1275660208 25022
//! 25006 :1276528487.M364837P9451.h,S=1355,W=1394:2,           25006 1276528487.M364837P9451.h
//! 25017 W2481 :1276533073.M242911P3632.h:2,F                  25017 1276533073.M242911P3632.h
//! ```
//!
//! Version 3 is Dovecot's since 1.1, version 1 that of Courier and of Dovecot before. In both the first line says UIDVALIDITY and the UID that the next
//! message gets, and each other line a message's UID, in version 3 with fields of the form `LETTER VALUE` (no space between), and its file name as it was
//! when the line was written: only the base of it counts.
//!
//! Rules:
//! - Programs append lines without changing the first: the next UID is never below the highest UID plus one.
//! - A line without an end may be half of one: it does not count. Lines that say no UID or no name, and UIDs that do not rise, are passed over and counted.
//!   Nothing else of a list is doubted because of them.
//! - What has no meaning here (fields of the first line and of the others) is kept, so that a list that is written again loses nothing.
//! - Lists are written in version 3.

use std::collections::{HashMap, HashSet};

use super::name::{Name, number};

/// Which program's form a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Courier's.
    One,
    /// Dovecot's.
    Three,
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UidList<'a> {
    /// Its form.
    version: Version,
    /// UIDVALIDITY; never 0.
    pub(crate) uid_validity: u32,
    /// The UID of the next message, at least; never 0, and above all of `records`.
    pub(crate) next_uid: u32,
    /// Version 3: other fields of the first line, `LETTER VALUE` each, in order (`G` is the mailbox's GUID).
    pub(crate) fields: Vec<&'a [u8]>,
    /// The messages, UIDs rising.
    pub(crate) records: Vec<Record<'a>>,
    /// Lines that say nothing.
    pub(crate) broken_lines: usize,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Its UID; never 0.
    pub(crate) uid: u32,
    /// Version 3: its fields, separated by spaces, as they stand there: `W` and `S` are sizes, `G` a GUID, `P` a POP3 UIDL, `O` a place in POP3's order.
    pub(crate) fields: &'a [u8],
    /// Its file name at the time; see [`Record::base`].
    pub(crate) name: &'a [u8],
}

impl<'a> Record<'a> {
    /// The base of its name.
    pub(crate) fn base(&self) -> &'a [u8] {
        Name::parse(self.name).map_or(self.name, |name| name.base)
    }
}

impl<'a> UidList<'a> {
    /// Reads a list. `None`: the first line is not one of a list that is known here.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<UidList<'a>> {
        let mut lines = Lines(bytes);
        let mut list = Self::parse_first(lines.next()?)?;
        let mut last = 0;
        for line in &mut lines {
            match list.parse_record(line).filter(|record| record.uid > last) {
                Some(record) => {
                    last = record.uid;
                    list.records.push(record);
                }
                None => list.broken_lines += 1,
            }
        }
        list.broken_lines += usize::from(!lines.0.is_empty());
        list.next_uid = list.next_uid.max(last.saturating_add(1));
        Some(list)
    }

    fn parse_first(line: &'a [u8]) -> Option<UidList<'a>> {
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let version = match words.next()? {
            b"1" => Version::One,
            b"3" => Version::Three,
            _ => return None,
        };
        let (mut uid_validity, mut next_uid, mut fields) = (None, None, Vec::new());
        match version {
            Version::One => {
                uid_validity = number(words.next()?);
                next_uid = number(words.next()?);
            }
            Version::Three => {
                for word in words {
                    match word.split_first() {
                        Some((b'V', value)) => uid_validity = number(value),
                        Some((b'N', value)) => next_uid = number(value),
                        _ => fields.push(word),
                    }
                }
            }
        }
        let uid_validity = uid_validity.filter(|validity| *validity != 0)?;
        let next_uid = next_uid.unwrap_or(1).max(1);
        Some(UidList { version, uid_validity, next_uid, fields, records: Vec::new(), broken_lines: 0 })
    }

    fn parse_record(&self, line: &'a [u8]) -> Option<Record<'a>> {
        let (uid, rest) = line.split_at_checked(memchr::memchr(b' ', line)?)?;
        let uid = number(uid).filter(|uid| *uid != 0)?;
        let rest = rest.get(1..)?;
        let (fields, name) = match self.version {
            Version::One => (&[][..], rest),
            Version::Three => {
                let at = memchr::memchr(b':', rest)?;
                (rest.get(..at)?.trim_ascii_end(), rest.get(at + 1..)?)
            }
        };
        (!name.is_empty()).then_some(Record { uid, fields, name })
    }

    /// A list of no messages.
    pub(crate) fn empty(uid_validity: u32, next_uid: u32) -> UidList<'a> {
        let (fields, records) = Default::default();
        UidList { version: Version::Three, uid_validity, next_uid, fields, records, broken_lines: 0 }
    }

    /// Whether lines may be added to the end of its file.
    pub(crate) fn can_grow(&self) -> bool {
        self.version == Version::Three && self.broken_lines == 0
    }

    /// Reads lines that were added to a list of version 3; `last_uid`: the highest UID before. `None`: they are not such lines.
    pub(crate) fn parse_added(bytes: &'a [u8], last_uid: u32) -> Option<Vec<Record<'a>>> {
        let (mut lines, mut last, mut records) = (Lines(bytes), last_uid, Vec::new());
        for line in &mut lines {
            let record = Self::empty(1, 1).parse_record(line).filter(|record| record.uid > last)?;
            last = record.uid;
            records.push(record);
        }
        lines.0.is_empty().then_some(records)
    }

    /// What the list has to become so that it says the UIDs of `entries` (their UIDs, rising, and names), as far as it does not say others of
    /// them; `None`: it does already. Records of messages that are gone are left out when there are many: those below `next_uid`, the UID of
    /// the mailbox's next message, that no entry has.
    pub(crate) fn with_entries(&self, entries: &[(u32, &'a [u8])], next_uid: u32) -> Option<UidList<'a>> {
        let base = |name: &'a [u8]| Name::parse(name).map_or(name, |name| name.base);
        let ours: HashMap<u32, &'a [u8]> = entries.iter().map(|(uid, name)| (*uid, *name)).collect();
        let agrees = |record: &Record<'a>| ours.get(&record.uid).is_some_and(|name| base(name) == record.base());
        let mut records: Vec<Record<'a>> = self.records.iter().filter(|record| agrees(record)).copied().collect();
        let agreed = records.len();
        let (mut taken, mut bases) = (HashSet::new(), HashSet::new());
        if agreed < self.records.len() || agreed < entries.len() {
            let our_bases: HashSet<&[u8]> = entries.iter().map(|(_, name)| base(name)).collect();
            let mut gone = Vec::new();
            for record in self.records.iter().filter(|record| !agrees(record)) {
                let has_file = our_bases.contains(record.base());
                // One whose file we know under another UID: whoever said that had told somebody.
                if has_file || record.uid >= next_uid {
                    bases.insert(record.base());
                    records.push(*record);
                } else if !ours.contains_key(&record.uid) {
                    gone.push(*record);
                }
            }
            if gone.len() <= GONE_MAX + agreed {
                records.append(&mut gone);
            }
        }
        taken.extend(records.iter().map(|record| record.uid));
        let lacks = |(uid, name): &&(u32, &'a [u8])| !taken.contains(uid) && !bases.contains(base(name));
        let lacking: Vec<_> = entries.iter().filter(lacks).collect();
        records.extend(lacking.iter().map(|(uid, name)| Record { uid: *uid, fields: b"", name }));
        if lacking.is_empty() && records.len() == self.records.len() && self.version == Version::Three {
            return None;
        }
        records.sort_unstable_by_key(|record| record.uid);
        let last = records.last().map_or(0, |record| record.uid);
        let next_uid = self.next_uid.max(last.saturating_add(1)).max(next_uid);
        Some(UidList { version: Version::Three, records, next_uid, broken_lines: 0, ..self.clone() })
    }

    /// The list as a file has it, in version 3.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 64 * self.records.len());
        out.extend_from_slice(format!("3 V{} N{}", self.uid_validity, self.next_uid).as_bytes());
        for field in &self.fields {
            out.push(b' ');
            out.extend_from_slice(field);
        }
        out.push(b'\n');
        for record in &self.records {
            write_record(&mut out, record);
        }
        out
    }
}

/// Records of messages that are gone stay in a list until they are so many more than the others.
const GONE_MAX: usize = 100;

/// Writes the line of one message, as it is added to a list.
pub(crate) fn write_record(out: &mut Vec<u8>, record: &Record<'_>) {
    out.extend_from_slice(record.uid.to_string().as_bytes());
    out.push(b' ');
    if !record.fields.is_empty() {
        out.extend_from_slice(record.fields);
        out.push(b' ');
    }
    out.push(b':');
    out.extend_from_slice(record.name);
    out.push(b'\n');
}

/// The lines that have an end, without it; what is left behind the last is left.
pub(super) struct Lines<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (line, rest) = self.0.split_at_checked(memchr::memchr(b'\n', self.0)?)?;
        self.0 = rest.get(1..).unwrap_or_default();
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const THREE: &str = "3 V1275660208 N25022 G3085f01b7f11094c501100008c4a11c1 X9\n\
                         25006 :1276528487.M364837P9451.kurkku,S=1355,W=1394:2,\n\
                         25017 W2481 P0001 x :1276533073.M242911P3632.kurkku:2,F\n";
    const ONE: &str = "1 795331411 4\n1 1795331506.M615476P22864V00.vm,S=16\n3 1795331509.M41608P22864V00.vm,S=16\n";

    #[test]
    fn dovecots_list() {
        let list = UidList::parse(THREE.as_bytes()).unwrap();
        assert_eq!((list.can_grow(), list.uid_validity, list.next_uid), (true, 1275660208, 25022));
        assert_eq!(list.fields, [&b"G3085f01b7f11094c501100008c4a11c1"[..], b"X9"]);
        let [first, second] = list.records.as_slice() else { panic!("two records") };
        assert_eq!((first.uid, first.base()), (25006, &b"1276528487.M364837P9451.kurkku,S=1355,W=1394"[..]));
        assert_eq!(second.fields, b"W2481 P0001 x");
        assert_eq!(second.base(), b"1276533073.M242911P3632.kurkku");
        assert_eq!(list.write(), THREE.as_bytes());
    }

    #[test]
    fn couriers_list() {
        let list = UidList::parse(ONE.as_bytes()).unwrap();
        assert_eq!((list.can_grow(), list.uid_validity, list.next_uid), (false, 795331411, 4));
        assert_eq!(list.records.iter().map(|record| record.uid).collect::<Vec<_>>(), [1, 3]);
        assert!(list.write().starts_with(b"3 V795331411 N4\n1 :1795331506.M615476P22864V00.vm,S=16\n"));
    }

    #[test]
    fn lines_were_appended_after_the_first_was_written() {
        let list = UidList::parse(b"3 V7 N2\n1 :a\n2 :b\n9 :c\n").unwrap();
        assert_eq!(list.next_uid, 10);
        let full = UidList::parse(b"3 V7 N2\n4294967295 :a\n").unwrap();
        assert_eq!((full.next_uid, full.records.len()), (u32::MAX, 1));
    }

    #[test]
    fn what_a_list_lacks() {
        let list = UidList::parse(b"3 V7 N5 Gx\n1 W9 :a:2,\n3 :c\n4 :d\n").unwrap();
        let with = |entries: &[(u32, &'static str)], next| {
            let entries: Vec<(u32, &[u8])> = entries.iter().map(|(uid, name)| (*uid, name.as_bytes())).collect();
            list.with_entries(&entries, next).map(|list| String::from_utf8(list.write()).unwrap())
        };
        assert_eq!(with(&[(1, "a:2,S"), (3, "c:2,"), (4, "d")], 5), None);
        assert_eq!(
            with(&[(1, "a"), (3, "c"), (4, "d"), (7, "e:2,S")], 8).unwrap(),
            "3 V7 N8 Gx\n1 W9 :a:2,\n3 :c\n4 :d\n7 :e:2,S\n"
        );
        // Gone here, in between, under another name, and numbered there while we were away.
        assert_eq!(with(&[(1, "a"), (2, "b"), (3, "cc")], 4).unwrap(), "3 V7 N5 Gx\n1 W9 :a:2,\n2 :b\n3 :cc\n4 :d\n");
        // Another message has the UID there, and the file another UID: both stay as somebody was told.
        assert_eq!(with(&[(1, "a"), (3, "d"), (4, "c")], 5), None);
        assert_eq!(with(&[(1, "a"), (3, "d"), (4, "e"), (5, "c")], 6), None);
        let added = UidList::parse_added(b"5 :e\n9 W1 :f:2,S\n", 4).unwrap();
        assert_eq!(
            added.iter().map(|record| (record.uid, record.base())).collect::<Vec<_>>(),
            [(5, &b"e"[..]), (9, b"f")]
        );
        for bad in ["4 :e\n", "5 :e", "5 :e\nx\n", "6 :e\n5 :f\n"] {
            assert_eq!(UidList::parse_added(bad.as_bytes(), 4), None, "{bad:?}");
        }
    }

    #[test]
    fn those_that_are_gone_stay_until_they_are_many() {
        let text: String = (1..=250).map(|uid| format!("{uid} :n{uid}\n")).collect();
        let list = format!("3 V7 N251\n{text}");
        let list = UidList::parse(list.as_bytes()).unwrap();
        let name = |uid: &u32| format!("n{uid}").into_bytes();
        let names: Vec<(u32, Vec<u8>)> = (1..=250).map(|uid| (uid, name(&uid))).collect();
        let entries = |count: usize| names.iter().take(count).map(|(uid, name)| (*uid, &name[..])).collect::<Vec<_>>();
        assert_eq!(list.with_entries(&entries(80), 251), None);
        assert_eq!(list.with_entries(&entries(70), 251).unwrap().records.len(), 70);
    }

    #[test]
    fn broken_lines_take_nothing_else_with_them() {
        let text = b"3 V7 N20\n1 :a\n\nx :b\n0 :c\n2\n3 no name\n4 :\n5 :d\n5 :e\n4 :f\n4294967296 :g\n+6 :h\n7 :i\n8 :half a na";
        let list = UidList::parse(text).unwrap();
        let names: Vec<_> = list.records.iter().map(|record| (record.uid, record.name)).collect();
        assert_eq!(names, [(1, &b"a"[..]), (5, b"d"), (7, b"i")]);
        assert_eq!(list.broken_lines, 11);
    }

    #[test]
    fn what_is_no_list() {
        for bad in ["", "\n", "2 V1 N1\n", "3 N1\n", "3 V0 N1\n", "3 Vx N1\n", "1 7\n", "1 0 1\n", "3 V1 N1", "4\n"] {
            assert_eq!(UidList::parse(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(UidList::parse(b"3 V9\n").unwrap().next_uid, 1);
        assert_eq!(UidList::parse(b"1 9 0 more\n").unwrap().next_uid, 1);
    }

    #[test]
    fn every_cut_is_a_shorter_list_or_none() {
        for text in [THREE, ONE] {
            let whole = UidList::parse(text.as_bytes()).unwrap();
            for end in 0..text.len() {
                let Some(cut) = UidList::parse(&text.as_bytes()[..end]) else { continue };
                assert_eq!(cut.records, whole.records[..cut.records.len()]);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn lists_come_back(
            validity in 1u32.., next in 1u32..1000,
            rows in proptest::collection::vec((1u32..9, "([SWG][a-z0-9]{0,3}( [PO][0-9]{1,3})?)?", "[a-z0-9.,=]{1,12}"), 0..12),
        ) {
            let mut uid = 0;
            let records: Vec<Record<'_>> = rows.iter().map(|(step, fields, name)| {
                uid += step;
                Record { uid, fields: fields.as_bytes(), name: name.as_bytes() }
            }).collect();
            let next_uid = next.max(uid + 1);
            let list = UidList { fields: vec![&b"G00ff"[..]], records, ..UidList::empty(validity, next_uid) };
            let text = list.write();
            proptest::prop_assert_eq!(UidList::parse(&text), Some(list.clone()));
            let first = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
            proptest::prop_assert_eq!(UidList::parse_added(&text[first..], 0), Some(list.records));
        }

        /// What a list says of a file stays; the other entries get theirs where the UID is free; a second time nothing is left to do.
        #[test]
        fn entries_are_added(
            theirs in proptest::collection::btree_map(1u32..30, 0u32..40, 0..12),
            ours in proptest::collection::btree_map(1u32..30, 0u32..40, 0..12),
        ) {
            let named = |numbers: &std::collections::BTreeMap<u32, u32>| {
                let mut seen = HashSet::new();
                let numbers = numbers.iter().filter(|(_, n)| seen.insert(**n));
                numbers.map(|(uid, n)| (*uid, format!("{n}:2,S"))).collect::<Vec<_>>()
            };
            let (theirs, ours) = (named(&theirs), named(&ours));
            let text = theirs.iter().fold("3 V7 N2\n".to_owned(), |text, (uid, name)| text + &format!("{uid} :{name}\n"));
            let list = UidList::parse(text.as_bytes()).unwrap();
            let entries: Vec<(u32, &[u8])> = ours.iter().map(|(uid, name)| (*uid, name.as_bytes())).collect();
            let next = ours.last().map_or(1, |(uid, _)| uid + 1);
            let done = list.with_entries(&entries, next).unwrap_or(list.clone());
            let written = done.write();
            proptest::prop_assert_eq!(UidList::parse(&written), Some(done.clone()));
            proptest::prop_assert_eq!(done.with_entries(&entries, next), None);
            for (uid, name) in &ours {
                let theirs = theirs.iter().find(|(_, other)| other == name);
                let found = done.records.iter().find(|record| record.name == name.as_bytes()).map(|record| record.uid);
                match theirs {
                    Some((theirs, _)) => proptest::prop_assert_eq!(found, Some(*theirs)),
                    None => proptest::prop_assert!(found.is_none_or(|found| found == *uid)),
                }
            }
        }

        #[test]
        fn any_octets(text in "(1 |3 |V7|N9| |:|\n|a|0|\u{e9}){0,60}") {
            for text in [text.clone(), format!("3 V7 N9\n{text}"), format!("1 7 9\n{text}")] {
                let Some(list) = UidList::parse(text.as_bytes()) else { continue };
                let rising = |pair: &[Record<'_>]| matches!(pair, [a, b] if a.uid < b.uid);
                proptest::prop_assert!(list.records.windows(2).all(rising));
                let written = list.write();
                let again = UidList::parse(&written).unwrap();
                proptest::prop_assert_eq!(again.records.len(), list.records.len());
                proptest::prop_assert_eq!(again.next_uid, list.next_uid);
            }
        }
    }
}
