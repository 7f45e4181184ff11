//! ENVELOPE, BODY and BODYSTRUCTURE as IMAP writes them (RFC 9051 §7.5.2 and §9; RFC 3501 §7.4.2).
//!
//! Invariants of what is written:
//! * it obeys the grammar of both revisions whatever the message holds: a string is quoted when it is short 7-bit text without
//!   line ends, else a literal; NUL, which no IMAP string can carry, is left out;
//! * a part that has children in the structure is written with them, and no other is written in a form that needs them: a
//!   message or multipart that is opaque here (broken, or over a limit) shows as APPLICATION/OCTET-STREAM.

use crate::{Address, Content, Disposition, Envelope, Parameter, Part, Structure};

/// Longer strings are literals: readers have been seen with line limits of a few KiB.
const QUOTED_BYTES_MAX: usize = 1000;

/// Appends `bytes` as an IMAP `string` (RFC 9051 §9): quoted when it can be, else a literal.
pub fn write_imap_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let quotable = |byte: u8| byte < 0x80 && !matches!(byte, 0 | b'\r' | b'\n');
    if bytes.len() <= QUOTED_BYTES_MAX && bytes.iter().all(|byte| quotable(*byte)) {
        out.push(b'"');
        for byte in bytes {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        out.push(b'"');
        return;
    }
    let octets = bytes.iter().filter(|byte| **byte != 0).count();
    out.extend_from_slice(format!("{{{octets}}}\r\n").as_bytes());
    out.extend(bytes.iter().filter(|byte| **byte != 0));
}

/// `nstring` (RFC 9051 §9).
fn nstring(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => write_imap_string(out, bytes),
        None => out.extend_from_slice(b"NIL"),
    }
}

/// `number`, with the space before it.
fn sp_number(out: &mut Vec<u8>, number: u64) {
    // RFC 9051 §9: number is 32 bits.
    out.extend_from_slice(format!(" {}", number.min(u64::from(u32::MAX))).as_bytes());
}

/// `address` (RFC 9051 §9): name, adl, mailbox, host.
fn address(out: &mut Vec<u8>, address: &Address) {
    out.push(b'(');
    for (n, field) in [&address.name, &address.adl, &address.mailbox, &address.host].into_iter().enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        nstring(out, field.as_deref());
    }
    out.push(b')');
}

/// `env-from` and its like: `(1*address)` or NIL.
fn addresses(out: &mut Vec<u8>, list: &[Address]) {
    if list.is_empty() {
        out.extend_from_slice(b"NIL");
        return;
    }
    out.push(b'(');
    for one in list {
        address(out, one);
    }
    out.push(b')');
}

impl Envelope {
    /// Appends `envelope` (RFC 9051 §7.5.2): `("date" "subject" ((from)) … "message-id")`.
    pub fn write_imap(&self, out: &mut Vec<u8>) {
        out.push(b'(');
        nstring(out, self.date.as_deref());
        out.push(b' ');
        nstring(out, self.subject.as_deref());
        for list in [&self.from, &self.sender, &self.reply_to, &self.to, &self.cc, &self.bcc] {
            out.push(b' ');
            addresses(out, list);
        }
        out.push(b' ');
        nstring(out, self.in_reply_to.as_deref());
        out.push(b' ');
        nstring(out, self.message_id.as_deref());
        out.push(b')');
    }
}

impl Structure {
    /// Appends `body` (RFC 9051 §7.5.2): with `extended` as BODYSTRUCTURE, without as BODY.
    pub fn write_imap(&self, out: &mut Vec<u8>, extended: bool) {
        body(out, &self.message.root, extended);
    }
}

/// `body` (RFC 9051 §9). Recursion is bounded by [`crate::Limits::depth_max`].
fn body(out: &mut Vec<u8>, part: &Part, extended: bool) {
    out.push(b'(');
    match &part.content {
        Content::Multipart(parts) => body_type_mpart(out, part, parts, extended),
        _ => body_type_1part(out, part, extended),
    }
    out.push(b')');
}

/// `body-type-mpart`: `1*body SP media-subtype [SP body-ext-mpart]`.
fn body_type_mpart(out: &mut Vec<u8>, part: &Part, parts: &[Part], extended: bool) {
    for child in parts {
        body(out, child, extended);
    }
    if parts.is_empty() {
        // The grammar wants one part at least; RFC 2046 §5.1 makes a multipart without any an empty text.
        out.extend_from_slice(b"(\"TEXT\" \"PLAIN\" NIL NIL NIL \"7BIT\" 0 0)");
    }
    out.push(b' ');
    write_imap_string(out, &part.media_subtype);
    if extended {
        out.push(b' ');
        body_fld_param(out, &part.parameters);
        body_ext_tail(out, part);
    }
}

/// `body-type-1part`: `(body-type-basic / body-type-msg / body-type-text) [SP body-ext-1part]`.
fn body_type_1part(out: &mut Vec<u8>, part: &Part, extended: bool) {
    let opaque = matches!(part.content, Content::Leaf)
        && (part.media_type == b"MULTIPART"
            || (part.media_type == b"MESSAGE" && matches!(part.media_subtype.as_slice(), b"RFC822" | b"GLOBAL")));
    if opaque {
        out.extend_from_slice(b"\"APPLICATION\" \"OCTET-STREAM\"");
    } else {
        write_imap_string(out, &part.media_type);
        out.push(b' ');
        write_imap_string(out, &part.media_subtype);
    }
    // body-fields: param SP id SP desc SP enc SP octets
    out.push(b' ');
    body_fld_param(out, &part.parameters);
    out.push(b' ');
    nstring(out, part.id.as_deref());
    out.push(b' ');
    nstring(out, part.description.as_deref());
    out.push(b' ');
    write_imap_string(out, &part.encoding);
    sp_number(out, part.body_size());
    match &part.content {
        // body-type-msg: SP envelope SP body SP body-fld-lines
        Content::Message(message) => {
            out.push(b' ');
            message.envelope.write_imap(out);
            out.push(b' ');
            body(out, &message.root, extended);
            sp_number(out, part.body_lines);
        }
        _ if part.is_text() => sp_number(out, part.body_lines),
        _ => {}
    }
    if extended {
        // body-ext-1part: md5 SP dsp SP lang SP loc
        out.push(b' ');
        nstring(out, part.md5.as_deref());
        body_ext_tail(out, part);
    }
}

/// What both forms of extension data end with: `SP body-fld-dsp SP body-fld-lang SP body-fld-loc`.
fn body_ext_tail(out: &mut Vec<u8>, part: &Part) {
    out.push(b' ');
    body_fld_dsp(out, part.disposition.as_ref());
    out.push(b' ');
    match part.language.as_slice() {
        [] => out.extend_from_slice(b"NIL"),
        // body-fld-lang: nstring / "(" string *(SP string) ")"; the list is what both revisions' examples show.
        tags => {
            for (n, tag) in tags.iter().enumerate() {
                out.push(if n == 0 { b'(' } else { b' ' });
                write_imap_string(out, tag);
            }
            out.push(b')');
        }
    }
    out.push(b' ');
    nstring(out, part.location.as_deref());
}

/// `body-fld-param`: `"(" string SP string *(SP string SP string) ")" / nil`.
fn body_fld_param(out: &mut Vec<u8>, parameters: &[Parameter]) {
    if parameters.is_empty() {
        out.extend_from_slice(b"NIL");
        return;
    }
    for (n, parameter) in parameters.iter().enumerate() {
        out.push(if n == 0 { b'(' } else { b' ' });
        write_imap_string(out, &parameter.name);
        out.push(b' ');
        write_imap_string(out, &parameter.value);
    }
    out.push(b')');
}

/// `body-fld-dsp`: `"(" string SP body-fld-param ")" / nil`.
fn body_fld_dsp(out: &mut Vec<u8>, disposition: Option<&Disposition>) {
    let Some(disposition) = disposition else {
        out.extend_from_slice(b"NIL");
        return;
    };
    out.push(b'(');
    write_imap_string(out, &disposition.kind);
    out.push(b' ');
    body_fld_param(out, &disposition.parameters);
    out.push(b')');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    fn text(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        write_imap_string(&mut out, bytes);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn every_byte_is_quoted_escaped_a_literal_or_dropped() {
        for byte in 0..=255u8 {
            let mut out = Vec::new();
            write_imap_string(&mut out, &[b'a', byte]);
            let expected = match byte {
                0 => b"{1}\r\na".to_vec(),
                b'"' | b'\\' => vec![b'"', b'a', b'\\', byte, b'"'],
                b'\r' | b'\n' | 0x80.. => [b"{2}\r\na".as_slice(), &[byte]].concat(),
                _ => vec![b'"', b'a', byte, b'"'],
            };
            assert_eq!(out, expected, "byte {byte}");
        }
        assert_eq!(text(b""), "\"\"");
        assert!(text(&[b'x'; QUOTED_BYTES_MAX + 1]).starts_with("{1001}\r\n"));
    }

    fn leaf(media_type: &[u8], media_subtype: &[u8]) -> Part {
        Part {
            header: 0..10,
            body: 10..30,
            body_lines: 2,
            media_type: media_type.to_vec(),
            media_subtype: media_subtype.to_vec(),
            parameters: Vec::new(),
            encoding: b"7BIT".to_vec(),
            id: None,
            description: None,
            md5: None,
            disposition: None,
            language: Vec::new(),
            location: None,
            content: Content::Leaf,
        }
    }

    fn written(root: Part, extended: bool) -> String {
        let structure = Structure { message: Message { envelope: Envelope::default(), root } };
        let mut out = Vec::new();
        structure.write_imap(&mut out, extended);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn envelope_has_ten_fields() {
        let from = Address {
            name: Some(b"A \"B\"".to_vec()),
            adl: None,
            mailbox: Some(b"a".to_vec()),
            host: Some(b"x".to_vec()),
        };
        let envelope = Envelope {
            subject: Some(b"\xfcber".to_vec()),
            from: vec![from.clone(), Address::default()],
            ..Envelope::default()
        };
        let mut out = Vec::new();
        envelope.write_imap(&mut out);
        let expected =
            b"(NIL {4}\r\n\xfcber ((\"A \\\"B\\\"\" NIL \"a\" \"x\")(NIL NIL NIL NIL)) NIL NIL NIL NIL NIL NIL NIL)";
        assert_eq!(out, expected);
    }

    #[test]
    fn leaves() {
        assert_eq!(written(leaf(b"TEXT", b"PLAIN"), false), "(\"TEXT\" \"PLAIN\" NIL NIL NIL \"7BIT\" 20 2)");
        let mut image = leaf(b"IMAGE", b"PNG");
        image.parameters = vec![Parameter { name: b"NAME".to_vec(), value: b"a.png".to_vec() }];
        image.disposition = Some(Disposition { kind: b"INLINE".to_vec(), parameters: Vec::new() });
        image.language = vec![b"en".to_vec(), b"de".to_vec()];
        assert_eq!(
            written(image, true),
            "(\"IMAGE\" \"PNG\" (\"NAME\" \"a.png\") NIL NIL \"7BIT\" 20 NIL (\"INLINE\" NIL) (\"en\" \"de\") NIL)"
        );
    }

    #[test]
    fn what_is_opaque_does_not_claim_children() {
        for part in [leaf(b"MESSAGE", b"RFC822"), leaf(b"MULTIPART", b"MIXED")] {
            assert_eq!(written(part, false), "(\"APPLICATION\" \"OCTET-STREAM\" NIL NIL NIL \"7BIT\" 20)");
        }
        let mut empty = leaf(b"MULTIPART", b"MIXED");
        empty.content = Content::Multipart(Vec::new());
        assert_eq!(written(empty, true), "((\"TEXT\" \"PLAIN\" NIL NIL NIL \"7BIT\" 0 0) \"MIXED\" NIL NIL NIL NIL)");
    }

    #[test]
    fn a_message_inside_a_multipart() {
        let mut inner = leaf(b"MESSAGE", b"RFC822");
        inner.content =
            Content::Message(Box::new(Message { envelope: Envelope::default(), root: leaf(b"TEXT", b"HTML") }));
        let mut outer = leaf(b"MULTIPART", b"DIGEST");
        outer.content = Content::Multipart(vec![inner]);
        assert_eq!(
            written(outer, false),
            "((\"MESSAGE\" \"RFC822\" NIL NIL NIL \"7BIT\" 20 (NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL) \
             (\"TEXT\" \"HTML\" NIL NIL NIL \"7BIT\" 20 2) 2) \"DIGEST\")"
        );
    }
}
