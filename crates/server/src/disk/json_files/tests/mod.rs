//! The octets of the files: what this build writes, the build before has written, and reads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::QueueType;
use broker::access::{PermissionPattern, Permissions};
use management::{UserLimit, VhostLimit, VhostSettings};
use replication::MemberId;

use super::cluster_file;
use super::node_file::{self, NodeFile, VhostEntry};
use crate::auth::password::PasswordHash;
use crate::auth::{TopicPattern, User};
use crate::cluster::founding::ClusterRecord;
use crate::cluster::ids::{ClusterId, DiskId};
use crate::cluster::node_list::{ListedNode, NodeList};
use crate::disk::vhost_files::VhostId;
use crate::metadata::placement::Placement;

fn folder(test: &str) -> PathBuf {
    let name = format!("leveret-octets-{test}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn user() -> User {
    let hash = STANDARD.decode("AQIDBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap();
    let password = PasswordHash::from_bytes(&hash, "rabbit_password_hashing_sha256").unwrap();
    let mut user = User::new("anna", password, vec!["management".to_owned()]);
    let pattern = |text| PermissionPattern::new(text).unwrap();
    let permissions =
        Permissions { configure: pattern(""), write: pattern("^a\"\u{e9}"), read: pattern(".*") };
    user.permissions.insert("/".to_owned(), permissions);
    let topic = |exchange: &str| TopicPattern {
        exchange: exchange.to_owned(),
        write: "^{username}".to_owned(),
        read: ".*".to_owned(),
    };
    user.topic_permissions.insert("/".to_owned(), vec![topic("amq.topic"), topic("t")]);
    user.limits = BTreeMap::from([(UserLimit::MaxConnections, 7), (UserLimit::MaxChannels, -1)]);
    user
}

fn node_contents() -> NodeFile {
    let settings = VhostSettings {
        description: "d".to_owned(),
        tags: vec!["t".to_owned(), "u".to_owned()],
        default_queue_type: QueueType::Quorum,
        protected_from_deletion: Some(true),
        tracing: true,
        replicas: Some(2),
        limits: BTreeMap::from([(VhostLimit::MaxQueues, -1), (VhostLimit::MaxConnections, 9)]),
    };
    let plain = VhostEntry {
        name: "/".to_owned(),
        id: VhostId(1),
        settings: Arc::default(),
        voters: Vec::new(),
        placement: None,
    };
    let mut placement = Placement::on_all(&["a@h", "b@h"].map(str::to_owned));
    placement.remove("b@h");
    let placed = VhostEntry {
        name: "placed".to_owned(),
        id: VhostId(7),
        settings: Arc::new(settings),
        voters: [0x1_0001, 0x2_0001].into_iter().filter_map(MemberId::new).collect(),
        placement: Some(Arc::new(placement)),
    };
    NodeFile {
        next_vhost_id: u64::MAX,
        vhosts: vec![plain, placed],
        users: vec![Arc::new(user())],
        followed: Some(77),
    }
}

fn cluster_record() -> ClusterRecord {
    let (host, disk) = ("h".to_owned(), DiskId(2));
    let node = ListedNode { host, port: 1, disk, joins: 1, is_forgotten: false };
    ClusterRecord {
        node: "a@h".to_owned(),
        cluster: ClusterId(1),
        disk: DiskId(u64::MAX),
        is_founded: true,
        is_newcomer: false,
        peers: BTreeMap::from([("b@h".to_owned(), DiskId(2))]),
        nodes: NodeList([("b@h".to_owned(), node)].into()).into(),
        nodes_position: 9,
        record_level: 2,
        are_nodes_due: true,
    }
}

#[test]
fn node_file_has_the_octets_of_earlier_builds() {
    let folder = folder("node");
    node_file::write(&folder, &node_contents()).unwrap();
    let text = std::fs::read_to_string(folder.join("node.json")).unwrap();
    assert_eq!(text, include_str!("node.json"));
    let contents = node_file::read(&folder).unwrap().unwrap();
    node_file::write(&folder, &contents).unwrap();
    let again = std::fs::read_to_string(folder.join("node.json")).unwrap();
    assert_eq!(again, text);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn cluster_file_has_the_octets_of_earlier_builds() {
    let folder = folder("cluster");
    cluster_file::write(&folder, &cluster_record()).unwrap();
    let text = std::fs::read_to_string(folder.join("cluster.json")).unwrap();
    assert_eq!(text, include_str!("cluster.json"));
    assert_eq!(cluster_file::read(&folder).unwrap(), Some(cluster_record()));
    std::fs::remove_dir_all(&folder).unwrap();
}
