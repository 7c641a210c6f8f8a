//! Builds the crate anew when a file of the web page comes or goes, which the compiler does not see.

use std::env;

#[allow(clippy::print_stdout, reason = "cargo is told in this way")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Other builds read the files while they run.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed=web");
    }
}
