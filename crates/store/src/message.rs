//! A message on its way in.

use std::sync::Arc;

use model::{Error, Result};

/// Takes the bytes of one message as they arrive; finds the end of its header on the way. Dropped, it leaves nothing behind.
pub struct MessageWriter {
    inner: index::MessageWriter,
    header: HeaderEnd,
    message_bytes_max: u64,
}

/// A message that waits for its entry. A clone is the same message.
#[derive(Clone)]
pub struct PendingMessage {
    pub(crate) inner: Arc<index::PendingMessage>,
}

impl MessageWriter {
    pub(crate) fn new(inner: index::MessageWriter, message_bytes_max: u64) -> Self {
        MessageWriter { inner, header: HeaderEnd::default(), message_bytes_max }
    }

    /// The next bytes. [`model::ErrorKind::Limit`] once the message is over `message_bytes_max`.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.inner.len().saturating_add(bytes.len() as u64) > self.message_bytes_max {
            return Err(Error::over_limit("message_bytes_max", "the message is too large"));
        }
        self.header.push(bytes);
        self.inner.write(bytes)
    }

    /// Octets so far.
    pub fn size(&self) -> u64 {
        self.inner.len()
    }

    /// That was all of it.
    pub fn finish(self) -> Result<PendingMessage> {
        // A header that never ends is the whole message.
        let header_len = u32::try_from(self.header.len()).unwrap_or(u32::MAX);
        Ok(PendingMessage { inner: Arc::new(self.inner.finish(header_len)?) })
    }
}

impl PendingMessage {
    /// Octets.
    pub fn size(&self) -> u64 {
        u64::from(self.inner.len())
    }

    /// Fills `buf` with the octets from `offset` on: for copies to other accounts. [`model::ErrorKind::Invalid`] beyond the end.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_at(offset, buf)
    }
}

/// Finds the first empty line in a stream: the rule of [`mime::header_len`], in any cut.
#[derive(Debug, Default)]
pub(crate) struct HeaderEnd {
    octets: u64,
    line: Line,
}

/// What is known of the present line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// Nothing has come of it.
    #[default]
    Start,
    /// A CR and nothing else.
    Cr,
    /// It is not empty.
    Text,
    /// The empty line has been seen.
    Over,
}

impl HeaderEnd {
    /// Octets of the header, the empty line included; all that came when it has not ended.
    pub(crate) fn len(&self) -> u64 {
        self.octets
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while self.line != Line::Over {
            let Some(byte) = bytes.get(at) else { break };
            at += 1;
            self.line = match (self.line, byte) {
                (Line::Start | Line::Cr, b'\n') => Line::Over,
                (Line::Start, b'\r') => Line::Cr,
                (Line::Text, b'\n') => Line::Start,
                _ => {
                    // To the end of the line at once.
                    let rest = bytes.get(at..).unwrap_or_default();
                    at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                    Line::Text
                }
            };
        }
        self.octets += at as u64;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    proptest::proptest! {
        #[test]
        fn agrees_with_mime_in_any_cut(text in "[a:\r\n]{0,24}", cut in 0usize..25) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(cut.min(bytes.len()));
            let mut end = HeaderEnd::default();
            end.push(a);
            end.push(b);
            proptest::prop_assert_eq!(end.len(), mime::header_len(bytes) as u64);
        }
    }
}
