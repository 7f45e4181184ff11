//! Mail: any bytes have a structure, the same however they were cut, whose parts lie within the message.

use mime::{Content, HeaderBlock, Part, Scanner, Structure, TextSink, body_text, header_len, preview, scan};
use std::ops::{ControlFlow, Range};

/// A message, after the first byte, which says how it is cut.
pub fn message(data: &[u8]) {
    let Some((cut, message)) = data.split_first() else { return };
    let (structure, defects) = scan(message);
    let mut scanner = Scanner::new();
    message.chunks(usize::from(*cut).max(1)).for_each(|piece| scanner.push(piece));
    let (cut_structure, cut_defects) = scanner.finish();
    assert_eq!(cut_structure, structure, "another cut gives another structure");
    assert_eq!(cut_defects.len(), defects.len(), "another cut gives other defects");

    let size = message.len() as u64;
    let root = &structure.message.root;
    assert_eq!(root.header, 0..header_len(message) as u64);
    assert_eq!(root.body, root.header.end..size, "header and body are the message");
    inside(root, &(0..size));
    assert_eq!(structure.size(), size);
    assert_eq!(Structure::decode(&structure.encode()).as_ref(), Ok(&structure), "stored and read again");

    let header = message.get(..header_len(message)).unwrap_or_default();
    let mut at = 0;
    for field in HeaderBlock::new(header).fields() {
        assert!(field.offset >= at, "fields overlap");
        assert_eq!(header.get(field.offset..field.offset + field.full.len()), Some(field.full));
        at = field.offset + field.full.len();
    }

    preview(message, &structure);
    let _ = body_text(message, &structure, &mut Nowhere);
}

/// The parts of a part lie within its body, one after the other.
fn inside(part: &Part, around: &Range<u64>) {
    assert!(part.header.start <= part.header.end && part.body.start <= part.body.end);
    assert!(around.start <= part.header.start && part.header.end <= part.body.start && part.body.end <= around.end);
    match &part.content {
        Content::Multipart(parts) => {
            let mut from = part.body.start;
            for child in parts {
                inside(child, &(from..part.body.end));
                from = child.body.end;
            }
        }
        Content::Message(message) => inside(&message.root, &part.body),
        _ => {}
    }
}

struct Nowhere;

impl TextSink for Nowhere {
    fn text(&mut self, _: &str) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn boundary(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
