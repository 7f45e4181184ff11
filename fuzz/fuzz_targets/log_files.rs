#![no_main]
//! libFuzzer's way into [`mailyard_fuzz::disk::log_files`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| mailyard_fuzz::disk::log_files(data));
