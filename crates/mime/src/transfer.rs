//! Transfer decoding.

/// A Content-Transfer-Encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// 7bit, 8bit, binary, or none: as it stands.
    Identity,
    /// quoted-printable.
    QuotedPrintable,
    /// base64.
    Base64,
    /// x-uuencode and its aliases.
    Uuencode,
    /// Anything else: BINARY answers UNKNOWN-CTE (RFC 9051 §6.4.5).
    Unknown,
}

impl Encoding {
    /// The encoding with this name (any case).
    pub fn from_name(_name: &[u8]) -> Encoding {
        todo!()
    }
}

/// The encoded data is broken or its encoding unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferError;

/// Streaming transfer decoder.
#[derive(Debug)]
pub struct TransferDecoder {}

impl TransferDecoder {
    /// A decoder that makes the best of anything and never returns an error; an unknown encoding is identity.
    pub fn tolerant(_encoding: Encoding) -> Self {
        todo!()
    }
    /// A decoder that reports broken data (BINARY's UNKNOWN-CTE). An unknown encoding is an error at once.
    pub fn strict(_encoding: Encoding) -> Result<Self, TransferError> {
        todo!()
    }
    /// Decodes `input`, appending to `out`.
    pub fn push(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Result<(), TransferError> {
        todo!()
    }
    /// Flushes; in strict mode reports data that ends in the middle.
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), TransferError> {
        todo!()
    }
}
