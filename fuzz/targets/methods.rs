//! Fuzzes `checks::methods`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::methods::check(input));
