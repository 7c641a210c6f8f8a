//! At most seventy lines in a function: a longer one is read twice.
//!
//! Counts lines with code, from the name to the last brace. Clippy's limit (90) refuses what no list excuses.

use crate::tidy::report::finding::Finding;
use crate::tidy::report::ratchet::{self, Counted, Exceptions, Limit};
use crate::tidy::sources::rust_source::{RustSource, item_length};
use crate::tidy::sources::tree::Tree;

/// Lines of code of a function.
const LINES_MAX: usize = 70;

/// Functions with more.
const EXCEPTIONS: Exceptions = &[
    ("crates/broker/src/record/encode.rs encode_without_body", 71),
    ("crates/broker/src/vhost/log/replay.rs apply_record", 104),
    ("crates/ctl/src/commands/cluster/cluster_status.rs cluster_status", 71),
    ("crates/management/src/api/nodes/mod.rs to_json", 75),
    ("crates/management/src/findings/kind.rs about", 73),
    ("crates/management/src/metrics/deaths.rs write", 71),
    ("crates/server/src/config/cluster.rs warnings", 80),
    ("crates/server/src/connection/process.rs process", 82),
    ("crates/server/src/connection/task.rs drive", 82),
    ("crates/server/src/definitions/apply.rs apply", 87),
    ("crates/server/src/process.rs run", 92),
    ("crates/server/src/start/mod.rs start", 90),
    ("crates/server/src/replicas/replicator/thread.rs advance", 77),
    ("crates/server/src/replicas/replicator/thread.rs take", 74),
    ("crates/storage/src/recovery/mod.rs read_file", 88),
    ("crates/storage/src/segment_reader.rs scan", 91),
    ("fuzz/examples/seeds.rs cluster_frames", 75),
    ("fuzz/examples/seeds.rs histories", 180),
    ("fuzz/src/session/words.rs frames", 137),
    ("xtask/src/test/actions.rs run", 73),
];

/// Checks every function.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let limit = Limit {
        most: LINES_MAX,
        exceptions: EXCEPTIONS,
        list: "xtask/src/tidy/code/functions.rs",
        unit: "lines",
        hint: "which step of it has a name?",
    };
    ratchet::check(&functions(tree), limit)
}

/// The functions of production code, with the numbers of their lines. Of functions with one name in a file, the
/// longest counts.
fn functions(tree: &Tree) -> Vec<Counted> {
    let mut longest: Vec<Counted> = Vec::new();
    for (file, source) in tree.production() {
        for counted in functions_in(&file.path, source) {
            match longest.iter_mut().rev().find(|known| known.name == counted.name) {
                Some(known) if known.number < counted.number => *known = counted,
                Some(_) => {}
                None => longest.push(counted),
            }
        }
    }
    longest
}

fn functions_in(path: &str, source: &RustSource) -> Vec<Counted> {
    let mut counted = Vec::new();
    for (at, name, _) in source.items("fn") {
        let rest = &source.code[at..];
        let function = &rest[..item_length(rest)];
        // A declaration has no body.
        if !function.ends_with('}') {
            continue;
        }
        let lines = function.lines().filter(|line| !line.trim().is_empty()).count();
        counted.push(Counted {
            name: format!("{path} {name}"),
            path: path.to_owned(),
            line: source.line(at),
            number: lines,
        });
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Vec<(String, usize)> {
        let tree = Tree::of(&[("a.rs", text)]);
        functions(&tree).into_iter().map(|counted| (counted.name, counted.number)).collect()
    }

    #[test]
    fn lines_with_code_are_counted() {
        let text = "impl A {\n  fn b(c: [u8; 2]) -> D {\n    // e\n\n    f { g }\n  }\n}";
        assert_eq!(counts(text), [("a.rs b".to_owned(), 3)]);
    }

    #[test]
    fn the_longest_of_a_name_counts() {
        let text = "fn a() {}\nfn a() {\n}\nfn a() {}";
        assert_eq!(counts(text), [("a.rs a".to_owned(), 2)]);
    }

    #[test]
    fn declarations_types_and_tests_are_no_functions() {
        let text = "trait A { fn b(&self); }\nstruct C { d: fn(E) -> F }\n#[cfg(test)]\nmod g { fn h() {} }";
        assert_eq!(counts(text), []);
    }
}
