//! The ENVELOPE.

use crate::{Address, HeaderBlock, Limits};

/// RFC 9051 §7.5.2 ENVELOPE: values unfolded, not decoded.
///
/// A field that is missing is `None` or an empty list; `sender` and `reply_to` are those of `from` where
/// the message has none.
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
    pub fn of(_header: HeaderBlock<'_>, _limits: &Limits) -> Envelope {
        todo!()
    }
}
