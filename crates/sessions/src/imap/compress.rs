//! COMPRESS=DEFLATE (RFC 4978) as a layer of octets: raw DEFLATE (RFC 1951) both ways, no sockets.
//!
//! Invariant: neither direction holds more than its window and the room that it is given, whatever is sent (a "zip bomb" fills the
//! room and then waits).

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use model::{Error, ErrorKind, Result};

/// The middle between time and size: most of what can be gained on mail is gained at a low level.
const LEVEL: u32 = 4;
/// How much is written at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// Compresses what goes out.
pub(crate) struct Deflater {
    state: Compress,
}

impl Deflater {
    pub fn new() -> Self {
        Deflater { state: Compress::new(Compression::new(LEVEL), false) }
    }

    /// Appends `plain`, compressed, to `out`. With `flush`, everything so far can be read by the other side.
    pub fn write(&mut self, plain: &[u8], flush: bool, out: &mut Vec<u8>) -> Result<()> {
        let mut rest = plain;
        let mode = if flush { FlushCompress::Sync } else { FlushCompress::None };
        loop {
            out.reserve(PIECE_BYTES);
            let before = self.state.total_in();
            self.state.compress_vec(rest, out, mode).map_err(|error| broken("compress", error))?;
            rest = rest.get((self.state.total_in() - before) as usize..).unwrap_or_default();
            // Room left over means that nothing is held back.
            if rest.is_empty() && out.len() < out.capacity() {
                return Ok(());
            }
        }
    }
}

/// Decompresses what comes in.
pub(crate) struct Inflater {
    state: Decompress,
}

impl Inflater {
    pub fn new() -> Self {
        Inflater { state: Decompress::new(false) }
    }

    /// Appends at most `room` octets to `plain`; returns how many octets of `compressed` were taken. The other side's garbage is an
    /// [`ErrorKind::Invalid`], as is the end of its stream: nothing can be understood from there on.
    pub fn read(&mut self, compressed: &[u8], plain: &mut Vec<u8>, room: usize) -> Result<usize> {
        let mut piece = [0u8; PIECE_BYTES];
        let mut left = room;
        let mut taken = 0usize;
        while left > 0 {
            let rest = compressed.get(taken..).unwrap_or_default();
            let piece = piece.get_mut(..left.min(PIECE_BYTES)).unwrap_or_default();
            let (in_before, out_before) = (self.state.total_in(), self.state.total_out());
            let outcome = self.state.decompress(rest, piece, FlushDecompress::None);
            let status = outcome.map_err(|error| broken("decompress", error))?;
            let produced = (self.state.total_out() - out_before) as usize;
            taken += (self.state.total_in() - in_before) as usize;
            plain.extend_from_slice(piece.get(..produced).unwrap_or_default());
            left = left.saturating_sub(produced);
            if status == flate2::Status::StreamEnd {
                return Err(Error::new(ErrorKind::Invalid, "the compressed stream ended"));
            }
            if produced == 0 {
                break;
            }
        }
        Ok(taken)
    }
}

fn broken(doing: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Invalid, doing).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_in_any_pieces() {
        let plain: Vec<u8> = (0..200_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let (mut deflater, mut inflater) = (Deflater::new(), Inflater::new());
        let mut compressed = Vec::new();
        for piece in plain.chunks(7001) {
            deflater.write(piece, piece.len() % 2 == 0, &mut compressed).unwrap();
        }
        deflater.write(b"", true, &mut compressed).unwrap();
        let (mut back, mut at) = (Vec::new(), 0);
        while back.len() < plain.len() {
            let upto = (at + 1001).min(compressed.len());
            at += inflater.read(&compressed[at..upto], &mut back, 333).unwrap();
        }
        assert_eq!(back, plain);
    }

    #[test]
    fn a_flush_makes_everything_readable() {
        let (mut deflater, mut inflater) = (Deflater::new(), Inflater::new());
        let (mut compressed, mut back) = (Vec::new(), Vec::new());
        deflater.write(b"* OK\r\n", true, &mut compressed).unwrap();
        inflater.read(&compressed, &mut back, 100).unwrap();
        assert_eq!(back, b"* OK\r\n");
    }

    #[test]
    fn a_bomb_fills_the_room_and_no_more() {
        let (mut deflater, mut inflater) = (Deflater::new(), Inflater::new());
        let mut compressed = Vec::new();
        deflater.write(&vec![b'a'; 1 << 20], true, &mut compressed).unwrap();
        let mut back = Vec::new();
        inflater.read(&compressed, &mut back, 1000).unwrap();
        assert_eq!(back.len(), 1000);
    }

    #[test]
    fn garbage_is_an_error() {
        assert!(Inflater::new().read(&[0xff; 100], &mut Vec::new(), 1000).is_err());
    }
}
