//! Fuzzes `checks::login`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::login::check(input));
