#![no_main]
//! libFuzzer's way into [`mailyard_fuzz::mime::message`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| mailyard_fuzz::mime::message(data));
