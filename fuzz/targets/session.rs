//! Fuzzes `checks::session`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::session::check(input));
