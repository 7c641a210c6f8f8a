//! The metadata of a cluster, as far as this node has followed them, and the thread that follows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use serde_json::Value;

use crate::auth::User;
use crate::cluster::Links;
use crate::limits::{METADATA_FOLLOWED_WAIT, METADATA_RETRY_INTERVAL};
use crate::membership::ids::NodeId;
use crate::metadata::Metadata;

/// The metadata of a cluster, as this node follows them.
#[derive(Debug)]
pub(crate) struct NodeMetadata {
    pub(crate) store: Arc<Metadata>,
    /// Position of the log up to which the items have taken effect; none before the first.
    pub(super) position: Mutex<Option<u64>>,
    pub(super) followed: Mutex<Followed>,
    /// Positions of the log up to which the items have taken effect at the other nodes.
    peers: Mutex<BTreeMap<NodeId, u64>>,
    peer_has_followed: Condvar,
    /// The thread that follows, until the node is closed.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The items that have taken effect.
#[derive(Default, Debug)]
pub(super) struct Followed {
    /// The version of the items; 0 for none.
    pub(super) version: u64,
    /// The users by name, each with the item that it was read from.
    pub(super) users: BTreeMap<String, (Arc<Value>, Arc<User>)>,
}

impl NodeMetadata {
    /// Metadata that `node.json` has followed up to `position`.
    pub(crate) fn new(store: Arc<Metadata>, position: Option<u64>) -> Self {
        Self {
            store,
            position: Mutex::new(position),
            followed: Mutex::default(),
            peers: Mutex::default(),
            peer_has_followed: Condvar::new(),
            thread: Mutex::default(),
        }
    }

    /// Position of the log up to which the items have taken effect on this node, as far as `node.json` may tell.
    pub(crate) fn position(&self) -> Option<u64> {
        *self.position.lock()
    }

    /// Starts the thread that follows the metadata: it calls `follow` whenever they may have changed, and again a while
    /// after an error, a sentence for the operator.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start(
        &self,
        follow: impl Fn() -> Result<(), String> + Send + 'static,
    ) -> std::io::Result<()> {
        let store = Arc::clone(&self.store);
        let run = move || {
            let mut version = 0;
            while store.wait_for_change(version) {
                version = store.version();
                if let Err(problem) = follow() {
                    tracing::error!(
                        "users, vhosts and parameters of the cluster do not take effect here: {problem}"
                    );
                    std::thread::sleep(METADATA_RETRY_INTERVAL);
                    version = 0;
                }
            }
        };
        let thread = std::thread::Builder::new().name("metadata".to_owned()).spawn(run)?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Notes that the metadata have taken effect at a peer, up to this position of their log.
    pub(crate) fn peer_followed(&self, peer: NodeId, position: u64) {
        self.peers.lock().insert(peer, position);
        self.peer_has_followed.notify_all();
    }

    /// Waits until the metadata have taken effect at all connected peers, up to this position, but not for long: a client
    /// may go on at another node at once.
    pub(super) fn wait_for_peers(&self, links: &Links, position: u64) {
        let deadline = Instant::now() + METADATA_FOLLOWED_WAIT;
        let mut peers = self.peers.lock();
        let is_behind = |peers: &BTreeMap<NodeId, u64>| {
            links.peers().iter().any(|peer| {
                let is_connected = peer.state.lock().current.is_some();
                is_connected && peers.get(&peer.id).is_none_or(|followed| *followed < position)
            })
        };
        while is_behind(&peers) {
            if self.peer_has_followed.wait_until(&mut peers, deadline).timed_out() {
                return;
            }
        }
    }

    /// Ends the thread that follows the metadata.
    pub(crate) fn stop(&self) {
        self.store.stop();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that follows the metadata has failed");
        }
    }
}
