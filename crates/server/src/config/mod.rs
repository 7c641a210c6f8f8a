//! The configuration: RabbitMQ's file format and key names, environment variables, command line flags.
//!
//! `file` parses the format, `keys` lists the keys, `settings` resolves precedence; this file defines the
//! resulting configuration.

pub(crate) mod cluster;
#[cfg(test)]
mod cluster_tests;
pub(crate) mod container;
pub(crate) mod discovery;
pub(crate) mod environment;
mod file;
mod key;
mod keys;
mod load;
mod log;
mod secret_file;
mod settings;
#[cfg(test)]
mod shown_tests;
mod storage;
#[cfg(test)]
mod tests;
mod tls;
mod values;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use broker::VhostOptions;
use session::SessionOptions;

use crate::limits::{BODY_BYTES_MAX, STATISTICS_INTERVAL};

pub(crate) use crate::requests::DiskFreeLimit;
pub(crate) use crate::snapshot::node::{Identity, MemoryWatermark};
pub(crate) use cluster::{CLUSTER_PORT, ClusterNode, ClusterOptions};
pub(crate) use container::DefaultUserAccess;
pub(crate) use discovery::DnsDiscovery;
pub use load::CommandLineSetting;
pub(crate) use log::{LogFormat, LogLevel, LogOptions, LogStream, Sink};
pub(crate) use secret_file::is_readable_by_all;
pub(crate) use settings::{Effective, Settings, Source};
pub(crate) use storage::{Durability, FileCheckOptions, StorageOptions};
pub(crate) use tls::{CertificateLogin, CertificateName, SanType, TlsOptions, TlsVersion};

/// The user that is created at the first start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DefaultUser {
    pub(crate) name: String,
    pub(crate) password: String,
    pub(crate) tags: Vec<String>,
    pub(crate) vhost: String,
    pub(crate) configure: String,
    pub(crate) write: String,
    pub(crate) read: String,
}

/// A further user, created together with a vhost whose name matches the pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SeededUser {
    /// The password; without one, the user cannot log in until a password is set.
    pub(crate) password: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) vhost_pattern: String,
    pub(crate) configure: String,
    pub(crate) write: String,
    pub(crate) read: String,
}

impl Default for SeededUser {
    fn default() -> Self {
        let all = || ".*".to_owned();
        Self {
            password: None,
            tags: Vec::new(),
            vhost_pattern: all(),
            configure: all(),
            write: all(),
            read: all(),
        }
    }
}

/// An optional listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MaybeListener {
    pub(crate) ip: IpAddr,
    /// The port; none disables the listener.
    pub(crate) port: Option<u16>,
}

impl MaybeListener {
    const fn on(port: Option<u16>) -> Self {
        Self { ip: IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), port }
    }

    /// The address of the listener, if it is enabled.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        self.port.map(|port| SocketAddr::new(self.ip, port))
    }
}

/// The complete configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) amqp_listeners: Vec<SocketAddr>,
    /// Listeners for AMQP over TLS.
    pub(crate) amqps_listeners: Vec<SocketAddr>,
    pub(crate) http: MaybeListener,
    /// False if the configuration enables only HTTPS.
    pub(crate) has_http: bool,
    pub(crate) https: MaybeListener,
    /// The listener that serves only metrics.
    pub(crate) prometheus: MaybeListener,
    /// Prefix of every path of the management API, with a leading slash.
    pub(crate) path_prefix: Option<String>,
    /// Minutes after which a login to the web page ends.
    pub(crate) login_session_timeout_minutes: Option<u32>,
    /// Bytes of the body of an HTTP request, at most.
    pub(crate) http_body_bytes_max: usize,
    pub(crate) tls: TlsOptions,
    pub(crate) https_tls: TlsOptions,
    pub(crate) tls_handshake_timeout_ms: u64,
    pub(crate) certificate_login: CertificateLogin,
    /// Names of the SASL mechanisms that clients may use.
    pub(crate) auth_mechanisms: Vec<&'static str>,
    pub(crate) anonymous_login: AnonymousLogin,
    pub(crate) data_dir: PathBuf,
    pub(crate) storage: StorageOptions,
    /// The interval of statistics samples; `collect_statistics_interval`.
    pub(crate) statistics_interval: Duration,
    pub(crate) session: SessionOptions,
    pub(crate) vhost: VhostOptions,
    /// Upper bound of AMQP connections of the whole node.
    pub(crate) connections_max: Option<u64>,
    pub(crate) default_user: DefaultUser,
    /// Further default users, by name.
    pub(crate) default_users: BTreeMap<String, SeededUser>,
    pub(crate) loopback_users: Vec<String>,
    pub(crate) default_user_access: DefaultUserAccess,
    pub(crate) load_definitions: Option<PathBuf>,
    pub(crate) memory_watermark: MemoryWatermark,
    /// Overrides the detected memory of the machine.
    pub(crate) total_memory_bytes: Option<u64>,
    /// Share of the memory watermark that waiting messages of a vhost may take before long queues are written
    /// to pages; none for the default.
    pub(crate) paging_ratio: Option<f64>,
    pub(crate) disk_free_limit: DiskFreeLimit,
    pub(crate) node_name: Option<String>,
    /// The product name and version reported to clients.
    pub(crate) identity: Identity,
    pub(crate) cluster_name: Option<String>,
    pub(crate) cluster: ClusterOptions,
    pub(crate) log: LogOptions,
    /// Warnings about the configuration, for the log.
    pub(crate) warnings: Vec<String>,
    /// The configuration files that were read, in order.
    pub(crate) files: Vec<PathBuf>,
    /// Every key in force, with its value and source.
    pub(crate) effective: Vec<Effective>,
}

/// The SASL mechanisms that are enabled by default.
const DEFAULT_MECHANISMS: [&str; 2] = ["PLAIN", "AMQPLAIN"];

/// The user for clients of the mechanism ANONYMOUS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AnonymousLogin {
    /// The user name; none disables anonymous logins.
    pub(crate) user: Option<String>,
    pub(crate) password: String,
    /// True if the configuration names the user.
    pub(crate) is_configured: bool,
}

impl Default for AnonymousLogin {
    /// RabbitMQ's defaults, for a configuration that enables only the mechanism.
    fn default() -> Self {
        let (user, password) = (Some("guest".to_owned()), "guest".to_owned());
        Self { user, password, is_configured: false }
    }
}

impl Config {
    /// The name of the node, completed with the host's name.
    pub(crate) fn full_node_name(&self) -> String {
        let name = self.node_name.as_deref().unwrap_or("leveret");
        if name.contains('@') {
            return name.to_owned();
        }
        format!("{name}@{}", rustix::system::uname().nodename().to_string_lossy())
    }

    /// All settings in force, as lines of a configuration file; secrets are masked.
    pub fn lines_in_force(&self) -> String {
        self.effective.iter().map(|one| format!("{one}\n")).collect()
    }

    /// Names of the enabled SASL mechanisms. ANONYMOUS is enabled if the configuration lists it, or if it
    /// sets the anonymous user and no mechanisms.
    pub(crate) fn mechanisms(&self) -> Vec<&'static str> {
        let mut mechanisms = self.auth_mechanisms.clone();
        if self.anonymous_login.is_configured && mechanisms == DEFAULT_MECHANISMS {
            mechanisms.push(session::ANONYMOUS);
        }
        let is_off = self.anonymous_login.user.is_none();
        mechanisms.retain(|name| !is_off || *name != session::ANONYMOUS);
        mechanisms.sort_unstable();
        mechanisms.dedup();
        mechanisms
    }
}

/// The errors that make a configuration unusable.
#[derive(PartialEq, Eq, thiserror::Error, Debug)]
#[error("{}", problems.join("\nleveret: "))]
pub struct ConfigError {
    /// The problems, each with its place.
    pub problems: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            amqp_listeners: MaybeListener::on(Some(5672)).address().into_iter().collect(),
            amqps_listeners: Vec::new(),
            http: MaybeListener::on(Some(15672)),
            has_http: true,
            https: MaybeListener::on(None),
            prometheus: MaybeListener::on(None),
            path_prefix: None,
            login_session_timeout_minutes: None,
            http_body_bytes_max: BODY_BYTES_MAX,
            tls: TlsOptions::default(),
            https_tls: TlsOptions::default(),
            tls_handshake_timeout_ms: 5000,
            certificate_login: CertificateLogin::default(),
            auth_mechanisms: DEFAULT_MECHANISMS.to_vec(),
            anonymous_login: AnonymousLogin::default(),
            data_dir: PathBuf::from("data"),
            storage: StorageOptions::default(),
            statistics_interval: STATISTICS_INTERVAL,
            session: SessionOptions::default(),
            vhost: VhostOptions::default(),
            connections_max: None,
            default_user: DefaultUser {
                name: "guest".to_owned(),
                password: "guest".to_owned(),
                tags: vec!["administrator".to_owned()],
                vhost: "/".to_owned(),
                configure: ".*".to_owned(),
                write: ".*".to_owned(),
                read: ".*".to_owned(),
            },
            default_users: BTreeMap::new(),
            loopback_users: vec!["guest".to_owned()],
            default_user_access: DefaultUserAccess::default(),
            load_definitions: None,
            memory_watermark: MemoryWatermark::Relative(0.6),
            total_memory_bytes: None,
            paging_ratio: None,
            disk_free_limit: DiskFreeLimit::Absolute(50_000_000),
            node_name: None,
            identity: Identity::default(),
            cluster_name: None,
            cluster: ClusterOptions::default(),
            log: LogOptions::default(),
            warnings: Vec::new(),
            files: Vec::new(),
            effective: Vec::new(),
        }
    }
}

impl Config {
    /// The directory of the broker's data.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Makes the path of the data directory independent of the working directory, because log lines show it.
    ///
    /// # Errors
    /// If there is no working directory.
    pub fn make_data_dir_absolute(&mut self) -> io::Result<()> {
        self.data_dir = std::path::absolute(&self.data_dir)?;
        Ok(())
    }

    /// The address for HTTP without TLS.
    pub(crate) fn http_listener(&self) -> Option<SocketAddr> {
        self.http.address().filter(|_| self.has_http)
    }

    /// TLS options of the HTTP listener: its own files, or else those of AMQP.
    pub(crate) fn https_options(&self) -> TlsOptions {
        let (own, amqp) = (&self.https_tls, &self.tls);
        TlsOptions {
            cacertfile: own.cacertfile.clone().or_else(|| amqp.cacertfile.clone()),
            certfile: own.certfile.clone().or_else(|| amqp.certfile.clone()),
            keyfile: own.keyfile.clone().or_else(|| amqp.keyfile.clone()),
            password: own.password.clone().or_else(|| amqp.password.clone()),
            ..own.clone()
        }
    }

    /// Problems of settings that contradict each other or are incomplete.
    fn contradictions(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.amqps_listeners.is_empty() {
            problems.extend(self.tls.problem("listeners.ssl", "ssl_options"));
        }
        if self.https.port.is_some() {
            problems.extend(self.https_options().problem("management.ssl.port", "management.ssl"));
        }
        problems
    }
}
