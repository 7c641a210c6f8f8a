//! Binds the checks to libFuzzer: one program for all targets, of which the variable `FUZZ_TARGET` names one.
#![no_main]

use std::env;
use std::sync::LazyLock;

/// Check of the target that was asked for.
static CHECK: LazyLock<checks::Check> = LazyLock::new(|| {
    let name = env::var("FUZZ_TARGET").unwrap_or_default();
    let target = checks::TARGETS.iter().find(|(target, _)| *target == name);
    let names: Vec<&str> = checks::TARGETS.iter().map(|(target, _)| *target).collect();
    target.unwrap_or_else(|| panic!("FUZZ_TARGET={name}: choose one of {}", names.join(", "))).1
});

libfuzzer_sys::fuzz_target!(init: LazyLock::force(&CHECK), |input: &[u8]| CHECK(input));
