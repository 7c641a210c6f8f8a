//! Keys for a cluster: its nodes, its secret, its links.

use std::time::Duration;

use super::tls::{self, Links};
use crate::config::cluster::{CLUSTER_PORT, ClusterNode};
use crate::config::key::Key;
use crate::config::values::{address, boolean, bytes, node_name, number, one_of, readable_file};

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
    Key::new("cluster_formation.peer_discovery_backend", Some("classic_config"), |_, _, value| {
        match value {
            "classic_config" | "rabbit_peer_discovery_classic_config" => Ok(()),
            _ => Err(format!(
                "must be classic_config, with every node listed as cluster_formation.classic_config.nodes.N; \
                 got '{value}'"
            )),
        }
    }),
    Key::new("cluster_formation.classic_config.nodes.$n", None, |config, n, value| {
        let node = node(n, value)?;
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
    Key::new("raft.log_retention", None, |config, _, value| {
        config.cluster.log_retention_bytes = Some(bytes(value)?);
        Ok(())
    }),
    Key::new("raft.disk_stall_timeout", Some("3000"), |config, _, value| {
        let millis = number(value, 500..=600_000)?;
        config.cluster.disk_stall_timeout = Duration::from_millis(millis);
        Ok(())
    }),
];

/// A node: `NAME@HOST`, with or without a port.
fn node(n: &str, value: &str) -> Result<ClusterNode, String> {
    let wrong = || format!("must be NAME@HOST or NAME@HOST:PORT, got '{value}'");
    let (name, port) = match value.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?),
        None => (value, CLUSTER_PORT),
    };
    let (_, host) = name.split_once('@').ok_or_else(wrong)?;
    let name = node_name(name).map_err(|_| wrong())?;
    Ok(ClusterNode {
        name,
        host: host.to_owned(),
        port,
        key: format!("cluster_formation.classic_config.nodes.{n}"),
    })
}
