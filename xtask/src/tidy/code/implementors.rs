//! A trait has two implementors in production code, or a reason.
//!
//! One with a single implementor is a type that a reader has to look for. A seam between rooms, or between the
//! machine and what is tested, is a reason; it stands in the list.

use std::collections::BTreeMap;

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::words;
use crate::tidy::sources::tree::Tree;

/// Implementors that need no reason.
const IMPLEMENTORS_MIN: usize = 2;

/// Traits with fewer, and the reasons.
const REASONS: &[(&str, &str)] = &[
    ("Arguments", "one macro implements it for every method"),
    ("Files", "tests have no system files of a container"),
    ("GivesWay", "a transfer has the type of its body, which the pool of all does not know"),
    ("LinkEvents", "links lie below the node, and their tests have none"),
    ("LocalNode", "links lie below the node, and their tests have none"),
    ("PageRecords", "the core knows pages of its owner as their records only"),
    ("PageSource", "the disk lies below vhosts"),
    ("ReplicaRegistry", "replication lies below vhosts"),
    ("SnapshotCopy", "backups lie above the log"),
    ("TimerTarget", "tests give the timer a turn that takes long"),
];

/// The file with the list.
const LIST: &str = "xtask/src/tidy/code/implementors.rs";

/// Checks every trait.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    faults(tree, REASONS)
}

fn faults(tree: &Tree, reasons: &[(&str, &str)]) -> Vec<Finding> {
    let implementors = implementors(tree);
    let mut findings = Vec::new();
    let mut excused: Vec<&str> = Vec::new();
    for (file, source) in tree.production() {
        for (at, name, _) in source.items("trait") {
            let number = implementors.get(name).copied().unwrap_or_default();
            let has_reason = reasons.iter().any(|(excused, _)| *excused == name);
            if number < IMPLEMENTORS_MIN && !has_reason {
                let message = format!(
                    "trait {name} has {number} implementors outside tests: use the type, or give a reason in {LIST}"
                );
                findings.push(Finding::at(&file.path, source.line(at), message));
            }
            if number < IMPLEMENTORS_MIN && has_reason {
                excused.push(name);
            }
        }
    }
    for (name, _) in reasons.iter().filter(|(name, _)| !excused.contains(name)) {
        findings
            .push(Finding::in_file(LIST, format!("trait {name} needs no reason: remove its row")));
    }
    findings
}

/// The numbers of implementors of traits, by name.
fn implementors(tree: &Tree) -> BTreeMap<&str, usize> {
    let mut numbers = BTreeMap::new();
    for (_, source) in tree.production() {
        for at in source.mentions("impl").filter(|at| !source.is_test(*at)) {
            if let Some(name) = implemented(&source.code[at + "impl".len()..]) {
                *numbers.entry(name).or_default() += 1;
            }
        }
    }
    numbers
}

/// The trait that is implemented by what follows `impl`; none in an `impl` of a type alone, or in a type.
fn implemented(code: &str) -> Option<&str> {
    let code = without_generics(code).trim_start();
    let mut name = None;
    let mut rest = code;
    loop {
        let (at, word) = words(rest).next()?;
        if !rest[..at].trim().trim_start_matches("::").is_empty() {
            return None;
        }
        if word == "for" {
            return name;
        }
        name = Some(word);
        rest = without_generics(&rest[at + word.len()..]).trim_start();
    }
}

/// The code behind the generics that it begins with.
fn without_generics(code: &str) -> &str {
    let mut depth = 0_usize;
    let mut before = b' ';
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if before != b'-' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return &code[at + 1..];
                }
            }
            _ if depth == 0 => return code,
            _ => {}
        }
        before = byte;
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    #[test]
    fn implemented_traits_are_found() {
        for (code, name) in [
            (" A for B {", Some("A")),
            ("<T: Fn() -> U> a::b::C<D<E>> for F<T> {", Some("C")),
            (" B {", None),
            (" Iterator<Item = A> + use<B> {", None),
            ("<T> A<T> where T: for<'a> B<'a> {", None),
        ] {
            assert_eq!(implemented(code), name, "{code}");
        }
    }

    #[test]
    fn trait_with_one_implementor_needs_a_reason() {
        let text = "trait A {}\nimpl A for B {}\n#[cfg(test)]\nmod c { impl A for D {} }\n\
                    trait E {}\nimpl E for B {}\nimpl<T> x::E for F<T> {}";
        let tree = Tree::of(&[("a.rs", text)]);
        let fault = lines(&faults(&tree, &[]));
        assert!(fault.starts_with("a.rs:1: trait A has 1 implementors outside tests"), "{fault}");
        assert_eq!(fault.lines().count(), 1);
        assert_eq!(lines(&faults(&tree, &[("A", "a seam")])), "");
        let needless = lines(&faults(&tree, &[("A", "a seam"), ("E", "none"), ("G", "gone")]));
        assert_eq!(needless.matches("needs no reason").count(), 2, "{needless}");
    }
}
