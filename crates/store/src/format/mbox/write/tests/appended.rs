//! Messages that are added.
