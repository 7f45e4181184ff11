//! The account log and everything derived from it.
