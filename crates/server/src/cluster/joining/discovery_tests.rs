//! Tests of the rules by which DNS lists the nodes, with zones as data.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use replication::levels::FIRST_RECORD_LEVEL;

use super::discovery::*;
use crate::config::DnsDiscovery;
use crate::membership::founding::ClusterRecord;
use crate::membership::ids::{ClusterId, DiskId};
use crate::membership::node_list::NodeList;

/// Addresses of one host name, each with its name.
struct Zone(Vec<(&'static str, Option<&'static str>)>);

impl Resolver for Zone {
    fn addresses(&self, hostname: &str) -> io::Result<Vec<IpAddr>> {
        assert_eq!(hostname, "nodes.example");
        if self.0.is_empty() {
            return Err(io::Error::other("no such name"));
        }
        Ok(self.0.iter().map(|(address, _)| address.parse().unwrap()).collect())
    }

    fn name(&self, address: IpAddr) -> io::Result<String> {
        let found = self.0.iter().find(|(one, _)| one.parse() == Ok(address));
        let name = found.and_then(|(_, name)| *name);
        name.map(str::to_owned).ok_or_else(|| io::Error::other("no name"))
    }
}

const A: (&str, Option<&str>) = ("10.0.0.1", Some("a.nodes.example."));
const B: (&str, Option<&str>) = ("10.0.0.2", Some("B.nodes.example"));
const C: (&str, Option<&str>) = ("10.0.0.3", Some("c.nodes.example"));

fn dns() -> DnsDiscovery {
    let key = "cluster_formation.dns.hostname".to_owned();
    DnsDiscovery { hostname: "nodes.example".to_owned(), target_size: 3, key }
}

fn seen(
    own: &str,
    zone: &[(&'static str, Option<&'static str>)],
    known: Option<&ClusterRecord>,
) -> Result<Vec<String>, String> {
    let listed = look(&Zone(zone.to_vec()), "nodes.example")?;
    judge(own, &dns(), &listed, known)
}

const OWN: &str = "rabbit@a.nodes.example";
const ALL: [&str; 3] = [OWN, "rabbit@b.nodes.example", "rabbit@c.nodes.example"];

fn record(cluster: &[&str], met: &[&str]) -> ClusterRecord {
    ClusterRecord {
        node: OWN.to_owned(),
        cluster: ClusterId::of(cluster.iter().copied()),
        disk: DiskId(1),
        is_founded: false,
        is_newcomer: false,
        nodes: NodeList::default().into(),
        nodes_position: 0,
        record_level: FIRST_RECORD_LEVEL,
        are_nodes_due: false,
        peers: met.iter().map(|name| ((*name).to_owned(), DiskId(2))).collect(),
    }
}

#[test]
fn dns_lists_names_of_addresses_with_the_prefix_of_this_node() {
    assert_eq!(seen(OWN, &[C, A, B], None).unwrap(), ALL);
    // A node with two addresses is one node.
    let twice = ("fd00::2", Some("b.nodes.example"));
    assert_eq!(seen(OWN, &[A, B, C, twice], None).unwrap(), ALL);
    let other = seen("x@a.nodes.example", &[A, B, C], None).unwrap();
    assert_eq!(other, ["x@a.nodes.example", "x@b.nodes.example", "x@c.nodes.example"]);
    // An address without a name does not count, and does not disturb.
    assert_eq!(seen(OWN, &[A, B, C, ("fd00::2", None)], None).unwrap(), ALL);
}

#[test]
fn node_waits_until_dns_lists_all_and_itself() {
    let hint = "(cluster_formation.target_cluster_size_hint is 3)";
    assert_eq!(
        seen(OWN, &[], None).unwrap_err(),
        "cannot look up the addresses of 'nodes.example': no such name"
    );
    assert_eq!(
        seen(OWN, &[A, B], None).unwrap_err(),
        format!("'nodes.example' lists 2 of 3 nodes: {}, {} {hint}", ALL[0], ALL[1])
    );
    assert_eq!(
        seen(OWN, &[A, ("10.0.0.3", None)], None).unwrap_err(),
        format!("'nodes.example' lists 1 of 3 nodes: {OWN}; without a name: 10.0.0.3 {hint}")
    );
    let fourth = ("10.0.0.4", Some("d.nodes.example"));
    assert!(seen(OWN, &[A, B, C, fourth], None).unwrap_err().contains("lists 4 of 3 nodes"));
    assert_eq!(
        seen("rabbit@a", &[A, B, C], None).unwrap_err(),
        format!(
            "'nodes.example' does not list this node, 'rabbit@a' (see nodename): {}",
            ALL.join(", ")
        )
    );
    let strange = ("10.0.0.3", Some("c\n.example"));
    let refused = seen(OWN, &[A, B, strange], None).unwrap_err();
    assert_eq!(
        refused,
        "'nodes.example' lists \"rabbit@c\\n.example\", which is no name of a node"
    );
}

#[test]
fn too_many_addresses_are_not_looked_up() {
    struct Many;
    impl Resolver for Many {
        fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            Ok((0..=u8::MAX).map(|last| IpAddr::from([10, 0, 0, last])).collect())
        }
        fn name(&self, _: IpAddr) -> io::Result<String> {
            panic!("a name is looked up")
        }
    }
    assert!(look(&Many, "x").unwrap_err().contains("has 256 addresses"));
}

#[test]
fn record_of_a_cluster_wins_over_dns() {
    let whole = record(&ALL, &ALL[1..]);
    let mut names = remembered(&whole).unwrap();
    names.sort_unstable();
    assert_eq!(names, ALL);
    // Before all have met, the file tells the cluster, but not the names.
    let begun = record(&ALL, &ALL[1..2]);
    assert_eq!(remembered(&begun), None);
    assert_eq!(seen(OWN, &[A, B, C], Some(&begun)).unwrap(), ALL);
    let fourth = ("10.0.0.4", Some("d.nodes.example"));
    let other = seen(OWN, &[A, B, fourth], Some(&begun)).unwrap_err();
    assert!(other.contains("the data directory belongs to cluster"), "{other}");
    let alone = ClusterRecord { peers: BTreeMap::new(), ..begun };
    assert_eq!(remembered(&alone), None);
}

#[test]
fn reasons_to_wait_are_logged_when_they_change_and_from_time_to_time() {
    let (mut log, s) = (WaitLog::default(), Duration::from_secs);
    assert!(log.is_due("one", s(0)));
    assert!(!log.is_due("one", s(59)) && log.is_due("one", s(60)));
    assert!(!log.is_due("two", s(64)) && log.is_due("two", s(65)));
    assert!(!log.is_due("one", s(66)) && !log.is_due("two", s(67)));
}
