//! Fuzzes `checks::patterns`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::patterns::check(input));
