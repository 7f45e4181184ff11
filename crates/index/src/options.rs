//! Every number of the account log that somebody may set, with its unit and its default.

/// The settings of one account's log. The defaults serve mixed use; the tests shrink them to meet every path quickly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A tail that has grown past this many bytes is frozen and sealed into a segment. 8 MiB: what waits is not compressed.
    pub tail_bytes_max: u64,
    /// A tail of at least this many bytes is sealed when nothing was written between two maintenances. 1 MiB.
    pub idle_tail_bytes_max: u64,
    /// Frozen tails that may wait to be sealed. A commit that finds this many seals one itself, so that an import cannot
    /// outrun the maintenance without bound. 8.
    pub frozen_tails_max: usize,
    /// Bytes of transactions that may wait for a sync; whoever goes over it writes them first. 16 MiB.
    pub pending_bytes_max: u64,
    /// The tail is prefilled with zeros in steps of a quarter of its length, at least this many bytes. 0: never. 64 KiB.
    pub preallocate_bytes_min: u64,
    /// The largest step of the prefilling, bytes. 1 MiB.
    pub preallocate_bytes_max: u64,
    /// A message stays in memory up to this size and goes to a spool file beyond it, bytes. 16 KiB.
    pub spool_above_bytes: usize,
    /// zstd level of message bodies in segments; 0 stores them as they are. 3.
    pub body_level: i32,
    /// A checkpoint is written when this many bytes of frames are not covered by one. 8 MiB.
    pub checkpoint_bytes: u64,
    /// How long an expunged message can be brought back, seconds. 14 days.
    pub retention_seconds: u64,
    /// A segment with at least this share of dead bytes is rewritten, percent. 25.
    pub dead_percent_max: u8,
    /// Neighbouring segments are merged while the sum of their bytes is below this. 32 MiB.
    pub merge_bytes_max: u64,
    /// UID ranges of expunged entries that a mailbox remembers for VANISHED (EARLIER) (RFC 7162 §3.2.5.2). 100,000.
    pub tombstone_ranges_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tail_bytes_max: 8 << 20,
            idle_tail_bytes_max: 1 << 20,
            frozen_tails_max: 8,
            pending_bytes_max: 16 << 20,
            preallocate_bytes_min: 64 << 10,
            preallocate_bytes_max: 1 << 20,
            spool_above_bytes: 16 << 10,
            body_level: 3,
            checkpoint_bytes: 8 << 20,
            retention_seconds: 14 * 86_400,
            dead_percent_max: 25,
            merge_bytes_max: 32 << 20,
            tombstone_ranges_max: 100_000,
        }
    }
}
