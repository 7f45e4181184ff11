//! The frame: one transaction in a tail. Byte table: `docs/format-log.md`, "Frame header".

use model::ModSeq;

use crate::codec::Input;
use crate::state::Frame;

/// The first four bytes of a frame.
pub(crate) const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"MYfr");
/// Frames begin at multiples of this, so that a search for the next one is cheap.
pub(crate) const FRAME_ALIGN: u64 = 8;
/// Bytes of a frame header.
pub(crate) const FRAME_HEADER_BYTES: usize = 64;

/// What stands before a frame's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// That of the tail, so that bytes of another file's life are never taken for frames.
    pub(crate) epoch: u32,
    pub(crate) frame: Frame,
    /// All frames up to this one were durable when this one was written: if one of them is damaged, that is no torn write.
    pub(crate) durable_before: u64,
    pub(crate) events_len: u32,
    pub(crate) events_crc: u32,
    /// Message bytes behind the records.
    pub(crate) data_len: u64,
}

impl FrameHeader {
    /// Bytes of the whole frame, padding included; `None` when the header cannot be true.
    pub(crate) fn frame_len(&self) -> Option<u64> {
        let len = (FRAME_HEADER_BYTES as u64 + u64::from(self.events_len)).checked_add(self.data_len)?;
        len.checked_next_multiple_of(FRAME_ALIGN)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&FRAME_MAGIC.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&self.frame.number.to_le_bytes());
        out.extend_from_slice(&self.durable_before.to_le_bytes());
        out.extend_from_slice(&self.frame.modseq.0.to_le_bytes());
        out.extend_from_slice(&self.frame.time.to_le_bytes());
        out.extend_from_slice(&self.events_len.to_le_bytes());
        out.extend_from_slice(&self.events_crc.to_le_bytes());
        out.extend_from_slice(&self.data_len.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let crc = crc32c::crc32c(out.get(from..).unwrap_or_default());
        out.extend_from_slice(&crc.to_le_bytes());
    }

    /// `None`: no header stands here.
    pub(crate) fn read(bytes: &[u8]) -> Option<FrameHeader> {
        let bytes = bytes.get(..FRAME_HEADER_BYTES)?;
        let mut input = Input(bytes);
        if input.u32()? != FRAME_MAGIC {
            return None;
        }
        let epoch = input.u32()?;
        let number = input.u64()?;
        let durable_before = input.u64()?;
        let modseq = ModSeq(input.u64()?);
        let time = input.u64()? as i64;
        let events_len = input.u32()?;
        let events_crc = input.u32()?;
        let data_len = input.u64()?;
        input.u32()?;
        let crc = input.u32()?;
        if crc32c::crc32c(bytes.get(..FRAME_HEADER_BYTES - 4)?) != crc {
            return None;
        }
        let frame = Frame { number, modseq, time };
        let header = FrameHeader { epoch, frame, durable_before, events_len, events_crc, data_len };
        header.frame_len().map(|_| header)
    }
}

/// The first bytes of a tail.
pub(crate) const TAIL_MAGIC: u64 = u64::from_le_bytes(*b"MYTAIL\x01\n");
/// Bytes of a tail's header.
pub(crate) const TAIL_HEADER_BYTES: usize = 32;

/// The header of a tail: which life of the file its frames belong to.
pub(crate) fn write_tail_header(epoch: u32, first_frame: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(TAIL_HEADER_BYTES);
    out.extend_from_slice(&TAIL_MAGIC.to_le_bytes());
    out.extend_from_slice(&epoch.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&first_frame.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// The epoch and first frame of a tail; `None` when its header is damaged.
pub(crate) fn read_tail_header(bytes: &[u8]) -> Option<(u32, u64)> {
    let bytes = bytes.get(..TAIL_HEADER_BYTES)?;
    let mut input = Input(bytes);
    if input.u64()? != TAIL_MAGIC {
        return None;
    }
    let epoch = input.u32()?;
    input.u32()?;
    let first_frame = input.u64()?;
    input.u32()?;
    (crc32c::crc32c(bytes.get(..TAIL_HEADER_BYTES - 4)?) == input.u32()?).then_some((epoch, first_frame))
}
