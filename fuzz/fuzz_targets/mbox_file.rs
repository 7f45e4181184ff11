#![no_main]
//! libFuzzer's way into [`mailyard_fuzz::mbox::file`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| mailyard_fuzz::mbox::file(data));
