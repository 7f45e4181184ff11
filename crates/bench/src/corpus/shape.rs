//! What a mailbox looks like, in numbers: so that anyone can see how near made mail comes to the real mail it was made from.

use super::Source;
use crate::error::Result;
use crate::mbox;
use crate::random::hash;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;

/// Sizes, structure and charsets of messages, and whether two are the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Messages looked at.
    pub messages: u64,
    /// Their bytes, each line end counted as one.
    pub bytes: u64,
    /// The sizes that 10, 20, ... 90 % of the messages do not exceed.
    pub deciles: [u64; 9],
    /// Messages whose Content-Type is multipart (RFC 2046 §5.1).
    pub multipart: u64,
    /// Messages by the first charset that they name (RFC 2046 §4.1.2), in small letters; `none` for those that name none.
    pub charsets: BTreeMap<String, u64>,
    /// Messages that are byte for byte the same as an earlier one.
    pub repeated: u64,
    /// Messages that differ from an earlier one in Message-ID and Date alone.
    pub repeated_content: u64,
}

/// Collects a [`Shape`].
#[derive(Default)]
struct Look {
    shape: Shape,
    sizes: Vec<u64>,
    whole: HashSet<u64>,
    content: HashSet<u64>,
}

/// A charset's share is shown from here on.
const SHOWN_SHARE: f64 = 0.005;

impl Shape {
    /// Of the messages of a source.
    pub fn of_source(source: &Source) -> Shape {
        let mut look = Look::default();
        for message in &source.messages {
            look.take(&[message.head.as_slice(), b"\n", &message.body].concat());
        }
        look.done()
    }

    /// Of an mbox file of our own making.
    pub fn of_mbox(path: &Path) -> Result<Shape> {
        let mut look = Look::default();
        mbox::each_message(path, |mut message| {
            message.retain(|byte| *byte != b'\r');
            look.take(&message);
            Ok(true)
        })?;
        Ok(look.done())
    }

    /// The part of the messages that is multipart, from 0 to 1.
    pub fn multipart_share(&self) -> f64 {
        self.multipart as f64 / self.messages.max(1) as f64
    }

    /// The part of the messages that names this charset first, from 0 to 1.
    pub fn charset_share(&self, charset: &str) -> f64 {
        self.charsets.get(charset).copied().unwrap_or_default() as f64 / self.messages.max(1) as f64
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = self.bytes / self.messages.max(1);
        writeln!(f, "  messages   {} of {mean} bytes on average", self.messages)?;
        let deciles: Vec<String> = self.deciles.iter().map(u64::to_string).collect();
        writeln!(f, "  deciles    {}", deciles.join(" "))?;
        writeln!(f, "  multipart  {:.1} %", self.multipart_share() * 100.0)?;
        let mut charsets: Vec<(&String, f64)> =
            self.charsets.keys().map(|name| (name, self.charset_share(name))).collect();
        charsets.retain(|(_, share)| *share >= SHOWN_SHARE);
        charsets.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let charsets: Vec<String> =
            charsets.iter().map(|(name, share)| format!("{name} {:.1} %", share * 100.0)).collect();
        writeln!(f, "  charsets   {}", charsets.join(", "))?;
        write!(f, "  repeated   {}, but for Message-ID and Date {}", self.repeated, self.repeated_content)
    }
}

impl Look {
    /// Takes a message with LF line ends into account.
    fn take(&mut self, message: &[u8]) {
        let head_end = memchr::memmem::find(message, b"\n\n").map_or(message.len(), |at| at + 1);
        let (head, body) = message.split_at(head_end);
        let shape = &mut self.shape;
        shape.messages += 1;
        shape.bytes += message.len() as u64;
        self.sizes.push(message.len() as u64);
        shape.multipart += u64::from(is_multipart(head));
        let charset = charset(head).or_else(|| charset(body)).unwrap_or_else(|| "none".into());
        *shape.charsets.entry(charset).or_default() += 1;
        shape.repeated += u64::from(!self.whole.insert(hash(0, message)));
        let mut content = hash(1, body);
        for line in lines(head).filter(|line| !begins(line, b"message-id:") && !begins(line, b"date:")) {
            content = hash(content, line);
        }
        shape.repeated_content += u64::from(!self.content.insert(content));
    }

    fn done(mut self) -> Shape {
        self.sizes.sort_unstable();
        for (number, decile) in self.shape.deciles.iter_mut().enumerate() {
            let at = self.sizes.len() * (number + 1) / 10;
            *decile = self.sizes.get(at.saturating_sub(1)).copied().unwrap_or_default();
        }
        self.shape
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// `prefix` is in small letters.
fn begins(line: &[u8], prefix: &[u8]) -> bool {
    line.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn is_multipart(head: &[u8]) -> bool {
    let value = lines(head).find(|line| begins(line, b"content-type:")).and_then(|line| line.get(13..));
    value.is_some_and(|value| begins(value.trim_ascii_start(), b"multipart/"))
}

/// The first `charset=` of a text.
fn charset(text: &[u8]) -> Option<String> {
    let value = memchr::memchr_iter(b'=', text).find_map(|at| {
        let name = text.get(at.checked_sub(7)?..at)?;
        name.eq_ignore_ascii_case(b"charset").then(|| text.get(at + 1..)).flatten()
    })?;
    let value = value.strip_prefix(b"\"").unwrap_or(value);
    let end = value.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte)).count();
    let value = value.get(..end).filter(|value| !value.is_empty())?;
    Some(String::from_utf8_lossy(value).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{Shape, charset};
    use crate::corpus::Source;

    #[test]
    fn charsets() {
        assert_eq!(charset(b"a=b; Charset=\"UTF-8\"; x").as_deref(), Some("utf-8"));
        assert_eq!(charset(b"=charset=us-ascii\n").as_deref(), Some("us-ascii"));
        assert_eq!(charset(b"charset=\"\""), None);
    }

    #[test]
    fn of_a_few() {
        let plain =
            |number: u32| format!("Message-ID: <{number}@x>\nDate: {number}\nSubject: s\n\nbody\n").into_bytes();
        let mixed =
            b"Content-Type: Multipart/Mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=KOI8-R\n".to_vec();
        let source = Source::from_messages(vec![plain(1), plain(2), plain(2), mixed]).expect("messages");
        let shape = Shape::of_source(&source);
        assert_eq!((shape.messages, shape.repeated, shape.repeated_content), (4, 1, 2));
        assert_eq!(
            (shape.multipart_share(), shape.charset_share("koi8-r"), shape.charset_share("none")),
            (0.25, 0.25, 0.75)
        );
        assert!(shape.deciles.is_sorted() && shape.deciles.iter().all(|size| *size > 0));
        assert_eq!(Shape::default().multipart_share(), 0.0);
    }
}
