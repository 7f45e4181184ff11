//! The byte tables of `docs/format-*.md`, held against what the code writes. Only for tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

/// Each field of the table behind the heading of a document stands where it says and has the value that the code was given; the table covers all. The field
/// `crc` is the checksum of what stands before it.
pub(crate) fn hold(document: &str, heading: &str, bytes: &[u8], fields: &[(&str, u64)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let document = std::fs::read_to_string(path).unwrap();
    let (_, rest) = document.split_once(heading).unwrap_or_else(|| panic!("{heading} is not in the document"));
    let rows = rest.lines().skip_while(|line| !line.starts_with("| offset |")).skip(2);
    let mut values: BTreeMap<&str, u64> = fields.iter().copied().collect();
    let mut at = 0;
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (offset, len, name): (usize, usize, &str) =
            (cells[0].parse().unwrap(), cells[1].parse().unwrap(), cells[2]);
        assert_eq!(offset, at, "{heading}: {name}");
        at += len;
        let mut wide = [0; 8];
        wide[..len].copy_from_slice(&bytes[offset..at]);
        let found = u64::from_le_bytes(wide);
        let expected = match name {
            "crc" => u64::from(crc32c::crc32c(&bytes[..offset])),
            "reserved" => 0,
            _ => values.remove(name).unwrap_or_else(|| panic!("{heading}: the code has no {name}")),
        };
        assert_eq!(found, expected, "{heading}: {name}");
    }
    assert_eq!(at, bytes.len(), "{heading}: length");
    assert!(values.is_empty(), "{heading}: not in the document: {values:?}");
}
