//! Words that source text must not mention: the world in the pure crates, tasks and threads outside the
//! shell, JSON outside its edge.
//!
//! Works on words of the code, so a comment may name what is forbidden. Tests are free: they read
//! script files and start threads. Dependencies, which the compiler knows, are checked by the layers rule.

use crate::tidy::crates::layers::PURE;
use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::{Tree, TreeFile};

/// Modules of the standard library that touch the world.
const WORLD_MODULES: &[(&str, &str)] = &[
    ("env", "configuration is an argument"),
    ("fs", "files belong to storage and the server"),
    ("net", "sockets belong to the server"),
    ("process", "a pure crate starts and ends nothing"),
    ("thread", "only the server spawns"),
];

/// Names of the standard library that read a clock.
const CLOCKS: &[&str] = &["Instant::now", "SystemTime"];

/// Calls that start a task or a thread.
const SPAWNS: &[&str] = &[
    "spawn_blocking",
    "task::spawn",
    "thread::Builder",
    "thread::scope",
    "thread::spawn",
    "tokio::spawn",
];

/// The crates whose work is to run things side by side.
const SPAWNERS: &[&str] = &["perf", "server"];

/// Checks what the source of the crates mentions.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.production() {
        let Some(crate_folder) = file.crate_folder() else {
            continue;
        };
        if PURE.contains(&crate_folder) {
            for (at, message) in world_mentions(source) {
                report(file, source, at, message, &mut findings);
            }
        }
        if !SPAWNERS.contains(&crate_folder) {
            for at in SPAWNS.iter().flat_map(|spawn| source.mentions(spawn)) {
                let message = "only the server and the load generator spawn: return what is to be \
                               done, and let the server do it";
                report(file, source, at, message.to_owned(), &mut findings);
            }
        }
        if !knows_json(&file.path) {
            for at in source.mentions("serde_json") {
                let message = "only management, ctl, perf, the metadata of a cluster, and in the server definitions, \
                               items as JSON, requests, those of other nodes, global parameters, the files of the node and the cluster, \
                               files of redrives and of deaths and ctl.json know JSON: give the value a type of its own at that boundary";
                report(file, source, at, message.to_owned(), &mut findings);
            }
        }
    }
    findings
}

fn report(
    file: &TreeFile,
    source: &RustSource,
    at: usize,
    message: String,
    findings: &mut Vec<Finding>,
) {
    if !source.is_test(at) {
        findings.push(Finding::at(&file.path, source.line(at), message));
    }
}

fn knows_json(path: &str) -> bool {
    [
        "crates/management/",
        "crates/ctl/",
        "crates/perf/",
        "crates/replica/src/metadata/",
        "crates/server/src/auth/ctl_token",
        "crates/server/src/definitions",
        "crates/server/src/metadata/",
        "crates/server/src/membership/placement",
        "crates/server/src/node/metadata/followed",
        "crates/server/src/node/metadata/global_parameters",
        "crates/server/src/node/metadata/mod",
        "crates/server/src/disk/deaths/line",
        "crates/server/src/disk/json_files/",
        "crates/server/src/peers/",
        "crates/server/src/json/",
        "crates/server/src/redrive/record",
        "crates/server/src/redrive/store",
        "crates/server/src/requests/",
    ]
    .iter()
    .any(|start| path.starts_with(start))
}

/// Offsets at which a pure crate names the world, with advice.
fn world_mentions(source: &RustSource) -> Vec<(usize, String)> {
    let mut mentions = Vec::new();
    for (module, reason) in WORLD_MODULES {
        let path = format!("std::{module}");
        let message = format!("`{path}` in a pure crate: {reason}");
        mentions.extend(source.mentions(&path).map(|at| (at, message.clone())));
        let grouped = group_items(source).filter(|(_, item)| item == module);
        mentions.extend(grouped.map(|(at, _)| (at, message.clone())));
    }
    for clock in CLOCKS {
        let message = format!("`{clock}` in a pure crate: time is an argument");
        mentions.extend(source.mentions(clock).map(|at| (at, message.clone())));
    }
    mentions
}

/// The first segment of each item of every `std::{...}` group, with its offset.
fn group_items(source: &RustSource) -> impl Iterator<Item = (usize, &str)> {
    source.code.match_indices("std::{").flat_map(|(start, opening)| {
        let (mut depth, mut is_first) = (1, true);
        let mut items = Vec::new();
        let body = start + opening.len();
        for (at, byte) in source.code.bytes().enumerate().skip(body) {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b',' if depth == 1 => is_first = true,
                _ if is_first && byte.is_ascii_alphabetic() => {
                    let rest = &source.code[at..];
                    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    items.push((at, &rest[..end.unwrap_or(rest.len())]));
                    is_first = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        items
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(path: &str, text: &str) -> String {
        lines(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn pure_crates_name_no_clock() {
        let text = "use std::time::{Duration, SystemTime};\nlet now = Instant::now();\n";
        assert_eq!(
            findings("crates/broker/src/a.rs", text),
            "crates/broker/src/a.rs:2: `Instant::now` in a pure crate: time is an argument\n\
             crates/broker/src/a.rs:1: `SystemTime` in a pure crate: time is an argument\n"
        );
    }

    #[test]
    fn pure_crates_name_no_file_however_imported() {
        for text in ["use std::fs;", "std::fs::read(p)", "use std::{cmp::{max, min}, fs::File};"] {
            let findings = findings("crates/session/src/a.rs", text);
            let start = "crates/session/src/a.rs:1: `std::fs` in a pure crate: files";
            assert!(findings.starts_with(start), "{text}: {findings}");
        }
        assert_eq!(findings("crates/session/src/a.rs", "use std::{cmp, fmt::{self, env}};"), "");
    }

    #[test]
    fn comments_tests_and_the_shell_are_free() {
        let text = "use std::fs; std::thread::spawn(f);";
        assert_eq!(findings("crates/broker/tests/script.rs", text), "");
        assert_eq!(findings("crates/server/src/process.rs", text), "");
        assert_eq!(findings("crates/amqp/src/lib.rs", "//! No std::fs.\n"), "");
        let inner = "#[cfg(test)]\nmod tests { use std::fs; }";
        assert_eq!(findings("crates/amqp/src/lib.rs", inner), "");
    }

    #[test]
    fn only_the_shell_spawns() {
        let findings = findings("crates/management/src/a.rs", "\ntokio::spawn(f);");
        assert!(findings.starts_with("crates/management/src/a.rs:2: only the server"));
    }

    #[test]
    fn only_the_edges_know_json() {
        let text = "use serde_json::Value;";
        assert!(findings("crates/server/src/vhost/mod.rs", text).contains(":1: only management"));
        assert_eq!(findings("crates/server/src/definitions/mod.rs", text), "");
        assert_eq!(findings("crates/management/src/paging.rs", text), "");
        assert_eq!(findings("xtask/src/repository.rs", text), "");
    }
}
