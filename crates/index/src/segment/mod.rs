//! Sealed segments.

/// One sealed segment.
#[derive(Debug)]
pub(crate) struct Segment {}
