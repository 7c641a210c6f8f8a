//! `cargo xtask tidy`: taste, as far as a machine can guard it.
//!
//! Decides which rules exist and how findings are shown. A rule is one function from the tree to
//! findings, in a file of its own with its own tests; it never looks at a file itself, so a test
//! gives it a tree of a few lines. What clippy
//! can check is its own: no rule here repeats one of its lints.

mod architecture;
mod ceilings;
mod circles;
mod compatibility;
mod dependencies;
mod doc_lines;
mod fields;
mod finding;
mod functions;
mod implementors;
mod layers;
mod leftovers;
mod licences;
mod markdown;
mod module_doc;
mod names;
mod places;
mod purity;
mod ratchet;
mod reachable;
mod references;
mod rooms;
mod rust_source;
mod size;
mod test_index;
mod test_names;
mod text;
mod tree;
mod web;
mod wording;
mod workspace;

use anyhow::{Result, bail};

use self::finding::{Finding, Weight};
use self::tree::Tree;

/// A rule of taste.
struct Rule {
    /// Name behind each finding in the report.
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

/// Every rule, in the order of the report.
const RULES: &[Rule] = &[
    Rule { name: "layers", check: layers::check },
    Rule { name: "purity", check: purity::check },
    Rule { name: "dependencies", check: dependencies::check },
    Rule { name: "architecture", check: architecture::check },
    Rule { name: "licences", check: licences::check },
    Rule { name: "reachable", check: reachable::check },
    Rule { name: "circles", check: circles::check },
    Rule { name: "rooms", check: rooms::check },
    Rule { name: "size", check: size::check },
    Rule { name: "functions", check: functions::check },
    Rule { name: "fields", check: fields::check },
    Rule { name: "implementors", check: implementors::check },
    Rule { name: "wording", check: wording::check },
    Rule { name: "names", check: names::check },
    Rule { name: "leftovers", check: leftovers::check },
    Rule { name: "test-names", check: test_names::check },
    Rule { name: "module-doc", check: module_doc::check },
    Rule { name: "doc-lines", check: doc_lines::check },
    Rule { name: "references", check: references::check },
    Rule { name: "compatibility", check: compatibility::check },
    Rule { name: "markdown", check: markdown::check },
    Rule { name: "places", check: places::check },
    Rule { name: "text", check: text::check },
    Rule { name: "web", check: web::check },
    Rule { name: "test-index", check: test_index::check },
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
