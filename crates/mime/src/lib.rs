//! Mail bytes to structure, never failing.
//!
//! Mail is whatever arrived: this crate takes any bytes and answers with the best structure that they
//! have and a list of [`Defect`]s. It knows nothing of sessions or stores, but gives exactly what IMAP
//! asks of a message: ENVELOPE, BODYSTRUCTURE, BODY\[section\], BINARY\[section\], SEARCH, PREVIEW.
//!
//! * [`Scanner`] / [`scan`]: bytes in any cut → [`Structure`], with every part's place in the message.
//! * [`HeaderBlock`], [`header_len`], [`fields_subset`]: header fields as stored.
//! * [`Envelope`], [`Address`]: as RFC 9051 §7.5.2 wants them, undecoded.
//! * [`decode_unstructured`], [`decode_parameter`]: RFC 2047 and RFC 2231.
//! * [`parse_date`]: RFC 5322 dates and what passes for them.
//! * [`TransferDecoder`], [`CharsetDecoder`]: streaming decoders.
//! * [`TextExtractor`], [`body_text`], [`header_text`]: text for search; [`fold`], [`Needle`], [`Matcher`]: finding in it.
//! * [`preview`]: RFC 8970.
//!
//! Invariants:
//! * nothing here panics, whatever the input; nothing recurses on the depth of the input beyond
//!   [`Limits::depth_max`]; time is linear in the input;
//! * the result does not depend on how the input was cut into pieces;
//! * the ranges of a part lie inside those of the part around it.

mod address;
mod charset;
mod code_pages;
mod codec;
mod date;
mod defect;
mod encoded_word;
mod envelope;
mod fold;
mod header;
mod html;
mod html_entities;
mod imap_form;
mod parameter;
mod part_header;
mod preview;
mod scanner;
mod structure;
mod text;
mod transfer;
mod utf7;

pub use address::{Address, parse_addresses};
pub use charset::{CharsetDecoder, charset_known, decode_charset};
pub use codec::DecodeError;
pub use date::{DateTime, parse_date};
pub use defect::{Defect, DefectKind, Limits};
pub use encoded_word::{decode_unstructured, unfold};
pub use envelope::Envelope;
pub use fold::{Matcher, Needle, fold, fold_into, fold_version};
pub use header::{Field, HeaderBlock, fields_subset, header_len};
pub use imap_form::write_imap_string;
pub use parameter::decode_parameter;
pub use preview::{PREVIEW_CHARS_MAX, PreviewBuilder, preview, preview_part, preview_parts};
pub use scanner::{Scanner, scan};
pub use structure::{Content, Disposition, Message, Parameter, Part, Section, Structure};
pub use text::{
    SearchedText, TextExtractor, TextSink, body_text, field_text, header_text, parameter_texts, part_text,
    searched_texts,
};
pub use transfer::{Encoding, TransferDecoder, TransferError};
