//! Replies (RFC 5321 §4.2) with enhanced status codes (RFC 2034, RFC 3463), and which of them an error is.

use std::borrow::Cow;

use model::{Error, ErrorKind};

use super::OverQuota;
use crate::Output;

/// A reply of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    code: u16,
    /// `x.y.z`; empty where RFC 2034 §3 has none.
    status: &'static str,
    text: Cow<'static, str>,
}

impl Reply {
    pub(super) fn new(code: u16, status: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Reply { code, status, text: text.into() }
    }

    /// Whether it says that something was done.
    pub(super) fn is_positive(&self) -> bool {
        self.code < 400
    }

    pub(super) fn write(&self, out: &mut Output) {
        let Reply { code, status, text } = self;
        match *status {
            "" => out.push_fmt(format_args!("{code} {text}\r\n")),
            status => out.push_fmt(format_args!("{code} {status} {text}\r\n")),
        }
    }

    /// The one about the recipient at `address`.
    pub(super) fn about(&self, address: &str) -> Reply {
        Reply { code: self.code, status: self.status, text: format!("<{address}> {}", self.text).into() }
    }
}

/// RFC 5321 §4.1.1.5, RFC 3463 §3.8.
pub(super) fn out_of_order(text: &'static str) -> Reply {
    Reply::new(503, "5.5.1", text)
}

/// RFC 1870 §6.1, RFC 3463 §3.4.
pub(super) fn too_large() -> Reply {
    Reply::new(552, "5.3.4", "The message is too large (limit message_bytes_max)")
}

/// An error of the store in words. Whatever may go away by itself is to be tried again (RFC 5321 §4.2.1: 4yz), since a 5yz sends the mail
/// back; what becomes of mail for an account that is full is the administrator's to say.
pub(super) fn of_error(error: &Error, over_quota: OverQuota) -> Reply {
    match error.kind() {
        ErrorKind::OverQuota if over_quota == OverQuota::Reject => Reply::new(552, "5.2.2", "The account is full"),
        ErrorKind::Limit if error.limit() == Some("message_bytes_max") => too_large(),
        ErrorKind::Limit => Reply::new(452, "4.2.2", "The account is at one of its limits"),
        ErrorKind::OverQuota => Reply::new(452, "4.2.2", "The account is full"),
        ErrorKind::DiskFull => Reply::new(452, "4.3.1", "The server's storage is full"),
        ErrorKind::NotFound => Reply::new(550, "5.2.0", "There is no such mailbox"),
        ErrorKind::InUse => Reply::new(450, "4.2.0", "Something else is using the account"),
        _ => Reply::new(451, "4.3.0", "The server's storage failed"),
    }
}

/// Whether the cause is ours, and the log has to have it.
pub(super) fn is_ours(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Limit | ErrorKind::OverQuota | ErrorKind::NotFound | ErrorKind::InUse)
}
