//! The ENVELOPE (RFC 9051 §7.5.2).

use crate::address::{Address, parse_addresses};
use crate::encoded_word::unfold;
use crate::{HeaderBlock, Limits};

/// RFC 9051 §7.5.2 ENVELOPE: values unfolded, not decoded, without NULs (no IMAP string can hold one).
///
/// A field that is missing is `None` or an empty list; one that is present but empty is the empty string.
/// `sender` and `reply_to` are those of `from` where the message has none. Of a text field that comes twice
/// the first counts; addresses of an address field that comes twice are taken together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Date, as written.
    pub date: Option<Vec<u8>>,
    /// Subject, undecoded.
    pub subject: Option<Vec<u8>>,
    /// From.
    pub from: Vec<Address>,
    /// Sender, or From.
    pub sender: Vec<Address>,
    /// Reply-To, or From.
    pub reply_to: Vec<Address>,
    /// To.
    pub to: Vec<Address>,
    /// Cc.
    pub cc: Vec<Address>,
    /// Bcc.
    pub bcc: Vec<Address>,
    /// In-Reply-To, as written.
    pub in_reply_to: Option<Vec<u8>>,
    /// Message-ID, as written.
    pub message_id: Option<Vec<u8>>,
}

impl Envelope {
    /// The envelope of a header.
    pub fn of(header: HeaderBlock<'_>, limits: &Limits) -> Envelope {
        let mut addresses_left = limits.addresses_max;
        let mut envelope = Envelope::default();
        for field in header.fields().take(limits.headers_max) {
            envelope.take_field(field.name, field.value, &mut addresses_left);
        }
        envelope.complete();
        envelope
    }

    /// Takes one field of the header; `addresses_left` is what may still be added and is counted down.
    pub(crate) fn take_field(&mut self, name: &[u8], value: &[u8], addresses_left: &mut usize) {
        let lower = name.to_ascii_lowercase();
        let text = match lower.as_slice() {
            b"date" => Some(&mut self.date),
            b"subject" => Some(&mut self.subject),
            b"in-reply-to" => Some(&mut self.in_reply_to),
            b"message-id" => Some(&mut self.message_id),
            _ => None,
        };
        if let Some(text) = text {
            text.get_or_insert_with(|| field_string(value));
            return;
        }
        let list = match lower.as_slice() {
            b"from" => &mut self.from,
            b"sender" => &mut self.sender,
            b"reply-to" => &mut self.reply_to,
            b"to" => &mut self.to,
            b"cc" => &mut self.cc,
            b"bcc" => &mut self.bcc,
            _ => return,
        };
        let more = parse_addresses(value, *addresses_left);
        *addresses_left = addresses_left.saturating_sub(more.len());
        list.extend(more);
    }

    /// Sets the defaults when all fields were taken: "If the Sender or Reply-To header fields are absent [...]
    /// or are present but empty, the server sets [them] to be the same value as the from member".
    pub(crate) fn complete(&mut self) {
        for list in [&mut self.sender, &mut self.reply_to] {
            if list.is_empty() {
                list.clone_from(&self.from);
            }
        }
    }
}

/// A field's value as a string for IMAP: unfolded, without the white space around it and without NULs.
pub(crate) fn field_string(value: &[u8]) -> Vec<u8> {
    let mut string = unfold(value).trim_ascii().to_vec();
    string.retain(|&octet| octet != 0);
    string
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(header: &[u8]) -> Envelope {
        Envelope::of(HeaderBlock::new(header), &Limits::default())
    }

    #[test]
    fn defaults_and_absence() {
        let envelope = of(b"From: a@b\nSender: \nSubject:\nDate: Mon,\n 1 Jan 2001\n\nTo: c@d\n");
        assert_eq!(envelope.sender, envelope.from);
        assert_eq!(envelope.reply_to, envelope.from);
        assert_eq!(envelope.subject.as_deref(), Some(&b""[..]));
        assert_eq!(envelope.date.as_deref(), Some(&b"Mon, 1 Jan 2001"[..]));
        assert_eq!(envelope.message_id, None);
        assert!(envelope.to.is_empty());
    }

    #[test]
    fn repeated_fields() {
        let envelope = of(b"Subject: 1\nTo: a@b\nSUBJECT: 2\nto: c@d\nReply-To: e@f\n");
        assert_eq!(envelope.subject.as_deref(), Some(&b"1"[..]));
        assert_eq!(envelope.to.len(), 2);
        assert_eq!(envelope.reply_to.len(), 1);
    }

    #[test]
    fn no_nul_reaches_the_wire() {
        assert_eq!(of(b"Subject: a\0b\n").subject.as_deref(), Some(&b"ab"[..]));
    }
}
