//! Reading tails.

pub(crate) struct ScannedFrame {}
pub(crate) struct TailScan {}
