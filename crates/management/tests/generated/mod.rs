//! Files of the repository that a test writes from a table, or holds against it.

use std::fs;
use std::path::{Path, PathBuf};

/// The path of a file of the repository.
pub(crate) fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

/// The text of a file of the repository.
pub(crate) fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap()
}

/// Checks the text of a file, or writes it.
pub(crate) fn hold(file: &str, expected: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path(file), expected).unwrap();
    }
    assert_eq!(read(file), expected, "{file}: run this with UPDATE=1");
}
