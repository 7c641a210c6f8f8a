//! Commands of RabbitMQ's tools that Leveret cannot have: each says in one line what is the case.

use crate::failure::{Failure, UNAVAILABLE};

/// Reasons, each with the commands that it concerns.
const ABSENT: &[(&str, &[&str])] = &[
    (
        "a node starts without a majority, and serves when there is one; force_standalone_khepri_boot lets it go on without",
        &["force_boot"],
    ),
    ("all nodes of a cluster are alike", &["change_cluster_node_type"]),
    (
        "a node keeps its name in a cluster; join with another name, and forget_cluster_node the old one",
        &["rename_cluster_node", "update_cluster_nodes"],
    ),
    (
        "a queue has no mirrors",
        &[
            "cancel_sync_queue",
            "remove_classic_queue_mirroring_from_policies",
            "set_ha_policy",
            "sync_queue",
        ],
    ),
    (
        "a vhost is replicated as a whole: update_vhost_metadata --replicas sets the number of its replicas",
        &["grow_to_count"],
    ),
    ("the log of a vhost is compacted by itself", &["force_checkpoint", "reclaim_quorum_memory"]),
    (
        "there is no Erlang",
        &[
            "erlang_cookie_hash",
            "erlang_cookie_sources",
            "erlang_version",
            "eval_file",
            "exec",
            "observer",
            "remote_shell",
            "rpc",
            "runtime_thread_stats",
        ],
    ),
    (
        "there is no Erlang, and a configuration file has no encrypted values",
        &[
            "decode",
            "decrypt_conf_value",
            "encode",
            "encrypt_conf_value",
            "list_ciphers",
            "list_hashes",
        ],
    ),
    (
        "there are no plugins, and no channel interceptors",
        &["list_channel_interceptors", "set_channel_interceptor_priorities"],
    ),
    (
        "there are no plugins: no shovel, federation, stream, MQTT and STOMP",
        &[
            "delete_shovel",
            "federation_status",
            "list_mqtt_connections",
            "list_stomp_connections",
            "list_stream_connections",
            "list_stream_consumers",
            "list_stream_publishers",
            "restart_federation_link",
            "restart_shovel",
            "shovel_status",
        ],
    ),
    (
        "there are no streams",
        &[
            "activate_stream_consumer",
            "add_replica",
            "add_super_stream",
            "coordinator_status",
            "delete_replica",
            "delete_super_stream",
            "list_stream_consumer_groups",
            "list_stream_group_consumers",
            "list_stream_tracking",
            "reset_offset",
            "restart_stream",
            "set_stream_retention_policy",
            "stream_status",
        ],
    ),
    (
        "free disk space is always monitored; 'set_disk_free_limit' changes the limit",
        &["activate_free_disk_space_monitoring", "deactivate_free_disk_space_monitoring"],
    ),
    (
        "the log level is a setting of the configuration file, 'log.default.level'",
        &["set_log_level"],
    ),
];

/// The failure of a command that RabbitMQ's tools have and Leveret cannot have.
pub(crate) fn absent(name: &str) -> Option<Failure> {
    let name = name.replace('-', "_");
    let (reason, _) = ABSENT.iter().find(|(_, names)| names.contains(&name.as_str()))?;
    Some(Failure::plain(UNAVAILABLE, format!("Error: '{name}' is not available: {reason}")))
}

/// The names of these commands.
#[cfg(test)]
pub(in crate::commands) fn names() -> impl Iterator<Item = &'static str> {
    ABSENT.iter().flat_map(|(_, names)| names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Tool;

    #[test]
    fn absent_command_says_what_is_the_case() {
        let told = |name| match absent(name) {
            Some(Failure::Message { code, text, .. }) => format!("{code} {text}"),
            other => format!("{other:?}"),
        };
        assert_eq!(told("exec"), "69 Error: 'exec' is not available: there is no Erlang");
        assert!(told("change-cluster-node-type").ends_with("all nodes of a cluster are alike"));
        assert_eq!(absent("bogus"), None);
    }

    #[test]
    fn absent_commands_are_none_of_the_others() {
        let names = ABSENT.iter().flat_map(|(_, names)| names.iter());
        for name in names {
            let known = crate::commands::of(Tool::Leveretctl).any(|command| command.name == *name);
            assert!(!known, "{name}");
        }
    }
}
