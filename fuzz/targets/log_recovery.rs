//! Fuzzes `checks::log_recovery`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::log_recovery::check(input));
