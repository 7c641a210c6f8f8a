//! The octets of the files: what this build writes, the build before has written, and reads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::QueueType;
use broker::access::{PermissionPattern, Permissions};
use proptest::collection::vec;
use proptest::prelude::*;
use replication::MemberId;
use serde_json::{Value, json};

use super::cluster_file;
use super::node_file::{self, NodeFile, VhostEntry};
use super::sealed_json;
use crate::auth::password::PasswordHash;
use crate::auth::{TopicPattern, User};
use crate::disk::vhost_files::VhostId;
use crate::membership::founding::ClusterRecord;
use crate::membership::ids::{ClusterId, DiskId};
use crate::membership::node_list::{ListedNode, NodeList};
use crate::membership::placement::Placement;
use crate::requests::{LimitName as _, UserLimit, VhostLimit, VhostSettings};

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

/// The file with one more member in the object at `place`, and with its checksum.
fn with_a_member(text: &str, place: &str) -> String {
    let mut root: Value = serde_json::from_str(text).unwrap();
    root.as_object_mut().unwrap().remove("sha256");
    root.pointer_mut(place).unwrap()["colour"] = json!(1);
    sealed_json::text(&root, true)
}

#[test]
fn unknown_member_of_the_node_file_is_refused_by_name() {
    let folder = folder("node-unknown");
    for place in [
        "",
        "/vhosts/1",
        "/vhosts/1/settings",
        "/vhosts/1/settings/limits",
        "/vhosts/1/placement",
        "/users/0",
        "/users/0/permissions/0",
        "/users/0/topic_permissions/0",
        "/users/0/limits",
    ] {
        let text = with_a_member(include_str!("node.json"), place);
        std::fs::write(folder.join("node.json"), text).unwrap();
        let error = node_file::read(&folder).unwrap_err().to_string();
        assert!(error.contains("node.json is whole, but another version"), "{place}: {error}");
        assert!(error.contains("`colour`") && error.ends_with("; start that version"), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn unknown_member_of_the_cluster_file_is_refused_by_name() {
    let folder = folder("cluster-unknown");
    for place in ["", "/nodes/b@h"] {
        let text = with_a_member(include_str!("cluster.json"), place);
        std::fs::write(folder.join("cluster.json"), text).unwrap();
        let error = cluster_file::read(&folder).unwrap_err().to_string();
        assert!(error.contains("cluster.json is whole, but another version"), "{place}: {error}");
        assert!(error.contains("unknown field `colour`, expected"), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn numbers_are_never_cut() {
    let folder = folder("numbers");
    for (file, number, wrong) in [
        ("node.json", "\"replicas\": 2", "\"replicas\": 258"),
        ("node.json", "\"max-queues\": -1", "\"max-queues\": 1.5"),
        ("node.json", "\"id\": 7", "\"id\": 7.0"),
        ("node.json", "65537,", "0,"),
        ("node.json", "512", "65536"),
        ("cluster.json", "\"joins\": 1", "\"joins\": 64"),
        ("cluster.json", "\"port\": 1", "\"port\": 65537"),
        ("cluster.json", "\"record_level\": 2", "\"record_level\": -1"),
        ("cluster.json", "\"nodes_position\": 9", "\"nodes_position\": null"),
    ] {
        let texts = [include_str!("node.json"), include_str!("cluster.json")];
        let text = texts[usize::from(file == "cluster.json")];
        assert!(text.contains(number), "{number}");
        let mut root: Value = serde_json::from_str(&text.replace(number, wrong)).unwrap();
        root.as_object_mut().unwrap().remove("sha256");
        std::fs::write(folder.join(file), sealed_json::text(&root, true)).unwrap();
        let error = match file {
            "node.json" => node_file::read(&folder).unwrap_err().to_string(),
            _ => cluster_file::read(&folder).unwrap_err().to_string(),
        };
        assert!(error.contains("is whole, but another version"), "{wrong}: {error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Any vhost with these texts.
fn any_vhost() -> impl Strategy<Value = VhostEntry> {
    let settings = (any::<String>(), vec(any::<String>(), 0..3), any::<Option<bool>>());
    let limits = vec(any::<i64>(), 0..=VhostLimit::ALL.len());
    let places = (any::<Option<u8>>(), vec(1_u64..1 << 48, 0..3), vec("[a-c]@h", 0..3));
    (any::<String>(), any::<u64>(), settings, limits, places).prop_map(
        |(name, id, (description, tags, protected), limits, (replicas, voters, nodes))| {
            let settings = VhostSettings {
                description,
                tags,
                default_queue_type: if replicas.is_some() {
                    QueueType::Quorum
                } else {
                    QueueType::Classic
                },
                protected_from_deletion: protected,
                tracing: id % 2 == 0,
                replicas,
                limits: VhostLimit::ALL.iter().copied().zip(limits).collect(),
            };
            VhostEntry {
                name,
                id: VhostId(id),
                settings: Arc::new(settings),
                voters: voters.into_iter().filter_map(|id| MemberId::new(id << 16 | 1)).collect(),
                placement: replicas.map(|_| Arc::new(Placement::on_all(&nodes))),
            }
        },
    )
}

proptest! {
    #[test]
    fn any_vhost_is_read_as_it_was_written(vhosts in vec(any_vhost(), 0..3), next in 1..u64::MAX) {
        let folder = folder("any");
        let contents = NodeFile {
            next_vhost_id: next,
            vhosts: vhosts.clone(),
            users: vec![Arc::new(user())],
            followed: None,
        };
        node_file::write(&folder, &contents).unwrap();
        let back = node_file::read(&folder).unwrap().unwrap();
        prop_assert_eq!((back.next_vhost_id, back.vhosts, back.followed), (next, vhosts, None));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
