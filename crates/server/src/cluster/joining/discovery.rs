//! The nodes of a cluster as DNS lists them: the names of the addresses of one host name, as RabbitMQ looks them up.
//!
//! A cluster is known by the names of its nodes, which must be the same at every start of every node. DNS tells what runs
//! at the moment: a node that took a list of two for the whole would found another cluster. Therefore the number of nodes is
//! configured, and a node without `cluster.json` waits until DNS lists exactly that many names, its own among them. A
//! node that has met all others has their names in that file, and asks DNS for addresses only.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::time::Duration;

use crate::config::{ClusterNode, Config, DnsDiscovery};
use crate::limits::{DNS_ADDRESSES_MAX, DNS_LOG_INTERVAL, DNS_LOG_INTERVAL_MIN};
use crate::membership::founding::ClusterRecord;
use crate::membership::ids::ClusterId;

/// Looks up addresses and names. Calls may block.
pub(crate) trait Resolver: Send + Sync {
    /// All addresses of a host name.
    ///
    /// # Errors
    /// If there is none, or nobody answers.
    fn addresses(&self, hostname: &str) -> io::Result<Vec<IpAddr>>;

    /// The host name of an address.
    ///
    /// # Errors
    /// If it has none, or nobody answers.
    fn name(&self, address: IpAddr) -> io::Result<String>;
}

/// The resolver of the system.
#[derive(Debug)]
pub(crate) struct SystemResolver;

impl Resolver for SystemResolver {
    fn addresses(&self, hostname: &str) -> io::Result<Vec<IpAddr>> {
        Ok((hostname, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }

    fn name(&self, address: IpAddr) -> io::Result<String> {
        Ok(dns_lookup::lookup_addr(&address)?)
    }
}

/// The hosts that DNS lists at one moment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Listed {
    /// Names of hosts, in lower case and without a dot at the end.
    pub(crate) hosts: BTreeSet<String>,
    /// Addresses without a name.
    pub(crate) nameless: Vec<IpAddr>,
}

/// Looks up what DNS lists for a host name.
///
/// # Errors
/// A sentence.
pub(crate) fn look(resolver: &dyn Resolver, hostname: &str) -> Result<Listed, String> {
    let addresses = resolver.addresses(hostname);
    let addresses: BTreeSet<IpAddr> = addresses
        .map_err(|error| format!("cannot look up the addresses of '{hostname}': {error}"))?
        .into_iter()
        .collect();
    if addresses.len() > DNS_ADDRESSES_MAX {
        let count = addresses.len();
        return Err(format!(
            "'{hostname}' has {count} addresses, more than {DNS_ADDRESSES_MAX}; it must be a name for the nodes alone"
        ));
    }
    let mut listed = Listed::default();
    for address in addresses {
        match resolver.name(address) {
            Ok(name) => {
                listed.hosts.insert(name.trim_end_matches('.').to_ascii_lowercase());
            }
            Err(_) => listed.nameless.push(address),
        }
    }
    Ok(listed)
}

/// The names of the nodes on the listed hosts: each with the prefix of this node's name.
pub(crate) fn names(own: &str, listed: &Listed) -> Vec<String> {
    let prefix = own.split_once('@').map_or(own, |(prefix, _)| prefix);
    listed.hosts.iter().map(|host| format!("{prefix}@{host}")).collect()
}

// COMPAT: discovery by DNS: a first start waits for as many nodes as are configured; RabbitMQ begins with those that it
// finds.

/// The names of all nodes, if DNS lists as many as there must be, and this one. `known` is the memory of this node of
/// its cluster, which may be incomplete.
///
/// # Errors
/// The reason to wait, a sentence.
pub(crate) fn judge(
    own: &str,
    dns: &DnsDiscovery,
    listed: &Listed,
    known: Option<&ClusterRecord>,
) -> Result<Vec<String>, String> {
    let (hostname, size) = (&dns.hostname, dns.target_size);
    let names = names(own, listed);
    if let Some(wrong) = names.iter().find(|name| !ClusterNode::is_name(name)) {
        return Err(format!("'{hostname}' lists {wrong:?}, which is no name of a node"));
    }
    let shown = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    if names.len() != size {
        let nameless: Vec<String> = listed.nameless.iter().map(ToString::to_string).collect();
        let nameless = match nameless.as_slice() {
            [] => String::new(),
            all => format!("; without a name: {}", all.join(", ")),
        };
        return Err(format!(
            "'{hostname}' lists {} of {size} nodes: {shown}{nameless} \
             (cluster_formation.target_cluster_size_hint is {size})",
            names.len()
        ));
    }
    if !names.iter().any(|name| name == own) {
        return Err(format!(
            "'{hostname}' does not list this node, '{own}' (see nodename): {shown}"
        ));
    }
    let cluster = ClusterId::of(names.iter().map(String::as_str));
    match known {
        Some(known) if known.cluster != cluster && known.cluster != ClusterId::UNKNOWN => {
            Err(format!(
                "'{hostname}' lists the nodes of cluster {cluster}: {shown}; the data directory belongs to cluster {}, which \
             this node has not met as a whole",
                known.cluster
            ))
        }
        Some(_) | None => Ok(names),
    }
}

/// The nodes of these names, as DNS finds them.
pub(crate) fn found_nodes(
    config: &Config,
    dns: &DnsDiscovery,
    names: &[String],
) -> Vec<ClusterNode> {
    names.iter().map(|name| config.cluster.found_node(name, dns)).collect()
}

/// The names of all nodes that a node remembers; none if it has not met them all.
pub(crate) fn remembered(known: &ClusterRecord) -> Option<Vec<String>> {
    let names = known.peers.keys().chain([&known.node]);
    let is_whole = ClusterId::of(names.clone().map(String::as_str)) == known.cluster;
    is_whole.then(|| names.cloned().collect())
}

/// Decides which reasons to wait are logged: new ones, but not too many of them, and one that lasts from time to time.
#[derive(Default, Debug)]
pub(crate) struct WaitLog {
    /// The last line, with the time since the beginning.
    last: Option<(String, Duration)>,
}

impl WaitLog {
    /// True if the reason is to be logged, `at` this time since the beginning.
    pub(crate) fn is_due(&mut self, reason: &str, at: Duration) -> bool {
        let is_due = self.last.as_ref().is_none_or(|(last, last_at)| {
            let pause = if last == reason { DNS_LOG_INTERVAL } else { DNS_LOG_INTERVAL_MIN };
            at.saturating_sub(*last_at) >= pause
        });
        if is_due {
            self.last = Some((reason.to_owned(), at));
        }
        is_due
    }
}
