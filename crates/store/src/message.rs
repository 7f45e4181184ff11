//! A message on its way in.

use model::Result;

/// Takes the bytes of one message as they arrive; scans their structure on the way. Dropped, it leaves nothing behind.
pub struct MessageWriter {}

/// A message that waits for its entry.
pub struct PendingMessage {}

impl MessageWriter {
    /// The next bytes. [`model::ErrorKind::Limit`] once the message is over `message_bytes_max`.
    pub fn write(&mut self, _bytes: &[u8]) -> Result<()> {
        todo!()
    }

    /// That was all of it.
    pub fn finish(self) -> Result<PendingMessage> {
        todo!()
    }
}

impl PendingMessage {
    /// Octets.
    pub fn size(&self) -> u64 {
        todo!()
    }
}
