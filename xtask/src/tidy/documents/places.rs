//! Places that exist on one machine only must not get into a file.
//!
//! A path below a home or scratch folder works on one machine only, and a package source
//! belongs into the configuration of the machine, not of the project. The names below are given
//! in parts, so that this file passes its own rule.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

/// Folders at the root of a file system under which people and build machines keep their work.
const FOLDERS: &[&str] = &["Users", "home", "root", "tmp", "work", "workspace"];

/// Hosts that package managers download from, as (host, domain).
const REGISTRIES: &[(&str, &str)] = &[
    ("deb", "debian.org"),
    ("files", "pythonhosted.org"),
    ("index", "crates.io"),
    ("proxy", "golang.org"),
    ("pypi", "org"),
    ("registry", "npmjs.org"),
    ("repo", "maven.apache.org"),
    ("repo1", "maven.org"),
    ("static", "crates.io"),
];

/// Options by which a package list names a source of its own.
const SOURCE_OPTIONS: &[&str] = &["--index-url", "--extra-index-url", "--find-links", "-i "];

/// The only source of a crate in the lock file.
const CRATE_SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every text file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in tree.texts() {
        let is_requirements = file.path.ends_with("requirements.txt");
        for (index, line) in text.lines().enumerate() {
            let fault = folder(line)
                .or_else(|| registry(line))
                .or_else(|| is_requirements.then(|| source_option(line)).flatten())
                .or_else(|| (file.path == "Cargo.lock").then(|| crate_source(line)).flatten());
            findings.extend(fault.map(|message| Finding::at(&file.path, index + 1, message)));
        }
    }
    findings
}

fn folder(line: &str) -> Option<String> {
    // A letter or a dot before the slash means that the path starts further left.
    let is_start = |at: usize| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}*~".contains(c))
    };
    let found = |folder: &&&str| {
        let path = format!("/{folder}/");
        line.match_indices(&path).any(|(at, _)| is_start(at))
    };
    let folder = FOLDERS.iter().find(found)?;
    Some(format!("a path below /{folder} is of one machine: use a relative path or an argument"))
}

fn registry(line: &str) -> Option<String> {
    let hosts = REGISTRIES.iter().map(|(host, domain)| format!("{host}.{domain}"));
    let host = hosts.into_iter().find(|host| line.contains(host.as_str()))?;
    Some(format!("`{host}` is for the machine to configure: take the host out"))
}

fn source_option(line: &str) -> Option<String> {
    let option = SOURCE_OPTIONS.iter().find(|option| line.trim_start().starts_with(**option))?;
    let option = option.trim_end();
    Some(format!("`{option}` is for the machine to configure: name the package only"))
}

fn crate_source(line: &str) -> Option<String> {
    let source = line.strip_prefix("source = ")?.trim_matches('"');
    (source != CRATE_SOURCE).then(|| format!("crates come from the public index, not `{source}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(path: &str, text: &str) -> String {
        lines(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn paths_of_one_machine_are_faults() {
        for folder in FOLDERS {
            let text = format!("cd \"/{folder}/a\"\n");
            let message = format!(
                "a.sh:1: a path below /{folder} is of one machine: use a relative path or an \
                 argument\n"
            );
            assert_eq!(findings("a.sh", &text), message);
        }
    }

    #[test]
    fn relative_paths_and_addresses_pass() {
        for line in [
            "../home/a",
            "https://a.b/home/c",
            "a/work/b",
            "$HOME/root/b",
            "/usr/home",
            "} /roots/",
        ] {
            assert_eq!(findings("a.sh", line), "", "{line}");
        }
    }

    #[test]
    fn registry_hosts_are_faults() {
        for (host, domain) in REGISTRIES {
            let text = format!("\nget https://{host}.{domain}/a\n");
            assert!(findings("a.md", &text).starts_with("a.md:2: "), "{host}");
        }
        assert_eq!(findings("a.md", "cargo takes it from crates.io\n"), "");
    }

    #[test]
    fn package_lists_name_packages_only() {
        let text = "pika==1.3.2\n--index-url https://a.b/simple\n";
        let start = "tests/a/requirements.txt:2: `--index-url` is for";
        assert!(findings("tests/a/requirements.txt", text).starts_with(start));
        let lock = format!("source = \"{CRATE_SOURCE}\"\nsource = \"registry+https://a.b\"\n");
        assert_eq!(
            findings("Cargo.lock", &lock),
            "Cargo.lock:2: crates come from the public index, not `registry+https://a.b`\n"
        );
    }
}
