//! Keys for a cluster: its nodes, its secret, its links.

use std::time::Duration;

use replication::levels::RECORD_LEVEL;

use super::tls::{self, Links};
use crate::config::cluster::ClusterNode;
use crate::config::discovery::{BACKEND, DNS_HOSTNAME, DiscoveryBackend, TARGET_SIZE};
use crate::config::key::Key;
use crate::config::values::{address, boolean, bytes, number, one_of, readable_file};
use crate::limits::{CLUSTER_NODES_MAX, HOST_NAME_BYTES_MAX};

pub(super) const KEYS: &[Key] = &[
    Key::new("listeners.cluster", None, |config, _, value| {
        one_of(value, &[("none", ())])?;
        config.cluster.listeners.clear();
        Ok(())
    }),
    Key::new("listeners.cluster.$name", None, |config, _, value| {
        config.cluster.listeners.push(address(value)?);
        Ok(())
    }),
    Key::new(BACKEND, Some("classic_config"), |config, _, value| {
        config.cluster.discovery.backend = match value {
            "classic_config" | "rabbit_peer_discovery_classic_config" => {
                DiscoveryBackend::ClassicConfig
            }
            "dns" | "rabbit_peer_discovery_dns" => DiscoveryBackend::Dns,
            _ => {
                return Err(format!(
                    "must be classic_config, with every node listed as cluster_formation.classic_config.nodes.N, or \
                     dns, with a host name for all nodes, such as a headless service of Kubernetes; got '{value}'"
                ));
            }
        };
        Ok(())
    }),
    Key::new(DNS_HOSTNAME, None, |config, _, value| {
        let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if value.is_empty() || value.len() > HOST_NAME_BYTES_MAX || !value.bytes().all(is_letter) {
            return Err(format!("must be the name of a host, got '{value}'"));
        }
        config.cluster.discovery.dns_hostname = Some(value.to_owned());
        Ok(())
    }),
    Key::new(TARGET_SIZE, None, |config, _, value| {
        config.cluster.discovery.target_size = Some(number(value, 1..=CLUSTER_NODES_MAX)?);
        Ok(())
    }),
    Key::new("cluster_formation.classic_config.nodes.$n", None, |config, n, value| {
        let node =
            ClusterNode::parse(value, &format!("cluster_formation.classic_config.nodes.{n}"))?;
        for other in &config.cluster.nodes {
            if other.name == node.name {
                return Err(format!("must name another node than {}, got '{value}'", other.key));
            }
            if other.address() == node.address() {
                return Err(format!(
                    "must have another address than '{}', {}, got '{value}'",
                    other.name, other.key
                ));
            }
        }
        if config.cluster.nodes.len() == CLUSTER_NODES_MAX {
            return Err(format!(
                "must be left out, as a cluster has at most {CLUSTER_NODES_MAX} nodes, got '{value}'"
            ));
        }
        config.cluster.nodes.push(node);
        Ok(())
    }),
    Key::new("cluster.secret_file", None, |config, _, value| {
        config.cluster.secret_file = Some(readable_file(value)?);
        Ok(())
    }),
    Key::new("cluster.secret", None, |config, _, value| {
        config.cluster.secret = Some(value.to_owned());
        Ok(())
    })
    .secret(),
    Key::new("cluster.tls.certfile", None, tls::certfile::<Links>),
    Key::new("cluster.tls.keyfile", None, tls::keyfile::<Links>),
    Key::new("cluster.tls.password", None, tls::password::<Links>).secret(),
    Key::new("cluster.tls.cacertfile", None, tls::cacertfile::<Links>),
    Key::new("cluster.tls.required", Some("false"), |config, _, value| {
        config.cluster.requires_tls = boolean(value)?;
        Ok(())
    }),
    Key::new("cluster.replace_lost_member", Some("false"), |config, _, value| {
        config.cluster.replaces_lost_member = boolean(value)?;
        Ok(())
    }),
    Key::new("cluster.default_replicas", None, |config, _, value| {
        let replicas = number(value, 1..=u64::from(crate::limits::REPLICAS_MAX))?;
        config.cluster.default_replicas = u8::try_from(replicas).ok();
        Ok(())
    }),
    Key::new("cluster.record_level", Some("2"), |config, _, value| {
        config.cluster.record_level = number(value, 1..=RECORD_LEVEL)?;
        Ok(())
    }),
    Key::new("cluster.auto_level", Some("true"), |config, _, value| {
        config.cluster.raises_level = boolean(value)?;
        Ok(())
    }),
    Key::new("raft.log_retention", None, |config, _, value| {
        config.cluster.log_retention_bytes = Some(bytes(value)?);
        Ok(())
    }),
    Key::new("raft.shipment_bandwidth", Some("64MiB"), |config, _, value| {
        config.cluster.shipment_bandwidth_bytes = match bytes(value)? {
            0 => return Err("must be more than 0".to_owned()),
            bytes => bytes,
        };
        Ok(())
    }),
    Key::new("raft.disk_stall_timeout", Some("3000"), |config, _, value| {
        let millis = number(value, 500..=600_000)?;
        config.cluster.disk_stall_timeout = Duration::from_millis(millis);
        Ok(())
    }),
];
