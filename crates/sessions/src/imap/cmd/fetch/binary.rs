//! BINARY and BINARY.SIZE (RFC 3516, RFC 9051 §6.4.5): octets of a part with the transfer encoding undone.
//!
//! A literal announces its length before its octets, so a large part is decoded twice: once to count, once to send.

use std::ops::Range;

use imap_proto::command::Partial;
use mime::{Encoding, TransferDecoder};
use model::{EmailId, Result};
use store::Reader;

use super::section::window;
use super::{PIECE_BYTES, WHOLE_BYTES_MAX};
use crate::Output;

/// A part, found and counted.
pub(super) enum Binary {
    /// All of what is wanted.
    Bytes(Vec<u8>),
    /// Too much to hold: to be streamed.
    Stream(Decoded),
    /// The message has no such part.
    Nothing,
    /// Its encoding is unknown, or its octets are not what the encoding allows (RFC 3516 §4.3: UNKNOWN-CTE).
    UnknownEncoding,
}

/// A decoding that is sent piece by piece.
pub(super) struct Decoded {
    id: EmailId,
    raw: Range<u64>,
    decoder: TransferDecoder,
    /// Decoded octets still to be passed over, and then still to be sent.
    skip: u64,
    left: u64,
    has_nul: bool,
    piece: Vec<u8>,
}

/// Where a part's octets are, and how they are encoded.
fn locate(reader: &mut Reader, id: EmailId, part: &[u32]) -> Result<Option<(Range<u64>, Encoding)>> {
    if part.is_empty() {
        // RFC 3516 §4.3: the whole message, which itself has no transfer encoding.
        let (_, message_bytes) = reader.extent(id)?;
        return Ok(Some((0..message_bytes, Encoding::Identity)));
    }
    let structure = reader.structure(id)?;
    let Some(range) = structure.section(part, mime::Section::Whole) else { return Ok(None) };
    let encoding = match structure.part(part) {
        // RFC 2045 §6.4: a multipart or a message is never encoded, whatever its header says.
        Some(found) if matches!(found.content, mime::Content::Leaf) => found.transfer_encoding(),
        _ => Encoding::Identity,
    };
    Ok(Some((range, encoding)))
}

/// What decoding a whole part comes to.
struct Count {
    bytes: u64,
    has_nul: bool,
}

/// Decodes all of `raw` piece by piece; `None` when it cannot be decoded.
fn count(reader: &mut Reader, id: EmailId, raw: Range<u64>, encoding: Encoding) -> Result<Option<Count>> {
    let Ok(mut decoder) = TransferDecoder::strict(encoding) else { return Ok(None) };
    let (mut piece, mut decoded) = (Vec::new(), Vec::new());
    let mut total = Count { bytes: 0, has_nul: false };
    let mut at = raw.start;
    loop {
        let end = raw.end.min(at.saturating_add(PIECE_BYTES));
        let last = at >= raw.end;
        decoded.clear();
        let sound = if last {
            decoder.finish(&mut decoded)
        } else {
            piece.clear();
            reader.read(id, at..end, &mut piece)?;
            decoder.push(&piece, &mut decoded)
        };
        if sound.is_err() {
            return Ok(None);
        }
        total.bytes += decoded.len() as u64;
        total.has_nul |= memchr::memchr(0, &decoded).is_some();
        if last {
            return Ok(Some(total));
        }
        at = end;
    }
}

/// BINARY.SIZE: zero without such a part (the grammar has no NIL there), `None` for UNKNOWN-CTE.
pub(super) fn size(reader: &mut Reader, id: EmailId, part: &[u32]) -> Result<Option<u64>> {
    let Some((raw, encoding)) = locate(reader, id, part)? else { return Ok(Some(0)) };
    if encoding == Encoding::Identity {
        return Ok(Some(raw.end - raw.start));
    }
    Ok(count(reader, id, raw, encoding)?.map(|count| count.bytes))
}

/// BINARY: decodes small parts at once, counts large ones.
pub(super) fn find(reader: &mut Reader, id: EmailId, part: &[u32], partial: Option<Partial>) -> Result<Binary> {
    let Some((raw, encoding)) = locate(reader, id, part)? else { return Ok(Binary::Nothing) };
    if raw.end - raw.start <= WHOLE_BYTES_MAX {
        let Ok(mut decoder) = TransferDecoder::strict(encoding) else { return Ok(Binary::UnknownEncoding) };
        let (mut octets, mut decoded) = (Vec::new(), Vec::new());
        reader.read(id, raw, &mut octets)?;
        if decoder.push(&octets, &mut decoded).is_err() || decoder.finish(&mut decoded).is_err() {
            return Ok(Binary::UnknownEncoding);
        }
        let window = window(0..decoded.len() as u64, partial);
        decoded.truncate(window.end as usize);
        decoded.drain(..window.start as usize);
        return Ok(Binary::Bytes(decoded));
    }
    let Some(count) = count(reader, id, raw.clone(), encoding)? else { return Ok(Binary::UnknownEncoding) };
    let Ok(decoder) = TransferDecoder::strict(encoding) else { return Ok(Binary::UnknownEncoding) };
    let window = window(0..count.bytes, partial);
    let left = window.end - window.start;
    let stream = Decoded { id, raw, decoder, skip: window.start, left, has_nul: count.has_nul, piece: Vec::new() };
    Ok(Binary::Stream(stream))
}

impl Decoded {
    /// How many octets will be sent.
    pub(super) fn len(&self) -> u64 {
        self.left
    }

    /// Whether the decoded part has a NUL somewhere: only a literal8 may carry it (RFC 3516 §4.4).
    pub(super) fn has_nul(&self) -> bool {
        self.has_nul
    }

    /// Sends some of it; `true` when that was the last.
    pub(super) fn send_piece(&mut self, reader: &mut Reader, out: &mut Output) -> Result<bool> {
        let end = self.raw.end.min(self.raw.start.saturating_add(PIECE_BYTES));
        self.piece.clear();
        let mut decoded = Vec::new();
        // The same octets were decoded without an error when they were counted.
        if self.raw.is_empty() {
            let _counted = self.decoder.finish(&mut decoded);
        } else {
            reader.read(self.id, self.raw.start..end, &mut self.piece)?;
            let _counted = self.decoder.push(&self.piece, &mut decoded);
        }
        let ended = self.raw.is_empty();
        self.raw.start = end;
        let from = self.skip.min(decoded.len() as u64);
        self.skip -= from;
        let wanted = decoded.get(from as usize..).unwrap_or_default();
        let wanted = wanted.get(..self.left.min(wanted.len() as u64) as usize).unwrap_or_default();
        out.push(wanted);
        self.left -= wanted.len() as u64;
        Ok(ended || self.left == 0)
    }
}
