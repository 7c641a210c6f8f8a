//! Fuzzes `checks::http`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::http::check(input));
