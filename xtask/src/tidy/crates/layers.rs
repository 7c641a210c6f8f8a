//! The arrows of the architecture: the crates that a crate may know, and those that the pure crates must not
//! be built with.
//!
//! The table below is the one place where an arrow is allowed. Development dependencies are free:
//! a test may look at more than its crate. `reaches` is transitive, so that a small crate cannot
//! smuggle a runtime into the core.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;
use crate::tidy::sources::workspace::Package;

/// The crates of the workspace that a crate may know.
struct Layer {
    /// Folder in `crates/`.
    name: &'static str,
    /// The crates of the workspace it may depend on.
    may_know: &'static [&'static str],
}

/// The crates from the bottom to the top.
const LAYERS: &[Layer] = &[
    Layer { name: "amqp", may_know: &[] },
    Layer { name: "broker", may_know: &["amqp"] },
    Layer { name: "session", may_know: &["amqp", "broker"] },
    Layer { name: "storage", may_know: &[] },
    Layer { name: "simdisk", may_know: &["storage"] },
    Layer { name: "replication", may_know: &["storage"] },
    Layer { name: "replica", may_know: &["amqp", "broker", "session", "storage", "replication"] },
    Layer {
        name: "sim",
        may_know: &["amqp", "broker", "session", "storage", "simdisk", "replication", "replica"],
    },
    Layer { name: "line", may_know: &[] },
    Layer { name: "httpdate", may_know: &[] },
    Layer {
        name: "server",
        may_know: &["amqp", "broker", "session", "storage", "replication", "replica", "line"],
    },
    Layer { name: "management", may_know: &["amqp", "broker", "server"] },
    Layer { name: "leveret", may_know: &["line", "server", "management"] },
    Layer { name: "ctl", may_know: &["line"] },
    Layer { name: "perf", may_know: &["amqp", "line"] },
    Layer { name: "instructions", may_know: &["amqp", "broker", "session", "storage", "replica"] },
];

/// The crates that decide and never act.
pub(crate) const PURE: &[&str] = &["amqp", "broker", "replica", "replication", "session"];

/// Crates that no pure crate may be built with, and what each would bring.
const IMPURE: &[(&str, &str)] = &[
    ("async-std", "an async runtime"),
    ("getrandom", "randomness that is not an argument"),
    ("hyper", "HTTP"),
    ("mio", "sockets"),
    ("rustix", "system calls"),
    ("serde_json", "JSON"),
    ("smol", "an async runtime"),
    ("socket2", "sockets"),
    ("tokio", "an async runtime"),
];

/// A pure crate, an impure one that it is built with all the same, and how the crate keeps it from having an effect.
const GUARDED: &[(&str, &str, &str)] = &[
    ("replication", "getrandom", ENGINE),
    ("replica", "getrandom", ENGINE),
    ("replica", "serde_json", ITEMS),
];

const ENGINE: &str = "the consensus engine draws election times with it, which `engine` overwrites with its own after every call";

const ITEMS: &str = "values of the metadata's items are JSON in the log: the crate compares them, and looks into none";

/// Checks the arrows between the crates, and the dependencies of the pure ones.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.packages.iter().flat_map(|package| arrows(package, tree)).collect()
}

fn arrows(package: &Package, tree: &Tree) -> Vec<Finding> {
    let manifest = package.manifest();
    let Some(name) = package.layer() else {
        return Vec::new();
    };
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
        let message = format!(
            "crate `{name}` has no layer: say in ARCHITECTURE.md what it alone may know, and give \
             it a row in the table of the layers rule"
        );
        return vec![Finding::in_file(&manifest, message)];
    };
    let mut findings = Vec::new();
    for dependency in package.dependencies.iter().filter(|dependency| !dependency.is_for_tests) {
        let Some(known) =
            dependency.member.as_deref().map(|path| path.trim_start_matches("crates/"))
        else {
            continue;
        };
        if !layer.may_know.contains(&known) {
            let message = format!(
                "`{name}` must not know `{known}`: a crate knows only the layers below it; move \
                 the code, or pass the value as an argument"
            );
            findings.push(Finding::at(
                &manifest,
                tree.line_of(&manifest, &dependency.name),
                message,
            ));
        }
    }
    for (impure, brings) in IMPURE.iter().filter(|_| PURE.contains(&name)) {
        let is_guarded = GUARDED.iter().any(|(of, known, _)| (of, known) == (&name, impure));
        if package.reaches.contains(*impure) && !is_guarded {
            let message = format!(
                "the pure crate `{name}` is built with `{impure}` ({brings}): `cargo tree -e \
                 normal -i {impure}` shows by which way; drop it or turn off the feature"
            );
            findings.push(Finding::at(&manifest, tree.line_of(&manifest, impure), message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;
    use crate::tidy::sources::workspace::Dependency;

    fn package(name: &str, knows: &[&str]) -> Package {
        let dependency = |known: &&str| Dependency {
            name: format!("leveret-{known}"),
            member: Some(format!("crates/{known}")),
            is_for_tests: false,
        };
        Package {
            folder: format!("crates/{name}"),
            dependencies: knows.iter().map(dependency).collect(),
            ..Package::default()
        }
    }

    fn tree(package: Package) -> Tree {
        let manifest = "[dependencies]\nleveret-session.workspace = true\ntokio = \"1\"\n";
        let mut tree = Tree::of(&[("crates/broker/Cargo.toml", manifest)]);
        tree.packages.push(package);
        tree
    }

    #[test]
    fn arrow_down_is_allowed() {
        assert_eq!(check(&tree(package("session", &["amqp", "broker"]))), []);
    }

    #[test]
    fn arrow_up_is_a_fault_at_its_line() {
        let findings = lines(&check(&tree(package("broker", &["amqp", "session"]))));
        assert!(
            findings.starts_with("crates/broker/Cargo.toml:2: `broker` must not know `session`")
        );
        assert_eq!(findings.lines().count(), 1);
    }

    #[test]
    fn arrow_up_for_tests_is_allowed() {
        let mut package = package("broker", &["session"]);
        package.dependencies[0].is_for_tests = true;
        assert_eq!(check(&tree(package)), []);
    }

    #[test]
    fn new_crate_needs_a_row() {
        let findings = lines(&check(&tree(package("shovel", &[]))));
        assert!(findings.starts_with("crates/shovel/Cargo.toml:1: crate `shovel` has no layer"));
    }

    #[test]
    fn runtime_below_the_core_is_a_fault_however_it_came() {
        let mut broker = package("broker", &[]);
        broker.reaches.insert("tokio".to_owned());
        let findings = lines(&check(&tree(broker)));
        let start = "crates/broker/Cargo.toml:3: the pure crate `broker` is built with `tokio`";
        assert!(findings.starts_with(start), "{findings}");
        let mut server = package("server", &[]);
        server.reaches.insert("tokio".to_owned());
        assert_eq!(check(&tree(server)), []);
    }

    #[test]
    fn guarded_crate_is_allowed_in_its_crate_alone() {
        let with = |name| {
            let mut package = package(name, &[]);
            package.reaches.insert("getrandom".to_owned());
            check(&tree(package))
        };
        assert_eq!(with("replication"), []);
        assert_eq!(with("broker").len(), 1);
        assert!(GUARDED.iter().all(|(of, _, reason)| PURE.contains(of) && !reason.is_empty()));
    }

    #[test]
    fn layers_know_only_those_listed_before_them() {
        for (at, layer) in LAYERS.iter().enumerate() {
            let before = &LAYERS[..at];
            let is_before = |known: &&str| before.iter().any(|layer| layer.name == *known);
            assert!(layer.may_know.iter().all(is_before), "{}", layer.name);
        }
        assert!(PURE.iter().all(|name| LAYERS.iter().any(|layer| layer.name == *name)));
    }
}
