//! `cargo xtask tidy`: taste, as far as a machine can guard it.
//!
//! Decides which rules exist and how findings are shown. A rule is one function from the tree to
//! findings, in a file of its own with its own tests; it never looks at a file itself, so a test
//! gives it a tree of a few lines. What clippy
//! can check is its own: no rule here repeats one of its lints.

mod code;
mod crates;
mod documents;
mod report;
mod sources;

use anyhow::{Result, bail};

use self::report::finding::{Finding, Weight};
use self::sources::tree::Tree;

/// A rule of taste.
struct Rule {
    /// Name behind each finding in the report.
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

/// Every rule, in the order of the report.
const RULES: &[Rule] = &[
    Rule { name: "layers", check: crates::layers::check },
    Rule { name: "purity", check: crates::purity::check },
    Rule { name: "dependencies", check: crates::dependencies::check },
    Rule { name: "architecture", check: documents::architecture::check },
    Rule { name: "licences", check: crates::licences::check },
    Rule { name: "reachable", check: crates::reachable::check },
    Rule { name: "circles", check: crates::circles::check },
    Rule { name: "floors", check: crates::floors::check },
    Rule { name: "rooms", check: crates::rooms::check },
    Rule { name: "size", check: code::size::check },
    Rule { name: "functions", check: code::functions::check },
    Rule { name: "fields", check: code::fields::check },
    Rule { name: "implementors", check: code::implementors::check },
    Rule { name: "wording", check: code::wording::check },
    Rule { name: "names", check: code::names::check },
    Rule { name: "leftovers", check: code::leftovers::check },
    Rule { name: "test-names", check: code::test_names::check },
    Rule { name: "module-doc", check: code::module_doc::check },
    Rule { name: "doc-lines", check: code::doc_lines::check },
    Rule { name: "references", check: code::references::check },
    Rule { name: "compatibility", check: documents::compatibility::check },
    Rule { name: "markdown", check: documents::markdown::check },
    Rule { name: "places", check: documents::places::check },
    Rule { name: "text", check: documents::text::check },
    Rule { name: "web", check: documents::web::check },
    Rule { name: "test-index", check: documents::test_index::check },
];

/// Findings in the whole tree.
#[derive(Debug)]
pub(crate) struct Report {
    /// One line per fault: where, what, what to do, and the rule.
    pub(crate) faults: Vec<String>,
    /// The same for what only deserves a second look.
    pub(crate) notes: Vec<String>,
    /// Number of files that were checked.
    pub(crate) files: usize,
}

/// Checks every rule on the repository.
///
/// # Errors
/// When git or cargo cannot say what the repository holds.
pub(crate) fn report() -> Result<Report> {
    let tree = Tree::read()?;
    let mut report = Report { faults: Vec::new(), notes: Vec::new(), files: tree.files.len() };
    for rule in RULES {
        for finding in (rule.check)(&tree) {
            let lines = match finding.weight {
                Weight::Fault => &mut report.faults,
                Weight::Note => &mut report.notes,
            };
            lines.push(format!("{finding} [{}]", rule.name));
        }
    }
    Ok(report)
}

/// Prints the report of the repository.
///
/// # Errors
/// When there are faults, or as [`report`].
pub(crate) fn run() -> Result<()> {
    let report = report()?;
    for note in &report.notes {
        println!("note: {note}");
    }
    for fault in &report.faults {
        println!("{fault}");
    }
    if !report.faults.is_empty() {
        bail!("tidy found {} faults in {} files", report.faults.len(), report.files);
    }
    println!("ok: {} rules on {} files", RULES.len(), report.files);
    Ok(())
}
