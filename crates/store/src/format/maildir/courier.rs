//! What Courier-IMAP keeps beside the messages of a Maildir, except for its list of UIDs ([`super::uidlist`], version 1).
//!
//! - `courierimapkeywords/:list`: the keywords of all messages when the file was last written. A keyword a line, an empty line, then
//!   `BASE:NUMBER NUMBER ...`, where the numbers say lines from 0.
//! - `courierimapkeywords/BASE` and `courierimapkeywords/.TIME.BASE`: the keywords of one message, one a line; they count instead of what the list says, the
//!   first kind before the second, a higher time before a lower. A file without a line says that the message has none.
//! - `courierimapsubscribed`: the subscribed mailboxes, one a line, `INBOX.a.b` in modified UTF-7 or, of newer servers, in UTF-8; as in the names of
//!   the directories.
//!
//! Nothing of this is written here: an account that is served here keeps keywords in the log and in `dovecot-keywords`.

use std::collections::HashMap;

use model::{Keyword, decode_mailbox_utf7};

use super::name::number;

/// The name of the file of all keywords in the directory of them.
pub(crate) const LIST: &str = ":list";

/// The keywords of the messages of one mailbox, by base name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keywords {
    messages: HashMap<Vec<u8>, Vec<Keyword>>,
    /// Which file said so, of those that are not the list.
    sources: HashMap<Vec<u8>, Source>,
    /// Lines that say nothing, and names that IMAP cannot have.
    pub(crate) broken_lines: usize,
}

/// Which file of one message counts: the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// `.TIME.BASE`
    Timed(u64),
    /// `BASE`
    Plain,
}

impl Keywords {
    /// Takes in the list; before the files of single messages, or after them.
    pub(crate) fn read_list(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let mut names = Vec::new();
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            let name = keyword(line);
            self.broken_lines += usize::from(name.is_none());
            names.push(name);
        }
        for line in lines.filter(|line| !line.is_empty()) {
            // A base has no colon.
            let Some((base, numbers)) = memchr::memchr(b':', line).and_then(|at| line.split_at_checked(at)) else {
                self.broken_lines += 1;
                continue;
            };
            let words =
                numbers.get(1..).unwrap_or_default().split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            let mut found = Vec::new();
            for word in words {
                match number::<usize>(word).and_then(|at| names.get(at)) {
                    Some(Some(keyword)) => add(&mut found, keyword.clone()),
                    Some(None) => {}
                    None => self.broken_lines += 1,
                }
            }
            if !self.sources.contains_key(base) {
                self.messages.insert(base.to_vec(), found);
            }
        }
    }

    /// Takes in the file of one message; whether `name` is that of one.
    pub(crate) fn read_message(&mut self, name: &[u8], bytes: &[u8]) -> bool {
        let Some((source, base)) = message_of(name) else { return false };
        if self.sources.get(base).is_some_and(|known| *known > source) {
            return true;
        }
        let mut found = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty()) {
            match keyword(line) {
                Some(keyword) => add(&mut found, keyword),
                None => self.broken_lines += 1,
            }
        }
        self.sources.insert(base.to_vec(), source);
        self.messages.insert(base.to_vec(), found);
        true
    }

    /// The keywords of a message.
    pub(crate) fn of(&self, base: &[u8]) -> &[Keyword] {
        self.messages.get(base).map_or(&[], Vec::as_slice)
    }
}

/// Of which message a file in the directory of the keywords is; `None`: of none.
fn message_of(name: &[u8]) -> Option<(Source, &[u8])> {
    match name.split_first()? {
        (b':', _) => None,
        (b'.', rest) => {
            let (time, base) = rest.split_at_checked(memchr::memchr(b'.', rest)?)?;
            let time = number(time).filter(|time| *time > 0)?;
            Some((Source::Timed(time), base.get(1..).filter(|base| !base.is_empty())?))
        }
        _ => Some((Source::Plain, name)),
    }
}

fn keyword(line: &[u8]) -> Option<Keyword> {
    Keyword::new(std::str::from_utf8(line).ok()?).ok()
}

fn add(found: &mut Vec<Keyword>, keyword: Keyword) {
    if !found.contains(&keyword) {
        found.push(keyword);
    }
}

/// The mailboxes that `courierimapsubscribed` names, as levels below INBOX: no level is INBOX itself. What lies outside of INBOX (shared mailboxes) is not
/// among them; how many lines that were comes second.
pub(crate) fn subscribed(bytes: &[u8]) -> (Vec<Vec<String>>, usize) {
    let (mut found, mut others) = (Vec::new(), 0);
    for line in bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(line);
        let mut levels = line.split('.');
        match levels.next() {
            Some(first) if first.eq_ignore_ascii_case("INBOX") => found.push(levels.map(level).collect()),
            _ => others += 1,
        }
    }
    (found, others)
}

/// A level of a name as directories and lists have it: modified UTF-7 (RFC 3501 §5.1.3), or UTF-8 when it is not that.
pub(crate) fn level(text: &str) -> String {
    decode_mailbox_utf7(text).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(keywords: &Keywords, base: &str) -> String {
        keywords.of(base.as_bytes()).iter().map(Keyword::as_str).collect::<Vec<_>>().join(" ")
    }

    /// What Courier-IMAP 5.0.13 wrote.
    const TEXT: &[u8] =
        b"$Forwarded\n$Label1\nfoo\n\n1795331506.M6_0.vm,S=16:1 2\n1795331509.M4_2.vm,S=16:0\n1795331510.M5_3.vm,S=16:2\n";

    #[test]
    fn the_list_and_the_files_that_are_newer() {
        let mut keywords = Keywords::default();
        assert!(keywords.read_message(b".5984439.1795331509.M4_2.vm,S=16", b"bar\n"));
        keywords.read_list(TEXT);
        assert!(keywords.read_message(b"1795331507.M8_1.vm,S=16", b"bar\nfoo\nBAR\n"));
        assert!(keywords.read_message(b".5984438.1795331509.M4_2.vm,S=16", b"older\n"));
        assert!(keywords.read_message(b".5984440.1795331507.M8_1.vm,S=16", b"timed\n"));
        assert!(keywords.read_message(b"1795331510.M5_3.vm,S=16", b""));
        assert!(!keywords.read_message(b":list", b"") && !keywords.read_message(b".tmp.12.x", b"no\n"));
        assert_eq!(names(&keywords, "1795331506.M6_0.vm,S=16"), "$Label1 foo");
        assert_eq!(names(&keywords, "1795331507.M8_1.vm,S=16"), "bar foo");
        assert_eq!(names(&keywords, "1795331509.M4_2.vm,S=16"), "bar");
        assert_eq!(
            (names(&keywords, "1795331510.M5_3.vm,S=16"), names(&keywords, "x")),
            (String::new(), String::new())
        );
        assert_eq!(keywords.broken_lines, 0);
    }

    #[test]
    fn broken_lists() {
        let mut keywords = Keywords::default();
        keywords.read_list(b"a\n(b\nc\n\n1.h:0 1 2 3 x\nno colon\n2.h:\n3.h:2");
        assert_eq!((names(&keywords, "1.h"), names(&keywords, "3.h")), ("a c".to_owned(), "c".to_owned()));
        assert_eq!(keywords.broken_lines, 4);
        keywords.read_list(b"");
        assert_eq!(keywords.messages.len(), 3);
    }

    #[test]
    fn subscribed_mailboxes() {
        let (found, others) =
            subscribed("INBOX\nINBOX.a\nINBOX.Entwürfe.x\nINBOX.Entw&APw-rfe\n#shared.y\n".as_bytes());
        assert_eq!(found, [vec![], vec!["a"], vec!["Entwürfe", "x"], vec!["Entwürfe"]]);
        assert_eq!(others, 1);
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80), text in "([a-c0-2]{0,2}[:. \n]){0,20}") {
            for bytes in [&bytes, text.as_bytes()] {
                let mut keywords = Keywords::default();
                keywords.read_list(bytes);
                keywords.read_message(bytes, bytes);
                subscribed(bytes);
            }
        }
    }
}
