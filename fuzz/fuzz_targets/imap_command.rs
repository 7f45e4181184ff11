#![no_main]
//! libFuzzer's way into [`mailyard_fuzz::imap::command`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| mailyard_fuzz::imap::command(data));
