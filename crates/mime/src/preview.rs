//! RFC 8970 PREVIEW: the first words of a message.
//!
//! The text is that of the first text part that is shown (of alternatives the plain one; attachments and
//! messages inside only come last), without quoted lines, the line that introduces them and the signature, unless
//! nothing else is there. White space collapses, characters without width vanish.

use crate::text::{Collect, TextExtractor, octets};
use crate::{Content, Part, Structure};
use std::ops::ControlFlow;
use unicode_normalization::char::is_combining_mark;

/// Characters of a preview: RFC 8970 §3.1 "SHOULD NOT" be more than 200 ("MUST NOT" 256).
pub const PREVIEW_CHARS_MAX: usize = 200;

/// Decoded text that is looked at. Mail for advertising has kilobytes of nothing before its words.
const PREVIEW_TEXT_BYTES_MAX: usize = 16 * 1024;

/// Parts that are tried until one has text.
const PREVIEW_PARTS_MAX: usize = 8;

/// The parts that a preview can be made from, the best first, at most a few. The preview is that of the first
/// whose [`PreviewBuilder`] gives any text, else empty.
pub fn preview_parts(structure: &Structure) -> Vec<&Part> {
    let mut shown = Vec::new();
    let mut aside = Vec::new();
    collect(&structure.message.root, false, &mut shown, &mut aside);
    shown.append(&mut aside);
    shown.truncate(PREVIEW_PARTS_MAX);
    shown
}

/// The first of [`preview_parts`].
pub fn preview_part(structure: &Structure) -> Option<&Part> {
    preview_parts(structure).into_iter().next()
}

/// Text parts in the order in which they are wanted. The depth is that of the structure, which is bounded.
fn collect<'s>(part: &'s Part, is_aside: bool, shown: &mut Vec<&'s Part>, aside: &mut Vec<&'s Part>) {
    let is_attachment = part.disposition.as_ref().is_some_and(|disposition| disposition.kind == b"ATTACHMENT");
    let is_aside = is_aside || is_attachment;
    match &part.content {
        Content::Leaf if part.is_text() && part.body_size() > 0 => {
            if is_aside {
                aside.push(part)
            } else {
                shown.push(part)
            }
        }
        Content::Leaf => {}
        Content::Multipart(children) => {
            let mut children: Vec<&Part> = children.iter().collect();
            if part.media_subtype == b"ALTERNATIVE" {
                children.sort_by_key(|child| !(child.is_text() && child.media_subtype == b"PLAIN"));
            }
            children.into_iter().for_each(|child| collect(child, is_aside, shown, aside));
        }
        Content::Message(message) => collect(&message.root, true, shown, aside),
    }
}

/// The preview of a message: at most [`PREVIEW_CHARS_MAX`] characters, white space collapsed, empty if there is
/// no text. `message` is the whole message that `structure` was made from.
pub fn preview(message: &[u8], structure: &Structure) -> String {
    let previews = preview_parts(structure).into_iter().map(|part| {
        let mut builder = PreviewBuilder::new(part);
        builder.push(octets(message, &part.body));
        builder.finish()
    });
    previews.into_iter().find(|preview| !preview.is_empty()).unwrap_or_default()
}

/// Makes a preview from the raw octets of a part's body.
#[derive(Debug)]
pub struct PreviewBuilder {
    extractor: TextExtractor,
    collected: Collect,
    is_full: bool,
}

impl PreviewBuilder {
    /// A builder for the text of `part`.
    pub fn new(part: &Part) -> Self {
        let collected = Collect { text: String::new(), bytes_max: PREVIEW_TEXT_BYTES_MAX };
        PreviewBuilder { extractor: TextExtractor::new(part), collected, is_full: false }
    }

    /// Takes the next raw octets; true when no more are needed.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        if !self.is_full {
            self.is_full = self.extractor.push(bytes, &mut self.collected) == ControlFlow::Break(());
        }
        self.is_full
    }

    /// The preview.
    pub fn finish(mut self) -> String {
        if !self.is_full {
            let _ = self.extractor.finish(&mut self.collected);
        }
        let text = self.collected.text;
        let own = shorten(own_lines(&text));
        if own.is_empty() { shorten(text.lines()) } else { own }
    }
}

/// The lines that the author wrote.
fn own_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            let words = line.trim();
            // RFC 3676 §4.3 signature separator; the line before a whole message quoted below the answer.
            if line.trim_end_matches('\r') == "-- " || words == "--" || words.starts_with("-----Original Message") {
                return None;
            }
            let next_is_quoted = lines.peek().is_some_and(|next| is_quoted(next));
            let introduces = words.ends_with(':') && (next_is_quoted || words.ends_with("wrote:"));
            if !is_quoted(words) && !introduces {
                return Some(line);
            }
        }
    })
}

fn is_quoted(line: &str) -> bool {
    line.trim_start().starts_with('>')
}

/// Words with one space between, up to the limit, never a character without its combining marks.
fn shorten<'t>(lines: impl Iterator<Item = &'t str>) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in lines.flat_map(str::split_whitespace) {
        let mut gap = !out.is_empty();
        for character in word.chars().filter(|character| !is_invisible(*character)) {
            if count + usize::from(gap) >= PREVIEW_CHARS_MAX {
                if !gap && is_combining_mark(character) {
                    let base = out.rfind(|character| !is_combining_mark(character));
                    out.truncate(base.unwrap_or(0));
                }
                return out.trim_end().to_string();
            }
            if std::mem::take(&mut gap) {
                out.push(' ');
                count += 1;
            }
            out.push(character);
            count += 1;
        }
    }
    out
}

/// Characters that show nothing: controls, and what fills the hidden first line of mail for advertising.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::scan;

    fn of(message: &str) -> String {
        preview(message.as_bytes(), &scan(message.as_bytes()).0)
    }

    #[test]
    fn words_of_a_plain_message() {
        assert_eq!(of("A: 1\r\n\r\n Hello,\r\n\r\n  world\t!\r\n"), "Hello, world !");
        assert_eq!(of("A: 1\n\nMy answer.\n-- \nMe\n"), "My answer.");
        assert_eq!(of("A: 1\n\nOn Monday X wrote:\n> old\n> older\nNew.\n"), "New.");
        assert_eq!(of("A: 1\n\nHi:\ntext\n"), "Hi: text");
        assert_eq!(of("A: 1\n\n> only quoted\n"), "> only quoted");
        assert_eq!(of(""), "");
        assert_eq!(of("A: 1\n\nyes\n-----Original Message-----\nold"), "yes");
    }

    #[test]
    fn the_part_that_is_shown() {
        let parts = |parts: &[&str]| {
            let body: String = parts.iter().map(|part| format!("--b\nContent-Type: {part}\n")).collect();
            of(&format!("Content-Type: multipart/alternative; boundary=b\n\n{body}--b--\n"))
        };
        assert_eq!(parts(&["text/html\n\n<p>html</p>", "text/plain\n\nplain"]), "plain");
        assert_eq!(parts(&["text/plain\n\n \n", "text/html\n\n<p>&lt;html</p>"]), "<html");
        assert_eq!(parts(&["text/plain\nContent-Disposition: attachment\n\nfile", "text/html\n\nhtml"]), "html");
        assert_eq!(parts(&["image/png\n\nxx"]), "");
        assert_eq!(parts(&["message/rfc822\n\nA: 1\n\ninner"]), "inner");
    }

    #[test]
    fn never_more_than_the_limit() {
        assert_eq!(of(&format!("A: 1\n\n{}", "a".repeat(300))), "a".repeat(200));
        assert_eq!(of(&format!("A: 1\n\n{} b", "a".repeat(199))), "a".repeat(199));
        assert_eq!(of(&format!("A: 1\n\n{} b", "a".repeat(198))), format!("{} b", "a".repeat(198)));
        let accented = format!("A: 1\nContent-Type: text/plain; charset=utf-8\n\n{}e\u{301}\u{302}", "a".repeat(198));
        assert_eq!(of(&accented), "a".repeat(198));
        assert_eq!(of("A: 1\n\n\u{200b}\u{feff} x\u{ad}y"), "xy");
    }
}
