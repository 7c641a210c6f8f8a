//! The node itself: its state, metrics, history and settings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use storage::IoCounters;
use tokio::task::block_in_place;

use super::view_queues;
use crate::clock::own_time;
use crate::disk::free_space;
use crate::history::SharedHistory;
use crate::http_budget::HttpBudget;
use crate::node::Node;
use crate::node::alarms;
use crate::node::alarms::alarm::Alarm;
use crate::node::clients::Client;
use crate::node::cluster;
use crate::node::metadata::global_parameters::Parameter;
use crate::requests::{AuditEntry, ChangeError, DamagedFile, DiskFreeLimit, ServerCertificate};
use crate::snapshot::cluster::ClusterSnapshot;
use crate::snapshot::condition::NodeCondition;
use crate::snapshot::logins::LoginAttempts;
use crate::snapshot::node::{IoTotal, IoTotals, MemoryWatermark, NodeSnapshot, ProcessSnapshot};
use crate::snapshot::scrape::{ConnectionScrape, Scrape, VhostScrape};
use crate::tls;
use crate::vhost::VhostHandle;

impl Node {
    /// The node now.
    pub fn snapshot(&self) -> NodeSnapshot {
        let alarm = self.alarms.own();
        NodeSnapshot {
            name: self.identity.name.clone(),
            leveret_version: env!("CARGO_PKG_VERSION"),
            record_level: self.own_record_level(),
            cluster_record_level: self.record_level(),
            identity: self.identity.product.clone(),
            cluster_name: self.cluster_name(),
            durability: self.disk.durability.as_str(),
            listeners: self.listeners.clone(),
            mechanisms: self.sessions.mechanisms().to_vec(),
            uptime_ms: u64::try_from(self.lifecycle.started.elapsed().as_millis())
                .unwrap_or(u64::MAX),
            resident_bytes: alarms::resident_bytes(),
            memory_watermark_bytes: self.alarms.limits.memory_watermark_bytes(),
            memory_watermark: self.alarms.limits.memory_watermark(),
            memory_alarm: alarm.is_some_and(Alarm::is_of_memory),
            disk_free_bytes: free_space::free_bytes(&self.disk.data_dir),
            disk_free_limit_bytes: self.alarms.limits.disk_free_limit_bytes(),
            disk_alarm: alarm.is_some_and(Alarm::is_of_disk),
            blocks_publishers: self.alarms.current.borrow().is_some(),
        }
    }

    /// All settings in force, as lines of a configuration file; secrets are masked.
    pub fn configuration(&self) -> String {
        self.shown_settings.lines.clone()
    }

    /// Minutes after which a login to the web page ends; none for no end.
    pub fn login_session_timeout_minutes(&self) -> Option<u32> {
        self.shown_settings.login_session_timeout_minutes
    }

    /// The other nodes of the cluster now.
    pub fn cluster(&self) -> ClusterSnapshot {
        let snapshot = self.cluster.as_deref().map(|links| cluster::snapshot(links, &self.alarms));
        let mut snapshot = snapshot.unwrap_or_default();
        snapshot.target_size = self.identity.target_cluster_size;
        snapshot.relayed_connections = self.clients.relayed();
        if let Some(replication) = &self.replication {
            snapshot.replication = replication.snapshot();
        }
        snapshot
    }

    /// The condition of the node, for findings.
    pub fn condition(&self) -> NodeCondition {
        let (now, times) = (Instant::now(), self.threads.persister.write_times());
        let micros = |took: Duration| u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut condition = NodeCondition {
            slowest_write_us: micros(times.slowest(now)),
            running_write_us: micros(times.running(own_time::now())),
            clock_step: self.upkeep.clock_watch.last_step(self.clock.time()),
            refused_logins: self.refusals.logins(now),
            refused_connections: self.refusals.connections(now),
            are_listeners_suspended: self.lifecycle.listeners.are_suspended(),
            is_drained: self.lifecycle.is_drained.load(std::sync::atomic::Ordering::Acquire),
            ..NodeCondition::default()
        };
        for handle in self.vhosts.all() {
            handle.add_disk_troubles(&mut condition);
        }
        let in_words = |one: &DamagedFile| {
            let first = one.damages.first().map(String::as_str).unwrap_or_default();
            (one.vhost.clone(), format!("{}, {first}", one.file))
        };
        condition.damaged_files = self.file_check().not_repaired().map(in_words).collect();
        condition
    }

    /// True if the prefetch limit of a whole channel is permitted.
    pub fn permits_global_qos(&self) -> bool {
        self.vhosts.options().permits_global_qos
    }

    /// The node's process now.
    pub fn process(&self) -> ProcessSnapshot {
        let open = std::fs::read_dir("/proc/self/fd");
        let threads = std::fs::read_dir("/proc/self/task");
        ProcessSnapshot {
            id: std::process::id(),
            // One descriptor is that of the directory being read.
            fd_used: open.ok().map(|open| (open.count() as u64).saturating_sub(1)),
            fd_total: getrlimit(Resource::Nofile).current,
            threads: threads.ok().map(|threads| threads.count() as u64),
            threads_max: getrlimit(Resource::Nproc).current,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            data_dir: self.disk.data_dir.display().to_string(),
            config_files: self.files.config.clone(),
            log_files: self.files.log.clone(),
            code_bytes: alarms::code_bytes(),
            unsent_bytes: self
                .clients
                .all()
                .iter()
                .map(|client| client.socket.traffic().unsent_bytes)
                .sum(),
            io: io_totals(self.vhosts.io()),
        }
    }

    /// Time of the wall clock, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.clock.now().wall_ms()
    }

    /// The certificates of the listeners.
    pub fn certificates(&self) -> Vec<ServerCertificate> {
        let now_s = i64::try_from(self.clock.now().wall_ms() / 1000).unwrap_or(i64::MAX);
        let all = self.certificate_files.iter().map(|(listener, file)| ServerCertificate {
            listener: *listener,
            file: file.display().to_string(),
            expires_in_s: tls::expiry_s(file).map(|at| at.saturating_sub(now_s)),
        });
        all.collect()
    }

    /// The samples of the past.
    pub fn history(&self) -> &SharedHistory {
        &self.history
    }

    /// Copies the numbers behind the metrics, for the vhosts that `wants` names.
    pub fn scrape(&self, wants: &dyn Fn(&str) -> bool) -> Scrape {
        let node = self.snapshot();
        let clients = self.clients.all();
        let mut handles = self.vhosts.all();
        // The node that leads a vhost tells what is in it, so that sums over the nodes of a cluster count it once.
        handles.retain(|handle| wants(handle.name()) && handle.is_served_here());
        Scrape {
            started_s: (self.clock.now().wall_ms().saturating_sub(node.uptime_ms)) / 1000,
            cluster: self.cluster(),
            process: self.process(),
            logins: self.auth.counts.attempts(),
            clock_steps: self.upkeep.clock_watch.steps(),
            backups: self.upkeep.backups.totals(),
            file_check: self.file_check(),
            vhosts: handles.iter().map(|handle| scrape_vhost(handle, &clients)).collect(),
            node,
        }
    }

    /// The memory that HTTP may take.
    pub fn http_budget(&self) -> &Arc<HttpBudget> {
        &self.permits.http
    }

    /// Lets a thread format a long text, away from those that serve clients, one text after the other.
    pub fn format_aside(&self, format: impl FnOnce() + Send + 'static) {
        let turns = Arc::clone(&self.permits.metrics);
        tokio::spawn(async move {
            // The semaphore is never closed.
            let _turn = turns.acquire().await.ok();
            if let Err(error) = tokio::task::spawn_blocking(format).await {
                tracing::error!(%error, "cannot format metrics");
            }
        });
    }

    /// Login attempts since the start or the last reset, by protocol.
    pub fn login_attempts(&self) -> Vec<LoginAttempts> {
        self.auth.counts.attempts()
    }

    /// Resets the counts of login attempts.
    pub fn reset_login_attempts(&self) {
        self.auth.counts.forget();
    }

    /// Sets the memory watermark until the node stops. The alarm is up to date on return.
    pub fn set_memory_watermark(&self, watermark: MemoryWatermark, by: &str) {
        self.alarms.limits.set_memory_watermark(watermark);
        let bytes = self.alarms.limits.memory_watermark_bytes();
        self.permits.http.follow(bytes);
        tracing::info!(user = by, bytes, "memory watermark set");
        alarms::check(self);
    }

    /// Sets the limit of free disk space until the node stops. The alarm is up to date on return.
    pub fn set_disk_free_limit(&self, limit: DiskFreeLimit, by: &str) {
        self.alarms.limits.set_disk_free_limit(limit);
        let bytes = self.alarms.limits.disk_free_limit_bytes();
        tracing::info!(user = by, bytes, "disk free limit set");
        alarms::check(self);
    }

    /// All global parameters, by name.
    pub fn global_parameters(&self) -> Vec<(String, Parameter)> {
        self.global_parameters.all()
    }

    /// Sets a global parameter. True if it is new.
    pub async fn set_global_parameter(
        &self,
        name: &str,
        value: Parameter,
    ) -> Result<bool, ChangeError> {
        block_in_place(|| {
            self.check_memory()?;
            self.set_parameters(vec![(name.to_owned(), value)])
        })
    }

    /// Removes a global parameter. False if it did not exist.
    pub async fn clear_global_parameter(&self, name: &str) -> Result<bool, ChangeError> {
        block_in_place(|| self.clear_parameter(name.to_owned()))
    }

    /// Logs a changing request.
    pub fn audit(&self, entry: AuditEntry<'_>) {
        let AuditEntry { user, peer, method, path, status } = entry;
        tracing::info!(user, %peer, method, path, status, "change requested over HTTP");
    }
}

/// Copies a vhost.
fn scrape_vhost(handle: &Arc<VhostHandle>, clients: &[Arc<Client>]) -> VhostScrape {
    let traffic = handle.traffic();
    let queues = view_queues(handle);
    let here = clients.iter().filter(|client| Arc::ptr_eq(&client.handle, handle));
    handle.read(|v, client_of| {
        // A connection that has closed since is left out.
        let connections = here.filter_map(|client| {
            let channels = v.connection(client.id)?.open_channels().count();
            let traffic = client.socket.traffic();
            Some(ConnectionScrape::new(&client.description, traffic, channels))
        });
        VhostScrape::of(queues, v, client_of, connections.collect(), traffic)
    })
}

/// Totals of the operations on files.
fn io_totals(io: &IoCounters) -> IoTotals {
    let of = |total: storage::IoTotal| IoTotal {
        count: total.count,
        bytes: total.bytes,
        micros: total.micros,
    };
    let within = storage::SYNC_BOUNDS_US.into_iter().zip(io.syncs_within());
    IoTotals {
        reads: of(io.reads()),
        writes: of(io.writes()),
        syncs: of(io.syncs()),
        syncs_within: within.collect(),
    }
}
