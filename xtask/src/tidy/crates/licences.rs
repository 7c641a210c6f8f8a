//! Every crate of others has a licence that `deny.toml` allows, and comes from the index of crates.io.
//!
//! The same tree gives the same result, so that this is a part of every test run. `cargo deny check` reads the same
//! lists and asks for known vulnerabilities besides, which is a question about today and not about the tree: a release
//! asks it.

use spdx::{Expression, LicenseReq, ParseMode};

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;
use crate::tidy::sources::workspace::ForeignCrate;

/// The file with the decisions.
const DECISIONS: &str = "deny.toml";

/// The file that names all crates.
const LOCK: &str = "Cargo.lock";

/// End of the source of a crate of the public index.
const INDEX: &str = "/crates.io-index";

/// Checks licences and sources.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let allowed = allowed(tree.text(DECISIONS).unwrap_or_default());
    let mut findings = Vec::new();
    for foreign in &tree.foreign_crates {
        let line = tree.line_of(LOCK, &format!("name = \"{}\"", foreign.name));
        let messages = [licence_fault(foreign, &allowed), source_fault(foreign)];
        let messages = messages.into_iter().flatten();
        findings.extend(messages.map(|message| Finding::at(LOCK, line, message)));
    }
    findings
}

fn licence_fault(foreign: &ForeignCrate, allowed: &[&str]) -> Option<String> {
    let ForeignCrate { name, version, licence, .. } = foreign;
    let Some(licence) = licence else {
        return Some(format!("{name} {version} names no licence"));
    };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) if expression.evaluate(|licence| is_allowed(licence, allowed)) => None,
        Ok(_) => Some(format!(
            "{name} {version} has the licence {licence}, which {DECISIONS} does not allow"
        )),
        Err(error) => Some(format!("{name} {version} has a licence that is none: {error}")),
    }
}

fn is_allowed(licence: &LicenseReq, allowed: &[&str]) -> bool {
    // An addition gives rights, so that the licence without it decides.
    licence.license.id().is_some_and(|id| allowed.contains(&id.name))
}

fn source_fault(foreign: &ForeignCrate) -> Option<String> {
    let ForeignCrate { name, version, source, .. } = foreign;
    let is_public = source.starts_with("registry+") && source.ends_with(INDEX);
    (!is_public).then(|| format!("{name} {version} is not of the public index, but of {source}"))
}

/// The quoted words of the list `allow` in the section `licenses`.
fn allowed(decisions: &str) -> Vec<&str> {
    let section = decisions.lines().skip_while(|line| *line != "[licenses]");
    let list = section.skip_while(|line| !line.starts_with("allow = [")).skip(1);
    let words = list.take_while(|line| *line != "]");
    words.map(|line| line.trim().trim_end_matches(',').trim_matches('"')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(licence: Option<&str>, source: &str) -> String {
        let decisions = "[advisories]\nallow = [\n  \"X\",\n]\n[licenses]\nallow = [\n  \"MIT\",\n  \"ISC\",\n]\n";
        let mut tree =
            Tree::of(&[("deny.toml", decisions), ("Cargo.lock", "\nname = \"bytes\"\n")]);
        tree.foreign_crates.push(ForeignCrate {
            name: "bytes".to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            source: source.to_owned(),
        });
        lines(&check(&tree))
    }

    #[test]
    fn licences_are_those_of_the_list() {
        let of = |licence| findings(Some(licence), "registry+x/crates.io-index");
        for licence in
            ["MIT", "MIT OR GPL-3.0", "GPL-2.0/MIT", "MIT AND ISC", "(MIT OR X11) AND ISC"]
        {
            assert_eq!(of(licence), "", "{licence}");
        }
        assert_eq!(
            of("MIT AND GPL-3.0-only"),
            "Cargo.lock:2: bytes 1.0.0 has the licence MIT AND GPL-3.0-only, which deny.toml does not allow\n"
        );
        assert!(of("no licence at all").contains("has a licence that is none"));
        let without = findings(None, "registry+x/crates.io-index");
        assert_eq!(without, "Cargo.lock:2: bytes 1.0.0 names no licence\n");
    }

    #[test]
    fn sources_are_the_public_index() {
        assert_eq!(
            findings(Some("MIT"), "git+https://host/bytes"),
            "Cargo.lock:2: bytes 1.0.0 is not of the public index, but of git+https://host/bytes\n"
        );
    }
}
