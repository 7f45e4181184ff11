#![no_main]
//! libFuzzer's way into [`mailyard_fuzz::lmtp::session`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| mailyard_fuzz::lmtp::session(data));
