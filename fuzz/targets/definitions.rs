//! Fuzzes `checks::definitions`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::definitions::check(input));
