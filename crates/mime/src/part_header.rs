//! From a header block to what a [`Part`] says of itself, and to the envelope of a message.

use crate::envelope::field_string;
use crate::header::Item;
use crate::parameter;
use crate::structure::{Content, Disposition, Parameter};
use crate::{DefectKind, Envelope, HeaderBlock, Limits, Part};
use memchr::memchr;

/// What a header block says.
pub(crate) struct ParsedHeader {
    /// A part with its fields set; ranges and content are the scanner's to fill in.
    pub(crate) part: Part,
    /// The envelope, if it was asked for.
    pub(crate) envelope: Envelope,
    /// Defects, with offsets relative to the block.
    pub(crate) defects: Vec<(DefectKind, usize)>,
}

/// The type of a part that has no Content-Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultType {
    /// RFC 2045 §5.2: text/plain; charset=us-ascii.
    Text,
    /// RFC 2046 §5.1.5: in a multipart/digest, message/rfc822.
    Message,
}

impl DefaultType {
    fn set(self, part: &mut Part) {
        match self {
            DefaultType::Text => {
                set_type(part, b"TEXT", b"PLAIN");
                part.parameters = vec![us_ascii()];
            }
            DefaultType::Message => {
                set_type(part, b"MESSAGE", b"RFC822");
                part.parameters = Vec::new();
            }
        }
    }
}

/// A part of which nothing is known but that it is text (RFC 2045 §5.2).
pub(crate) fn plain_text_part() -> Part {
    let mut part = Part {
        header: 0..0,
        body: 0..0,
        body_lines: 0,
        media_type: Vec::new(),
        media_subtype: Vec::new(),
        parameters: Vec::new(),
        encoding: b"7BIT".to_vec(),
        id: None,
        description: None,
        md5: None,
        disposition: None,
        language: Vec::new(),
        location: None,
        content: Content::Leaf,
    };
    DefaultType::Text.set(&mut part);
    part
}

/// Makes a composite part a leaf of a type that says nothing: its inside is not known.
pub(crate) fn make_opaque(part: &mut Part) {
    set_type(part, b"APPLICATION", b"OCTET-STREAM");
}

/// Makes a part with a broken type the default text (RFC 2045 §5.2).
pub(crate) fn make_text(part: &mut Part) {
    DefaultType::Text.set(part);
}

fn set_type(part: &mut Part, media_type: &[u8], media_subtype: &[u8]) {
    part.media_type = media_type.to_vec();
    part.media_subtype = media_subtype.to_vec();
}

/// Reads a header block. `addresses_left` is what the whole message may still have, and is counted down;
/// `None` if no envelope is wanted.
pub(crate) fn parse_header(
    block: &[u8],
    default: DefaultType,
    limits: &Limits,
    mut addresses_left: Option<&mut usize>,
) -> ParsedHeader {
    let mut part = plain_text_part();
    default.set(&mut part);
    let mut envelope = Envelope::default();
    let mut defects = Vec::new();
    let mut seen = Seen::default();
    if let Some(offset) = block.iter().position(|octet| *octet > 127) {
        defects.push((DefectKind::RawEightBitHeader, offset));
    }
    if let Some(offset) = memchr(0, block) {
        defects.push((DefectKind::NulInHeader, offset));
    }
    let mut has_junk = false;
    for (count, item) in HeaderBlock::new(block).items().enumerate() {
        let field = match item {
            Item::Field(field) => field,
            Item::Junk(offset) => {
                // An mbox separator at the very start is how some programs deliver.
                let is_separator = offset == 0 && block.starts_with(b"From ");
                if !is_separator && !has_junk {
                    defects.push((DefectKind::JunkInHeader, offset));
                    has_junk = true;
                }
                continue;
            }
        };
        if count >= limits.headers_max {
            defects.push((DefectKind::TooManyHeaders, field.offset));
            break;
        }
        if let Some(kind) = seen.take(&mut part, field.name, field.value, limits) {
            defects.push((kind, field.offset));
        }
        if let Some(left) = addresses_left.as_deref_mut() {
            let had = *left;
            envelope.take_field(field.name, field.value, left);
            if had > 0 && *left == 0 {
                defects.push((DefectKind::TooManyAddresses, field.offset));
            }
        }
    }
    default_charset(&mut part, limits);
    envelope.complete();
    ParsedHeader { part, envelope, defects }
}

/// RFC 2046 §4.1.2: text without a charset parameter is US-ASCII. IMAP says so (RFC 9051 §7.5.2
/// BODYSTRUCTURE: "defaulting various fields as necessary").
fn default_charset(part: &mut Part, limits: &Limits) {
    let is_charset = |parameter: &Parameter| {
        let name = parameter.name.strip_suffix(b"*").unwrap_or(&parameter.name);
        name.eq_ignore_ascii_case(b"charset")
    };
    let has_room = part.parameters.len() < limits.parameters_max;
    if part.is_text() && has_room && !part.parameters.iter().any(is_charset) {
        part.parameters.push(us_ascii());
    }
}

fn us_ascii() -> Parameter {
    Parameter { name: b"charset".to_vec(), value: b"us-ascii".to_vec() }
}

/// Which of the Content fields came already: the first of each counts.
#[derive(Default)]
struct Seen {
    content_type: bool,
    encoding: bool,
    language: bool,
}

impl Seen {
    /// Takes a field of a MIME header (RFC 2045 §3, and RFC 1864, 2183, 3282, 2557).
    fn take(&mut self, part: &mut Part, name: &[u8], value: &[u8], limits: &Limits) -> Option<DefectKind> {
        let rest = name.get(8..).filter(|_| name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-")));
        let lower = rest?.to_ascii_lowercase();
        let first_string = |slot: &mut Option<Vec<u8>>| {
            slot.get_or_insert_with(|| field_string(value));
        };
        match lower.as_slice() {
            b"type" if !std::mem::replace(&mut self.content_type, true) => {
                return content_type(part, value, limits);
            }
            b"transfer-encoding" if !std::mem::replace(&mut self.encoding, true) => {
                let parsed = parameter::parse(value, 0);
                if !parsed.first.is_empty() {
                    part.encoding = parsed.first;
                }
            }
            b"disposition" if part.disposition.is_none() => {
                let parsed = parameter::parse(value, limits.parameters_max);
                if !parsed.first.is_empty() {
                    part.disposition = Some(Disposition { kind: parsed.first, parameters: parsed.parameters });
                }
                return parsed.truncated.then_some(DefectKind::TooManyParameters);
            }
            b"language" if !std::mem::replace(&mut self.language, true) => {
                let value = field_string(value);
                let tags = value.split(|octet| *octet == b',').map(<[u8]>::trim_ascii);
                let tags = tags.filter(|tag| !tag.is_empty()).take(limits.parameters_max);
                part.language = tags.map(<[u8]>::to_vec).collect();
            }
            b"id" => first_string(&mut part.id),
            b"description" => first_string(&mut part.description),
            b"md5" => first_string(&mut part.md5),
            b"location" => first_string(&mut part.location),
            _ => {}
        }
        None
    }
}

/// RFC 2045 §5.1. What cannot be read is text/plain (§5.2).
fn content_type(part: &mut Part, value: &[u8], limits: &Limits) -> Option<DefectKind> {
    let parsed = parameter::parse(value, limits.parameters_max);
    let subtype = match (parsed.first.as_slice(), parsed.second) {
        (b"", _) => None,
        (_, Some(subtype)) if !subtype.is_empty() => Some(subtype),
        // What the types are most often without their subtype.
        (b"MULTIPART", _) => Some(b"MIXED".to_vec()),
        _ => None,
    };
    let Some(subtype) = subtype else {
        DefaultType::Text.set(part);
        if parsed.first == b"TEXT" && !parsed.parameters.is_empty() {
            part.parameters = parsed.parameters;
        }
        return Some(DefectKind::BadContentType);
    };
    part.media_type = parsed.first;
    part.media_subtype = subtype;
    part.parameters = parsed.parameters;
    parsed.truncated.then_some(DefectKind::TooManyParameters)
}
