//! `cyrus.index`, versions 12 to 19: a header and records of one size each, big-endian, both ending with their CRC-32 (ISO 3309, as zlib has it).
//!
//! The source is Cyrus' own description of the format's history (`index-format-history` and the internal documentation of its mailbox format). Up to version 19
//! fields were only added, before the checksum; version 20 moved them, and those before 12 have no checksums and keep expunged messages elsewhere: these
//! are not read.
//!
//! | header | octets | record | octets |
//! |---|---|---|---|
//! | 8 | version | 0 | UID |
//! | 12 | its own size | 4 | internal date, seconds since 1970 |
//! | 16 | size of a record | 12 | size of the message |
//! | 20 | number of records | 32 | system flags and states |
//! | 28 | highest UID ever given | 36 | user flags: 128 bits, in words of 32 from the lowest bit |
//! | 44 | UIDVALIDITY | 52 | save date (version 15 and later) |
//! | 68 | highest modseq, 8 octets | last 4 | CRC-32 of what stands before |
//! | last 4 | CRC-32 of what stands before | | |
//!
//! Rules: a record whose checksum is wrong is left out and noted; so is one whose UID does not rise. The others count.

/// Bits of a record's flags.
pub(in crate::import) mod flag {
    pub(in crate::import) const ANSWERED: u32 = 1 << 0;
    pub(in crate::import) const FLAGGED: u32 = 1 << 1;
    pub(in crate::import) const DELETED: u32 = 1 << 2;
    pub(in crate::import) const DRAFT: u32 = 1 << 3;
    pub(in crate::import) const SEEN: u32 = 1 << 4;
    /// The message's file is gone already.
    pub(in crate::import) const UNLINKED: u32 = 1 << 30;
    /// The message is expunged; its file waits to be removed.
    pub(in crate::import) const EXPUNGED: u32 = 1 << 31;
}

/// Versions that are read.
const VERSIONS: std::ops::RangeInclusive<u32> = 12..=19;
/// The smallest header and record of these versions.
const HEADER_BYTES_MIN: usize = 128;
const RECORD_BYTES_MIN: usize = 96;
/// No version has had larger ones.
const BYTES_MAX: usize = 4096;
/// The first version with save dates.
const SAVE_DATE_SINCE: u32 = 15;

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Index {
    pub(in crate::import) uid_validity: u32,
    /// The highest UID that was ever given.
    pub(in crate::import) last_uid: u32,
    pub(in crate::import) highest_modseq: u64,
    /// The messages that are not expunged, UIDs rising.
    pub(in crate::import) records: Vec<Record>,
    /// What is wrong with others.
    pub(in crate::import) notes: Vec<String>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Record {
    pub(in crate::import) uid: u32,
    /// Seconds since 1970.
    pub(in crate::import) internal_date: u32,
    /// Octets.
    pub(in crate::import) size: u32,
    /// See [`flag`].
    pub(in crate::import) system_flags: u32,
    user_flags: [u32; 4],
    /// Seconds since 1970; `None`: not known.
    pub(in crate::import) save_date: Option<u32>,
}

impl Record {
    /// The bits of the user flags that are set, from 0.
    pub(in crate::import) fn user_flags(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self.user_flags.iter().enumerate();
        words.flat_map(|(n, word)| (0..32).filter(move |bit| word >> bit & 1 != 0).map(move |bit| n * 32 + bit))
    }
}

impl Index {
    /// Reads a file. The error says why it cannot be.
    pub(in crate::import) fn parse(bytes: &[u8]) -> Result<Index, String> {
        let short = || "it is too short".to_owned();
        let version = u32_at(bytes, 8).ok_or_else(short)?;
        if !VERSIONS.contains(&version) {
            return Err(format!("its version is {version}; known are {} to {}", VERSIONS.start(), VERSIONS.end()));
        }
        let size = |at: usize, least: usize| {
            let size = u32_at(bytes, at).and_then(|size| usize::try_from(size).ok()).ok_or_else(short)?;
            if (least..=BYTES_MAX).contains(&size) {
                Ok(size)
            } else {
                Err(format!("{size} octets cannot be a size in it"))
            }
        };
        let (start, record_bytes) = (size(12, HEADER_BYTES_MIN)?, size(16, RECORD_BYTES_MIN)?);
        let header = bytes.get(..start).ok_or_else(short)?;
        if !is_whole(header) {
            return Err("the checksum of its header is wrong".to_owned());
        }
        let number = |at| u32_at(header, at).ok_or_else(short);
        let mut index = Index {
            uid_validity: number(44)?,
            last_uid: number(28)?,
            highest_modseq: u64::from(number(68)?) << 32 | u64::from(number(72)?),
            records: Vec::new(),
            notes: Vec::new(),
        };
        let count = number(20)?;
        let mut rows = bytes.get(start..).unwrap_or_default().chunks_exact(record_bytes);
        let mut last = 0;
        for n in 1..=count {
            let Some(row) = rows.next() else {
                index
                    .notes
                    .push(format!("it ends before record {n} of {count}: {} messages are left out", count - n + 1));
                break;
            };
            let Some(record) = Record::parse(row, version).filter(|_| is_whole(row)) else {
                index.notes.push(format!("the checksum of record {n} is wrong: its message is left out"));
                continue;
            };
            if record.uid <= last {
                index
                    .notes
                    .push(format!("record {n} has UID {}, which does not rise: its message is left out", record.uid));
                continue;
            }
            last = record.uid;
            if record.system_flags & (flag::EXPUNGED | flag::UNLINKED) == 0 {
                index.records.push(record);
            }
        }
        index.last_uid = index.last_uid.max(last);
        Ok(index)
    }
}

impl Record {
    fn parse(row: &[u8], version: u32) -> Option<Record> {
        let mut user_flags = [0; 4];
        for (n, word) in user_flags.iter_mut().enumerate() {
            *word = u32_at(row, 36 + 4 * n)?;
        }
        let save_date = u32_at(row, 52).filter(|seconds| version >= SAVE_DATE_SINCE && *seconds > 0);
        Some(Record {
            uid: u32_at(row, 0)?,
            internal_date: u32_at(row, 4)?,
            size: u32_at(row, 12)?,
            system_flags: u32_at(row, 32)?,
            user_flags,
            save_date,
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|octets| u32::from_be_bytes(*octets))
}

/// Whether the last four octets are the checksum of those before.
fn is_whole(bytes: &[u8]) -> bool {
    bytes.split_last_chunk().is_some_and(|(bytes, sum)| crc32(bytes) == u32::from_be_bytes(*sum))
}

/// CRC-32 of ISO 3309 (polynomial 0x04C11DB7, reflected).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let sum = crc32(&bytes);
        bytes.extend(sum.to_be_bytes());
        bytes
    }

    fn put(bytes: &mut [u8], at: usize, number: u32) {
        bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
    }

    fn file(version: u32, sizes: (usize, usize), rows: &[(u32, u32, u32)]) -> Vec<u8> {
        let mut header = vec![0; sizes.0 - 4];
        let fields =
            [(8, version), (12, sizes.0 as u32), (16, sizes.1 as u32), (20, rows.len() as u32), (28, 9), (44, 77)];
        fields.into_iter().for_each(|(at, number)| put(&mut header, at, number));
        put(&mut header, 68, 1);
        put(&mut header, 72, 5);
        let mut out = sealed(header);
        for (uid, flags, user) in rows {
            let mut row = vec![0; sizes.1 - 4];
            for (at, number) in [(0, *uid), (4, 1000 + uid), (12, 50), (32, *flags), (36, *user), (44, 2), (52, 9)] {
                put(&mut row, at, number);
            }
            out.extend(sealed(row));
        }
        out
    }

    #[test]
    fn all_versions() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let rows = [(1, flag::SEEN, 5), (2, flag::EXPUNGED, 0), (4, flag::UNLINKED | flag::EXPUNGED, 0), (7, 0, 0)];
        for (version, sizes) in
            [(12, (128, 96)), (13, (128, 104)), (15, (160, 104)), (17, (160, 112)), (19, (160, 112))]
        {
            let index = Index::parse(&file(version, sizes, &rows)).unwrap();
            assert_eq!((index.uid_validity, index.last_uid, index.highest_modseq), (77, 9, (1 << 32) + 5));
            let [first, second] = index.records.as_slice() else { panic!("two messages") };
            assert_eq!((first.uid, second.uid, first.size, first.internal_date), (1, 7, 50, 1001));
            assert_eq!(first.user_flags().collect::<Vec<_>>(), [0, 2, 65]);
            assert_eq!(first.save_date, Some(9).filter(|_| version >= 15));
            assert_eq!(index.notes, Vec::<String>::new());
        }
    }

    #[test]
    fn damage_is_confined() {
        let whole = file(17, (160, 112), &[(1, 0, 0), (2, 0, 0), (2, 0, 0), (5, 0, 0)]);
        let mut bytes = whole.clone();
        bytes[160 + 20] ^= 1;
        let index = Index::parse(&bytes).unwrap();
        assert_eq!(index.records.iter().map(|record| record.uid).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(index.notes.len(), 2);
        let index = Index::parse(&whole[..160 + 112 * 2 + 50]).unwrap();
        assert_eq!((index.records.len(), index.notes.len()), (2, 1));
        let mut bytes = whole.clone();
        bytes[45] ^= 1;
        assert!(Index::parse(&bytes).unwrap_err().contains("checksum"));
        for version in [0, 11, 20] {
            assert!(Index::parse(&file(version, (160, 112), &[])).unwrap_err().contains("version"));
        }
        for sizes in [(124, 112), (160, 92), (8192, 112)] {
            assert!(Index::parse(&file(17, sizes, &[])).is_err());
        }
        (0..160).for_each(|end| assert!(Index::parse(&whole[..end]).is_err()));
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read(mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400), at in 0usize..700, by in 1u8..) {
            let _ = Index::parse(&bytes);
            let mut whole = file(17, (160, 112), &[(1, 0, 1), (2, 0, 0), (3, 0, 0)]);
            if let Some(byte) = whole.get_mut(at) {
                *byte ^= by;
            }
            if let Ok(index) = Index::parse(&whole) {
                proptest::prop_assert!(index.records.len() + index.notes.len() == 3);
            }
            bytes.extend(whole);
            let _ = Index::parse(&bytes);
        }
    }
}
