//! Rules that older code does not keep yet: each folder may have so many faults, and none more.
//!
//! Knows how faults are counted and compared, not the rules. A ceiling only ever falls; a rule without
//! ceilings refuses every fault.

use std::collections::BTreeMap;

use super::finding::Finding;

/// The number of faults that each folder may have; a folder without a row may have none.
pub(super) type Ceilings = &'static [(&'static str, usize)];

/// The findings of the folders with more of them than their ceiling.
pub(super) fn above(findings: Vec<Finding>, ceilings: Ceilings) -> Vec<Finding> {
    let mut folders: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for finding in findings {
        folders.entry(folder(&finding.path)).or_default().push(finding);
    }
    let ceiling = |folder: &str| {
        let row = ceilings.iter().find(|(name, _)| *name == folder);
        row.map_or(0, |(_, ceiling)| *ceiling)
    };
    folders.retain(|folder, findings| findings.len() > ceiling(folder));
    folders.into_values().flatten().collect()
}

/// The crate of a path, or its first folder: `crates/broker`, `xtask`.
pub(super) fn folder(path: &str) -> String {
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    path.split('/').take(depth).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_below_a_ceiling_are_dropped() {
        let finding = |path: &str| Finding::in_file(path, "fault");
        let findings = || {
            let paths = ["crates/a/src/b.rs", "crates/a/src/c.rs", "crates/d/src/e.rs", "f/g.rs"];
            paths.into_iter().map(finding).collect::<Vec<_>>()
        };
        let paths = |ceilings| -> Vec<String> {
            above(findings(), ceilings).into_iter().map(|finding| finding.path).collect()
        };
        assert_eq!(paths(&[("crates/a", 2), ("crates/d", 1), ("f", 1)]), [] as [&str; 0]);
        assert_eq!(paths(&[("crates/a", 1), ("crates/d", 1), ("f", 1)]).len(), 2);
        assert_eq!(paths(&[("crates/a", 2)]), ["crates/d/src/e.rs", "f/g.rs"]);
    }
}
