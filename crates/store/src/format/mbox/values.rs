//! What the fields say in which programs keep what they know of a message: `docs/format-mbox.md` has the rules, which are those of Dovecot and of
//! c-client where these differ from field to field.

use model::Keyword;

use super::meta::{MetaField, MetaName};
use super::place::{FileFlags, ImapBase, Meta};

/// What `fields` of `header` say. `is_first`: it is the first message of the file, the only one whose `X-IMAPbase` and `X-IMAP` count.
///
/// Fields that are there more than once: `Status` and `X-Status` count all, of `X-UID` the first counts that is a number, of the others the
/// first.
pub fn meta(header: &[u8], fields: &[MetaField], is_first: bool) -> Meta {
    let mut meta = Meta::default();
    let mut counts = [0_u8; WRITTEN.len()];
    let mut has_keywords = false;
    for field in fields {
        let value = field.value(header);
        if let Some(at) = WRITTEN.iter().position(|name| *name == field.name)
            && let Some(count) = counts.get_mut(at)
        {
            *count = count.saturating_add(1);
        }
        match field.name {
            MetaName::Status => meta.flags = meta.flags.with(flags(value, &STATUS)),
            MetaName::XStatus => meta.flags = meta.flags.with(flags(value, &X_STATUS)),
            MetaName::XKeywords if !has_keywords => {
                meta.keywords = keywords(value);
                has_keywords = true;
            }
            MetaName::Uid if meta.uid.is_none() => meta.uid = number(value).filter(|uid| *uid > 0),
            MetaName::ImapBase if is_first && meta.base.is_none() => meta.base = imap_base(value),
            MetaName::Imap if is_first && meta.base.is_none() => {
                meta.base = imap_base(value);
                meta.is_pseudo = meta.base.is_some();
            }
            _ => {}
        }
    }
    if counts == [1; WRITTEN.len()] {
        meta.flags = meta.flags.with(FileFlags::COMPLETE);
    }
    meta
}

/// The fields of every message that we write.
const WRITTEN: [MetaName; 4] = [MetaName::Uid, MetaName::Status, MetaName::XStatus, MetaName::XKeywords];

/// The letters of `Status`. D is what few programs write there.
pub const STATUS: [(u8, FileFlags); 3] = [(b'R', FileFlags::SEEN), (b'O', FileFlags::OLD), (b'D', FileFlags::DELETED)];

/// The letters of `X-Status`.
pub const X_STATUS: [(u8, FileFlags); 4] =
    [(b'A', FileFlags::ANSWERED), (b'F', FileFlags::FLAGGED), (b'D', FileFlags::DELETED), (b'T', FileFlags::DRAFT)];

fn flags(value: &[u8], letters: &[(u8, FileFlags)]) -> FileFlags {
    let known = value.iter().filter_map(|byte| letters.iter().find(|(letter, _)| letter == byte));
    known.fold(FileFlags::default(), |flags, (_, flag)| flags.with(*flag))
}

/// A number and nothing else.
fn number(value: &[u8]) -> Option<u32> {
    // `parse` would take a sign.
    let is_number = value.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(value).ok()?.parse().ok()).flatten()
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Those that IMAP can name, each once.
fn keywords(value: &[u8]) -> Vec<Keyword> {
    let mut found: Vec<Keyword> = Vec::new();
    for word in words(value) {
        if found.len() == model::limits::KEYWORDS_PER_MAILBOX_MAX {
            break;
        }
        if let Some(keyword) = std::str::from_utf8(word).ok().and_then(|word| Keyword::new(word).ok())
            && !found.contains(&keyword)
        {
            found.push(keyword);
        }
    }
    found
}

/// `UIDVALIDITY LASTUID keywords`; a UIDVALIDITY of 0 is none (RFC 9051 §9 nz-number).
fn imap_base(value: &[u8]) -> Option<ImapBase> {
    let mut pieces = value.splitn(2, u8::is_ascii_whitespace);
    let uid_validity = number(pieces.next()?).filter(|validity| *validity > 0)?;
    let rest = pieces.next().unwrap_or_default().trim_ascii_start();
    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    let (last, rest) = rest.split_at_checked(end)?;
    Some(ImapBase { uid_validity, last_uid: number(last).unwrap_or(0), keywords: keywords(rest) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::format::mbox::meta::meta_fields;

    fn of(header: &str, is_first: bool) -> Meta {
        let fields: Vec<MetaField> = meta_fields(header.as_bytes()).collect();
        meta(header.as_bytes(), &fields, is_first)
    }

    fn names(keywords: &[Keyword]) -> String {
        keywords.iter().map(Keyword::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn letters() {
        for byte in 0..=255u8 {
            let letter = char::from(byte);
            let status = match letter {
                'R' => FileFlags::SEEN,
                'O' => FileFlags::OLD,
                'D' => FileFlags::DELETED,
                _ => FileFlags::default(),
            };
            let x_status = match letter {
                'A' => FileFlags::ANSWERED,
                'F' => FileFlags::FLAGGED,
                'D' => FileFlags::DELETED,
                'T' => FileFlags::DRAFT,
                _ => FileFlags::default(),
            };
            assert_eq!((flags(&[byte], &STATUS), flags(&[byte], &X_STATUS)), (status, x_status), "{byte}");
        }
        let found = of("Status: xOyR\nX-Status: TFA \nX-Status: D\n", false);
        let all = [FileFlags::SEEN, FileFlags::OLD, FileFlags::ANSWERED, FileFlags::FLAGGED, FileFlags::DRAFT];
        assert_eq!(found.flags, all.into_iter().fold(FileFlags::DELETED, FileFlags::with));
        assert_eq!(of("Status: RO\nSubject: R\n\nX-Status: F\n", false).flags.bits(), 3);
    }

    #[test]
    fn uids() {
        for (header, uid) in [
            ("X-UID: 7\n", Some(7)),
            ("X-UID: 4294967295   \n", Some(u32::MAX)),
            ("X-UID: 4294967296\n", None),
            ("X-UID: +7\n", None),
            ("X-UID: 7 8\n", None),
            ("X-UID: 0\n", None),
            ("X-UID:\n", None),
            ("X-UID: x\nX-UID: 3\nX-UID: 4\n", Some(3)),
        ] {
            assert_eq!(of(header, false).uid, uid, "{header}");
        }
    }

    #[test]
    fn keywords_that_imap_can_name() {
        let found = of("X-Keywords: $Label1  junk\n\tB(d \u{e9} a]b JUNK Forwarded   \nX-Keywords: later\n", false);
        assert_eq!(names(&found.keywords), "$Label1 junk Forwarded");
        assert_eq!(of("X-Keywords:    \nX-Keywords: later\n", false).keywords, []);
    }

    #[test]
    fn what_the_file_says_of_itself() {
        let header = "X-IMAPbase: 1108746240 0000000042 $x y  \nStatus: RO\nX-Status:\nX-Keywords:   \nX-UID: 3\n";
        let found = of(header, true);
        let base = found.base.unwrap();
        assert_eq!((base.uid_validity, base.last_uid, names(&base.keywords)), (1108746240, 42, "$x y".to_owned()));
        assert!(found.flags.has(FileFlags::COMPLETE) && !found.is_pseudo);
        assert_eq!(of(header, false).base, None);
        assert!(!of(&format!("{header}X-UID: 4\n"), true).flags.has(FileFlags::COMPLETE));
        for (header, expected) in [
            ("X-IMAPbase: 5\n", Some((5, 0))),
            ("X-IMAPbase: 5 x y\n", Some((5, 0))),
            ("X-IMAPbase: 0 7\n", None),
            ("X-IMAPbase: x 7\n", None),
            ("X-IMAPbase: 4294967296 7\n", None),
            ("X-IMAPbase:\n", None),
            ("X-IMAPbase: 0 1\nX-IMAPbase: 6 7\nX-IMAPbase: 8 9\n", Some((6, 7))),
        ] {
            let found = of(header, true).base.map(|base| (base.uid_validity, base.last_uid));
            assert_eq!(found, expected, "{header}");
        }
    }

    #[test]
    fn the_pseudo_message() {
        let header = "Date: 18 Feb 2005 17:04:00 +0000\nFrom: Mail System Internal Data <MAILER-DAEMON@a>\nSubject: DON'T DELETE \
                      THIS MESSAGE -- FOLDER INTERNAL DATA\nMessage-ID: <1@a>\nX-IMAP: 1108746240 0000000002\nStatus: RO\n\n";
        let found = of(header, true);
        assert!(found.is_pseudo);
        assert_eq!(found.base.map(|base| base.last_uid), Some(2));
        // Only the first message can be one, and only X-IMAP makes it one.
        assert!(
            !of(header, false).is_pseudo
                && !of("X-IMAPbase: 1 2\n", true).is_pseudo
                && !of("X-IMAP: x\n", true).is_pseudo
        );
    }
}
