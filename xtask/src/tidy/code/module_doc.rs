//! Every Rust file begins by saying what it decides.
//!
//! Checks that the doc is there and is the first thing; whether it says something is for review.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

/// The longest module doc we aim for, in lines; where other rules look for words in it.
pub(crate) const DOC_LINES_MAX: usize = 12;

/// Checks that every Rust file starts with a module doc.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let message = "no module doc: begin the file with `//!` lines that say what it decides and \
                   what it does not know";
    tree.rust_sources()
        .filter(|(_, source)| !source.text.starts_with("//! "))
        .map(|(file, _)| Finding::in_file(&file.path, message))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doc_is_the_first_thing_in_a_file() {
        let faults = |text| check(&Tree::of(&[("a.rs", text)])).len();
        assert_eq!(faults("//! Decides.\nuse b;\n"), 0);
        assert_eq!(faults("use b;\n//! Decides.\n"), 1);
        assert_eq!(faults("// Decides.\n"), 1);
        assert_eq!(faults("//!\n"), 1);
        assert_eq!(faults(""), 1);
    }
}
