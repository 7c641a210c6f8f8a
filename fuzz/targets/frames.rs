//! Fuzzes `checks::frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::frames::check(input));
