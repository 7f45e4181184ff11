//! HTML to the text that a reader sees, streaming: markup out, character references resolved.
//!
//! Not a parser of HTML: a scanner that is never wrong about what is text in a way that loses words.
//! * tags vanish; block elements, cells and `<br>` separate (a line end), so that words do not run together;
//! * what is inside `script`, `style` and comments is dropped;
//! * white space, line ends included, collapses to one space as it is shown (`pre` is not treated apart);
//! * `<` before anything but a letter, `/`, `!` or `?` is text.
//!
//! Held is at most one tag's name or one reference. A tag, comment or `style` that never ends takes the rest.

use crate::html_entities::entity;

/// Longest name of a tag and longest reference that matter.
const NAME_BYTES_MAX: usize = 32;

/// Elements that begin on a line of their own, and table cells.
const SEPARATING: [&str; 43] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "caption",
    "center",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "legend",
    "li",
    "main",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "section",
    "table",
    "td",
    "th",
    "title",
    "tr",
    "ul",
    "textarea",
];

/// Streaming HTML to text.
#[derive(Debug, Default)]
pub(crate) struct HtmlText {
    place: Place,
    /// The name of the tag or the reference being read.
    name: String,
    /// The raw element that the end tag must close.
    raw: &'static str,
    gap: Gap,
    has_text: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Text,
    /// After `&`.
    Reference,
    /// After `<`.
    TagStart,
    /// In a tag's name; `name` has it, `/` of an end tag included.
    TagName,
    /// In a tag, after the name.
    Tag,
    /// In a quoted attribute value, until this quote.
    Quoted(char),
    /// In `<!...` or `<?...`; the name collects what may be `--`.
    Declaration,
    /// In a comment, after this many hyphens.
    Comment(u8),
    /// In script or style.
    Raw,
}

/// What stands between the last text and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
}

impl HtmlText {
    /// Takes the next text of the document, appending what is shown to `out`.
    pub(crate) fn push(&mut self, input: &str, out: &mut String) {
        let mut rest = input;
        while let Some(character) = rest.chars().next() {
            let skipped = self.run(rest, out);
            let taken = if skipped > 0 { skipped } else { character.len_utf8() };
            if skipped == 0 {
                self.character(character, out);
            }
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Takes at once what [`HtmlText::character`] would take one by one without leaving its place: words of ASCII with single spaces
    /// between them, the inside of a tag, of a quoted value, of a comment, of a script. Returns its octets, 0 for none.
    fn run(&mut self, input: &str, out: &mut String) -> usize {
        let octets = input.as_bytes();
        let is_word = |octet: &u8| octet.is_ascii_graphic() && !matches!(octet, b'<' | b'&');
        let end = match self.place {
            Place::Text => octets.iter().enumerate().position(|(at, octet)| {
                let is_single_space = *octet == b' ' && at > 0 && octets.get(at + 1).is_some_and(is_word);
                !is_word(octet) && !is_single_space
            }),
            Place::Comment(0) => memchr::memchr(b'-', octets),
            // The name of an end tag begins anew.
            Place::Raw if self.name.len() >= NAME_BYTES_MAX => memchr::memchr2(b'<', b'>', octets),
            Place::Tag => memchr::memchr2(b'>', b'=', octets),
            Place::Quoted(quote @ ('"' | '\'')) => memchr::memchr(quote as u8, octets),
            _ => Some(0),
        };
        let end = end.unwrap_or(octets.len());
        if self.place == Place::Text
            && let Some(word) = input.get(..end)
        {
            // What stands before the word depends on its first character only.
            let mut characters = word.chars();
            if let Some(first) = characters.next() {
                self.shown(first, out);
                out.push_str(characters.as_str());
            }
        }
        end
    }

    /// The document ends.
    pub(crate) fn finish(&mut self, out: &mut String) {
        match self.place {
            Place::Reference => self.end_reference(None, out),
            Place::TagStart => self.shown('<', out),
            _ => {}
        }
        self.place = Place::Text;
    }

    fn character(&mut self, character: char, out: &mut String) {
        match self.place {
            Place::Text => match character {
                '<' => self.place = Place::TagStart,
                '&' => self.begin(Place::Reference),
                character => self.shown(character, out),
            },
            Place::Reference => match character {
                ';' => self.end_reference(Some(';'), out),
                'a'..='z' | 'A'..='Z' | '0'..='9' | '#' if self.name.len() < NAME_BYTES_MAX => {
                    self.name.push(character);
                }
                character => {
                    self.end_reference(None, out);
                    self.character(character, out);
                }
            },
            Place::TagStart => match character {
                'a'..='z' | 'A'..='Z' | '/' => {
                    self.begin(Place::TagName);
                    self.name.push(character.to_ascii_lowercase());
                }
                '!' | '?' => self.begin(Place::Declaration),
                character => {
                    self.place = Place::Text;
                    self.shown('<', out);
                    self.character(character, out);
                }
            },
            Place::TagName => match character {
                '>' => self.end_tag(),
                character if character.is_ascii_whitespace() || character == '/' => self.place = Place::Tag,
                character if self.name.len() < NAME_BYTES_MAX => self.name.push(character.to_ascii_lowercase()),
                _ => {}
            },
            Place::Tag => match character {
                '>' => self.end_tag(),
                // Only a value is quoted: an apostrophe elsewhere is junk that must not eat the document.
                '=' => self.place = Place::Quoted('='),
                _ => {}
            },
            Place::Quoted('=') => match character {
                '"' | '\'' => self.place = Place::Quoted(character),
                '>' => self.end_tag(),
                character if character.is_ascii_whitespace() => {}
                _ => self.place = Place::Tag,
            },
            Place::Quoted(quote) => {
                if character == quote {
                    self.place = Place::Tag;
                }
            }
            Place::Declaration => match character {
                '>' => self.place = Place::Text,
                '-' if self.name == "-" => self.place = Place::Comment(0),
                character if self.name.len() < NAME_BYTES_MAX => self.name.push(character),
                _ => {}
            },
            Place::Comment(hyphens) => match character {
                '>' if hyphens >= 2 => self.place = Place::Text,
                '-' => self.place = Place::Comment(hyphens.saturating_add(1)),
                _ => self.place = Place::Comment(0),
            },
            Place::Raw => self.raw_character(character),
        }
    }

    fn begin(&mut self, place: Place) {
        self.name.clear();
        self.place = place;
    }

    /// In script or style: only its own end tag counts.
    fn raw_character(&mut self, character: char) {
        if character == '<' {
            self.name.clear();
        }
        if self.name.len() < NAME_BYTES_MAX {
            self.name.push(character.to_ascii_lowercase());
        }
        if character == '>' && self.name.strip_prefix("</").is_some_and(|name| name.starts_with(self.raw)) {
            self.place = Place::Text;
        }
    }

    fn end_tag(&mut self) {
        self.place = Place::Text;
        let element = self.name.strip_prefix('/').unwrap_or(&self.name);
        // Most names differ in their first letter.
        let first = element.as_bytes().first();
        if SEPARATING.iter().any(|name| name.as_bytes().first() == first && *name == element) {
            self.gap = Gap::Line;
        }
        for raw in ["script", "style"] {
            if self.name == raw {
                self.raw = raw;
                self.begin(Place::Raw);
                return;
            }
        }
    }

    /// The name after `&` is complete. Without `;` only a whole name counts; what is no reference is text.
    fn end_reference(&mut self, semicolon: Option<char>, out: &mut String) {
        self.place = Place::Text;
        let name = std::mem::take(&mut self.name);
        match entity(&name) {
            Some(character) => self.shown(character, out),
            None => {
                self.shown('&', out);
                name.chars().chain(semicolon).for_each(|character| self.shown(character, out));
            }
        }
    }

    fn shown(&mut self, character: char, out: &mut String) {
        if character.is_whitespace() {
            self.gap = self.gap.max(Gap::Space);
            return;
        }
        match std::mem::take(&mut self.gap) {
            Gap::Space if self.has_text => out.push(' '),
            Gap::Line if self.has_text => out.push('\n'),
            _ => {}
        }
        self.has_text = true;
        out.push(character);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn text(html: &str) -> String {
        let mut out = String::new();
        let mut stripper = HtmlText::default();
        stripper.push(html, &mut out);
        stripper.finish(&mut out);
        out
    }

    #[test]
    fn markup_goes_words_stay() {
        assert_eq!(text("<p>Hello,\r\n  <b>wor</b>ld</p><p>x"), "Hello, world\nx");
        assert_eq!(text("a<br>b<BR/>c<td>d</td>"), "a\nb\nc\nd");
        assert_eq!(text("<html><head><title>T</title><style>p { x }</style></head><body>B"), "T\nB");
        assert_eq!(text("a<script>if (a<b) '</p>'</script >b"), "ab");
        assert_eq!(text("a<!-- x > y -- z -->b<!DOCTYPE x>c<?xml?>d<![endif]>e"), "abcde");
        assert_eq!(text("<a href=\"x>y\" title='<'>link</a>"), "link");
        assert_eq!(text("<a title=it's>don't</a> stop"), "don't stop");
        assert_eq!(text("<p don't>x</p>y"), "x\ny");
    }

    #[test]
    fn references() {
        assert_eq!(text("&lt;&amp;&gt;&nbsp;x&#233;&#xE9;&copy 1"), "<&> x\u{e9}\u{e9}\u{a9} 1");
        assert_eq!(text("a & b &; &nosuch; &#; AT&T"), "a & b &; &nosuch; &#; AT&T");
        assert_eq!(text("&amp"), "&");
    }

    #[test]
    fn what_is_no_tag_is_text() {
        assert_eq!(text("1 < 2 <3 <"), "1 < 2 <3 <");
        assert_eq!(text("<unclosed"), "");
        assert_eq!(text("<>a"), "<>a");
    }

    proptest! {
        #[test]
        fn runs_are_their_characters(html in "[<>&;/!a-c=\"'# \u{a0}\u{e9}\r\n-]{0,60}") {
            let mut out = String::new();
            let mut stripper = HtmlText::default();
            html.chars().for_each(|character| stripper.character(character, &mut out));
            stripper.finish(&mut out);
            prop_assert_eq!(out, text(&html));
        }

        #[test]
        fn the_cut_does_not_matter(html in "[<>&;/!a-c=\"'# -]{0,40}") {
            let whole = text(&html);
            for at in 0..=html.len() {
                let (head, tail) = html.split_at(at);
                let mut out = String::new();
                let mut stripper = HtmlText::default();
                stripper.push(head, &mut out);
                stripper.push(tail, &mut out);
                stripper.finish(&mut out);
                prop_assert_eq!(&out, &whole);
            }
        }
    }
}
