//! What must hold for any input whatsoever.
//!
//! Each property is a function of bytes that panics when it does not hold. libFuzzer calls it from `fuzz_targets/`, with input that it
//! grows towards uncovered code; `tests/budget.rs` calls it on the stable toolchain with a fixed number of mutated samples.

pub mod disk;
pub mod imap;
pub mod lmtp;
pub mod mbox;
pub mod mime;
pub mod mutate;
