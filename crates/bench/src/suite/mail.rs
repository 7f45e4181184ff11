//! Messages that every server keeps byte for byte, so that sizes can be compared with what was sent.

use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::mbox;

/// Header fields in which mbox files keep flags, UIDs and lengths (c-client's, Dovecot's and mutt's): a server with such a format takes
/// them out of what it is given and is right to.
const MBOX_FIELDS: [&str; 8] =
    ["Status:", "X-Status:", "X-Keywords:", "X-UID:", "X-IMAP:", "X-IMAPbase:", "Content-Length:", "X-UIDL:"];

/// So many messages of the corpus, from the beginning again where it has fewer. Without the fields that mbox formats use for
/// themselves, and only messages that IMAP can carry as a plain literal (RFC 9051 §4.3.1: no NUL) and whose lines all end with CRLF.
pub fn messages(corpus: &Corpus, count: usize) -> Result<Vec<Vec<u8>>> {
    let mut messages = Vec::with_capacity(count);
    mbox::each_message(&corpus.path, |message| {
        if portable(&message) {
            messages.push(without_mbox_fields(&message));
        }
        Ok(messages.len() < count)
    })?;
    let there = messages.len();
    if there == 0 {
        return Err(Error::new(format!("{}: no message that every server takes", corpus.path.display())));
    }
    for number in there..count {
        let again = messages.get(number - there).cloned().unwrap_or_default();
        messages.push(again);
    }
    Ok(messages)
}

/// A header of fields only, the empty line after it, a body, no NUL, no CR without LF; LF never comes alone out of [`mbox::each_message`]. A header
/// that does not end or has other lines is refused by some servers and mended by others.
fn portable(message: &[u8]) -> bool {
    let lone_cr = message.windows(2).any(|pair| matches!(pair, [b'\r', next] if *next != b'\n'));
    header_and_body(message) && !lone_cr && message.ends_with(b"\r\n") && !message.contains(&0)
}

fn header_and_body(message: &[u8]) -> bool {
    let mut fields = 0;
    let mut lines = message.split_inclusive(|byte| *byte == b'\n');
    while let Some(line) = lines.next() {
        if line == b"\r\n" {
            return fields > 0 && lines.any(|line| line != b"\r\n");
        }
        let continues = fields > 0 && matches!(line.first(), Some(b' ' | b'\t'));
        // RFC 5322 §2.2: printable characters but the colon.
        let name = line.iter().take_while(|byte| byte.is_ascii_graphic() && **byte != b':').count();
        if !continues && (name == 0 || line.get(name) != Some(&b':')) {
            return false;
        }
        fields += 1;
    }
    false
}

fn without_mbox_fields(message: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(message.len());
    let mut rest = message;
    let mut leaving_out = false;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let (line, after) = rest.split_at(end + 1);
        if line == b"\r\n" {
            break;
        }
        let continues = line.starts_with(b" ") || line.starts_with(b"\t");
        if !continues {
            leaving_out = MBOX_FIELDS
                .iter()
                .any(|field| line.get(..field.len()).is_some_and(|name| name.eq_ignore_ascii_case(field.as_bytes())));
        }
        if !leaving_out {
            kept.extend_from_slice(line);
        }
        rest = after;
    }
    kept.extend_from_slice(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::{messages, portable, without_mbox_fields};
    use crate::corpus::Corpus;

    #[test]
    fn fields_of_mbox_formats_go() {
        let message = b"A: 1\r\nstatus: RO\r\n more\r\nX-UID: 7\r\nB: 2\r\n c\r\n\r\nStatus: body\r\n";
        assert_eq!(without_mbox_fields(message), b"A: 1\r\nB: 2\r\n c\r\n\r\nStatus: body\r\n");
        assert_eq!(without_mbox_fields(b"\r\nbody\r\n"), b"\r\nbody\r\n");
        assert_eq!(without_mbox_fields(b"A: 1\r\n"), b"A: 1\r\n");
    }

    #[test]
    fn what_every_server_takes() {
        assert!(portable(b"A: 1\r\n\r\nb\r\n"));
        for bad in [
            &b"A: 1\r\n\r\nb\0\r\n"[..],
            b"A: 1\r\n\r\nb\rc\r\n",
            b"\r\nb\r\n",
            b"no field\r\n",
            b"A: 1\r\n\r\nb",
            b"",
            b"A: 1\r\n",
            b"A: 1\r\nno\r\n\r\nb\r\n",
            b" a: 1\r\n\r\n",
        ] {
            assert!(!portable(bad), "{bad:?}");
        }
    }

    #[test]
    fn as_many_as_wanted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("two.mbox");
        std::fs::write(&path, "From a\nA: 1\nStatus: O\n\none\n\nFrom b\nA: 2\n\ntwo\n\n").expect("written");
        let corpus = Corpus::open(&path).expect("an mbox");
        let found = messages(&corpus, 3).expect("messages");
        assert_eq!(found, [&b"A: 1\r\n\r\none\r\n"[..], b"A: 2\r\n\r\ntwo\r\n", b"A: 1\r\n\r\none\r\n"]);
    }
}
