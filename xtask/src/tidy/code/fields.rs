//! At most sixteen fields in a struct: one with more has parts that have no name yet.
//!
//! Counts the named fields of the structs of production code.

use crate::tidy::report::finding::Finding;
use crate::tidy::report::ratchet::{self, Counted, Exceptions, Limit};
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::Tree;

/// Fields of a struct.
const FIELDS_MAX: usize = 16;

/// Structs with more.
const EXCEPTIONS: Exceptions = &[
    ("crates/broker/src/channel/mod.rs Channel", 19),
    ("crates/broker/src/exchange/mod.rs Exchange", 18),
    ("crates/broker/src/statistics.rs VhostCounters", 32),
    ("crates/broker/src/vhost/mod.rs Vhost", 24),
    ("crates/perf/src/options.rs Throughput", 17),
    ("crates/replica/src/replica/mod.rs Replica", 24),
    ("crates/replication/src/member/mod.rs Member", 33),
    ("crates/server/src/cluster/links/registry.rs Links", 22),
    ("crates/server/src/config/mod.rs Config", 38),
    ("crates/server/src/connection/task.rs Connection", 23),
    // One flat object: serde refuses unknown members of a flat one only.
    ("crates/server/src/disk/deaths/line.rs WholeLine", 21),
    ("crates/server/src/node/mod.rs Node", 30),
    ("crates/server/src/replicas/replicator/mod.rs Work", 19),
    ("crates/server/src/snapshot/node.rs NodeSnapshot", 18),
    ("crates/sim/src/checks/ledger.rs Ledger", 21),
    ("crates/sim/src/cluster/node.rs Node", 17),
    ("crates/sim/src/cluster/process.rs Process", 31),
    ("crates/sim/src/relays/relay.rs Relay", 25),
    ("crates/sim/src/relays/stream.rs Stream", 18),
    ("crates/sim/src/run.rs Counts", 18),
    ("crates/sim/src/world.rs World", 21),
];

/// Checks every struct.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let limit = Limit {
        most: FIELDS_MAX,
        exceptions: EXCEPTIONS,
        list: "xtask/src/tidy/code/fields.rs",
        unit: "fields",
        hint: "which of them make a noun of their own?",
    };
    ratchet::check(&structs(tree), limit)
}

/// The structs of production code, with the numbers of their fields.
fn structs(tree: &Tree) -> Vec<Counted> {
    let files = tree.production();
    files.flat_map(|(file, source)| structs_in(&file.path, source)).collect()
}

fn structs_in(path: &str, source: &RustSource) -> Vec<Counted> {
    let mut counted = Vec::new();
    for (at, name, rest) in source.items("struct") {
        let end = rest.find([';', '{', '(']).unwrap_or(rest.len());
        if !rest[end..].starts_with('{') {
            continue;
        }
        counted.push(Counted {
            name: format!("{path} {name}"),
            path: path.to_owned(),
            line: source.line(at),
            number: fields(&rest[end + 1..]),
        });
    }
    counted
}

/// The fields of a struct whose body begins here: the colons that are in no type, path or attribute.
fn fields(body: &str) -> usize {
    let (mut depth, mut fields) = (0_usize, 0);
    let bytes = body.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        match byte {
            b'{' | b'(' | b'[' | b'<' => depth += 1,
            b'>' if before == Some(b'-') => {}
            b'}' if depth == 0 => break,
            b'}' | b')' | b']' | b'>' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && before != Some(b':') && bytes.get(at + 1) != Some(&b':') => {
                fields += 1;
            }
            _ => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Vec<(String, usize)> {
        let tree = Tree::of(&[("a.rs", text)]);
        structs(&tree).into_iter().map(|counted| (counted.name, counted.number)).collect()
    }

    #[test]
    fn named_fields_are_counted() {
        let text = "pub struct A<T: B> {\n /// c: d\n #[e(f: 1)]\n pub(in a::b) g: h::I<J, [u8; 2]>,\n \
                    k: Box<dyn Fn(L) -> M>, n: for<'a> fn(o: &'a P) }";
        assert_eq!(counts(text), [("a.rs A".to_owned(), 3)]);
    }

    #[test]
    fn other_structs_and_those_of_tests_are_not() {
        assert_eq!(
            counts("struct A; struct B(u8, C); #[cfg(test)] mod d { struct E { f: u8 } }"),
            []
        );
        assert_eq!(counts("struct A {}\n// struct B { c: u8 }"), [("a.rs A".to_owned(), 0)]);
    }
}
