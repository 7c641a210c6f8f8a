//! The crates of the workspace as cargo sees them: folders, dependencies, root files.
//!
//! Reads `cargo metadata`, so that features, renames and targets found by convention are cargo's
//! word and not a guess. Knows no rule. Crates are named by the folder in `crates/`, because that
//! is the name the architecture gives them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::repository;

/// A crate of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    /// Folder, relative to the root: `crates/broker`.
    pub(crate) folder: String,
    /// Dependencies that the manifest names, in cargo's order.
    pub(crate) dependencies: Vec<Dependency>,
    /// The names of all packages it is built with, directly or not, without those of its tests.
    pub(crate) reaches: BTreeSet<String>,
    /// The root files of its targets, relative to the root of the repository.
    pub(crate) roots: Vec<String>,
}

/// A dependency that a manifest names.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// The folder, when it is a crate of the workspace.
    pub(crate) member: Option<String>,
    /// True if only tests and benchmarks use it.
    pub(crate) is_for_tests: bool,
}

/// A crate of others that the workspace is built or tested with.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForeignCrate {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Licence as an expression of SPDX, if there is one.
    pub(crate) licence: Option<String>,
    /// Origin: a registry, a repository.
    pub(crate) source: String,
}

impl Package {
    /// The name the architecture uses, for a crate in `crates/`.
    pub(crate) fn layer(&self) -> Option<&str> {
        self.folder.strip_prefix("crates/")
    }

    /// The path of the manifest.
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }
}

/// Asks cargo for the crates of the workspace, and of folders that are a workspace of their own.
///
/// # Errors
/// When cargo fails, or its answer lacks what its documentation promises.
pub(crate) fn read(alone: &[&str]) -> Result<(Vec<Package>, Vec<ForeignCrate>)> {
    let unknown = "cargo metadata is not as documented";
    let metadata = repository::metadata(true)?;
    let foreign_crates = foreign_crates(&metadata).context(unknown)?;
    let mut packages = parse(&metadata).context(unknown)?;
    let root = repository::root();
    for folder in alone {
        let metadata = repository::metadata_in(&root.join(folder), false)?;
        packages.extend(parse_alone(&metadata, &root).context(unknown)?);
    }
    Ok((packages, foreign_crates))
}

/// The crates that come from elsewhere.
fn foreign_crates(metadata: &Value) -> Option<Vec<ForeignCrate>> {
    let mut crates = Vec::new();
    for package in metadata.get("packages")?.as_array()? {
        let Some(source) = text(package, "source") else { continue };
        crates.push(ForeignCrate {
            name: text(package, "name")?.to_owned(),
            version: text(package, "version")?.to_owned(),
            licence: text(package, "license").map(str::to_owned),
            source: source.to_owned(),
        });
    }
    Some(crates)
}

/// Only where they begin: what they depend on is not the workspace's business.
fn parse_alone(metadata: &Value, root: &Path) -> Option<Vec<Package>> {
    let package = |package| {
        let folder = relative(Path::new(text(package, "manifest_path")?).parent()?, root)?;
        Some(Package { folder, roots: roots(package, root)?, ..Package::default() })
    };
    metadata.get("packages")?.as_array()?.iter().map(package).collect()
}

fn parse(metadata: &Value) -> Option<Vec<Package>> {
    let root = Path::new(text(metadata, "workspace_root")?);
    let packages = metadata.get("packages")?.as_array()?;
    let names: BTreeMap<&str, &str> = packages
        .iter()
        .filter_map(|package| Some((text(package, "id")?, text(package, "name")?)))
        .collect();
    let edges = edges(metadata.get("resolve")?.get("nodes")?.as_array()?)?;
    let members = metadata.get("workspace_members")?.as_array()?;
    let is_member = |package: &&Value| package.get("id").is_some_and(|id| members.contains(id));
    packages.iter().filter(is_member).map(|package| member(package, root, &names, &edges)).collect()
}

fn member(
    package: &Value,
    root: &Path,
    names: &BTreeMap<&str, &str>,
    edges: &BTreeMap<&str, Vec<&str>>,
) -> Option<Package> {
    let mut ids = vec![text(package, "id")?];
    let mut seen = BTreeSet::new();
    while let Some(id) = ids.pop() {
        let next = edges.get(id)?.iter().copied().filter(|next| seen.insert(*next));
        ids.extend(next);
    }
    let dependencies = package.get("dependencies")?.as_array()?;
    Some(Package {
        folder: relative(Path::new(text(package, "manifest_path")?).parent()?, root)?,
        dependencies: dependencies
            .iter()
            .map(|dependency| self::dependency(dependency, root))
            .collect::<Option<_>>()?,
        reaches: seen
            .iter()
            .filter_map(|id| names.get(id))
            .map(|name| (*name).to_owned())
            .collect(),
        roots: roots(package, root)?,
    })
}

fn roots(package: &Value, root: &Path) -> Option<Vec<String>> {
    let targets = package.get("targets")?.as_array()?.iter();
    targets.map(|target| relative(Path::new(text(target, "src_path")?), root)).collect()
}

fn dependency(dependency: &Value, root: &Path) -> Option<Dependency> {
    Some(Dependency {
        name: text(dependency, "name")?.to_owned(),
        member: text(dependency, "path").and_then(|path| relative(Path::new(path), root)),
        is_for_tests: text(dependency, "kind") == Some("dev"),
    })
}

/// Ids of the packages that each package is built with, without development dependencies.
fn edges(nodes: &[Value]) -> Option<BTreeMap<&str, Vec<&str>>> {
    let is_built_with = |dependency: &&Value| {
        let kinds = dependency.get("dep_kinds").and_then(Value::as_array);
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| text(kind, "kind") != Some("dev")))
    };
    let edge = |node| {
        let dependencies = Value::get(node, "deps")?.as_array()?.iter().filter(is_built_with);
        Some((
            text(node, "id")?,
            dependencies.filter_map(|dependency| text(dependency, "pkg")).collect(),
        ))
    };
    nodes.iter().map(edge).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

fn relative(path: &Path, root: &Path) -> Option<String> {
    Some(path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_read_with_all_they_are_built_with() {
        let package = |id, name, folder| {
            json!({
                "id": id, "name": name, "manifest_path": format!("/r/{folder}/Cargo.toml"),
                "dependencies": [
                    {"name": "bytes", "kind": null},
                    {"name": "leveret-amqp", "kind": null, "path": "/r/crates/amqp"},
                    {"name": "proptest", "kind": "dev"},
                ],
                "targets": [{"src_path": format!("/r/{folder}/src/lib.rs")}],
            })
        };
        let depends = |id, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "workspace_root": "/r",
            "workspace_members": ["b"],
            "packages": [package("b", "leveret-broker", "crates/broker"), package("t", "tokio", "x"),
                package("m", "mio", "x"), package("p", "proptest", "x")],
            "resolve": {"nodes": [
                {"id": "b", "deps": [depends("t", Value::Null), depends("p", json!("dev"))]},
                {"id": "t", "deps": [depends("m", json!("build")), depends("t", Value::Null)]},
                {"id": "m", "deps": []},
                {"id": "p", "deps": []},
            ]},
        });
        let packages = parse(&metadata).unwrap();
        assert_eq!(packages.len(), 1);
        let broker = &packages[0];
        assert_eq!(broker.layer(), Some("broker"));
        assert_eq!(broker.roots, ["crates/broker/src/lib.rs"]);
        assert_eq!(broker.reaches, BTreeSet::from(["tokio".to_owned(), "mio".to_owned()]));
        assert_eq!(broker.dependencies[1].member.as_deref(), Some("crates/amqp"));
        assert!(broker.dependencies[2].is_for_tests);
    }

    #[test]
    fn crates_of_others_have_a_source() {
        let metadata = json!({"packages": [
            {"name": "leveret", "version": "0.1.0", "source": null},
            {"name": "bytes", "version": "1.0.0", "license": "MIT", "source": "registry+index"},
        ]});
        let crates = foreign_crates(&metadata).unwrap();
        assert_eq!(crates.len(), 1);
        assert_eq!((crates[0].name.as_str(), crates[0].licence.as_deref()), ("bytes", Some("MIT")));
    }

    #[test]
    fn of_a_workspace_of_its_own_only_the_roots_are_read() {
        let metadata = json!({"packages": [{
            "name": "alone", "manifest_path": "/r/tests/alone/Cargo.toml",
            "dependencies": [{"name": "tokio", "kind": null}],
            "targets": [{"src_path": "/r/tests/alone/src/lib.rs"}],
        }]});
        let packages = parse_alone(&metadata, Path::new("/r")).unwrap();
        assert_eq!(packages[0].folder, "tests/alone");
        assert_eq!(packages[0].roots, ["tests/alone/src/lib.rs"]);
        assert!(packages[0].dependencies.is_empty());
    }
}
