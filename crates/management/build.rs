//! Renders the documentation, and builds the crate anew when a file of the web page comes or goes, which the
//! compiler does not see.

#[path = "build/docs.rs"]
mod docs;

use std::env;
use std::error::Error;
use std::path::PathBuf;

#[allow(clippy::print_stdout, reason = "cargo is told in this way")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    for source in docs::SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    docs::render(&root, &PathBuf::from(env::var("OUT_DIR")?))?;
    // Other builds read the files while they run.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed=web");
    }
    Ok(())
}
