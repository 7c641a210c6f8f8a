//! Fuzzes `checks::topic`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::topic::check(input));
