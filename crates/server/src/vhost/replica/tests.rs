//! The leader of a vhost that a node knows while it opens the replica anew.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::embedded::{Configuration, Embedded};
use crate::replicas::{ReplicaTarget as _, Replicator};
use crate::vhost::VhostHandle;
use crate::vhost::tests::PATIENCE;

const OWN: &str = "a@127.0.0.1";
const OTHER: &str = "b@127.0.0.1";

/// A node of a cluster, whose other nodes it has never met: no member campaigns.
struct Unmet {
    embedded: Option<Embedded>,
    folder: PathBuf,
}

impl Unmet {
    fn start(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("leveret-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (data_dir, secret) = (folder.join("data"), folder.join("secret"));
        std::fs::write(&secret, "the secret of this cluster\n").unwrap();
        std::fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        let (data_dir, secret) = (data_dir.display(), secret.display());
        let text = format!(
            "data_dir = {data_dir}\n\
             cluster.secret_file = {secret}\n\
             nodename = {OWN}\n\
             listeners.cluster.default = 127.0.0.1:1\n\
             cluster_formation.peer_discovery_backend = classic_config\n\
             cluster_formation.classic_config.nodes.1 = {OWN}:1\n\
             cluster_formation.classic_config.nodes.2 = {OTHER}:2\n\
             cluster_formation.classic_config.nodes.3 = c@127.0.0.1:3\n"
        );
        let configuration = Configuration::parse(&text, Path::new("a.conf")).unwrap();
        let embedded = Embedded::start(&configuration).unwrap();
        Self { embedded: Some(embedded), folder }
    }

    fn replicator(&self) -> Arc<Replicator> {
        let node = self.embedded.as_ref().unwrap().node();
        Arc::clone(&node.replication.as_ref().unwrap().replicator)
    }

    fn vhost(&self) -> Arc<VhostHandle> {
        self.embedded.as_ref().unwrap().node().vhosts.get("/").unwrap()
    }

    /// Opens the replica anew, whose vhost knows this leader. Returns the leader that it knows then.
    fn known_after(&self, leader: &str) -> Option<Arc<str>> {
        let before = self.vhost();
        before.set_leader(Some(leader.into()));
        self.replicator().end_replica(before.id());
        self.embedded.as_ref().unwrap().node().vhosts.reopen(before.id()).unwrap();
        let after = self.vhost();
        assert!(!Arc::ptr_eq(&before, &after), "the vhost is opened anew");
        after.leader()
    }
}

impl Drop for Unmet {
    fn drop(&mut self) {
        self.embedded = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Otherwise a node that has just transferred a lead would name no leader until the new one sends something.
#[test]
fn leader_is_known_while_a_replica_is_opened_anew() {
    let node = Unmet::start("known-leader");
    assert_eq!(node.known_after(OTHER).as_deref(), Some(OTHER));
    // The own lead has ended.
    assert_eq!(node.known_after(OWN), None);
}

#[test]
fn leader_whose_process_ends_is_none_for_a_replica_that_was_opened_anew() {
    let node = Unmet::start("lost-leader");
    assert_eq!(node.known_after(OTHER).as_deref(), Some(OTHER));
    let replicator = node.replicator();
    let named = |name| replicator.nodes().named(name).unwrap();
    replicator.node_lost(named("c@127.0.0.1"));
    replicator.node_lost(named(OTHER));
    let until = Instant::now() + PATIENCE;
    while node.vhost().leader().is_some() {
        assert!(Instant::now() < until, "a node that is gone leads no more");
        std::thread::yield_now();
    }
}
