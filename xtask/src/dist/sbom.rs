//! The list of what is inside the programs (a software bill of materials), in the format CycloneDX.
//!
//! From `cargo metadata` and `Cargo.lock`: the crates that the programs contain, without those of builds and
//! tests, and the code of others in the web page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::release::{PACKING_TIME_MAX, PROGRAMS, Release};
use crate::place::Place;
use crate::{process, repository};

/// The table of the code of others in the web page.
const VENDORED: &str = "crates/management/web/vendor/README.md";

/// The list as JSON.
///
/// # Errors
/// When cargo cannot be asked, or its answer has another form.
pub(super) fn list(release: &Release, place: &Place<'_>) -> Result<String> {
    let metadata = repository::metadata(true)?;
    let lock =
        fs::read_to_string(place.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let page = fs::read_to_string(place.root.join(VENDORED));
    let page = page.with_context(|| format!("cannot read {VENDORED}"))?;
    let mut date = Command::new("date");
    date.args(["--utc", "+%Y-%m-%dT%H:%M:%SZ"]).arg(format!("--date=@{}", release.time_s));
    let time = process::output(date, PACKING_TIME_MAX)?;
    let mut document = of_crates(&metadata, &checksums(&lock))?;
    if let Some(components) = document["components"].as_array_mut() {
        components.extend(vendored(&page));
    }
    document["metadata"] = json!({
        "timestamp": time.trim(),
        "component": {
            "type": "application",
            "bom-ref": "leveret",
            "name": "leveret",
            "version": release.version,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        },
    });
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// The document with the crates that the programs contain.
fn of_crates(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Result<Value> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let by_id: BTreeMap<&str, &Value> =
        packages.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().context("no resolve")?;
    let edges: BTreeMap<&str, Vec<&str>> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, shipped(node)))).collect();
    let is_program = |id: &&&str| {
        by_id.get(**id).is_some_and(|package| PROGRAMS.iter().any(|name| package["name"] == *name))
    };
    let mut waiting: Vec<&str> = by_id.keys().filter(is_program).copied().collect();
    let roots = waiting.clone();
    let mut reached = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if reached.insert(id) {
            waiting.extend(edges.get(id).into_iter().flatten());
        }
    }
    let reference = |id: &str| {
        let package = by_id.get(id).copied().unwrap_or(&Value::Null);
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        (text("name"), text("version"))
    };
    let named = |id: &str| {
        let (name, version) = reference(id);
        format!("pkg:cargo/{name}@{version}")
    };
    let component = |id: &&str| {
        let (name, version) = reference(id);
        let mut component = json!({
            "type": "library",
            "bom-ref": named(id),
            "name": name,
            "version": version,
            "purl": named(id),
        });
        if let Some(licence) = by_id.get(id).and_then(|package| package["license"].as_str()) {
            // Old crates separate a choice by a slash.
            let licence = licence.replace('/', " OR ").replace("  ", " ");
            component["licenses"] = json!([{ "expression": licence }]);
        }
        if let Some(sum) = checksums.get(&(name, version)) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
        }
        component
    };
    let dependency = |id: &&str| {
        let used: BTreeSet<String> =
            edges.get(id).into_iter().flatten().map(|used| named(used)).collect();
        json!({"ref": named(id), "dependsOn": used})
    };
    let mut components: Vec<Value> = reached.iter().map(component).collect();
    components.sort_by_key(|one| one["bom-ref"].as_str().map(str::to_owned));
    let mut dependencies: Vec<Value> = reached.iter().map(dependency).collect();
    dependencies.sort_by_key(|one| one["ref"].as_str().map(str::to_owned));
    let roots: Vec<String> = roots.into_iter().map(named).collect();
    dependencies.insert(0, json!({"ref": "leveret", "dependsOn": roots}));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The crates that a crate brings into a program on Linux.
fn shipped(node: &Value) -> Vec<&str> {
    let is_shipped = |dependency: &&Value| {
        let kinds = dependency["dep_kinds"].as_array().map(Vec::as_slice).unwrap_or_default();
        kinds.iter().any(|kind| {
            let target = kind["target"].as_str().unwrap_or_default();
            let is_elsewhere = ["windows", "macos", "wasm", "hermit", "wasi"];
            let is_linux = !is_elsewhere.iter().any(|system| target.contains(system))
                || target.contains("not(");
            kind["kind"].is_null() && is_linux
        })
    };
    let dependencies = node["deps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ids = dependencies.iter().filter(is_shipped).filter_map(|one| one["pkg"].as_str());
    ids.collect()
}

/// The checksums in a `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let of_package = |block: &str| {
        let value = |key: &str| {
            let start = format!("{key} = \"");
            let line = block.lines().find(|line| line.starts_with(&start))?;
            Some(line[start.len()..].trim_end_matches('"').to_owned())
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(of_package).collect()
}

/// The code of others in the web page, from the table of its versions.
fn vendored(page: &str) -> Vec<Value> {
    let component = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, _, what, version, _, _] = cells[..] else { return None };
        let name = what.split("npmjs.com/package/").nth(1)?.split(')').next()?;
        let version = version.rsplit(' ').next()?;
        version.starts_with(|c: char| c.is_ascii_digit()).then(|| {
            let purl = format!("pkg:npm/{}@{version}", name.replace('@', "%40"));
            json!({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl})
        })
    };
    page.lines().filter_map(component).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_has_what_ships_and_nothing_else() {
        let package = |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let names = ["leveret", "used", "tests", "builds", "windows"];
        let kind = |name: &str, kind: Value, target: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind, "target": target}]});
        let metadata = json!({
            "packages": names.map(package),
            "resolve": {"nodes": [{"id": "leveret", "deps": [
                kind("used", Value::Null, json!("cfg(not(windows))")),
                kind("tests", json!("dev"), Value::Null),
                kind("builds", json!("build"), Value::Null),
                kind("windows", Value::Null, json!("cfg(windows)")),
            ]}, {"id": "used", "deps": []}]},
        });
        let lock = "[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let list = of_crates(&metadata, &checksums(lock)).unwrap();
        let found: Vec<&str> = list["components"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|c| c["name"].as_str())
            .collect();
        assert_eq!(found, ["leveret", "used"]);
        let used = &list["components"][1];
        assert_eq!(used["hashes"][0]["content"], "abc");
        assert_eq!(used["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(list["dependencies"][1]["dependsOn"], json!(["pkg:cargo/used@1.0.0"]));
    }

    #[test]
    fn vendored_code_is_named_as_on_npm() {
        let page = "| `d.js` | `x` of [d](https://www.npmjs.com/package/@a/d), with more | 3.1.3 | MIT |\n";
        let found = vendored(page);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["purl"], "pkg:npm/%40a/d@3.1.3");
    }
}
