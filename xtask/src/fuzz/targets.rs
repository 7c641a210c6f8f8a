//! The table of targets; each is a check of `fuzz/src`.

/// A program that is fuzzed.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Longest input that the fuzzer makes up.
    pub(crate) input_bytes_max: usize,
}

const fn target(name: &'static str, input_bytes_max: usize) -> Target {
    Target { name, input_bytes_max }
}

/// All targets, from the bytes outwards.
pub(crate) const TARGETS: &[Target] = &[
    target("frames", 8192),
    target("methods", 4096),
    target("tables", 4096),
    target("login", 1024),
    target("topic", 1024),
    target("patterns", 1024),
    target("session", 8192),
    target("log_recovery", 512),
    target("cluster_adopt", 4096),
    target("cluster_frame", 8192),
    target("cluster_hello", 8192),
    target("death_lines", 8192),
    target("configuration", 4096),
    target("definitions", 8192),
    target("http", 4096),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::repository;

    fn names(folder: &str, extension: &str) -> BTreeSet<String> {
        let entries = std::fs::read_dir(repository::root().join("fuzz").join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let is_one = |path: &std::path::PathBuf| path.extension().is_none_or(|e| e == extension);
        let stem =
            |path: std::path::PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        paths.filter(is_one).map(stem).collect()
    }

    #[test]
    fn every_target_is_listed_and_has_seeds() {
        let listed: BTreeSet<String> =
            TARGETS.iter().map(|target| target.name.to_owned()).collect();
        assert_eq!(listed.len(), TARGETS.len());
        let library = std::fs::read_to_string(repository::root().join("fuzz/src/lib.rs")).unwrap();
        let is_bound = |name: &String| library.contains(&format!("(\"{name}\", {name}::check)"));
        assert!(listed.iter().all(is_bound), "a target is missing in `TARGETS` of fuzz/src/lib.rs");
        assert_eq!(names("corpus", ""), listed);
        assert!(names("dictionaries", "dict").is_subset(&listed));
    }
}
