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

use super::name::{Name, number};

/// Which program's form a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Courier's.
    One,
    /// Dovecot's.
    Three,
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UidList<'a> {
    /// Its form.
    pub(crate) version: Version,
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

    /// The value of a field.
    pub(crate) fn field(&self, letter: u8) -> Option<&'a [u8]> {
        let mut fields = self.fields.split(|byte| *byte == b' ');
        fields.find_map(|field| field.split_first().filter(|(first, _)| **first == letter).map(|(_, value)| value))
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

    /// The list as a file has it.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 64 * self.records.len());
        match self.version {
            Version::One => out.extend_from_slice(format!("1 {} {}", self.uid_validity, self.next_uid).as_bytes()),
            Version::Three => {
                out.extend_from_slice(format!("3 V{} N{}", self.uid_validity, self.next_uid).as_bytes());
                for field in &self.fields {
                    out.push(b' ');
                    out.extend_from_slice(field);
                }
            }
        }
        out.push(b'\n');
        for record in &self.records {
            write_record(&mut out, self.version, record);
        }
        out
    }
}

/// Writes the line of one message, as it is appended to a list.
pub(crate) fn write_record(out: &mut Vec<u8>, version: Version, record: &Record<'_>) {
    out.extend_from_slice(record.uid.to_string().as_bytes());
    out.push(b' ');
    match version {
        Version::One => out.extend_from_slice(record.base()),
        Version::Three => {
            if !record.fields.is_empty() {
                out.extend_from_slice(record.fields);
                out.push(b' ');
            }
            out.push(b':');
            out.extend_from_slice(record.name);
        }
    }
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
        assert_eq!((list.version, list.uid_validity, list.next_uid), (Version::Three, 1275660208, 25022));
        assert_eq!(list.fields, [&b"G3085f01b7f11094c501100008c4a11c1"[..], b"X9"]);
        let [first, second] = list.records.as_slice() else { panic!("two records") };
        assert_eq!((first.uid, first.base()), (25006, &b"1276528487.M364837P9451.kurkku,S=1355,W=1394"[..]));
        assert_eq!((second.field(b'W'), second.field(b'P')), (Some(&b"2481"[..]), Some(&b"0001"[..])));
        assert_eq!((second.field(b'x'), second.field(b'S')), (Some(&b""[..]), None));
        assert_eq!(second.base(), b"1276533073.M242911P3632.kurkku");
        assert_eq!(list.write(), THREE.as_bytes());
    }

    #[test]
    fn couriers_list() {
        let list = UidList::parse(ONE.as_bytes()).unwrap();
        assert_eq!((list.version, list.uid_validity, list.next_uid), (Version::One, 795331411, 4));
        assert_eq!(list.records.iter().map(|record| record.uid).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(list.write(), ONE.as_bytes());
    }

    #[test]
    fn lines_were_appended_after_the_first_was_written() {
        let list = UidList::parse(b"3 V7 N2\n1 :a\n2 :b\n9 :c\n").unwrap();
        assert_eq!(list.next_uid, 10);
        let full = UidList::parse(b"3 V7 N2\n4294967295 :a\n").unwrap();
        assert_eq!((full.next_uid, full.records.len()), (u32::MAX, 1));
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
            validity in 1u32.., next in 1u32..1000, is_three: bool,
            rows in proptest::collection::vec((1u32..9, "([SWG][a-z0-9]{0,3}( [PO][0-9]{1,3})?)?", "[a-z0-9.,=]{1,12}"), 0..12),
        ) {
            let version = if is_three { Version::Three } else { Version::One };
            let mut uid = 0;
            let records: Vec<Record<'_>> = rows.iter().map(|(step, fields, name)| {
                uid += step;
                Record { uid, fields: if is_three { fields.as_bytes() } else { b"" }, name: name.as_bytes() }
            }).collect();
            let fields = if is_three { vec![&b"G00ff"[..]] } else { Vec::new() };
            let next_uid = next.max(uid + 1);
            let list = UidList { version, uid_validity: validity, next_uid, fields, records, broken_lines: 0 };
            let text = list.write();
            proptest::prop_assert_eq!(UidList::parse(&text), Some(list));
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
