//! Which mailboxes another server's user had subscribed, from the files in which Dovecot, Courier and Cyrus keep them.
//!
//! - Dovecot: `subscriptions` in a Maildir, `.subscriptions` in a directory of mbox files. Version 2 begins with `V<TAB>2` and an empty line; levels are
//!   separated by tabs, and `\x01t` and the like stand for octets that a line cannot have. Version 1 has names with the layout's separator.
//! - UW-IMAP and other programs of c-client: `.mailboxlist` in the home directory, see [`uw`].
//! - Courier: see [`courier::subscribed`].
//! - Cyrus: `ann.sub` or `sub.db`, a line for each mailbox, up to a tab: `user.ann.Sub`, or since 3.6 `NINBOX`, the levels separated by 0x1F.
//!
//! A name is given as its levels; INBOX is the level `INBOX`.

use crate::format::maildir::courier;

/// Reads Dovecot's file; `separator` is that of names in version 1.
pub(crate) fn dovecot(bytes: &[u8], separator: char) -> Vec<Vec<String>> {
    let (rest, is_second) = match bytes.strip_prefix(b"V\t2\n") {
        Some(rest) => (rest, true),
        None => (bytes, false),
    };
    let text = String::from_utf8_lossy(rest);
    let lines = text.lines().filter(|line| !line.is_empty());
    if is_second {
        return lines
            .map(|line| line.split('\t').map(|level| courier::level(&unescape_tabs(level))).collect())
            .collect();
    }
    lines.map(|line| line.split(separator).map(courier::level).collect()).collect()
}

/// Dovecot's way to write octets that separate: 0x01 and a letter.
fn unescape_tabs(text: &str) -> String {
    let mut pieces = text.split('\x01');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let mut letters = piece.chars();
        out.push(match letters.next() {
            Some('1') => '\x01',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('n') => '\n',
            Some(other) => other,
            None => break,
        });
        out.push_str(letters.as_str());
    }
    out
}

/// Reads the file of UW-IMAP, `.mailboxlist` in the home directory: one mailbox a line, as a file name from there; `dir`: the directory of the mailboxes, which
/// is not part of their names. What lies elsewhere, and mailboxes of other hosts, are not among them.
pub(crate) fn uw(bytes: &[u8], dir: &str) -> Vec<Vec<String>> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with(['/', '{', '#']));
    let names = lines.map(|line| {
        let line = line.strip_prefix("~/").unwrap_or(line);
        line.strip_prefix(dir).and_then(|rest| rest.strip_prefix('/')).unwrap_or(line)
    });
    names.filter(|name| !name.is_empty()).map(|name| name.split('/').map(courier::level).collect()).collect()
}

/// Reads Courier's file; how many lines name nothing of the account comes second.
pub(crate) fn courier(bytes: &[u8]) -> (Vec<Vec<String>>, usize) {
    let (names, others) = courier::subscribed(bytes);
    let inbox = |levels: Vec<String>| if levels.is_empty() { vec!["INBOX".to_owned()] } else { levels };
    (names.into_iter().map(inbox).collect(), others)
}

/// Reads Cyrus' file. `None`: it is a database of a kind that is not read here. Names outside of INBOX are left out, and counted.
pub(super) fn cyrus(bytes: &[u8]) -> Option<(Vec<Vec<String>>, usize)> {
    // The other kinds of databases begin with an octet that no line begins with.
    if bytes.first().is_some_and(|first| *first >= 0x80 || *first == 0) {
        return None;
    }
    let (mut names, mut others) = (Vec::new(), 0);
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let key = line.split(|byte| *byte == b'\t').next().unwrap_or_default();
        let key = String::from_utf8_lossy(key);
        let levels: Vec<String> = match key.strip_prefix('N') {
            // The version of the file.
            _ if key.starts_with('\x1f') => continue,
            Some(name) if name == "INBOX" || name.starts_with("INBOX\x1f") => {
                name.split('\x1f').skip(1).map(courier::level).collect()
            }
            _ => match key.strip_prefix("user.").map(|rest| rest.split('.').skip(1)) {
                Some(levels) => levels.map(|level| courier::level(&level.replace('^', "."))).collect(),
                None => {
                    others += 1;
                    continue;
                }
            },
        };
        names.push(if levels.is_empty() { vec!["INBOX".to_owned()] } else { levels });
    }
    Some((names, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_servers_write() {
        assert_eq!(
            dovecot(b"V\t2\n\nEntw&APw-rfe\tSub\nINBOX\na\x01tb\n", '.'),
            [vec!["Entwürfe", "Sub"], vec!["INBOX"], vec!["a\tb"]]
        );
        assert_eq!(dovecot(b"a.b\nINBOX\n", '.'), [vec!["a", "b"], vec!["INBOX"]]);
        assert_eq!(dovecot(b"a.b/c\n", '/'), [vec!["a.b", "c"]]);
        assert_eq!(
            uw(b"INBOX\nmail/work\n~/mail/Entw&APw-rfe/x\nnotes\n{host}INBOX\n/abs\n#news.x\n\nmail/\n", "mail"),
            [vec!["INBOX"], vec!["work"], vec!["Entwürfe", "x"], vec!["notes"]]
        );
        let (names, others) = courier("INBOX\nINBOX.Entwürfe\n#shared.x\n".as_bytes());
        assert_eq!((names, others), (vec![vec!["INBOX".to_owned()], vec!["Entwürfe".to_owned()]], 1));
        let (names, others) = cyrus(b"\x1fVER\x1f\t2\nNINBOX\x1fEntw&APw-rfe\x1fSub\t\nNINBOX\t\nNother\t\n").unwrap();
        assert_eq!((names, others), (vec![vec!["Entwürfe".to_owned(), "Sub".to_owned()], vec!["INBOX".to_owned()]], 1));
        let (names, _) = cyrus(b"user.ann\t\nuser.ann.a^b.c\t\n").unwrap();
        assert_eq!(names, [vec!["INBOX"], vec!["a.b", "c"]]);
        assert_eq!(cyrus(b"\xa1\x02\x8b\x0dtwoskip file\0\0\0\0"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            dovecot(&bytes, '.');
            courier(&bytes);
            uw(&bytes, "mail");
            cyrus(&bytes);
        }
    }
}
