//! Decoded text of a message for SEARCH (RFC 9051 §6.4.4) and previews.
//!
//! What is text: of the header every field, decoded; of the body every part of type text or message (transfer encoding,
//! character set and HTML markup undone) and the header of every message inside. What is attached in other types is
//! not. Texts of different parts are separate: no match spans two. The rules for users: `docs/search.md`.
//!
//! Memory: chunks of a few times the piece that is pushed.

use crate::charset::CharsetDecoder;
use crate::encoded_word::decode_unstructured;
use crate::header::Field;
use crate::html::HtmlText;
use crate::parameter;
use crate::transfer::TransferDecoder;
use crate::{Content, HeaderBlock, Limits, Part, Structure};
use std::ops::{ControlFlow, Range};

/// Takes text in chunks. `Break` ends the reading.
pub trait TextSink {
    /// The next chunk of the current text; chunks are cut between characters.
    fn text(&mut self, chunk: &str) -> ControlFlow<()>;
    /// The current text ends; the next chunk is of another one and no match may span the two.
    fn boundary(&mut self) -> ControlFlow<()>;
}

/// Octets that are decoded at once.
const PIECE_BYTES: usize = 16 * 1024;

/// Raw octets of one text part's body in, decoded text out (transfer encoding, character set, HTML).
#[derive(Debug)]
pub struct TextExtractor {
    transfer: TransferDecoder,
    charset: CharsetDecoder,
    html: Option<HtmlText>,
    octets: Vec<u8>,
    decoded: String,
    shown: String,
}

impl TextExtractor {
    /// An extractor for the body of `part`.
    pub fn new(part: &Part) -> Self {
        let label = part.parameter("charset").unwrap_or_default();
        TextExtractor {
            transfer: TransferDecoder::tolerant(part.transfer_encoding()),
            charset: CharsetDecoder::new(label.as_bytes()),
            html: part.is_html().then(HtmlText::default),
            octets: Vec::new(),
            decoded: String::new(),
            shown: String::new(),
        }
    }

    /// Takes the next raw octets, giving text to `sink`.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn TextSink) -> ControlFlow<()> {
        for piece in bytes.chunks(PIECE_BYTES) {
            // A tolerant decoder has no errors.
            let _ = self.transfer.push(piece, &mut self.octets);
            self.charset.push(&self.octets, &mut self.decoded);
            self.octets.clear();
            self.give(sink)?;
        }
        ControlFlow::Continue(())
    }

    /// The part ends; also gives the boundary.
    pub fn finish(mut self, sink: &mut dyn TextSink) -> ControlFlow<()> {
        let _ = self.transfer.finish(&mut self.octets);
        self.charset.push(&self.octets, &mut self.decoded);
        self.charset.finish(&mut self.decoded);
        self.give(sink)?;
        if let Some(html) = &mut self.html {
            html.finish(&mut self.shown);
            if !self.shown.is_empty() {
                sink.text(&self.shown)?;
            }
        }
        sink.boundary()
    }

    fn give(&mut self, sink: &mut dyn TextSink) -> ControlFlow<()> {
        let shown = match &mut self.html {
            Some(html) => {
                html.push(&self.decoded, &mut self.shown);
                self.decoded.clear();
                &mut self.shown
            }
            None => &mut self.decoded,
        };
        if !shown.is_empty() {
            sink.text(shown)?;
            shown.clear();
        }
        ControlFlow::Continue(())
    }
}

/// One place of text in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchedText<'s> {
    /// The body of this text part: give its octets to a [`TextExtractor`].
    Body(&'s Part),
    /// The header of a message inside the message, at these octets: give them to [`header_text`].
    Header(Range<u64>),
}

/// Where SEARCH BODY looks, in the order of the message: text parts and the headers of messages inside.
pub fn searched_texts(structure: &Structure) -> Vec<SearchedText<'_>> {
    let mut places = Vec::new();
    for part in structure.parts() {
        match &part.content {
            Content::Leaf if part.is_searched() => places.push(SearchedText::Body(part)),
            Content::Message(message) => places.push(SearchedText::Header(message.root.header.clone())),
            _ => {}
        }
    }
    places
}

/// The text of SEARCH BODY: all text parts and the headers of nested messages. `message` is the whole message
/// that `structure` was made from.
pub fn body_text(message: &[u8], structure: &Structure, sink: &mut dyn TextSink) -> ControlFlow<()> {
    for place in searched_texts(structure) {
        match place {
            SearchedText::Header(range) => header_text(octets(message, &range), sink)?,
            SearchedText::Body(part) => {
                let mut extractor = TextExtractor::new(part);
                extractor.push(octets(message, &part.body), sink)?;
                extractor.finish(sink)?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// The decoded text of one part, at most `bytes_max` octets of it, cut between characters.
pub fn part_text(message: &[u8], part: &Part, bytes_max: usize) -> String {
    let mut sink = Collect { text: String::new(), bytes_max };
    let mut extractor = TextExtractor::new(part);
    if extractor.push(octets(message, &part.body), &mut sink).is_continue() {
        let _ = extractor.finish(&mut sink);
    }
    sink.text
}

/// The octets of a message at a range of its structure; none if the structure is of another message.
pub(crate) fn octets<'m>(message: &'m [u8], range: &Range<u64>) -> &'m [u8] {
    let bounds = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    bounds.and_then(|(start, end)| message.get(start..end)).unwrap_or_default()
}

/// Collects text up to a limit.
#[derive(Debug)]
pub(crate) struct Collect {
    pub(crate) text: String,
    pub(crate) bytes_max: usize,
}

impl TextSink for Collect {
    fn text(&mut self, chunk: &str) -> ControlFlow<()> {
        let space = self.bytes_max.saturating_sub(self.text.len());
        let end = chunk.floor_char_boundary(space);
        self.text.push_str(chunk.get(..end).unwrap_or_default());
        if end < chunk.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn boundary(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The decoded text of a header, one field a line (`Name: value`), each a text of its own, for SEARCH TEXT.
pub fn header_text(header: &[u8], sink: &mut dyn TextSink) -> ControlFlow<()> {
    for field in HeaderBlock::new(header).fields() {
        sink.text(&decode_unstructured(field.name))?;
        sink.text(": ")?;
        sink.text(&field_text(field.value))?;
        sink.boundary()?;
        for text in parameter_texts(&field) {
            sink.text(&text)?;
            sink.boundary()?;
        }
    }
    ControlFlow::Continue(())
}

/// What a field says in the extended form of RFC 2231, decoded, for SEARCH TEXT and HEADER: a text `name=value` for each such
/// parameter. They are found beside the field as it is written.
pub fn parameter_texts(field: &Field<'_>) -> Vec<String> {
    let has_parameters = field.is(b"Content-Type") || field.is(b"Content-Disposition");
    if !has_parameters || memchr::memchr(b'*', field.value).is_none() {
        return Vec::new();
    }
    let parsed = parameter::parse(field.value, Limits::default().parameters_max);
    let extended = parsed.parameters.iter().filter_map(|parameter| parameter.name.strip_suffix(b"*"));
    let text = |name: &[u8]| {
        let name = String::from_utf8_lossy(name).into_owned();
        parameter::decode_parameter(&parsed.parameters, &name).map(|value| format!("{name}={value}"))
    };
    extended.filter_map(text).collect()
}

/// The decoded text of a field's value, for SEARCH HEADER: unfolded, encoded words decoded, without the white
/// space around it.
pub fn field_text(value: &[u8]) -> String {
    decode_unstructured(value).trim().to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::scan;

    /// Texts, each ended by `|`.
    #[derive(Default)]
    struct Shown(String);

    impl TextSink for Shown {
        fn text(&mut self, chunk: &str) -> ControlFlow<()> {
            self.0.push_str(chunk);
            ControlFlow::Continue(())
        }
        fn boundary(&mut self) -> ControlFlow<()> {
            self.0.push('|');
            ControlFlow::Continue(())
        }
    }

    const MESSAGE: &[u8] = b"Subject: =?utf-8?Q?caf=C3=A9?=\nContent-Type: multipart/mixed; boundary=b\n\npre\n\
        --b\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nna=EFve =\ntext\n\
        --b\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: base64\n\nPHA+aCZlYWN1dGU7PC9wPg==\n\
        --b\nContent-Type: application/pdf\n\nnot this\n\
        --b\nContent-Type: message/rfc822\n\nSubject: inner\nX: y\n\nplain\n--b--\n";

    #[test]
    fn body_is_the_text_parts_and_inner_headers() {
        let mut shown = Shown::default();
        let _ = body_text(MESSAGE, &scan(MESSAGE).0, &mut shown);
        assert_eq!(shown.0, "na\u{ef}ve text|h\u{e9}|Subject: inner|X: y|plain|");
    }

    #[test]
    fn header_is_decoded() {
        let mut shown = Shown::default();
        let _ = header_text(MESSAGE, &mut shown);
        assert_eq!(shown.0, "Subject: caf\u{e9}|Content-Type: multipart/mixed; boundary=b|");
        assert_eq!(field_text(b" =?utf-8?Q?caf=C3=A9?=\r\n x "), "caf\u{e9} x");
    }

    #[test]
    fn extended_parameters_are_decoded() {
        let header = b"Content-Disposition: attachment; filename*0*=utf-8''r%C3%A9s; filename*1=um.pdf; size=3\r\n\
            Content-Type: text/plain; charset*=us-ascii''x; a*b\r\nX: filename*=utf-8''%41\r\n\r\n";
        let texts: Vec<String> = HeaderBlock::new(header).fields().flat_map(|field| parameter_texts(&field)).collect();
        assert_eq!(texts, ["filename=r\u{e9}sum.pdf", "charset=x"]);
        let mut shown = Shown::default();
        let _ = header_text(b"Content-Type: a/b; name*=us-ascii''%41\r\n\r\n", &mut shown);
        assert_eq!(shown.0, "Content-Type: a/b; name*=us-ascii''%41|name=A|");
    }

    #[test]
    fn reports_are_searched() {
        let message = b"Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\n\
            Final-Recipient: rfc822;x@y\n--b\nContent-Type: message/rfc822\n\nSubject: inner\n\nplain\n\
            --b\nContent-Type: message/external-body; access-type=x\nContent-Transfer-Encoding: base64\n\nYWJj\n\
            --b\nContent-Type: image/png\n\nnot this\n--b--\n";
        let mut shown = Shown::default();
        let _ = body_text(message, &scan(message).0, &mut shown);
        assert_eq!(shown.0, "Final-Recipient: rfc822;x@y|Subject: inner|plain|abc|");
    }

    #[test]
    fn reading_stops_when_told() {
        struct Stop(usize);
        impl TextSink for Stop {
            fn text(&mut self, _: &str) -> ControlFlow<()> {
                self.0 += 1;
                ControlFlow::Break(())
            }
            fn boundary(&mut self) -> ControlFlow<()> {
                panic!("after the end")
            }
        }
        let mut stop = Stop(0);
        assert!(body_text(MESSAGE, &scan(MESSAGE).0, &mut stop).is_break());
        assert_eq!(stop.0, 1);
    }

    #[test]
    fn part_text_has_a_limit() {
        let structure = scan(MESSAGE).0;
        let part = structure.part(&[1]).unwrap();
        assert_eq!(part_text(MESSAGE, part, 100), "na\u{ef}ve text");
        assert_eq!(part_text(MESSAGE, part, 4), "na\u{ef}");
        assert_eq!(part_text(MESSAGE, part, 3), "na");
        assert_eq!(part_text(b"", part, 3), "");
    }
}
