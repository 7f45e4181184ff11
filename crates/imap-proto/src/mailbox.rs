//! Mailbox names and LIST patterns as they are written, and how they become text (RFC 9051 §5.1, RFC 3501 §5.1.3, RFC 6855 §3).

use std::fmt;

use model::{Error, ErrorKind, HIERARCHY_DELIMITER, MailboxName, Result, decode_mailbox_utf7};

/// How mailbox names are written in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameEncoding {
    /// Modified UTF-7: IMAP4rev1 (RFC 3501 §5.1.3).
    #[default]
    Utf7,
    /// UTF-8: after ENABLE IMAP4rev2 or ENABLE UTF8=ACCEPT.
    Utf8,
}

impl NameEncoding {
    /// Text from what was sent. In UTF-7 mode, octets above 127 are taken as UTF-8 when they are valid and there is no `&` beside
    /// them: clients that send such names mean UTF-8, and no name in modified UTF-7 looks like that.
    fn decode(self, sent: &[u8]) -> Result<String> {
        let invalid = || Error::new(ErrorKind::Invalid, format!("mailbox name {:?}", String::from_utf8_lossy(sent)));
        let text = std::str::from_utf8(sent).map_err(|error| invalid().with_source(error))?;
        match self {
            NameEncoding::Utf8 => Ok(text.to_owned()),
            NameEncoding::Utf7 if !text.is_ascii() && !text.contains('&') => Ok(text.to_owned()),
            NameEncoding::Utf7 => decode_mailbox_utf7(text).ok_or_else(|| invalid().context("modified UTF-7")),
        }
    }
}

/// A mailbox argument: the octets as sent, because how they are read depends on what the session has enabled.
#[derive(Clone, PartialEq, Eq)]
pub struct MailboxArg(pub Vec<u8>);

impl MailboxArg {
    /// The name; INBOX in any case is INBOX.
    pub fn decode(&self, encoding: NameEncoding) -> Result<MailboxName> {
        MailboxName::new(&encoding.decode(&self.0)?)
    }

    /// The name for CREATE, which may end in the hierarchy delimiter: a declaration that names below it will follow, which
    /// changes nothing here (RFC 9051 §6.3.4).
    pub fn decode_for_create(&self, encoding: NameEncoding) -> Result<MailboxName> {
        let text = encoding.decode(&self.0)?;
        MailboxName::new(text.strip_suffix(HIERARCHY_DELIMITER).unwrap_or(&text))
    }

    /// As text that need not be the name of a mailbox, such as the reference of LIST.
    pub fn decode_text(&self, encoding: NameEncoding) -> Result<String> {
        encoding.decode(&self.0)
    }
}

impl fmt::Debug for MailboxArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MailboxArg({:?})", String::from_utf8_lossy(&self.0))
    }
}

/// A pattern of LIST or LSUB (RFC 9051 §6.3.9): a mailbox name in which `*` and `%` are wildcards. The octets as sent.
#[derive(Clone, PartialEq, Eq)]
pub struct ListPattern(pub Vec<u8>);

impl ListPattern {
    /// The pattern as text, wildcards included.
    pub fn decode(&self, encoding: NameEncoding) -> Result<String> {
        encoding.decode(&self.0)
    }
}

impl fmt::Debug for ListPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListPattern({:?})", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use NameEncoding::{Utf7, Utf8};
    use proptest::prelude::*;

    use super::*;

    fn decoded(sent: &[u8], encoding: NameEncoding) -> Option<String> {
        MailboxArg(sent.to_vec()).decode(encoding).ok().map(|name| name.as_str().to_owned())
    }

    #[test]
    fn names_are_read_as_the_session_writes_them() {
        for (sent, in_utf7, in_utf8) in [
            (&b"inbox"[..], Some("INBOX"), Some("INBOX")),
            (b"~peter/mail/&U,BTFw-", Some("~peter/mail/台北"), Some("~peter/mail/&U,BTFw-")),
            (b"R&-D", Some("R&D"), Some("R&-D")),
            (b"R&D", None, Some("R&D")),
            ("Entwürfe".as_bytes(), Some("Entwürfe"), Some("Entwürfe")),
            ("R&D ü".as_bytes(), None, Some("R&D ü")),
            (b"\xff", None, None),
            (b"", None, None),
            (b"a/", None, None),
        ] {
            assert_eq!(decoded(sent, Utf7).as_deref(), in_utf7, "{sent:?}");
            assert_eq!(decoded(sent, Utf8).as_deref(), in_utf8, "{sent:?}");
        }
        let create = MailboxArg(b"a/b/".to_vec());
        assert_eq!(create.decode_for_create(Utf7).map(|name| name.as_str().to_owned()).ok().as_deref(), Some("a/b"));
        assert_eq!(MailboxArg(b"a/".to_vec()).decode_text(Utf7).ok().as_deref(), Some("a/"));
        assert_eq!(ListPattern(b"&U,BTFw-/%".to_vec()).decode(Utf7).ok().as_deref(), Some("台北/%"));
    }

    proptest! {
        #[test]
        fn names_come_back(name in "[a-zäß台&/ ]{1,20}") {
            if let Ok(name) = MailboxName::new(&name) {
                for encoding in [Utf7, Utf8] {
                    prop_assert_eq!(MailboxArg::encode(&name, encoding).decode(encoding).ok(), Some(name.clone()));
                }
            }
        }
    }
}
