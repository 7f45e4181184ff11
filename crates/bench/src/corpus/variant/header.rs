//! The header of a variant: who wrote when, under which identifiers, about what.

use super::Recipe;
use crate::corpus::calendar;
use crate::random::hash;
use std::io::Write;

/// Fields whose value is a list of addresses.
pub const ADDRESSES: [&str; 7] = ["from", "sender", "reply-to", "to", "cc", "return-path", "x-original-to"];
const IDENTIFIERS: [&str; 4] = ["message-id", "in-reply-to", "references", "resent-message-id"];
/// Fields in which an mbox reader keeps its own state, or counts bytes that change.
const DROPPED: [&str; 5] = ["content-length", "x-uid", "x-imap", "x-imapbase", "x-keywords"];

const VOWELS: &[u8] = b"aeiou";
const CONSONANTS: &[u8] = b"bcdfghjklmnprstvw";

/// A header field.
pub struct Field<'h> {
    name: &'h [u8],
    /// From behind the colon to the last line's end, LFs of continuation lines included.
    pub value: &'h [u8],
    whole: &'h [u8],
}

impl Field<'_> {
    /// Whether the field has one of these names (given in small letters).
    pub fn is_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.name.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// The fields of a header; a line without a colon is a field without a value.
pub fn fields(head: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = head;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = 0;
        loop {
            end += rest.get(end..).and_then(|after| memchr::memchr(b'\n', after)).map_or(rest.len() - end, |at| at + 1);
            if !matches!(rest.get(end), Some(b' ' | b'\t')) {
                break;
            }
        }
        let (whole, after) = rest.split_at(end);
        rest = after;
        let colon = memchr::memchr(b':', whole).unwrap_or(whole.len());
        let name = whole.get(..colon).unwrap_or_default();
        let value = whole.get(colon + 1..).unwrap_or_default();
        Some(Field { name, value, whole })
    })
}

/// What stands between `<` and `>`, if it looks like an identifier.
pub fn ids(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b'<').skip(1).filter_map(|piece| {
        let end = memchr::memchr(b'>', piece)?;
        piece.get(..end).filter(|id| id.contains(&b'@'))
    })
}

/// Every `local@domain` in a value, in small letters.
pub fn addresses(value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    value
        .split(|byte| !(byte.is_ascii_alphanumeric() || b"@._-+=".contains(byte)))
        .filter(|token| token.contains(&b'@'))
        .map(<[u8]>::to_ascii_lowercase)
}

impl Recipe<'_> {
    /// Appends the header; gives back the sender's address.
    pub fn write_head(&self, head: &[u8], out: &mut Vec<u8>) -> Vec<u8> {
        let mut sender = None;
        let mut has_id = false;
        for field in fields(head) {
            // Some messages carry a second mbox line in their header.
            if field.is_any(&DROPPED) || field.whole.starts_with(b"From ") {
                continue;
            }
            let start = out.len();
            if field.is_any(&["date"]) {
                out.extend_from_slice(format!("Date: {}\n", calendar::header_date(self.seconds)).as_bytes());
            } else if field.is_any(&IDENTIFIERS) {
                let own = field.is_any(&["message-id"]);
                if own && (has_id || ids(field.value).next().is_none()) {
                    continue;
                }
                has_id |= own;
                self.write_ids(&field, own, out);
            } else if field.is_any(&ADDRESSES) {
                out.extend_from_slice(field.whole);
                if !addresses(field.value).any(|address| self.variants.shared_addresses.contains(&address)) {
                    rename(out.get_mut(start + field.name.len()..).unwrap_or_default(), self.person_key());
                }
                if sender.is_none() && field.is_any(&["from", "sender", "return-path"]) {
                    sender = addresses(out.get(start..).unwrap_or_default()).next();
                }
            } else {
                out.extend_from_slice(field.whole);
                let value = out.get_mut(start + field.name.len()..).unwrap_or_default();
                if field.is_any(&["subject"]) {
                    self.variants.pool.replace_by_key(value, self.key());
                } else if field.is_any(&["received"]) {
                    self.change_trace(value);
                }
            }
        }
        if !has_id {
            let _ = writeln!(out, "Message-ID: <{:016x}.{}@mail.example.org>", self.own_id(b""), self.generation);
        }
        sender.unwrap_or_else(|| b"MAILER-DAEMON".to_vec())
    }

    fn write_ids(&self, field: &Field<'_>, own: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(field.name);
        out.push(b':');
        let mut rest = field.value;
        for id in ids(field.value) {
            let Some(at) = memchr::memmem::find(rest, id) else { break };
            out.extend_from_slice(rest.get(..at).unwrap_or_default());
            let domain = id.rsplit(|byte| *byte == b'@').next().unwrap_or_default();
            let number = if own { self.own_id(id) } else { hash(self.key(), id) };
            // Writing to a vector does not fail.
            let _ = write!(out, "{number:016x}.{}@", self.generation);
            out.extend_from_slice(domain);
            rest = rest.get(at + id.len()..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
    }

    /// The new name of this message: of its identifier where that is its own, so that replies find it; else of its number.
    fn own_id(&self, id: &[u8]) -> u64 {
        if self.variants.without_own_id.contains(&self.number) {
            return hash(self.key(), &[b"number".as_slice(), &self.number.to_le_bytes()].concat());
        }
        hash(self.key(), id)
    }

    /// `Received` lines: other queue names and times, same hosts.
    fn change_trace(&self, value: &mut [u8]) {
        let mut random = self.random();
        for token in value.split_mut(|byte| !byte.is_ascii_alphanumeric()) {
            let digits = token.iter().filter(|byte| byte.is_ascii_digit()).count();
            if token.len() >= 6 && digits >= 2 {
                for byte in token.iter_mut().filter(|byte| byte.is_ascii_digit()) {
                    *byte = b'0' + random.below(10) as u8;
                }
            }
        }
        for at in 0..value.len().saturating_sub(7) {
            // hh:mm:ss; minutes and seconds change.
            if let Some([_, _, b':', m1, m2, b':', s1, s2]) = value.get_mut(at..at + 8)
                && [&m1, &m2, &s1, &s2].iter().all(|byte| byte.is_ascii_digit())
            {
                for (tens, ones) in [(m1, m2), (s1, s2)] {
                    *tens = b'0' + random.below(6) as u8;
                    *ones = b'0' + random.below(10) as u8;
                }
            }
        }
    }
}

/// Gives the people of an address list other names: each word is spelled anew, vowels by vowels and consonants by consonants, the same word
/// always the same way under a key. Domains and encoded words stay.
fn rename(value: &mut [u8], key: u64) {
    let mut at = 0;
    let mut in_encoded_word = false;
    while at < value.len() {
        if value.get(at..at + 2) == Some(b"=?") {
            in_encoded_word = true;
        }
        if value.get(at..at + 2) == Some(b"?=") {
            in_encoded_word = false;
        }
        if value.get(at) == Some(&b'@') {
            at = skip(value, at + 1, |byte| byte.is_ascii_alphanumeric() || *byte == b'.' || *byte == b'-');
            continue;
        }
        let end = skip(value, at, u8::is_ascii_alphabetic);
        if end == at {
            at += 1;
            continue;
        }
        if !in_encoded_word && let Some(word) = value.get_mut(at..end) {
            spell(word, key);
        }
        at = end;
    }
}

fn skip(value: &[u8], from: usize, take: impl Fn(&u8) -> bool) -> usize {
    value.get(from..).map_or(from, |rest| from + rest.iter().take_while(|byte| take(byte)).count())
}

fn spell(word: &mut [u8], key: u64) {
    let mut bits = hash(key, &word.to_ascii_lowercase());
    for letter in word {
        let row = if VOWELS.contains(&letter.to_ascii_lowercase()) { VOWELS } else { CONSONANTS };
        let new = row.get((bits % row.len() as u64) as usize).copied().unwrap_or(b'x');
        bits = bits.rotate_left(11).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *letter = if letter.is_ascii_uppercase() { new.to_ascii_uppercase() } else { new };
    }
}

#[cfg(test)]
mod tests {
    use super::{addresses, fields, ids, rename};

    #[test]
    fn takes_headers_apart() {
        let all: Vec<_> = fields(b"A: 1\n 2\nnonsense\nB:\n").collect();
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].value, b" 1\n 2\n");
        assert!(all[0].is_any(&["a"]) && all[2].is_any(&["b"]));
        assert_eq!(ids(b" <a@b> <c> <d@e>").collect::<Vec<_>>(), [b"a@b", b"d@e"]);
        assert_eq!(addresses(b"X <Y.z@W.org>, q@r").collect::<Vec<_>>(), [b"y.z@w.org".to_vec(), b"q@r".to_vec()]);
    }

    #[test]
    fn people_change_and_hosts_stay() {
        let mut one = b" Jane Doe <jane.doe@example.org>, =?utf-8?q?J=C3=BCrg?= <j@x.de>".to_vec();
        rename(&mut one, 5);
        let text = String::from_utf8(one).expect("ASCII");
        assert!(text.contains("@example.org>") && text.contains("=?utf-8?q?J=C3=BCrg?=") && text.contains("@x.de"));
        assert!(!text.contains("Jane") && !text.contains("doe"));
        let name = text.split_whitespace().next().expect("a name").to_lowercase();
        assert!(text.contains(&format!("<{name}.")), "the same word is spelled the same: {text}");
    }
}
