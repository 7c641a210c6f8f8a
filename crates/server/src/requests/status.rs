//! The node itself: its state, metrics, history and settings.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;

use crate::history::SharedHistory;
use crate::http::budget::HttpBudget;
use crate::requests::change::{ChangeError, ChangeFuture};
use crate::snapshot::cluster::ClusterSnapshot;
use crate::snapshot::condition::NodeCondition;
use crate::snapshot::logins::LoginAttempts;
use crate::snapshot::node::{Listener, MemoryWatermark, NodeSnapshot, ProcessSnapshot};
use crate::snapshot::scrape::Scrape;

/// A certificate file of the node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerCertificate {
    /// The listener that presents the certificate.
    pub listener: Listener,
    /// Path of the file.
    pub file: String,
    /// Seconds until the first certificate of the file expires, negative after that; none if the file is
    /// unreadable.
    pub expires_in_s: Option<i64>,
}

/// Free disk space below which publishers are blocked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DiskFreeLimit {
    /// A number of bytes.
    Absolute(u64),
    /// A multiple of the machine's memory.
    Relative(f64),
}

/// A changing request and the status of its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditEntry<'a> {
    /// Name of the user.
    pub user: &'a str,
    /// Address of the client.
    pub peer: IpAddr,
    /// Method of the request.
    pub method: &'a str,
    /// Path of the request: encoded, without the query.
    pub path: &'a str,
    /// Status of the answer.
    pub status: u16,
}

/// State and settings of the node.
pub trait NodeStatus {
    /// The node now.
    fn snapshot(&self) -> NodeSnapshot;

    /// All settings in force, as lines of a configuration file; secrets are masked.
    fn configuration(&self) -> String;

    /// Minutes after which a login to the web page ends; none for no end.
    fn login_session_timeout_minutes(&self) -> Option<u32>;

    /// The other nodes of the cluster now.
    fn cluster(&self) -> ClusterSnapshot;

    /// The node's process now.
    fn process(&self) -> ProcessSnapshot;

    /// The condition of the node, for findings.
    fn condition(&self) -> NodeCondition;

    /// True if the prefetch limit of a whole channel is permitted.
    fn permits_global_qos(&self) -> bool;

    /// Time of the wall clock, in milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;

    /// The certificates of the listeners.
    fn certificates(&self) -> Vec<ServerCertificate>;

    /// The samples of the past.
    fn history(&self) -> &SharedHistory;

    /// Copies the numbers behind the metrics, for the vhosts that `select` selects.
    fn scrape(&self, select: &dyn Fn(&str) -> bool) -> Scrape;

    /// The memory that HTTP may take.
    fn http_budget(&self) -> &Arc<HttpBudget>;

    /// Lets a thread format a long text, away from those that serve clients, one text after the other.
    fn format_aside(&self, format: Box<dyn FnOnce() + Send>);

    /// Login attempts since the start or the last reset, by protocol.
    fn login_attempts(&self) -> Vec<LoginAttempts>;

    /// Resets the counts of login attempts.
    fn reset_login_attempts(&self);

    /// Sets the memory watermark until the node stops. The alarm is up to date on return.
    fn set_memory_watermark(&self, watermark: MemoryWatermark, by: &str);

    /// Sets the limit of free disk space until the node stops. The alarm is up to date on return.
    fn set_disk_free_limit(&self, limit: DiskFreeLimit, by: &str);

    /// All global parameters, by name.
    fn global_parameters(&self) -> Vec<(String, Value)>;

    /// Sets a global parameter. True if it is new.
    fn set_global_parameter(
        &self,
        name: &str,
        value: Value,
    ) -> ChangeFuture<'_, Result<bool, ChangeError>>;

    /// Removes a global parameter. False if it did not exist.
    fn clear_global_parameter(&self, name: &str) -> ChangeFuture<'_, Result<bool, ChangeError>>;

    /// Logs a changing request.
    fn audit(&self, entry: AuditEntry<'_>);
}
