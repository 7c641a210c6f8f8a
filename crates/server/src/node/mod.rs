//! The node: everything that all connections share, from start to stop.

pub(crate) mod addresses;
pub(crate) mod alarm;
pub(crate) mod alarm_limits;
pub(crate) mod alarms;
pub(crate) mod backup;
pub(crate) mod clock_watch;
pub(crate) mod cluster;
pub(crate) mod death_writer;
pub(crate) mod files;
pub(crate) mod global_parameters;
pub(crate) mod identity;
pub(crate) mod lifecycle;
mod memory_size;
pub(crate) mod permits;
pub(crate) mod refusals;
pub(crate) mod sampler;
pub(crate) mod session_settings;
mod start;
pub(crate) mod start_error;
pub(crate) mod stopped_node;
pub(crate) mod users_and_vhosts;
pub(crate) mod watchdog;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use management::{Listener, SharedHistory};
use parking_lot::Mutex;

use crate::auth::Auth;
use crate::auth::ctl_token::CtlToken;
use crate::auth::user_slots::UserSlots;
use crate::clock::Clock;
use crate::cluster::Links;
use crate::connection::registry::Clients;
use crate::disk::node_disk::NodeDisk;
use crate::disk::node_file::{self, NodeFile, NodeFileError};
use crate::node::alarm::Alarms;
use crate::node::backup::Backups;
use crate::node::clock_watch::ClockWatch;
use crate::node::files::NodeFiles;
use crate::node::global_parameters::GlobalParameters;
use crate::node::identity::NodeIdentity;
use crate::node::lifecycle::Lifecycle;
use crate::node::permits::Permits;
use crate::node::refusals::Refusals;
use crate::node::session_settings::SessionSettings;
use crate::redrive::Redrives;
use crate::vhost::{Threads, Vhosts};

/// A node that serves clients.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) clock: Clock,
    pub(crate) identity: NodeIdentity,
    pub(crate) files: NodeFiles,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) listeners: Vec<Listener>,
    /// Certificate files of the listeners that speak TLS.
    pub(crate) certificate_files: Vec<(Listener, PathBuf)>,
    pub(crate) sessions: SessionSettings,
    pub(crate) clients: Clients,
    pub(crate) permits: Permits,
    pub(crate) auth: Auth,
    pub(crate) user_slots: Arc<UserSlots>,
    /// Token of the local administrator.
    pub(crate) ctl_token: CtlToken,
    pub(crate) vhosts: Vhosts,
    pub(crate) global_parameters: Arc<GlobalParameters>,
    /// Held while users or vhosts change.
    pub(crate) changes: Mutex<()>,
    /// Held while definitions are imported.
    pub(crate) importing: Mutex<()>,
    pub(crate) redrives: Arc<Redrives>,
    pub(crate) backups: Arc<Backups>,
    pub(crate) alarms: Alarms,
    pub(crate) clock_watch: ClockWatch,
    /// Links to the other nodes; none without a cluster.
    pub(crate) cluster: Option<Arc<Links>>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) history: SharedHistory,
    pub(crate) disk: NodeDisk,
    pub(crate) threads: Threads,
    /// The persister's thread, until the node is closed.
    persister_thread: Mutex<Option<JoinHandle<()>>>,
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
        let contents = NodeFile { next_vhost_id, vhosts, users: users.clone() };
        node_file::write(&self.disk.data_dir, &contents)?;
        users.iter().for_each(|user| self.refresh_access(&user.name));
        if let Some(links) = &self.cluster {
            links.tell_groups();
        }
        Ok(())
    }

    /// Begins to stop: the listeners close, and the sockets of the clients that have not opened a vhost.
    pub(crate) fn begin_stop(&self) {
        self.redrives.begin_stop();
        self.backups.cancel();
        self.lifecycle.stopping.send_replace(true);
    }

    /// Sends the reason of the shutdown to each client that has opened a vhost.
    pub(crate) fn close_connections(&self) {
        let text = "broker forced connection closure with reason 'shutdown'";
        let refusal = Refusal::new(ReplyCode::ConnectionForced, text);
        for handle in self.vhosts.all() {
            handle.stop(&refusal);
        }
    }

    /// Writes everything that waits to the disk and ends the threads. Call it when no client is left.
    pub(crate) fn close(&self) {
        death_writer::write_all(self);
        self.threads.persister.stop();
        if let Some(thread) = self.persister_thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the persister has failed");
        }
        // After the persister, whose last batches may arm the timer and wake the pager.
        self.threads.timer.stop();
        self.threads.pager.stop();
    }
}
