//! Rules that older code does not keep yet: each folder may have so many faults, and none more.
//!
//! Knows how faults are counted and compared, not the rules. A ceiling only ever falls; a rule without
//! ceilings refuses every fault.

use std::collections::BTreeMap;

use crate::tidy::report::finding::Finding;

/// The number of faults that each folder may have; a folder without a row may have none.
pub(crate) type Ceilings = &'static [(&'static str, usize)];

/// The findings of the folders with more of them than their ceiling; of one with fewer, that its row in `list` falls.
pub(crate) fn above(findings: Vec<Finding>, ceilings: Ceilings, list: &str) -> Vec<Finding> {
    let mut folders: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for finding in findings {
        folders.entry(folder(&finding.path)).or_default().push(finding);
    }
    let ceiling = |folder: &str| {
        let row = ceilings.iter().find(|(name, _)| *name == folder);
        row.map_or(0, |(_, ceiling)| *ceiling)
    };
    let mut above = Vec::new();
    for (name, ceiling) in ceilings {
        let number = folders.get(*name).map_or(0, Vec::len);
        if number < *ceiling {
            let message = format!("{name} has {number} now: lower its row of {ceiling}");
            above.push(Finding::in_file(list, message));
        }
    }
    folders.retain(|folder, findings| findings.len() > ceiling(folder));
    above.extend(folders.into_values().flatten());
    above
}

/// The crate of a path, or its first folder: `crates/broker`, `xtask`.
pub(crate) fn folder(path: &str) -> String {
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
            above(findings(), ceilings, "list.rs").into_iter().map(|finding| finding.path).collect()
        };
        assert_eq!(paths(&[("crates/a", 2), ("crates/d", 1), ("f", 1)]), [] as [&str; 0]);
        assert_eq!(paths(&[("crates/a", 1), ("crates/d", 1), ("f", 1)]).len(), 2);
        assert_eq!(paths(&[("crates/a", 2)]), ["crates/d/src/e.rs", "f/g.rs"]);
    }

    #[test]
    fn ceiling_falls_with_the_findings() {
        let findings =
            above(vec![Finding::in_file("f/g.rs", "fault")], &[("f", 2), ("h", 1)], "list.rs");
        let messages: Vec<&str> = findings.iter().map(|finding| &*finding.message).collect();
        assert_eq!(
            messages,
            ["f has 1 now: lower its row of 2", "h has 0 now: lower its row of 1"]
        );
    }
}
