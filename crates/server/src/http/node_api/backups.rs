//! Backups of the running node.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::change;
use crate::http::barriers::Barriers;
use crate::node::Node;
use crate::node::backup::{BackupLogs, BackupSource};
use crate::requests::{BackupError, BackupJob, Backups, ChangeFuture};

impl Backups for Node {
    fn begin_backup(
        &self,
        directory: &str,
        user: &str,
    ) -> ChangeFuture<'_, Result<BackupJob, BackupError>> {
        let (directory, user) = (directory.to_owned(), user.to_owned());
        let runtime = Handle::current();
        change(move || {
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
            self.backups.begin(&directory, &user, source)
        })
    }

    fn backup(&self) -> Option<BackupJob> {
        self.backups.job()
    }

    fn cancel_backup(&self) -> bool {
        self.backups.cancel()
    }
}
