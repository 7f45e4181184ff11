//! mbox files: any bytes have messages, the same however the file was cut, which cover it exactly.

use std::path::Path;
use std::sync::Arc;

use platform::sim::SimEnv;
use platform::{File, OpenMode};
use store::format::mbox::digest::DigestOfServed;
use store::format::mbox::fields::served_header;
use store::format::mbox::from_line::{LOOK_AHEAD_BYTES, PREFIX};
use store::format::mbox::intake::intake_in_pieces;
use store::format::mbox::intake_parallel::intake_in_parts;
use store::format::mbox::meta::meta_fields;
use store::format::mbox::place::Found;
use store::format::mbox::scan::{LOOK_BACK_BYTES, Message, Reader, Scanner, Table, scan_in_parts};
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
    takes_in(messages, &bytes, &*whole, usize::from(*cut));

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

/// What is found in one reading of the file is the same for any window and as the served octets have it.
fn takes_in(messages: &[Message], bytes: &[u8], file: &dyn File, cut: usize) {
    let found_in = |piece: usize, window: usize| {
        let mut found: Vec<Found> = Vec::new();
        let mut take = |message| {
            found.push(message);
            Ok(())
        };
        let ended = intake_in_pieces(file, Scanner::new(0), piece, window, &mut take).unwrap();
        assert_eq!(ended.file_bytes, bytes.len() as u64);
        found
    };
    let found = found_in(1 << 20, 1 << 20);
    let places: Vec<Message> = found.iter().map(|found| found.message).collect();
    assert_eq!(places, messages, "the intake finds other messages than the scan");
    for (n, found) in found.iter().enumerate() {
        let (served, header_octets) = served(&found.message, bytes);
        assert_eq!((found.octets, found.header_octets), (served.len() as u64, header_octets as u64));
        let mut digest = DigestOfServed::new();
        served.chunks(cut + 1).for_each(|piece| digest.push(piece));
        assert_eq!(found.digest, digest.finish(), "the served message has another digest");
        assert!(n == 0 || found.meta.base.is_none() && !found.meta.is_pseudo);
    }
    assert_eq!(found_in(97 * cut, 301 * cut), found, "another window finds something else");
    // Threads cost more than everything else here.
    if cut % 32 == 2 {
        let mut in_parts: Vec<Found> = Vec::new();
        let mut take = |message| {
            in_parts.push(message);
            Ok(())
        };
        intake_in_parts(file, 2, 1 + bytes.len() as u64 / (2 + cut as u64 / 32), &mut take).unwrap();
        assert_eq!(in_parts, found, "other parts find something else");
    }
}

/// The octets that IMAP serves, and how many of them are the header's.
fn served(message: &Message, bytes: &[u8]) -> (Vec<u8>, usize) {
    let range = |from: u64, to: u64| &bytes[from as usize..to as usize];
    let mut out = Vec::new();
    served_header(range(message.header, message.body), message.form(), &mut out);
    let header_octets = out.len();
    let mut normaliser = Normaliser::new(message.form());
    normaliser.push(range(message.body, message.end), &mut out);
    normaliser.finish(&mut out);
    assert_eq!(meta_fields(&out).count(), 0, "a field is served that should be hidden");
    (out, header_octets)
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
