//! The way in which the nodes of a cluster are found, in the configuration.

/// The keys of discovery by DNS.
pub(super) const BACKEND: &str = "cluster_formation.peer_discovery_backend";
pub(super) const DNS_HOSTNAME: &str = "cluster_formation.dns.hostname";
pub(super) const TARGET_SIZE: &str = "cluster_formation.target_cluster_size_hint";

/// Discovery of the nodes by DNS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DnsDiscovery {
    /// The host name whose addresses are those of all nodes.
    pub(crate) hostname: String,
    /// Number of nodes.
    pub(crate) target_size: usize,
    /// The key of the configuration that sets the host name, and its place.
    pub(crate) key: String,
}

/// The way in which the nodes are found.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum DiscoveryBackend {
    /// The configuration lists them.
    #[default]
    ClassicConfig,
    Dns,
}

/// The keys of discovery, as they are configured one by one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct DiscoveryKeys {
    pub(super) backend: DiscoveryBackend,
    pub(super) dns_hostname: Option<String>,
    pub(super) target_size: Option<usize>,
}

impl DiscoveryKeys {
    /// Nodes that the cluster is to have, for the health check; one if nothing is said, as in RabbitMQ.
    pub(crate) fn target_size(&self) -> usize {
        self.target_size.unwrap_or(1)
    }

    /// Discovery by DNS, if that is the backend. `place` gives the place of a key.
    ///
    /// # Errors
    /// The key that is missing.
    pub(super) fn dns(
        &self,
        place: &dyn Fn(&str) -> String,
    ) -> Result<Option<DnsDiscovery>, String> {
        if self.backend != DiscoveryBackend::Dns {
            return Ok(None);
        }
        let needs = |key: &str, why: &str| {
            format!("{}: {BACKEND} = dns needs {key}, {why}", place(BACKEND))
        };
        let hostname = self.dns_hostname.clone();
        let hostname = hostname
            .ok_or_else(|| needs(DNS_HOSTNAME, "a name with the addresses of all nodes"))?;
        let target_size = self.target_size.ok_or_else(|| {
            needs(
                TARGET_SIZE,
                "the number of nodes: a node that finds fewer must wait, and found no cluster without the others",
            )
        })?;
        let key = format!("{DNS_HOSTNAME} ({})", place(DNS_HOSTNAME));
        Ok(Some(DnsDiscovery { hostname, target_size, key }))
    }
}
