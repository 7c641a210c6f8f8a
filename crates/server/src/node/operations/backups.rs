//! Backups of the running node, and the check of its files.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::node::Node;
use crate::node::upkeep::backup::{BackupLogs, BackupSource};
use crate::peers::barriers::Barriers;
use crate::requests::{BackupError, BackupJob, FileCheck};

impl Node {
    /// Begins a backup into `directory` on behalf of `user`.
    pub async fn begin_backup(
        &self,
        directory: &str,
        user: &str,
    ) -> Result<BackupJob, BackupError> {
        let runtime = Handle::current();
        block_in_place(|| {
            let (node_file, vhosts_elsewhere) = {
                let _one_at_a_time = self.changes.lock();
                let (next_vhost_id, mut vhosts) = self.vhosts.entries();
                let elsewhere = self.vhosts.elsewhere();
                vhosts.retain(|vhost| !elsewhere.contains(&vhost.name));
                (self.node_file(next_vhost_id, vhosts, self.auth.users()), elsewhere)
            };
            let source = BackupSource {
                data_dir: self.disk.data_dir.clone(),
                node_name: self.identity.name.clone(),
                node_file,
                vhosts_elsewhere,
                logs: match (&self.replication, &self.http_peers) {
                    (Some(replication), Some(peers)) => {
                        let (replicator, vhosts) = (&replication.replicator, &self.vhosts);
                        let barriers = Barriers::new(vhosts, replicator, peers, runtime);
                        let (replicator, vhosts) = (Arc::clone(replicator), Arc::clone(vhosts));
                        BackupLogs::Replicated { replicator, vhosts, barriers }
                    }
                    _ => BackupLogs::Own(Arc::clone(&self.threads.persister)),
                },
                clock: self.clock,
                free_min: self.alarms.limits.disk_free_limit_bytes(),
            };
            self.upkeep.backups.begin(directory, user, source)
        })
    }

    /// The check of files that runs, or the last one since the start.
    pub fn file_check(&self) -> FileCheck {
        self.upkeep.file_checks.known()
    }

    /// Begins a check of the files that are in use, unless one runs. Returns the check.
    pub fn begin_file_check(&self) -> FileCheck {
        self.upkeep.file_checks.begin(self.now_ms())
    }

    /// The backup that runs, or the last one since the start.
    pub fn backup(&self) -> Option<BackupJob> {
        self.upkeep.backups.job()
    }

    /// Asks the backup to end and to remove what it has written. False if none runs.
    pub fn cancel_backup(&self) -> bool {
        self.upkeep.backups.cancel()
    }
}
