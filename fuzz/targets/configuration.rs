//! Fuzzes `checks::configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::configuration::check(input));
