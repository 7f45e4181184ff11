//! The byte tables of `docs/format-log.md` and `docs/format-index.md`, held against what the code writes.

use std::collections::BTreeMap;
use std::path::Path;

use model::{EmailId, ModSeq};

use crate::segment::column::{BLOCK_ENTRY_BYTES, BlockEntry, ColumnSpan};
use crate::segment::format::{ROW_BYTES, SEGMENT_MAGIC, SEGMENT_MAGIC_LATE, SegmentRow, TRAILER_BYTES, Trailer};
use crate::state::Frame;
use crate::tail::{FRAME_HEADER_BYTES, FRAME_MAGIC, FrameHeader, TAIL_HEADER_BYTES, TAIL_MAGIC, write_tail_header};

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).expect("the document is in docs/")
}

/// The cells of the first table behind `heading` whose first column is called `first`.
fn table(document: &str, heading: &str, first: &str) -> Vec<Vec<String>> {
    let (_, rest) = document.split_once(heading).expect("the heading is in the document");
    let head = format!("| {first} |");
    rest.lines()
        .skip_while(|line| !line.starts_with(&head))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// Each field of the table stands where the table says, has the value that the code was given, and the table covers all.
fn hold(document: &str, heading: &str, bytes: &[u8], len: usize, fields: &[(&str, u64)]) {
    let mut values: BTreeMap<&str, u64> = fields.iter().copied().collect();
    let mut at = 0;
    for row in table(document, heading, "offset") {
        let (offset, size): (usize, usize) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        assert_eq!(offset, at, "{heading}: {}", row[2]);
        at += size;
        let field = &bytes[offset..at];
        let mut wide = [0; 8];
        wide[..size.min(8)].copy_from_slice(&field[..size.min(8)]);
        match row[2].as_str() {
            "reserved" => assert!(field.iter().all(|byte| *byte == 0), "{heading}: reserved at {offset}"),
            "crc" => assert_eq!(u64::from_le_bytes(wide), u64::from(crc32c::crc32c(&bytes[..offset])), "{heading}"),
            name => {
                let value = values.remove(name).unwrap_or_else(|| panic!("{heading}: the code has no {name}"));
                assert_eq!(u64::from_le_bytes(wide), value, "{heading}: {name}");
            }
        }
    }
    assert_eq!((at, bytes.len()), (len, len), "{heading}: length");
    assert!(values.is_empty(), "{heading}: not in the document: {values:?}");
}

#[test]
fn tail_and_frame_headers() {
    let document = document("format-log.md");
    let tail = write_tail_header(0x1234_5678, 99);
    let fields = [("magic", TAIL_MAGIC), ("epoch", 0x1234_5678), ("first_frame", 99)];
    hold(&document, "## Tail header", &tail, TAIL_HEADER_BYTES, &fields);

    let frame = Frame { number: 11, modseq: ModSeq(12), time: 13 };
    let header = FrameHeader { epoch: 14, frame, durable_before: 15, events_len: 16, events_crc: 17, data_len: 18 };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    let fields = [
        ("magic", FRAME_MAGIC.into()),
        ("epoch", 14),
        ("number", 11),
        ("durable_before", 15),
        ("modseq", 12),
        ("time", 13),
        ("events_len", 16),
        ("events_crc", 17),
        ("data_len", 18),
    ];
    hold(&document, "## Frame header", &bytes, FRAME_HEADER_BYTES, &fields);
}

#[test]
fn record_kinds() {
    let rows = table(&document("format-log.md"), "## Records", "kind");
    let written: Vec<(u8, &str)> = rows.iter().map(|row| (row[0].parse().unwrap(), row[1].as_str())).collect();
    assert_eq!(written, crate::record::KINDS);
}

#[test]
fn segment_structures() {
    let document = document("format-log.md");
    let span = |n: u64| ColumnSpan { table_at: n, raw_len: n + 1, block_bytes: n as u32 + 2 };
    let trailer = Trailer {
        first_frame: 1,
        last_frame: 2,
        generation: 3,
        chain: 4,
        first_id: 5,
        ids: 6,
        rows: 7,
        rows_at: 8,
        ids_at: 9,
        heads: span(10),
        bodies: span(20),
        events: span(30),
        message_bytes: 40,
        events_copy: span(50),
        rows_copy_at: 60,
        foreign: 70,
        late: 3,
        late_first: 80,
        late_last: 90,
    };
    let fields = [
        ("magic", SEGMENT_MAGIC_LATE),
        ("first_frame", 1),
        ("last_frame", 2),
        ("generation", 3),
        ("chain", 4),
        ("first_id", 5),
        ("ids", 6),
        ("rows", 7),
        ("rows_at", 8),
        ("ids_at", 9),
        ("heads", 10),
        ("bodies", 20),
        ("events", 30),
        ("message_bytes", 40),
        ("events_copy", 50),
        ("rows_copy_at", 60),
        ("foreign", 70),
        ("late", 3),
        ("late_first", 80),
        ("late_last", 90),
    ];
    hold(&document, "## Segment trailer", &trailer.write(), TRAILER_BYTES, &fields);
    assert_eq!(Trailer::read(&trailer.write()), Some(trailer));
    let without = Trailer { late: 0, late_first: 0, late_last: 0, ..trailer };
    assert!(without.write().starts_with(&SEGMENT_MAGIC.to_le_bytes()), "older versions read it");
    assert_eq!(Trailer::read(&without.write()), Some(without));

    let row = SegmentRow {
        email_id: EmailId(1),
        head_at: 2,
        body_at: 3,
        len: 6,
        header_len: 5,
        head_len: 4,
        crc: 7,
        is_damaged: true,
    };
    let mut bytes = Vec::new();
    row.write(&mut bytes);
    let fields = [
        ("email_id", 1),
        ("head_at", 2),
        ("body_at", 3),
        ("len", 6),
        ("header_len", 5),
        ("head_len", 4),
        ("message_crc", 7),
        ("marks", 1),
    ];
    hold(&document, "## Message row", &bytes, ROW_BYTES, &fields);
    assert_eq!(SegmentRow::read(&bytes), Some(row));

    let mut bytes = Vec::new();
    span(5).write(&mut bytes);
    hold(&document, "Column span:", &bytes, 20, &[("table_at", 5), ("raw_len", 6), ("block_bytes", 7)]);
    let mut bytes = Vec::new();
    BlockEntry { at: 1, stored_len: 2, codec: 1, crc: 3 }.write(&mut bytes);
    let fields = [("at", 1), ("stored_len", 2), ("codec", 1), ("block_crc", 3)];
    hold(&document, "Block entry,", &bytes, BLOCK_ENTRY_BYTES, &fields);
}

#[test]
fn index_structures() {
    let document = document("format-index.md");
    let columns = |heading| -> Vec<(String, usize, bool)> {
        let rows = table(&document, heading, "column");
        rows.iter().map(|row| (row[0].clone(), row[1].parse().unwrap(), row[2] == "yes")).collect()
    };
    let of = |specs: &[crate::state::Spec]| -> Vec<(String, usize, bool)> {
        specs.iter().map(|spec| (spec.name.to_owned(), spec.bytes, spec.rises)).collect()
    };
    assert_eq!(columns("## Chunk"), of(&crate::state::COLUMNS));
    assert_eq!(columns("## Foreign block"), of(&crate::state::FOREIGN_COLUMNS));

    let state = crate::state::State {
        frame: 1,
        modseq: ModSeq(2),
        email_id_next: 3,
        mailbox_id_next: 4,
        uidvalidity_last: 5,
        chain: 6,
        ..Default::default()
    };
    let fields = [
        ("magic", crate::checkpoint::CHECKPOINT_MAGIC),
        ("frame", 1),
        ("modseq", 2),
        ("email_id_next", 3),
        ("mailbox_id_next", 4),
        ("uidvalidity_last", 5),
        ("chain", 6),
    ];
    let header = crate::checkpoint::header(&state);
    hold(&document, "## Checkpoint header", &header, crate::checkpoint::CHECKPOINT_HEADER_BYTES, &fields);

    let header = crate::cache::header(7, 8, &[]);
    let fixed = crate::cache::CACHE_HEADER_BYTES;
    let fields = [("magic", crate::cache::CACHE_MAGIC), ("version", 7), ("columns", 0), ("rows", 8)];
    hold(&document, "## Cache header", &header[..fixed], fixed, &fields);
}
