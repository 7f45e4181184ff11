//! FETCH and UID FETCH (RFC 9051 §6.4.5; RFC 3516, RFC 7162 §3.1.4, RFC 8474 §5, RFC 8514 §4.2, RFC 8970 §3, RFC 9394 §3.3).

use std::num::NonZeroU32;

use model::ModSeq;

use super::write::CommandWriter;
use crate::encode::{number, quoted};
use crate::error::Parse;
use crate::scan::{Scan, ascii};
use crate::sequence::{partial_range, sequence_set, write_partial_range, write_sequence_set};
use crate::{PartialRange, SequenceSet, limits};

/// FETCH with its items; a macro has become the items that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Whether the numbers are UIDs.
    pub uid: bool,
    /// The messages.
    pub set: SequenceSet,
    /// What is wanted of each, in the order sent, without duplicates.
    pub items: Vec<FetchAtt>,
    /// The modifiers (RFC 4466 §2.5).
    pub modifiers: FetchModifiers,
}

/// The modifiers of FETCH.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchModifiers {
    /// `CHANGEDSINCE` (RFC 7162 §3.1.4.1).
    pub changed_since: Option<ModSeq>,
    /// `VANISHED` (RFC 7162 §3.2.6): stands only with UID and CHANGEDSINCE.
    pub vanished: bool,
    /// `PARTIAL` (RFC 9394 §3.3): stands only with UID.
    pub partial: Option<PartialRange>,
}

/// An item of FETCH (RFC 9051 §9 fetch-att).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchAtt {
    /// `ENVELOPE`
    Envelope,
    /// `FLAGS`
    Flags,
    /// `INTERNALDATE`
    InternalDate,
    /// `RFC822.SIZE`
    Rfc822Size,
    /// `BODY` without a section: the structure without extension data.
    Body,
    /// `BODYSTRUCTURE`
    BodyStructure,
    /// `UID`
    Uid,
    /// `BODY[...]` and `BODY.PEEK[...]`
    BodySection {
        /// Which octets of the message.
        section: Section,
        /// Whether `\Seen` stays as it is.
        peek: bool,
        /// Which part of them.
        partial: Option<Partial>,
    },
    /// `BINARY[...]` and `BINARY.PEEK[...]` (RFC 3516 §4.2)
    Binary {
        /// The part whose content transfer encoding is undone; empty for the whole message.
        part: SectionPart,
        /// Whether `\Seen` stays as it is.
        peek: bool,
        /// Which of the decoded octets.
        partial: Option<Partial>,
    },
    /// `BINARY.SIZE[...]` (RFC 3516 §4.3)
    BinarySize {
        /// The part whose decoded size is wanted.
        part: SectionPart,
    },
    /// `RFC822` (RFC 3501 §6.4.5): `BODY[]` under another name.
    Rfc822,
    /// `RFC822.HEADER`: `BODY.PEEK[HEADER]` under another name.
    Rfc822Header,
    /// `RFC822.TEXT`: `BODY[TEXT]` under another name.
    Rfc822Text,
    /// `MODSEQ` (RFC 7162 §3.1.5)
    ModSeq,
    /// `SAVEDATE` (RFC 8514 §4.2)
    SaveDate,
    /// `PREVIEW` (RFC 8970 §3.1)
    Preview {
        /// `(LAZY)`: only if it costs nothing.
        lazy: bool,
    },
    /// `EMAILID` (RFC 8474 §5.1)
    EmailId,
    /// `THREADID` (RFC 8474 §5.2)
    ThreadId,
}

impl FetchAtt {
    /// Whether fetching this sets `\Seen` (RFC 9051 §6.4.5).
    pub fn sets_seen(&self) -> bool {
        match self {
            FetchAtt::BodySection { peek, .. } | FetchAtt::Binary { peek, .. } => !peek,
            FetchAtt::Rfc822 | FetchAtt::Rfc822Text => true,
            _ => false,
        }
    }
}

/// A part of a message, by the numbers of RFC 9051 §6.4.5.1; empty for the message itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SectionPart(pub Vec<NonZeroU32>);

/// What stands between the brackets of BODY (RFC 9051 §9 section-spec).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Section {
    /// The part; empty for the message itself.
    pub part: SectionPart,
    /// What of it.
    pub text: SectionText,
}

/// What of a part (RFC 9051 §9 section-msgtext, section-text).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SectionText {
    /// All of it: `[]`, `[1.2]`.
    Full,
    /// `HEADER`
    Header,
    /// `HEADER.FIELDS`: the names as sent.
    HeaderFields(Vec<Vec<u8>>),
    /// `HEADER.FIELDS.NOT`: the names as sent.
    HeaderFieldsNot(Vec<Vec<u8>>),
    /// `TEXT`
    Text,
    /// `MIME`; only with a part.
    Mime,
}

/// A window of octets (RFC 9051 §9 partial): `<offset.length>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Partial {
    /// The first octet, from zero.
    pub offset: u64,
    /// How many octets at most.
    pub length: u64,
}

// RFC 9051 §9 fetch = "FETCH" SP sequence-set SP ("ALL" / "FULL" / "FAST" / fetch-att / "(" fetch-att *(SP fetch-att) ")")
// RFC 4466 §2.5 adds [SP "(" fetch-modifier *(SP fetch-modifier) ")"]
pub(super) fn fetch(scan: &mut Scan, uid: bool) -> Parse<Fetch> {
    scan.sp()?;
    let set = sequence_set(scan)?;
    scan.sp()?;
    let items = match fetch_macro(scan) {
        Some(items) => items.to_vec(),
        None if scan.peek() == Some(b'(') => fetch_atts(scan)?,
        None => vec![fetch_att(scan)?],
    };
    let modifiers = if scan.more_items() { fetch_modifiers(scan, uid)? } else { FetchModifiers::default() };
    Ok(Fetch { uid, set, items, modifiers })
}

/// `"(" fetch-att *(SP fetch-att) ")"`, each once.
fn fetch_atts(scan: &mut Scan) -> Parse<Vec<FetchAtt>> {
    let mut items = Vec::new();
    for item in scan.list1(limits::FETCH_ITEMS_MAX, "fetch_items_max", fetch_att)? {
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

/// `[[SP] "(" fetch-att *(SP fetch-att) ")"]`: what is wanted of new messages (RFC 5465 §8 message-event, modifier-update).
pub(super) fn optional_fetch_atts(scan: &mut Scan) -> Parse<Vec<FetchAtt>> {
    let mut ahead = scan.clone();
    ahead.skip_spaces();
    if ahead.peek() != Some(b'(') {
        return Ok(Vec::new());
    }
    *scan = ahead;
    fetch_atts(scan)
}

/// The same, where there are any.
pub(super) fn write_optional_fetch_atts(items: &[FetchAtt], writer: &mut CommandWriter) {
    if !items.is_empty() {
        writer.raw(" ");
        writer.list(items, |writer, item| item.write(&mut writer.out));
    }
}

// RFC 9051 §6.4.5: ALL, FAST and FULL
fn fetch_macro(scan: &mut Scan) -> Option<&'static [FetchAtt]> {
    use FetchAtt::{Body, Envelope, Flags, InternalDate, Rfc822Size};
    if scan.eat_word("ALL") {
        Some(&[Flags, InternalDate, Rfc822Size, Envelope])
    } else if scan.eat_word("FAST") {
        Some(&[Flags, InternalDate, Rfc822Size])
    } else if scan.eat_word("FULL") {
        Some(&[Flags, InternalDate, Rfc822Size, Envelope, Body])
    } else {
        None
    }
}

// RFC 7162 §7 chgsince-fetch-mod, rexpunges-fetch-mod; RFC 9394 §4 modifier-partial
fn fetch_modifiers(scan: &mut Scan, uid: bool) -> Parse<FetchModifiers> {
    let start = scan.clone();
    let mut modifiers = FetchModifiers::default();
    scan.parenthesised(|scan| {
        loop {
            let before = scan.clone();
            match scan.word("a modifier of FETCH")?.as_str() {
                "CHANGEDSINCE" if modifiers.changed_since.is_none() => {
                    // Zero is outside mod-sequence-value, but clients send it, and it can only mean "everything".
                    scan.sp()?;
                    modifiers.changed_since = Some(ModSeq(scan.number64()?));
                }
                "VANISHED" => modifiers.vanished = true,
                "PARTIAL" if modifiers.partial.is_none() => {
                    scan.sp()?;
                    modifiers.partial = Some(partial_range(scan)?);
                }
                _ => return before.error("a modifier of FETCH"),
            }
            if !scan.more_items() {
                return Ok(());
            }
        }
    })?;
    if modifiers.vanished && (!uid || modifiers.changed_since.is_none()) {
        // RFC 7162 §3.2.6: without UID or without CHANGEDSINCE the command is BAD.
        return start.error("UID FETCH with CHANGEDSINCE beside VANISHED");
    }
    if modifiers.partial.is_some() && !uid {
        return start.error("UID FETCH for PARTIAL");
    }
    Ok(modifiers)
}

// RFC 9051 §9 fetch-att; RFC 3501 §9, RFC 7162 §7, RFC 8474 §7, RFC 8514 §5, RFC 8970 §6
pub(crate) fn fetch_att(scan: &mut Scan) -> Parse<FetchAtt> {
    let before = scan.clone();
    let name = scan.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    let has_section = scan.peek() == Some(b'[');
    let name = ascii(name).to_ascii_uppercase();
    Ok(match (name.as_str(), has_section) {
        ("ENVELOPE", false) => FetchAtt::Envelope,
        ("FLAGS", false) => FetchAtt::Flags,
        ("INTERNALDATE", false) => FetchAtt::InternalDate,
        ("RFC822.SIZE", false) => FetchAtt::Rfc822Size,
        ("BODY", false) => FetchAtt::Body,
        ("BODYSTRUCTURE", false) => FetchAtt::BodyStructure,
        ("UID", false) => FetchAtt::Uid,
        ("BODY" | "BODY.PEEK", true) => {
            let section = section(scan)?;
            FetchAtt::BodySection { section, peek: name == "BODY.PEEK", partial: partial(scan)? }
        }
        ("BINARY" | "BINARY.PEEK", true) => {
            let part = section_binary(scan)?;
            FetchAtt::Binary { part, peek: name == "BINARY.PEEK", partial: partial(scan)? }
        }
        ("BINARY.SIZE", true) => FetchAtt::BinarySize { part: section_binary(scan)? },
        ("RFC822", false) => FetchAtt::Rfc822,
        ("RFC822.HEADER", false) => FetchAtt::Rfc822Header,
        ("RFC822.TEXT", false) => FetchAtt::Rfc822Text,
        ("MODSEQ", false) => FetchAtt::ModSeq,
        ("SAVEDATE", false) => FetchAtt::SaveDate,
        ("PREVIEW", false) => FetchAtt::Preview { lazy: preview_mods(scan)? },
        ("EMAILID", false) => FetchAtt::EmailId,
        ("THREADID", false) => FetchAtt::ThreadId,
        _ => return before.error("an item of FETCH"),
    })
}

// RFC 8970 §6 fetch-att =/ "PREVIEW" [SP "(" preview-mod *(SP preview-mod) ")"]; preview-mod = "LAZY"
fn preview_mods(scan: &mut Scan) -> Parse<bool> {
    let mut ahead = scan.clone();
    ahead.skip_spaces();
    // A list behind a lone PREVIEW can also be the modifiers of FETCH: only LAZY is ours.
    let lazy = ahead.parenthesised(|scan| Ok(scan.eat_word("LAZY"))).unwrap_or(false);
    if lazy {
        *scan = ahead;
    }
    Ok(lazy)
}

// RFC 9051 §9 section = "[" [section-spec] "]"
pub(crate) fn section(scan: &mut Scan) -> Parse<Section> {
    scan.expect(b'[', "[")?;
    let section = section_spec(scan)?;
    scan.expect(b']', "] after a section")?;
    Ok(section)
}

// RFC 9051 §9 section-spec = section-msgtext / (section-part ["." section-text])
fn section_spec(scan: &mut Scan) -> Parse<Section> {
    let part = section_part(scan)?;
    let text = match scan.peek() {
        Some(b']') => SectionText::Full,
        _ => section_text(scan, !part.0.is_empty())?,
    };
    Ok(Section { part, text })
}

// RFC 9051 §9 section-msgtext = "HEADER" / "HEADER.FIELDS" [".NOT"] SP header-list / "TEXT"; section-text adds "MIME"
fn section_text(scan: &mut Scan, in_part: bool) -> Parse<SectionText> {
    let before = scan.clone();
    let name = scan.take_while(|byte| byte.is_ascii_alphabetic() || byte == b'.');
    Ok(match ascii(name).to_ascii_uppercase().as_str() {
        "HEADER" => SectionText::Header,
        "HEADER.FIELDS" => SectionText::HeaderFields(header_list(scan)?),
        "HEADER.FIELDS.NOT" => SectionText::HeaderFieldsNot(header_list(scan)?),
        "TEXT" => SectionText::Text,
        "MIME" if in_part => SectionText::Mime,
        _ => return before.error("a section"),
    })
}

// RFC 9051 §9 header-list = "(" header-fld-name *(SP header-fld-name) ")"
fn header_list(scan: &mut Scan) -> Parse<Vec<Vec<u8>>> {
    scan.sp()?;
    scan.list1(limits::HEADER_FIELDS_MAX, "header_fields_max", |scan| scan.astring("a header field's name"))
}

// RFC 9051 §9 section-part = nz-number *("." nz-number), or nothing; takes the dot before a section-text too.
fn section_part(scan: &mut Scan) -> Parse<SectionPart> {
    let mut part = Vec::new();
    while scan.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        if part.len() >= limits::SECTION_PART_DEPTH_MAX {
            return scan.over_limit("section_part_depth_max");
        }
        part.push(scan.nz_number()?);
        if !scan.eat(b'.') {
            if scan.peek() == Some(b']') {
                break;
            }
            return scan.error(". or ] after a part's number");
        }
        if scan.peek() == Some(b']') {
            return scan.error("a part's number or text");
        }
    }
    Ok(SectionPart(part))
}

// RFC 9051 §9 section-binary = "[" [section-part] "]"
pub(crate) fn section_binary(scan: &mut Scan) -> Parse<SectionPart> {
    scan.expect(b'[', "[")?;
    let part = section_part(scan)?;
    scan.expect(b']', "] after a part's numbers")?;
    Ok(part)
}

// RFC 9051 §9 partial = "<" number64 "." nz-number64 ">"
fn partial(scan: &mut Scan) -> Parse<Option<Partial>> {
    if !scan.eat(b'<') {
        return Ok(None);
    }
    let offset = scan.number64()?;
    scan.expect(b'.', ". in a partial")?;
    let before = scan.clone();
    let length = scan.number64()?;
    if length == 0 {
        return before.error("a length above zero");
    }
    scan.expect(b'>', "> after a partial")?;
    Ok(Some(Partial { offset, length }))
}

impl SectionPart {
    /// Writes the numbers with dots between.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (n, value) in self.0.iter().enumerate() {
            if n > 0 {
                out.push(b'.');
            }
            number(out, u64::from(value.get()));
        }
    }
}

impl Section {
    /// Writes the section with its brackets, as a response repeats it: `[1.HEADER.FIELDS (Subject)]`. A field's name that is
    /// no atom is quoted; octets that no quoted string can carry are left out.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        self.part.write(out);
        if !self.part.0.is_empty() && self.text != SectionText::Full {
            out.push(b'.');
        }
        match &self.text {
            SectionText::Full => {}
            SectionText::Header => out.extend_from_slice(b"HEADER"),
            SectionText::HeaderFields(names) => write_header_list(out, b"HEADER.FIELDS (", names),
            SectionText::HeaderFieldsNot(names) => write_header_list(out, b"HEADER.FIELDS.NOT (", names),
            SectionText::Text => out.extend_from_slice(b"TEXT"),
            SectionText::Mime => out.extend_from_slice(b"MIME"),
        }
        out.push(b']');
    }
}

fn write_header_list(out: &mut Vec<u8>, head: &[u8], names: &[Vec<u8>]) {
    out.extend_from_slice(head);
    for (n, name) in names.iter().enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        if !name.is_empty() && name.iter().all(|byte| crate::chars::is_atom_char(*byte)) {
            out.extend_from_slice(name);
        } else {
            let clean: Vec<u8> = name.iter().copied().filter(|byte| !matches!(byte, 0 | b'\r' | b'\n')).collect();
            quoted(out, &clean);
        }
    }
    out.push(b')');
}

impl Fetch {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        writer.raw(" ");
        write_sequence_set(&mut writer.out, &self.set);
        writer.raw(" ");
        writer.list(&self.items, |writer, item| item.write(&mut writer.out));
        let FetchModifiers { changed_since, vanished, partial } = self.modifiers;
        if changed_since.is_none() && partial.is_none() {
            return;
        }
        writer.raw(" (");
        if let Some(modseq) = changed_since {
            writer.raw("CHANGEDSINCE ");
            writer.number(modseq.0);
            writer.raw(if vanished { " VANISHED" } else { "" });
            writer.raw(if partial.is_some() { " " } else { "" });
        }
        if let Some(range) = partial {
            writer.raw("PARTIAL ");
            write_partial_range(&mut writer.out, range);
        }
        writer.raw(")");
    }
}

impl FetchAtt {
    /// Writes the item as a client asks for it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let name: &[u8] = match self {
            FetchAtt::Envelope => b"ENVELOPE",
            FetchAtt::Flags => b"FLAGS",
            FetchAtt::InternalDate => b"INTERNALDATE",
            FetchAtt::Rfc822Size => b"RFC822.SIZE",
            FetchAtt::Body => b"BODY",
            FetchAtt::BodyStructure => b"BODYSTRUCTURE",
            FetchAtt::Uid => b"UID",
            FetchAtt::BodySection { peek: false, .. } => b"BODY",
            FetchAtt::BodySection { peek: true, .. } => b"BODY.PEEK",
            FetchAtt::Binary { peek: false, .. } => b"BINARY",
            FetchAtt::Binary { peek: true, .. } => b"BINARY.PEEK",
            FetchAtt::BinarySize { .. } => b"BINARY.SIZE",
            FetchAtt::Rfc822 => b"RFC822",
            FetchAtt::Rfc822Header => b"RFC822.HEADER",
            FetchAtt::Rfc822Text => b"RFC822.TEXT",
            FetchAtt::ModSeq => b"MODSEQ",
            FetchAtt::SaveDate => b"SAVEDATE",
            FetchAtt::Preview { lazy: false } => b"PREVIEW",
            FetchAtt::Preview { lazy: true } => b"PREVIEW (LAZY)",
            FetchAtt::EmailId => b"EMAILID",
            FetchAtt::ThreadId => b"THREADID",
        };
        out.extend_from_slice(name);
        let partial = match self {
            FetchAtt::BodySection { section, partial, .. } => {
                section.write(out);
                partial
            }
            FetchAtt::Binary { part, partial, .. } => {
                write_section_binary(out, part);
                partial
            }
            FetchAtt::BinarySize { part } => {
                write_section_binary(out, part);
                &None
            }
            _ => &None,
        };
        if let Some(Partial { offset, length }) = partial {
            out.push(b'<');
            number(out, *offset);
            out.push(b'.');
            number(out, *length);
            out.push(b'>');
        }
    }
}

pub(crate) fn write_section_binary(out: &mut Vec<u8>, part: &SectionPart) {
    out.push(b'[');
    part.write(out);
    out.push(b']');
}
