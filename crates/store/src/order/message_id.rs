//! Message ids in Message-ID, References and In-Reply-To (RFC 5256 §3 THREAD, RFC 5322 §3.6.4 and §4.5.4).
//!
//! An id is compared in a normalized form, without its angle brackets, quoting, white space and comments, so that
//! `<"a"@b>` and `<a@b>` are one id. What is kept of it is a [`Key`]: half of its SHA-256, which is exact unless somebody finds a
//! collision, and costs the same memory however long the id is.
//!
//! Decision: a local part or a domain may hold any character but spaces, controls and `<>@()[]"\`, where the grammar has less. Ids of
//! that kind are in real mail, and can be taken for nothing else.

use model::EmailId;
use sha2::{Digest, Sha256};

/// What stands for a message id.
pub(super) type Key = u128;

/// References of a message that are looked at; of more, the last ones count.
pub(super) const REFERENCES_MAX: usize = 10_000;

/// The first valid message id of a raw field value.
pub(super) fn first_id(value: &[u8]) -> Option<Key> {
    Ids { value, at: 0, open: Unclosed::default() }.next()
}

/// All valid message ids of a raw field value, in order; at most the last [`REFERENCES_MAX`].
pub(super) fn all_ids(value: &[u8]) -> Vec<Key> {
    let mut ids: Vec<Key> = Ids { value, at: 0, open: Unclosed::default() }.collect();
    ids.drain(..ids.len().saturating_sub(REFERENCES_MAX));
    ids
}

/// The key of a message that has no valid id: nobody can refer to it, since a space and nothing else comes before its number.
pub(super) fn unique(id: EmailId) -> Key {
    half(Sha256::new_with_prefix(format!(" {id}")))
}

/// The first half of a digest.
fn half(hash: Sha256) -> Key {
    let digest = hash.finalize();
    digest.iter().take(16).rev().fold(0, |key, octet| key << 8 | Key::from(*octet))
}

/// Openers that no closer follows: they are looked for once, so that the time is linear.
#[derive(Default)]
struct Unclosed {
    comment: bool,
    quote: bool,
}

/// Finds message ids, and passes over comments and quoted strings.
struct Ids<'a> {
    value: &'a [u8],
    at: usize,
    open: Unclosed,
}

impl Iterator for Ids<'_> {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        while let Some(&byte) = self.value.get(self.at) {
            match byte {
                b'<' => {
                    if let Some((key, after)) = msg_id(self.value, self.at) {
                        self.at = after;
                        return Some(key);
                    }
                }
                b'(' if !self.open.comment => match comment_end(self.value, self.at) {
                    Some(after) => {
                        self.at = after;
                        continue;
                    }
                    None => self.open.comment = true,
                },
                b'"' if !self.open.quote => match quoted_end(self.value, self.at) {
                    Some(after) => {
                        self.at = after;
                        continue;
                    }
                    None => self.open.quote = true,
                },
                _ => {}
            }
            self.at += 1;
        }
        None
    }
}

/// The position after a comment (RFC 5322 §3.2.2) that begins at `start`.
fn comment_end(value: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = start;
    loop {
        match value.get(at)? {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'\\' => at += 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The position after a quoted string that begins at `start`.
fn quoted_end(value: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match value.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// RFC 5322 §3.6.4 msg-id = "<" id-left "@" id-right ">", with the obsolete forms, from the `<` at `start`: its key and the
/// position behind it.
///
/// It never reads past another `<`, so that failing at each of many costs no more than reading once.
fn msg_id(value: &[u8], start: usize) -> Option<(Key, usize)> {
    let mut scan = IdScan { value, at: start + 1, hash: Sha256::new(), taken: 0 };
    scan.words()?;
    if scan.taken == 0 {
        return None;
    }
    scan.literally(b'@')?;
    let left = scan.taken;
    if scan.skip_space() == Some(b'[') {
        scan.domain_literal()?;
    } else {
        scan.words()?;
    }
    if scan.taken == left || scan.skip_space()? != b'>' {
        return None;
    }
    Some((half(scan.hash), scan.at + 1))
}

struct IdScan<'a> {
    value: &'a [u8],
    at: usize,
    /// Of the normalized id.
    hash: Sha256,
    /// Octets of the normalized id.
    taken: usize,
}

impl IdScan<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.taken += bytes.len();
    }

    /// Skips white space and comments; the octet that follows.
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            match *self.value.get(self.at)? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'(' => {
                    // A flat comment: that there may be one at all is obsolete.
                    let inside = self.value.get(self.at + 1..)?;
                    let end = inside.iter().position(|byte| matches!(byte, b'(' | b')' | b'<'))?;
                    if inside.get(end) != Some(&b')') {
                        return None;
                    }
                    self.at += end + 2;
                }
                byte => return Some(byte),
            }
        }
    }

    fn literally(&mut self, byte: u8) -> Option<()> {
        (self.skip_space()? == byte).then(|| {
            self.take(&[byte]);
            self.at += 1;
        })
    }

    /// obs-local-part, obs-domain: words (atoms with their dots, quoted strings), with or without white space between.
    fn words(&mut self) -> Option<()> {
        loop {
            match self.skip_space()? {
                b'"' => self.quoted()?,
                byte if is_id_char(byte) => {
                    let rest = self.value.get(self.at..)?;
                    let length = rest.iter().position(|byte| !is_id_char(*byte)).unwrap_or(rest.len());
                    self.take(rest.get(..length)?);
                    self.at += length;
                }
                _ => return Some(()),
            }
        }
    }

    /// A quoted string; what it stands for is taken.
    fn quoted(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            let mut byte = *self.value.get(self.at)?;
            match byte {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'<' => return None,
                b'\\' => {
                    self.at += 1;
                    byte = *self.value.get(self.at)?;
                }
                _ => {}
            }
            self.take(&[byte]);
            self.at += 1;
        }
    }

    /// no-fold-literal = "[" *dtext "]"
    fn domain_literal(&mut self) -> Option<()> {
        let rest = self.value.get(self.at..)?;
        let end = rest.iter().position(|byte| matches!(byte, b']' | b'<' | b'>'))?;
        if rest.get(end) != Some(&b']') {
            return None;
        }
        let literal: Vec<u8> = rest.get(..=end)?.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        self.take(&literal);
        self.at += end + 1;
        Some(())
    }
}

fn is_id_char(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && !b"<>@()[]\"\\".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ids of `value`, numbered by those of `known`.
    fn ids(value: &str, known: &[&str]) -> Vec<Option<usize>> {
        let known: Vec<Key> =
            known.iter().map(|id| first_id(format!("<{id}>").as_bytes()).expect("a valid id")).collect();
        all_ids(value.as_bytes()).iter().map(|key| known.iter().position(|one| one == key)).collect()
    }

    #[test]
    fn ids_are_found_and_normalized() {
        let known = ["a@b", "c@d", "01KF8JCEOCBS0045PS@xxx.yyy.com", "\"x y\"@b", "a@[1.2.3.4]"];
        for (value, found) in [
            ("<a@b>", vec![Some(0)]),
            (" <a@b> \r\n\t<c@d><a@b>", vec![Some(0), Some(1), Some(0)]),
            // The example of RFC 5256 §3.
            ("<\"01KF8JCEOCBS0045PS\"@xxx.yyy.com>", vec![Some(2)]),
            ("<\"\\a\"@b>", vec![Some(0)]),
            ("< a @ b >", vec![Some(0)]),
            ("<a(c)@b>", vec![Some(0)]),
            ("<\"x y\"@b>", vec![Some(3)]),
            ("<a@[1.2.3.4]>", vec![Some(4)]),
            ("<a@[1.2. 3.4]>", vec![Some(4)]),
            ("<A@b>", vec![None]),
            ("Your message of \"Mon <c@d>\" <a@b> (<c@d>)", vec![Some(0)]),
            ("(it's \"quoted) <a@b>", vec![Some(0)]),
            ("it is \" and ( <a@b>", vec![Some(0)]),
            ("<a@b", vec![]),
            ("<ab>", vec![]),
            ("<@b>", vec![]),
            ("<a@>", vec![]),
            ("<a@b@c>", vec![]),
            ("<<a@b>>", vec![Some(0)]),
            ("<bad <a@b>", vec![Some(0)]),
            ("a@b", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(ids(value, &known), found, "{value:?}");
        }
        assert_ne!(first_id(b"<a@b>"), first_id(b"<a@B>"), "comparisons are case-sensitive");
    }

    #[test]
    fn the_last_references_count() {
        let value: String = (0..REFERENCES_MAX + 3).map(|n| format!("<{n}@x> ")).collect();
        let ids = all_ids(value.as_bytes());
        assert_eq!(ids.len(), REFERENCES_MAX);
        assert_eq!(ids.first().copied(), first_id(b"<3@x>"));
    }

    #[test]
    fn unclosed_things_take_linear_time() {
        for piece in ["<", "(", "\"", "<(", "<\"", "<a(", "<a@[", "<a\\", "\\(", "<a@b", "(<\"", "<a \"b"] {
            all_ids(piece.repeat(200_000).as_bytes());
        }
    }
}
