//! The rooms of a crate lie on floors: a room imports only rooms below it.
//!
//! A room is a folder or a file directly below `src`. The root of the crate, `lib.rs`, stands above all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{self, ModulePath};
use crate::tidy::report::finding::Finding;
use crate::tidy::report::ratchet::{self, Counted, Exceptions, Limit};
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::Tree;

const LIST: &str = "xtask/src/tidy/crates/floors.rs";

/// The rooms of crates, each after those that it may import.
const FLOORS: &[(&str, &[&str])] = &[(
    "crates/server",
    &[
        "limits",
        "source",
        "http_budget",
        "json",
        "snapshot",
        "requests",
        "history",
        "auth",
        "clock",
        "config",
        "service_state",
        "logging",
        "membership",
        "disk",
        "tls",
        "sockets",
        "cluster",
        "replicas",
        "shipments",
        "vhost",
        "peers",
        "metadata",
        "redrive",
        "node",
        "check",
        "connection",
        "definitions",
        "embedded",
        "http",
        "start",
        "process",
    ],
)];

/// Files that import upwards since before the rule, by room and the room above it.
const UPWARDS: Exceptions =
    &[("crates/server json -> requests", 3), ("crates/server snapshot -> requests", 1)];

/// Checks the rooms of the listed crates.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let crates = imports::by_crate(tree);
    let (mut findings, mut upwards) = (Vec::new(), Vec::new());
    for (folder, floors) in FLOORS {
        let Some(sources) = crates.get(folder) else { continue };
        findings.extend(unlisted(folder, floors, sources));
        upwards.extend(arrows_up(folder, floors, sources));
    }
    let limit = Limit {
        most: 0,
        exceptions: UPWARDS,
        list: LIST,
        unit: "files that import upwards",
        hint: "move the shared item into the lower room",
    };
    findings.extend(ratchet::check(&upwards, limit));
    findings
}

/// The room of a file; none for the root of the crate.
fn room(path: &ModulePath) -> Option<&str> {
    path.first().map(String::as_str)
}

/// Rooms that have no floor, and floors without a room.
fn unlisted(folder: &str, floors: &[&str], sources: &[(&str, &RustSource)]) -> Vec<Finding> {
    let files = imports::files(sources);
    let rooms: BTreeSet<&str> = files.keys().filter_map(room).collect();
    let listed: BTreeSet<&str> = floors.iter().copied().collect();
    let new =
        rooms.difference(&listed).map(|room| format!("{folder} {room}: give the room a floor"));
    let gone =
        listed.difference(&rooms).map(|room| format!("{folder} {room}: there is no such room"));
    new.chain(gone).map(|message| Finding::in_file(LIST, message)).collect()
}

/// The pairs of rooms of which the lower imports the higher one, with the number of files that do.
fn arrows_up(folder: &str, floors: &[&str], sources: &[(&str, &RustSource)]) -> Vec<Counted> {
    let (files, graph) = (imports::files(sources), imports::graph(sources));
    let floor = |room: &str| floors.iter().position(|one| *one == room);
    let mut arrows: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for (module, targets) in &graph {
        let Some(lower) = room(module) else { continue };
        let higher = |target: &ModulePath| {
            let higher = room(target)?;
            (floor(higher)? > floor(lower)?).then(|| higher.to_owned())
        };
        let path = files.get(module).copied().unwrap_or_default();
        for higher in targets.iter().filter_map(higher).collect::<BTreeSet<String>>() {
            arrows.entry(format!("{folder} {lower} -> {higher}")).or_insert((0, path)).0 += 1;
        }
    }
    let counted = |(name, (number, path)): (String, (usize, &str))| Counted {
        name,
        path: path.to_owned(),
        line: 1,
        number,
    };
    arrows.into_iter().map(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    const FLOORS: &[&str] = &["ground", "first", "roof"];

    /// The arrows upwards between the rooms of these files, with their numbers.
    fn arrows(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let tree = Tree::of(files);
        let crates = imports::by_crate(&tree);
        let arrows = arrows_up("crates/a", FLOORS, &crates["crates/a"]);
        arrows.into_iter().map(|arrow| (arrow.name, arrow.number)).collect()
    }

    #[test]
    fn import_of_a_room_above_is_a_fault() {
        let roof = ("crates/a/src/roof.rs", "use crate::first::B;\nuse crate::ground::A;");
        let first = ("crates/a/src/first/mod.rs", "use crate::ground::A;");
        assert_eq!(arrows(&[roof, first, ("crates/a/src/ground/mod.rs", "")]), []);
        let ground = ("crates/a/src/ground/mod.rs", "use crate::roof::{C, D};");
        let other = ("crates/a/src/ground/b.rs", "fn b() { crate::roof::d(); }");
        let up = ("crates/a ground -> roof".to_owned(), 2);
        assert_eq!(arrows(&[roof, first, ground, other]), [up]);
    }

    #[test]
    fn tests_and_the_root_may_import_everything() {
        let test = "#[cfg(test)]\nmod tests { use crate::roof::C; }";
        let root = ("crates/a/src/lib.rs", "use crate::roof::C;");
        let files = [root, ("crates/a/src/ground.rs", test), ("crates/a/src/roof.rs", "")];
        assert_eq!(arrows(&files), []);
    }

    #[test]
    fn every_room_has_a_floor() {
        let files = [("crates/a/src/ground.rs", ""), ("crates/a/src/cellar/mod.rs", "")];
        let tree = Tree::of(&files);
        let crates = imports::by_crate(&tree);
        assert_eq!(
            lines(&unlisted("crates/a", &["ground", "roof"], &crates["crates/a"])),
            format!(
                "{LIST}:1: crates/a cellar: give the room a floor\n\
                 {LIST}:1: crates/a roof: there is no such room\n"
            )
        );
    }
}
