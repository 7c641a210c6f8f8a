//! The level of record kinds of nodes of different versions, over links between them.

use super::running::{Cluster, Event};
use crate::cluster::links::registry::Links;
use crate::cluster::peer::events::LostCause;
use crate::cluster::refusal::RefusalCode;
use crate::config::ClusterOptions;

#[tokio::test(flavor = "multi_thread")]
async fn level_rises_when_all_read_more_and_is_known_at_the_next_start() {
    let cluster = Cluster::new("levels", &["a@127.0.0.1", "b@127.0.0.1"]);
    let older = ClusterOptions { record_level: 1, ..cluster.options() };
    let first = cluster.start(0);
    assert_eq!(
        (first.links.record_level(), first.links.away()),
        (1, vec!["b@127.0.0.1".to_owned()])
    );
    assert_eq!(first.links.level_to_rise_to(), None, "b is not connected");
    let second = cluster.start_with(1, &older);
    first.wait_for(&Event::Founded);
    second.wait_for(&Event::Founded);
    assert_eq!(first.links.level_to_rise_to(), None, "b reads up to level 1");
    drop(second);
    first.lost(cluster.id(1));
    let second = cluster.start(1);
    first.wait_for(&Event::Connected(cluster.id(1)));
    assert_eq!(first.links.level_to_rise_to(), Some(2));
    for level in [2, 1] {
        first.links.raise_record_level(level).unwrap();
        assert_eq!(first.links.record_level(), 2);
    }
    assert_eq!(first.links.level_to_rise_to(), None);
    // Node b has not heard of it.
    drop(second);
    first.lost(cluster.id(1));
    let second = cluster.start_with(1, &older);
    first.refuses(RefusalCode::RecordLevel);
    second.refuses(RefusalCode::RecordLevel);
    drop((first, second));
    assert_eq!(cluster.start(0).links.record_level(), 2);
    let opened = Links::open(&older, cluster.names[0], &cluster.dir(0), cluster.clock, None);
    let expected = "the cluster has level 2 of record kinds, and this node reads up to level 1: upgrade the node";
    let problem = opened.unwrap_err().to_string();
    assert!(problem.starts_with(expected), "{problem}");
}

/// A node that the cluster refuses only once it has a link, because the level rises then.
#[tokio::test(flavor = "multi_thread")]
async fn link_of_an_older_node_is_closed_when_the_level_rises() {
    let cluster = Cluster::new("level-link", &["a@127.0.0.1", "b@127.0.0.1"]);
    let first = cluster.start(0);
    let second = cluster.start_with(1, &ClusterOptions { record_level: 1, ..cluster.options() });
    first.wait_for(&Event::Founded);
    second.wait_for(&Event::Founded);
    first.links.raise_record_level(2).unwrap();
    assert!(matches!(first.lost(cluster.id(1)), LostCause::Refused(_)));
    second.refuses(RefusalCode::RecordLevel);
}
