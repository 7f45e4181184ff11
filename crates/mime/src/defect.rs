//! What was odd about a message, and the limits beyond which a message is odd.

/// Something in a message that the standards do not allow or that went over a limit. Never an error:
/// the structure beside it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    /// What it is.
    pub kind: DefectKind,
    /// Where: absolute offset into the message, in octets.
    pub offset: u64,
}

/// The kinds of [`Defect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DefectKind {
    /// The header ends without an empty line: at the end of the message, or at a line that is no field.
    HeaderWithoutEnd,
    /// A line inside the header that is neither a field nor a continuation; skipped.
    JunkInHeader,
    /// Octets above 127 in a header.
    RawEightBitHeader,
    /// A NUL octet in a header.
    NulInHeader,
    /// A multipart without a boundary parameter; taken as one opaque part.
    MultipartWithoutBoundary,
    /// A multipart in which the boundary never appears.
    MultipartWithoutParts,
    /// A multipart whose closing delimiter is missing.
    MultipartWithoutEnd,
    /// A multipart or message/rfc822 with an encoding that RFC 2045 §6.4 forbids; read as if unencoded.
    EncodedComposite,
    /// A Content-Type that cannot be read; taken as text/plain (RFC 2045 §5.2).
    BadContentType,
    /// [`Limits::depth_max`] reached: the part is opaque.
    TooDeep,
    /// [`Limits::parts_max`] reached: the rest is opaque.
    TooManyParts,
    /// [`Limits::header_bytes_max`] reached: later fields of this header are not looked at.
    HeaderTooLong,
    /// [`Limits::headers_max`] reached: later fields of this header are not looked at.
    TooManyHeaders,
    /// [`Limits::parameters_max`] reached: later parameters are dropped.
    TooManyParameters,
    /// [`Limits::addresses_max`] reached: later addresses are dropped.
    TooManyAddresses,
}

/// Limits of the scanner. Beyond one, the rest is opaque and a [`Defect`] says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Parts inside parts (multipart or message/rfc822), the message itself being depth 0.
    pub depth_max: usize,
    /// Parts of one message, all depths together.
    pub parts_max: usize,
    /// Octets kept of one header block.
    pub header_bytes_max: usize,
    /// Octets kept of all header blocks of one message, nested ones included.
    pub header_bytes_total_max: usize,
    /// Fields looked at in one header block.
    pub headers_max: usize,
    /// Parameters of one Content-Type or Content-Disposition.
    pub parameters_max: usize,
    /// Addresses of one message, nested ones included; starts and ends of groups count.
    pub addresses_max: usize,
    /// Defects reported of one message.
    pub defects_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            depth_max: 100,
            parts_max: 10_000,
            header_bytes_max: 1 << 20,
            header_bytes_total_max: 16 << 20,
            headers_max: 10_000,
            parameters_max: 100,
            addresses_max: 10_000,
            defects_max: 100,
        }
    }
}
