//! The nodes of a cluster, its secret and its links, in the configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use replication::levels::RECORD_LEVEL;

use super::TlsOptions;
use super::discovery::{
    BACKEND, DNS_HOSTNAME, DiscoveryBackend, DiscoveryKeys, DnsDiscovery, TARGET_SIZE,
};
use super::values::node_name;
use crate::limits::{CLUSTER_SECRET_BYTES, CLUSTER_SECRET_BYTES_GOOD, SHIPMENT_BANDWIDTH_BYTES};

/// Port of the links between nodes, as RabbitMQ's.
pub(crate) const CLUSTER_PORT: u16 = 25672;

/// Prefix of the keys that list the nodes.
pub(super) const NODES: &str = "cluster_formation.classic_config.nodes";

/// File with RabbitMQ's secret in the home directory of the broker's user.
const ERLANG_COOKIE: &str = ".erlang.cookie";

/// A node of the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ClusterNode {
    /// Name in the form `NAME@HOST`.
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The key of the configuration that lists the node, and its place.
    pub(crate) key: String,
}

impl ClusterNode {
    /// True if this is the name of a node with a host.
    pub(crate) fn is_name(name: &str) -> bool {
        name.contains('@') && node_name(name).is_ok()
    }

    /// The node that a text names: `NAME@HOST`, with or without a port. `key` tells where the text stands.
    ///
    /// # Errors
    /// What the text must be.
    pub(crate) fn parse(text: &str, key: &str) -> Result<Self, String> {
        let wrong = || format!("must be NAME@HOST or NAME@HOST:PORT, got '{text}'");
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => {
                (name, port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?)
            }
            None => (text, CLUSTER_PORT),
        };
        let (_, host) = name.split_once('@').ok_or_else(wrong)?;
        let name = node_name(name).map_err(|_| wrong())?;
        Ok(Self { name, host: host.to_owned(), port, key: key.to_owned() })
    }

    /// True if both have the same name and address.
    pub(crate) fn has_place_of(&self, other: &Self) -> bool {
        self.name == other.name && self.host == other.host && self.port == other.port
    }

    /// The address as text, for the resolver.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn is_here(&self) -> bool {
        let is_loopback = |ip: IpAddr| ip.is_loopback();
        self.host == "localhost" || self.host.parse().is_ok_and(is_loopback)
    }
}

/// The cluster of the configuration. Without nodes there is none.
#[derive(Clone, Debug)]
pub(crate) struct ClusterOptions {
    /// Addresses of the listener for links; none for the default.
    pub(crate) listeners: Vec<SocketAddr>,
    /// All nodes, this one included, in the order of the files, or as they are found.
    pub(crate) nodes: Vec<ClusterNode>,
    pub(crate) discovery: DiscoveryKeys,
    /// The discovery by DNS, if it is configured.
    pub(crate) dns: Option<DnsDiscovery>,
    pub(crate) secret_file: Option<PathBuf>,
    /// The secret itself.
    pub(crate) secret: Option<String>,
    /// Certificate, key and authorities; of the rest nothing is used.
    pub(crate) tls: TlsOptions,
    /// True if a link without TLS is never opened.
    pub(crate) requires_tls: bool,
    /// Bytes of old entries kept for members that are away; none for the default.
    pub(crate) log_retention_bytes: Option<u64>,
    /// Bytes of files that the node ships in a second.
    pub(crate) shipment_bandwidth_bytes: u64,
    /// True if a node without data takes the place of the member that it was before its disk was lost.
    pub(crate) replaces_lost_member: bool,
    /// Number of replicas of vhosts that are made without one; none for all nodes.
    pub(crate) default_replicas: Option<u8>,
    /// The newest level of record kinds that the node tells the others.
    pub(crate) record_level: u16,
    /// True if the level of the cluster rises by itself, while this node leads the metadata.
    pub(crate) raises_level: bool,
    /// Time after which a write or sync that does not end counts as a failed disk.
    pub(crate) disk_stall_timeout: Duration,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            listeners: Vec::new(),
            nodes: Vec::new(),
            discovery: DiscoveryKeys::default(),
            dns: None,
            secret_file: None,
            secret: None,
            tls: TlsOptions::default(),
            requires_tls: false,
            log_retention_bytes: None,
            shipment_bandwidth_bytes: SHIPMENT_BANDWIDTH_BYTES,
            replaces_lost_member: false,
            default_replicas: None,
            record_level: RECORD_LEVEL,
            raises_level: true,
            disk_stall_timeout: Duration::from_secs(3),
        }
    }
}

impl ClusterOptions {
    /// True if the node belongs to a cluster.
    pub(crate) fn is_on(&self) -> bool {
        !self.nodes.is_empty() || self.discovery.backend == DiscoveryBackend::Dns
    }

    /// A node that DNS lists: its port is that of the first listener of this one.
    pub(crate) fn found_node(&self, name: &str, dns: &DnsDiscovery) -> ClusterNode {
        let host = name.split_once('@').map_or(name, |(_, host)| host).to_owned();
        let port = self.listeners.first().map_or(CLUSTER_PORT, SocketAddr::port);
        ClusterNode { name: name.to_owned(), host, port, key: dns.key.clone() }
    }

    /// Joins the keys of discovery by DNS. `place` gives the place of a key.
    ///
    /// # Errors
    /// A key that is missing, or that contradicts.
    pub(super) fn complete_dns(&mut self, place: &dyn Fn(&str) -> String) -> Result<(), String> {
        self.dns = self.discovery.dns(place)?;
        if self.dns.is_some() && !self.nodes.is_empty() {
            return Err(format!(
                "{}: {NODES} must not be set, because {BACKEND} is dns",
                place(NODES)
            ));
        }
        Ok(())
    }

    /// The key that says that there is a cluster.
    fn main_key(&self) -> &'static str {
        match self.discovery.backend {
            DiscoveryBackend::ClassicConfig => NODES,
            DiscoveryBackend::Dns => BACKEND,
        }
    }

    /// True if links are encrypted.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.certfile.is_some()
    }

    /// Addresses to listen on, for the node of this name. Without TLS the default is this machine only.
    pub(crate) fn listen_on(&self, own_name: &str) -> Vec<SocketAddr> {
        if !self.is_on() || !self.listeners.is_empty() {
            return if self.is_on() { self.listeners.clone() } else { Vec::new() };
        }
        let own = self.nodes.iter().find(|node| node.name == own_name);
        let port = own.map_or(CLUSTER_PORT, |own| own.port);
        let ip = match self.has_tls() {
            true => IpAddr::from(Ipv6Addr::UNSPECIFIED),
            false => IpAddr::from(Ipv4Addr::LOCALHOST),
        };
        vec![SocketAddr::new(ip, port)]
    }

    /// Reads the secret: the value, the file, or RabbitMQ's file in `home`.
    ///
    /// # Errors
    /// The reason why there is no usable secret, a sentence that names its source.
    pub(crate) fn read_secret(&self, home: Option<&Path>) -> Result<String, String> {
        let (source, text) = if let Some(secret) = &self.secret {
            ("cluster.secret".to_owned(), secret.clone())
        } else {
            let cookie = home.map(|home| home.join(ERLANG_COOKIE)).filter(|path| path.exists());
            let (key, path) = match (&self.secret_file, cookie) {
                (Some(path), _) => ("cluster.secret_file ", path.clone()),
                (None, Some(path)) => ("", path),
                (None, None) => {
                    return Err(format!(
                        "the links of a cluster need a secret: write it into a file and set cluster.secret_file, \
                         or give RabbitMQ's {ERLANG_COOKIE} to every node"
                    ));
                }
            };
            let source = format!("{key}{}", path.display());
            let text = std::fs::read_to_string(&path).map_err(|error| {
                format!("cannot read the secret of the cluster, {source}: {error}")
            })?;
            (source, text)
        };
        let text = text.trim();
        if !CLUSTER_SECRET_BYTES.contains(&text.len()) {
            return Err(format!(
                "the secret of the cluster, {source}, has {} bytes; it must have {} to {}",
                text.len(),
                CLUSTER_SECRET_BYTES.start(),
                CLUSTER_SECRET_BYTES.end()
            ));
        }
        Ok(text.to_owned())
    }

    /// Problems of the cluster in a configuration whose node has the name `own_name`. `place` gives the place of the
    /// first key with a prefix.
    pub(super) fn problems(
        &self,
        own_name: &str,
        home: Option<&Path>,
        place: &dyn Fn(&str) -> String,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        let missing = [
            ("certfile", self.tls.certfile.is_none()),
            ("keyfile", self.tls.keyfile.is_none()),
            ("cacertfile", self.tls.cacertfile.is_none()),
        ];
        let is_any_set = missing.iter().any(|(_, is_missing)| !is_missing);
        if is_any_set || self.requires_tls {
            let missing = missing.iter().filter(|(_, is_missing)| *is_missing);
            problems.extend(missing.map(|(name, _)| {
                format!("{}: links with TLS need cluster.tls.{name}", place("cluster.tls"))
            }));
        }
        if !self.is_on() {
            return problems;
        }
        let is_listed = self.nodes.iter().any(|node| node.name == own_name);
        if self.discovery.backend == DiscoveryBackend::ClassicConfig && !is_listed {
            let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            problems.push(format!(
                "{}: {NODES} must list this node, '{own_name}' (see nodename); it lists {}",
                place(NODES),
                names.join(", ")
            ));
        }
        if let Err(problem) = self.read_secret(home) {
            let key =
                if self.secret_file.is_some() { "cluster.secret_file" } else { self.main_key() };
            problems.push(format!("{}: {problem}", place(key)));
        }
        problems
    }

    /// Warnings about a cluster that works, but not as well as it could.
    pub(super) fn warnings(
        &self,
        own_name: &str,
        home: Option<&Path>,
        place: &dyn Fn(&str) -> String,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |key: &str, text: String| warnings.push(format!("{}: {text}", place(key)));
        if self.discovery.backend == DiscoveryBackend::ClassicConfig
            && self.discovery.dns_hostname.is_some()
        {
            let text = format!("{DNS_HOSTNAME} has no effect without {BACKEND} = dns");
            warn(DNS_HOSTNAME, text);
        }
        if !self.is_on() {
            if !self.listeners.is_empty() {
                let text = format!(
                    "listeners.cluster has no effect without {NODES}, before the node has joined a cluster"
                );
                warn("listeners.cluster", text);
            }
            return warnings;
        }
        let (count, key, counts, remedy) = match &self.dns {
            Some(dns) => (dns.target_size, TARGET_SIZE, "counts", "set 3"),
            None => (self.nodes.len(), NODES, "lists", "list 3"),
        };
        match count {
            1 => warn(key, format!("{key} {counts} this node only: nothing is replicated")),
            2 => warn(
                key,
                format!("{key} {counts} 2 nodes: the loss of either one stops both; {remedy}"),
            ),
            n if n % 2 == 0 => warn(
                key,
                format!(
                    "{key} {counts} {n} nodes, which survive the loss of {}, as {} do",
                    n / 2 - 1,
                    n - 1
                ),
            ),
            _ => {}
        }
        let listens = self.listen_on(own_name);
        let is_here = |address: &SocketAddr| address.ip().is_loopback();
        if !self.has_tls() {
            let peers = self.nodes.iter().filter(|node| node.name != own_name && !node.is_here());
            let mut away: Vec<String> = peers.map(|node| format!("'{}'", node.name)).collect();
            away.extend(self.dns.as_ref().map(|dns| format!("the nodes of '{}'", dns.hostname)));
            let open = listens.iter().filter(|address| !is_here(address));
            away.extend(open.map(|address| format!("the listener on {address}")));
            if !away.is_empty() {
                let key =
                    if self.listeners.is_empty() { self.main_key() } else { "listeners.cluster" };
                let text = format!(
                    "links are not encrypted ({}): everybody on the way reads all messages; set cluster.tls.certfile, \
                     .keyfile and .cacertfile",
                    away.join(", ")
                );
                warn(key, text);
            }
            let has_others = self.dns.is_some() || self.nodes.iter().any(|node| !node.is_here());
            if self.listeners.is_empty() && has_others {
                let text = format!(
                    "links from other machines are not accepted: without listeners.cluster and TLS this node listens \
                     on {} only",
                    listens.first().map(ToString::to_string).unwrap_or_default()
                );
                warn(self.main_key(), text);
            }
        }
        if self.read_secret(home).is_ok_and(|secret| secret.len() < CLUSTER_SECRET_BYTES_GOOD) {
            let text = format!(
                "the secret of the cluster is short: {CLUSTER_SECRET_BYTES_GOOD} random letters cannot be guessed"
            );
            warn("cluster.secret", text);
        }
        if let Some(path) = self.secret_file.as_ref().filter(|path| super::is_readable_by_all(path))
        {
            let text = format!("every user of this machine can read {}", path.display());
            warn("cluster.secret_file", text);
        }
        warnings
    }
}

/// Home directory of the broker's user.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}
