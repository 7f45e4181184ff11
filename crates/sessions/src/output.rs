//! Bytes on their way out.

/// A buffer with a soft bound. A session writes until [`Output::is_full`] and then gives the driver its turn; a single piece (a line,
/// a block of a message) may overshoot, so that nobody has to split lines.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    sent: usize,
    full_at: usize,
}

impl Output {
    /// A buffer that counts as full from `soft_bytes_max` octets on.
    pub fn new(soft_bytes_max: usize) -> Self {
        Output { bytes: Vec::new(), sent: 0, full_at: soft_bytes_max }
    }

    /// What waits to be sent.
    pub fn pending(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// The first `octets` of [`Output::pending`] were sent.
    pub fn consume(&mut self, octets: usize) {
        self.sent = self.sent.saturating_add(octets).min(self.bytes.len());
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        }
    }

    /// Gives the memory of an empty buffer back. For a driver that is about to wait: an idle connection keeps no big buffer, and one
    /// that sends a long answer would pay for a new one with every piece.
    pub fn rest(&mut self) {
        if self.is_empty() && self.bytes.capacity() > IDLE_CAPACITY {
            self.bytes = Vec::new();
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pending().is_empty()
    }

    /// Whether whoever writes should stop until something was sent.
    pub fn is_full(&self) -> bool {
        self.pending().len() >= self.full_at
    }

    /// How many octets there is room for before it is full.
    pub fn room(&self) -> usize {
        self.full_at.saturating_sub(self.pending().len())
    }

    /// Appends `bytes`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends text.
    pub fn push_str(&mut self, text: &str) {
        self.push(text.as_bytes());
    }

    /// Appends what `write!` formats.
    pub fn push_fmt(&mut self, arguments: std::fmt::Arguments<'_>) {
        use std::io::Write;
        let _infallible = self.bytes.write_fmt(arguments);
    }

    /// Takes back what was written last, so that only `octets` of [`Output::pending`] are left.
    pub(crate) fn truncate_pending(&mut self, octets: usize) {
        self.bytes.truncate(self.sent.saturating_add(octets));
    }

    /// The vector behind, for writers that append to one.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// Capacity that an empty buffer may keep, octets.
const IDLE_CAPACITY: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_and_drains() {
        let mut out = Output::new(4);
        out.push(b"abc");
        assert!(!out.is_full() && out.room() == 1);
        out.push_fmt(format_args!("{}", 12));
        assert!(out.is_full() && out.room() == 0);
        out.consume(2);
        assert_eq!(out.pending(), b"c12");
        out.truncate_pending(2);
        assert_eq!(out.pending(), b"c1");
        out.consume(99);
        assert!(out.is_empty());
        out.push(&[0; 2 * IDLE_CAPACITY]);
        out.rest();
        assert_eq!(out.pending().len(), 2 * IDLE_CAPACITY, "what waits is kept");
        out.consume(usize::MAX);
        out.rest();
        assert_eq!(out.bytes.capacity(), 0);
    }
}
