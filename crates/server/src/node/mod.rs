//! The node: everything that all connections share, from start to stop.

pub(crate) mod alarms;
pub(crate) mod clients;
pub(crate) mod cluster;
pub(crate) mod files;
pub(crate) mod identity;
mod leadership;
pub(crate) mod lifecycle;
pub(crate) mod metadata;
mod operations;
pub(crate) mod permits;
pub(crate) mod replication;
pub(crate) mod session_settings;
pub(crate) mod shown_settings;
pub(crate) mod upkeep;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use parking_lot::Mutex;

use crate::auth::ctl_token::CtlToken;
use crate::auth::user_slots::UserSlots;
use crate::auth::{Auth, User};
use crate::clock::Clock;
use crate::cluster::Links;
use crate::cluster::joining::joiner::Joiner;
use crate::disk::json_files::node_file::{self, NodeFile, NodeFileError, VhostEntry};
use crate::disk::node_disk::NodeDisk;
use crate::history::SharedHistory;
use crate::node::alarms::known::Alarms;
use crate::node::clients::Clients;
use crate::node::files::NodeFiles;
use crate::node::identity::NodeIdentity;
use crate::node::lifecycle::Lifecycle;
use crate::node::metadata::followed::NodeMetadata;
use crate::node::metadata::global_parameters::GlobalParameters;
use crate::node::permits::Permits;
use crate::node::replication::Replication;
use crate::node::session_settings::SessionSettings;
use crate::node::shown_settings::ShownSettings;
use crate::node::upkeep::Upkeep;
use crate::peers::HttpPeers;
use crate::redrive::{self, Redrives, ResumeContext};
use crate::snapshot::node::Listener;
use crate::sockets::refusals::Refusals;
use crate::vhost::{Threads, Vhosts};

pub use operations::VhostContents;

/// The refusal of a client because the node stops.
pub(crate) fn shutdown_refusal() -> Refusal {
    let text = "broker forced connection closure with reason 'shutdown'";
    Refusal::new(ReplyCode::ConnectionForced, text)
}

/// A node that serves clients.
#[derive(Debug)]
pub struct Node {
    pub(crate) clock: Clock,
    pub(crate) identity: NodeIdentity,
    pub(crate) shown_settings: ShownSettings,
    pub(crate) files: NodeFiles,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) listeners: Vec<Listener>,
    /// Certificate files of the listeners that speak TLS.
    pub(crate) certificate_files: Vec<(Listener, PathBuf)>,
    pub(crate) sessions: SessionSettings,
    pub(crate) clients: Clients,
    pub(crate) permits: Permits,
    pub(crate) auth: Arc<Auth>,
    pub(crate) user_slots: Arc<UserSlots>,
    /// Token of the local administrator.
    pub(crate) ctl_token: CtlToken,
    pub(crate) vhosts: Arc<Vhosts>,
    pub(crate) global_parameters: Arc<GlobalParameters>,
    /// Held while users or vhosts change.
    pub(crate) changes: Mutex<()>,
    /// Held while definitions are imported.
    pub(crate) importing: Mutex<()>,
    pub(crate) redrives: Arc<Redrives>,
    pub(crate) upkeep: Upkeep,
    pub(crate) alarms: Alarms,
    /// Links to the other nodes; none without a cluster.
    pub(crate) cluster: Option<Arc<Links>>,
    pub(crate) joiner: Joiner,
    /// Connections to the other nodes for requests; none without a cluster.
    pub(crate) http_peers: Option<Arc<HttpPeers>>,
    /// Replication of the vhosts; none without a cluster.
    pub(crate) replication: Option<Replication>,
    /// The metadata of the cluster; none without a cluster.
    pub(crate) metadata: Option<Arc<NodeMetadata>>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) history: SharedHistory,
    pub(crate) disk: NodeDisk,
    pub(crate) threads: Threads,
    /// The persister's thread, until the node is closed.
    pub(crate) persister_thread: Mutex<Option<JoinHandle<()>>>,
}

impl Node {
    /// Name of the cluster: the global parameter `cluster_name`, or the configured name.
    pub(crate) fn cluster_name(&self) -> String {
        let name = self.global_parameters.text("cluster_name");
        name.unwrap_or_else(|| self.identity.default_cluster_name.clone())
    }

    /// Writes users and vhosts to `node.json`, and lets permissions take effect on open connections.
    ///
    /// # Errors
    /// [`NodeFileError`], a sentence for the operator.
    pub(crate) fn save(&self) -> Result<(), NodeFileError> {
        let _one_at_a_time = self.changes.lock();
        let (next_vhost_id, vhosts) = self.vhosts.entries();
        let users = self.auth.users();
        let contents = self.node_file(next_vhost_id, vhosts, users.clone());
        node_file::write(&self.disk.data_dir, &contents)?;
        users.iter().for_each(|user| self.refresh_access(&user.name));
        Ok(())
    }

    /// The contents of `node.json` with these users and vhosts.
    pub(crate) fn node_file(
        &self,
        next_vhost_id: u64,
        vhosts: Vec<VhostEntry>,
        users: Vec<Arc<User>>,
    ) -> NodeFile {
        let followed = self.metadata.as_ref().and_then(|metadata| metadata.position());
        NodeFile { next_vhost_id, vhosts, users, followed }
    }

    /// Lets the redrives of an earlier process go on. Returns the context in which those of other nodes do.
    pub(crate) fn resume_redrives(&self) -> Arc<ResumeContext> {
        let context = Arc::new(ResumeContext {
            redrives: Arc::clone(&self.redrives),
            vhosts: Arc::clone(&self.vhosts),
            auth: Arc::clone(&self.auth),
            clock: self.clock,
            replicator: self.replication.as_ref().map(|one| Arc::clone(&one.replicator)),
        });
        redrive::resume(&context);
        context
    }

    /// Begins to stop: the listeners close, and the sockets of the clients that have not opened a vhost.
    pub(crate) fn begin_stop(&self) {
        self.redrives.begin_stop();
        self.upkeep.backups.cancel();
        self.lifecycle.stopping.send_replace(true);
    }

    /// Sends the reason of the shutdown to each client that has opened a vhost.
    pub(crate) fn close_connections(&self) {
        let refusal = shutdown_refusal();
        self.lifecycle.closing_clients.send_replace(true);
        for handle in self.vhosts.all() {
            handle.stop(&refusal);
        }
    }

    /// Ends the replication of the vhosts, while the links still run.
    pub(crate) fn stop_replication(&self) {
        if let Some(metadata) = &self.metadata {
            metadata.stop();
        }
        if let Some(replication) = &self.replication {
            replication.stop();
        }
    }

    /// Writes everything that waits to the disk and ends the threads. Call it when no client is left.
    pub(crate) fn close(&self) {
        upkeep::death_writer::write_all(self);
        self.stop_replication();
        self.threads.persister.stop();
        if let Some(thread) = self.persister_thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the persister has failed");
        }
        // After the persister, whose last batches may arm the timer and wake the pager.
        self.threads.timer.stop();
        self.threads.pager.stop();
        self.threads.hold_watch.end();
    }
}
