//! Header fields as stored.

/// A header block: the fields of the octets given, up to the empty line if there is one.
#[derive(Clone, Copy, Debug)]
pub struct HeaderBlock<'a> {
    _bytes: &'a [u8],
}

/// One field of a header, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Name, as written, without white space before the colon.
    pub name: &'a [u8],
    /// Everything after the colon up to the line end that ends the field (excluded), folding included.
    pub value: &'a [u8],
    /// The whole field, its last line end included.
    pub full: &'a [u8],
    /// Octets from the start of the block to the start of the field.
    pub offset: usize,
}

impl<'a> HeaderBlock<'a> {
    /// The header at the start of `bytes`, which may be only the header or a whole message.
    pub fn new(_bytes: &'a [u8]) -> Self {
        todo!()
    }
    /// The fields, in order, without allocation.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        std::iter::empty()
    }
    /// The raw value of the first field with this name (any case).
    pub fn first(&self, _name: &str) -> Option<&'a [u8]> {
        todo!()
    }
}

/// Octets of the header at the start of `message`, the empty line included.
pub fn header_len(_message: &[u8]) -> usize {
    todo!()
}

/// The octets of BODY\[HEADER.FIELDS (names)\], or with `not` of BODY\[HEADER.FIELDS.NOT (names)\]: the
/// fields as stored and the empty line (RFC 9051 §6.4.5).
pub fn fields_subset<N: AsRef<[u8]>>(_header: &[u8], _names: &[N], _not: bool) -> Vec<u8> {
    todo!()
}
