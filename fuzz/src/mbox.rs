//! mbox files: any bytes have messages, the same however the file was cut, which cover it exactly.

use std::path::Path;
use std::sync::Arc;

use platform::sim::SimEnv;
use platform::{File, OpenMode};
use store::format::mbox::from_line::{LOOK_AHEAD_BYTES, PREFIX};
use store::format::mbox::meta::meta_fields;
use store::format::mbox::scan::{LOOK_BACK_BYTES, Message, Reader, Table, scan_in_parts};
use store::format::served::Normaliser;

/// Octets that stand for one of value 1 in the input: without them no input would be longer than what the scanner sees at once.
const RUN: [u8; 1500] = [b'x'; 1500];

/// A file, after the first byte, which says how it is cut.
pub fn file(data: &[u8]) {
    let Some((cut, rest)) = data.split_first() else { return };
    let mut bytes = Vec::new();
    for byte in rest {
        match byte {
            1 => bytes.extend_from_slice(&RUN),
            byte => bytes.push(*byte),
        }
    }
    let whole = made(&bytes);
    let Ok(table) = Table::read(&*whole) else {
        assert!(!bytes.starts_with(PREFIX), "no mbox");
        return;
    };
    let messages = table.messages();
    covers(messages, &bytes);
    messages.iter().for_each(|message| serves(message, &bytes, usize::from(*cut) + 1));

    let piece_bytes = LOOK_BACK_BYTES + LOOK_AHEAD_BYTES + 97 * usize::from(*cut);
    let mut reader = Reader::new(&*whole, 0).unwrap().with_piece_bytes(piece_bytes);
    let pieces: Vec<Message> = std::iter::from_fn(|| reader.next_message().unwrap()).collect();
    assert_eq!(pieces, messages, "another cut gives other messages");

    // Threads cost more than everything else here.
    if cut % 32 == 1 {
        let parts = scan_in_parts(&*whole, 2 + u64::from(cut / 32)).unwrap();
        assert_eq!(parts.messages(), messages, "other parts give other messages");
    }

    let beginning = &bytes[..bytes.len() * usize::from(*cut % 40) / 40];
    if let Ok(mut grown) = Table::read(&*made(beginning)) {
        grown.extend(&*whole).unwrap();
        assert_eq!(grown.messages(), messages, "a file that grew has other messages");
    }
}

fn made(bytes: &[u8]) -> Arc<dyn File> {
    let file = SimEnv::new(1).env().disk.open(Path::new("/mbox"), OpenMode::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

/// One after the other, from the first to the end of the file, each in order within itself.
fn covers(messages: &[Message], bytes: &[u8]) {
    let mut at = messages.first().map_or(bytes.len() as u64, |first| first.start);
    for message in messages {
        let Message { start, header, body, end, next, .. } = *message;
        assert_eq!(start, at, "{message:?}");
        assert!(start < header && header <= body && body <= end && end <= next, "{message:?}");
        assert!(bytes[start as usize..].starts_with(PREFIX));
        at = next;
    }
    assert_eq!(at, bytes.len() as u64);
}

/// The bytes that IMAP serves are the same however they are read, and the fields that may be rewritten lie within the header.
fn serves(message: &Message, bytes: &[u8], piece: usize) {
    let content = &bytes[message.header as usize..message.end as usize];
    let served = |piece: usize| {
        let (mut normaliser, mut out) = (Normaliser::new(message.form()), Vec::new());
        content.chunks(piece).for_each(|piece| normaliser.push(piece, &mut out));
        normaliser.finish(&mut out);
        out
    };
    let out = served(piece);
    assert!(out == served(usize::MAX), "another cut serves other bytes");
    assert!(out.iter().enumerate().all(|(n, byte)| *byte != b'\n' || n > 0 && out[n - 1] == b'\r'), "a bare LF");
    let header = &bytes[message.header as usize..message.body as usize];
    let mut at = 0;
    for field in meta_fields(header) {
        assert!(at <= field.line.start && field.line.start < field.value.start && field.value.start <= field.value.end);
        assert!(field.value.end <= field.padding_end && field.padding_end <= field.line.end);
        at = field.line.end;
    }
    assert!(at <= header.len());
}
