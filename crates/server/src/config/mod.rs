//! The configuration: RabbitMQ's file format and key names, environment variables, command line flags.
//!
//! `file` knows the format, `keys` what can be set, `settings` who wins; this is what comes out.

pub(crate) mod environment;
mod file;
mod key;
mod keys;
mod log;
mod settings;
#[cfg(test)]
mod tests;
mod tls;
mod values;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use broker::VhostOptions;
use session::SessionOptions;

use crate::limits::STATISTICS_INTERVAL;

pub(crate) use log::{LogFormat, LogLevel, LogOptions, LogStream, Sink};
pub(crate) use management::{DiskFreeLimit, Identity, MemoryWatermark};
pub(crate) use settings::{Effective, Settings, Source};
pub(crate) use tls::{CertificateLogin, CertificateName, SanType, TlsOptions, TlsVersion};

/// The user that exists from the first start.
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

/// A further user, who is made when a vhost is whose name his pattern matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SeededUser {
    /// None: nobody can log in as him before he is given one.
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

/// When a persistent message counts as safe.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Durability {
    /// When the disk says that it is on it.
    #[default]
    Fsync,
    /// When the operating system has it: a crash of the broker loses nothing, a power cut may.
    Os,
}

impl Durability {
    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Os => "os",
        }
    }
}

/// A listener that there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MaybeListener {
    pub(crate) ip: IpAddr,
    /// Without a port there is none.
    pub(crate) port: Option<u16>,
}

impl MaybeListener {
    const fn on(port: Option<u16>) -> Self {
        Self { ip: IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), port }
    }

    /// Where it listens, if it does.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        self.port.map(|port| SocketAddr::new(self.ip, port))
    }
}

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) amqp_listeners: Vec<SocketAddr>,
    /// AMQP over TLS.
    pub(crate) amqps_listeners: Vec<SocketAddr>,
    pub(crate) http: MaybeListener,
    /// Whether it is wanted: not if only TLS is asked for.
    pub(crate) has_http: bool,
    pub(crate) https: MaybeListener,
    /// A listener that answers metrics only.
    pub(crate) prometheus: MaybeListener,
    /// What stands in front of every path of the management API: nothing, or with a slash in front.
    pub(crate) path_prefix: Option<String>,
    pub(crate) tls: TlsOptions,
    pub(crate) https_tls: TlsOptions,
    pub(crate) tls_handshake_timeout_ms: u64,
    pub(crate) certificate_login: CertificateLogin,
    /// What clients may log in with, by name.
    pub(crate) auth_mechanisms: Vec<&'static str>,
    pub(crate) anonymous_login: AnonymousLogin,
    pub(crate) data_dir: PathBuf,
    pub(crate) durability: Durability,
    /// Time between two samples of everything; `collect_statistics_interval`.
    pub(crate) statistics_interval: Duration,
    pub(crate) session: SessionOptions,
    pub(crate) vhost: VhostOptions,
    /// AMQP connections of the whole node.
    pub(crate) connections_max: Option<u64>,
    pub(crate) default_user: DefaultUser,
    /// By name.
    pub(crate) default_users: BTreeMap<String, SeededUser>,
    pub(crate) loopback_users: Vec<String>,
    pub(crate) load_definitions: Option<PathBuf>,
    pub(crate) memory_watermark: MemoryWatermark,
    /// What the machine's memory is said to be.
    pub(crate) total_memory_bytes: Option<u64>,
    /// Share of the memory watermark that messages waiting in the queues of a vhost may take before
    /// long queues are put aside; none for the default.
    pub(crate) paging_ratio: Option<f64>,
    pub(crate) disk_free_limit: DiskFreeLimit,
    pub(crate) node_name: Option<String>,
    /// What clients are told that the broker is.
    pub(crate) identity: Identity,
    pub(crate) cluster_name: Option<String>,
    pub(crate) log: LogOptions,
    /// What is to be said in the log about all this.
    pub(crate) warnings: Vec<String>,
    /// Every key with its value and source.
    pub(crate) effective: Vec<Effective>,
}

/// What clients may log in with if the configuration does not say.
const DEFAULT_MECHANISMS: [&str; 2] = ["PLAIN", "AMQPLAIN"];

/// The user that clients of the mechanism ANONYMOUS log in as.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AnonymousLogin {
    /// None if there are no such clients.
    pub(crate) user: Option<String>,
    pub(crate) password: String,
    /// The configuration names the user.
    pub(crate) is_configured: bool,
}

impl Default for AnonymousLogin {
    /// RabbitMQ's, for a configuration that names the mechanism alone.
    fn default() -> Self {
        let (user, password) = (Some("guest".to_owned()), "guest".to_owned());
        Self { user, password, is_configured: false }
    }
}

impl Config {
    /// What clients may log in with, by name: ANONYMOUS if the configuration names it, or the user of it
    /// and no mechanisms.
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

/// Why a configuration cannot be used.
#[derive(PartialEq, Eq, thiserror::Error, Debug)]
#[error("{}", problems.join("\nleveret: "))]
pub(crate) struct ConfigError {
    /// Each with its place.
    pub(crate) problems: Vec<String>,
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
            tls: TlsOptions::default(),
            https_tls: TlsOptions::default(),
            tls_handshake_timeout_ms: 5000,
            certificate_login: CertificateLogin::default(),
            auth_mechanisms: DEFAULT_MECHANISMS.to_vec(),
            anonymous_login: AnonymousLogin::default(),
            data_dir: PathBuf::from("data"),
            durability: Durability::default(),
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
            load_definitions: None,
            memory_watermark: MemoryWatermark::Relative(0.6),
            total_memory_bytes: None,
            paging_ratio: None,
            disk_free_limit: DiskFreeLimit::Absolute(50_000_000),
            node_name: None,
            identity: Identity::default(),
            cluster_name: None,
            log: LogOptions::default(),
            warnings: Vec::new(),
            effective: Vec::new(),
        }
    }
}

impl Config {
    /// Where HTTP without TLS is spoken.
    pub(crate) fn http_listener(&self) -> Option<SocketAddr> {
        self.http.address().filter(|_| self.has_http)
    }

    /// TLS of the HTTP listener: its own files, or else those of AMQP.
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

    /// What cannot be together, or is not complete.
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
