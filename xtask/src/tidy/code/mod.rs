//! Rules about Rust files: sizes, names, comments, tests.

pub(super) mod doc_lines;
pub(super) mod fields;
pub(super) mod functions;
pub(super) mod implementors;
pub(super) mod leftovers;
pub(super) mod module_doc;
pub(super) mod names;
pub(super) mod references;
pub(super) mod size;
pub(super) mod test_names;
pub(super) mod wording;
