"""What is asked of both brokers by rabbitmqctl, rabbitmq-diagnostics and rabbitmq-queues, in this order.

A line is a command line as a shell reads it. `text` compares what is printed, `shape` the fields and types of the JSON, and
`exit` the exit code alone: what is printed there is about the machine or the version.
"""

TEXT, SHAPE, EXIT = "text", "shape", "exit"

QUEUE_COLUMNS = (
    "name durable auto_delete arguments policy exclusive messages_ready messages_unacknowledged messages "
    "messages_persistent message_bytes consumers state type"
)

COMMANDS = [
    # users, permissions, vhosts
    ("add_vhost compared", TEXT), ("add_vhost compared", TEXT), ("list_vhosts name tracing", TEXT),
    ("set_vhost_tags compared one two", TEXT), ("update_vhost_metadata compared --description text", TEXT),
    ("enable_vhost_deletion_protection compared", TEXT), ("delete_vhost compared", TEXT),
    ("disable_vhost_deletion_protection compared", TEXT),
    ("list_vhosts name description tags --formatter json", TEXT),
    ("add_user compared secret", TEXT), ("add_user compared secret", TEXT), ("add_user compared", EXIT),
    ("change_password compared other", TEXT), ("change_password nobody other", TEXT),
    ("authenticate_user compared other", TEXT), ("authenticate_user compared wrong", TEXT),
    ("clear_password compared", TEXT), ("set_user_tags compared monitoring management", TEXT),
    ("set_user_tags nobody a", TEXT), ("list_users", TEXT), ("list_users --formatter json", TEXT),
    ("list_users -q", TEXT), ("list_users --silent", TEXT),
    ("set_permissions -p compared compared ^a .* .*", TEXT), ("set_permissions -p nowhere compared .* .* .*", TEXT),
    ("set_permissions -p compared compared ( .* .*", TEXT), ("set_permissions_globally compared .* .* .*", TEXT),
    ("list_permissions -p compared", TEXT), ("list_user_permissions compared", TEXT),
    ("set_topic_permissions -p compared compared amq.topic ^a .*", TEXT),
    ("list_topic_permissions -p compared", TEXT), ("list_user_topic_permissions compared", TEXT),
    ("clear_topic_permissions -p compared compared amq.topic", TEXT),
    ("set_vhost_limits -p compared '{\"max-queues\": 10}'", TEXT), ("list_vhost_limits -p compared", TEXT),
    ("set_vhost_limits -p compared '{\"nothing\": 10}'", TEXT), ("clear_vhost_limits -p compared", TEXT),
    ("set_user_limits compared '{\"max-channels\": 10}'", TEXT), ("list_user_limits --user compared", TEXT),
    ("clear_user_limits compared max-channels", TEXT),
    # policies and parameters
    ("set_policy -p compared TTL ^q '{\"message-ttl\":60000}' --apply-to queues --priority 7", TEXT),
    ("set_policy -p compared DLX .* '{\"dead-letter-exchange\":\"my-dlx\"}' --apply-to queues", TEXT),
    ("set_policy -p compared bad .* '{\"message-ttl\":\"a\"}'", TEXT),
    ("set_policy -p compared bad .* '{\"nothing\":1}'", TEXT), ("set_policy -p compared bad .* '{'", TEXT),
    ("set_policy -p compared bad ( '{\"message-ttl\":1}'", TEXT), ("set_policy -p compared bad .*", EXIT),
    ("set_policy -p nowhere bad .* '{\"message-ttl\":1}'", TEXT),
    ("list_policies -p compared", TEXT), ("list_policies -p compared --formatter json", TEXT),
    ("set_operator_policy -p compared transient .* '{\"expires\": 1800000}' --apply-to queues", TEXT),
    ("list_operator_policies -p compared", TEXT), ("clear_operator_policy -p compared transient", TEXT),
    ("clear_policy -p compared DLX", TEXT), ("clear_policy -p compared DLX", TEXT),
    ("set_parameter -p compared nothing a '{}'", TEXT), ("list_parameters -p compared", TEXT),
    ("clear_parameter -p compared nothing a", TEXT),
    ("set_global_parameter compared '{\"a\":1}'", TEXT),
    ("clear_global_parameter compared", TEXT), ("clear_global_parameter compared", TEXT),
    # what is declared; the script has made q, x and their binding in the vhost, and consumes
    ("set_topic_permissions -p compared compared amq.topic ^a .*", TEXT),
    ("set_vhost_limits -p compared '{\"max-queues\": 10}'", TEXT), ("set_user_limits compared '{\"max-channels\": 10}'", TEXT),
    ("set_operator_policy -p compared transient .* '{\"expires\": 1800000}' --apply-to queues", TEXT),
    *[(f"{line} --formatter {form}", TEXT) for form in ("csv", "pretty_table", "erlang") for line in (
        "list_exchanges -p compared name type", "list_bindings -p compared source_name routing_key",
        "list_permissions -p compared", "list_users", "list_policies -p compared", "list_vhosts", "list_vhosts name description tags",
        "list_queues -p compared name messages", "list_queues -p compared name arguments durable policy type",
        "list_exchanges -p compared name arguments policy", "list_bindings -p compared", "list_consumers -p compared",
        "list_connections user vhost state", "list_channels number user vhost prefetch_count",
        "list_user_permissions compared", "list_topic_permissions -p compared", "list_user_topic_permissions compared",
        "list_operator_policies -p compared", "list_parameters -p compared",
        "list_vhost_limits -p compared", "list_user_limits --user compared", "list_unresponsive_queues -p compared",
        "list_queues -p nowhere", "list_queues -p compared nothing", "authenticate_user compared other")],
    ("clear_topic_permissions -p compared compared", TEXT), ("clear_vhost_limits -p compared", TEXT),
    ("clear_user_limits compared all", TEXT), ("clear_operator_policy -p compared transient", TEXT),
    (f"list_queues -p compared {QUEUE_COLUMNS}", TEXT), ("list_queues -p compared", TEXT),
    ("list_queues -p compared -q name messages", TEXT), ("list_queues -p compared -s name messages", TEXT),
    ("list_queues -p compared --no-table-headers name messages", TEXT),
    ("list_queues -p compared name messages --formatter csv", TEXT),
    ("list_queues -p compared name arguments messages --formatter json", TEXT),
    ("list_queues -p compared name messages --formatter pretty_table", TEXT),
    ("list_queues -p compared nothing", TEXT), ("list_queues -p nowhere", TEXT),
    ("list_queues --online --local -p compared name", TEXT),
    ("list_exchanges -p compared", TEXT),
    ("list_exchanges -p compared name type durable auto_delete internal arguments policy", TEXT),
    ("list_bindings -p compared", TEXT), ("list_bindings -p compared source_name routing_key arguments", TEXT),
    ("list_consumers -p compared", TEXT), ("list_connections user vhost state channels", TEXT),
    ("list_connections -q pid peer_port client_properties", EXIT), ("list_connections", TEXT),
    ("list_channels", TEXT), ("list_channels number user vhost prefetch_count confirm transactional", TEXT),
    ("list_channels -q consumer_count messages_unacknowledged", TEXT),
    ("purge_queue -p compared q", TEXT), ("purge_queue -p compared nothing", TEXT),
    ("delete_queue -p compared q --if-unused", TEXT), ("delete_queue -p compared nothing", TEXT),
    ("trace_on -p compared", TEXT), ("trace_off -p compared", TEXT),
    ("export_definitions compared.json", TEXT), ("import_definitions compared.json", TEXT),
    ("close_connection '<x@localhost.1.2.3>' gone", TEXT), ("close_all_connections -p compared over", TEXT),
    ("close_all_user_connections compared over", TEXT),
    # With the message of the client that was closed, or without it: RabbitMQ waits for the client a while.
    ("delete_queue -p compared q", EXIT),
    # the node
    ("ping", TEXT), ("status", EXIT), ("cluster_status", EXIT), ("version", EXIT),
    ("environment", EXIT), ("report", EXIT), ("await_startup", TEXT), ("await_startup --timeout 5", TEXT),
    ("await_online_nodes 1", TEXT), ("list_feature_flags name state -q", EXIT), ("enable_feature_flag all", TEXT),
    ("list_deprecated_features", EXIT), ("check_if_any_deprecated_features_are_used", EXIT),
    ("set_cluster_name compared", TEXT), ("set_vm_memory_high_watermark 0.5", TEXT),
    ("set_vm_memory_high_watermark absolute 1GB", TEXT), ("set_vm_memory_high_watermark 7", EXIT),
    ("set_disk_free_limit 50MB", TEXT), ("set_disk_free_limit mem_relative 0.1", TEXT),
    ("list_unresponsive_queues -p compared", TEXT), ("hash_password secret", EXIT),
    ("list_node_auth_attempt_stats", EXIT), ("force_gc", TEXT), ("rotate_logs", EXIT),
    ("suspend_listeners", TEXT), ("resume_listeners", TEXT), ("has_reached_target_cluster_size", EXIT),
    ("reconcile_vhosts", TEXT), ("restart_vhost -p compared", TEXT),
    ("reset", TEXT), ("stop_app", TEXT), ("start_app", TEXT),
    ("help", EXIT), ("help set_policy", EXIT), ("autocomplete list_q", TEXT),
    ("nothing", EXIT), ("list_quues", EXIT), ("list_queues --nothing", EXIT), ("-n nowhere@localhost ping", EXIT),
    ("delete_user compared", TEXT), ("delete_user compared", TEXT),
    ("clear_permissions -p compared guest", TEXT), ("delete_vhost compared", TEXT), ("delete_vhost compared", TEXT),
]

DIAGNOSTICS = [
    ("ping", TEXT), ("status", EXIT), ("check_running", TEXT), ("check_local_alarms", TEXT), ("check_alarms", TEXT),
    ("check_port_connectivity", EXIT), ("check_port_listener 1", TEXT), ("check_protocol_listener mqtt", EXIT),
    ("check_protocol_listener amqp", TEXT), ("check_virtual_hosts", TEXT), ("check_certificate_expiration", EXIT),
    ("check_if_node_is_quorum_critical", TEXT), ("check_if_node_is_mirror_sync_critical", EXIT),
    ("listeners", EXIT), ("memory_breakdown", EXIT), ("server_version", EXIT), ("is_running", TEXT),
    ("is_booting", TEXT), ("log_location", EXIT), ("alarms", TEXT), ("os_env", EXIT), ("cluster_status", EXIT),
    ("disk_free_monitoring_status", EXIT),
]

# The vhost has a quorum queue with a message, and a classic queue.
QUEUES = [
    ("quorum_status -p compared quorum", EXIT), ("quorum_status -p compared classic", TEXT),
    ("quorum_status -p compared nothing", TEXT),
    ("add_member -p compared quorum {node}", TEXT), ("add_member -p compared quorum nobody@nowhere", TEXT),
    ("add_member -p compared nothing {node}", TEXT), ("add_member -p compared classic {node}", TEXT),
    ("add_member -p compared quorum {node} --membership nothing", TEXT), ("add_member quorum", TEXT),
    ("delete_member -p compared quorum {node}", TEXT), ("delete_member -p compared quorum nobody@nowhere", TEXT),
    ("delete_member -p compared nothing {node}", TEXT), ("delete_member -p compared classic {node}", TEXT),
    ("grow {node} all", TEXT), ("grow {node} even --formatter json", TEXT), ("grow {node} nothing", TEXT),
    ("grow nobody@nowhere all", TEXT), ("grow {node} all --vhost-pattern nothing", TEXT),
    ("shrink {node}", EXIT), ("shrink nobody@nowhere", TEXT), ("shrink {node} --errors-only", EXIT),
    ("transfer_leadership -p compared quorum {node}", TEXT),
    ("transfer_leadership -p compared quorum nobody@nowhere", TEXT),
    ("transfer_leadership -p compared classic {node}", TEXT), ("transfer_leadership -p compared nothing {node}", TEXT),
    ("peek -p compared quorum 1", TEXT), ("peek -p compared quorum 1 --formatter json", TEXT),
    ("peek -p compared quorum 2", TEXT), ("peek -p compared quorum 0", TEXT), ("peek -p compared classic 1", TEXT),
    ("peek -p compared nothing 1", TEXT), ("rebalance all", EXIT), ("check_if_node_is_quorum_critical", TEXT),
    ("check_if_new_quorum_queue_replicas_have_finished_initial_sync", TEXT),
]

NAME = "compared-json"
LOGIN = "rabbit_access_control:check_user_pass_login"

# Whose output is for programs, in this order; each with `--formatter json`. None, one and many, and what is refused.
JSON = [
    ("ctl", line) for line in (
        f"set_permissions -p {NAME} guest .* .* .*", f"set_permissions {NAME} .* .* .*",
        f"set_permissions_globally {NAME} .* .* .*", f"set_topic_permissions {NAME} amq.topic ^a .*",
        f"set_topic_permissions -p {NAME} guest amq.topic ^a .*", f"set_user_tags {NAME} a",
        f"change_password {NAME} secret", f"clear_password {NAME}", f"set_vhost_tags {NAME} a",
        f"list_user_permissions {NAME}", f"list_permissions -p {NAME}", f"list_queues -p {NAME}",
        f"list_vhost_limits -p {NAME}", f"set_user_limits {NAME} '{{\"max-channels\": 10}}'", "add_user '' secret",
        f"add_vhost {NAME}", f"add_vhost {NAME}",
        f"add_user {NAME} secret", f"add_user {NAME} secret", f"authenticate_user {NAME} secret",
        f"set_user_tags {NAME} monitoring other", f"list_user_permissions {NAME}",
        f"set_permissions -p {NAME} {NAME} .* .* .*", f"set_topic_permissions -p {NAME} {NAME} amq.topic ^a .*",
        f"list_permissions -p {NAME}", f"list_user_permissions {NAME}", f"list_topic_permissions -p {NAME}",
        f"list_user_topic_permissions {NAME}", "list_users", "list_vhosts",
        "list_vhosts name description tags default_queue_type tracing protected_from_deletion",
        f"list_vhost_limits -p {NAME}", f"set_vhost_limits -p {NAME} '{{\"max-queues\": 10}}'",
        f"list_vhost_limits -p {NAME}", "list_vhost_limits --global",
        f"list_user_limits --user {NAME}", f"set_user_limits {NAME} '{{\"max-channels\": 10}}'",
        f"list_user_limits --user {NAME}", "list_user_limits --global",
        f"list_policies -p {NAME}", f"set_policy -p {NAME} TTL ^q '{{\"message-ttl\":60000}}' --apply-to queues",
        f"list_policies -p {NAME}", f"clear_policy -p {NAME} TTL",
        f"list_queues -p {NAME}", f"list_exchanges -p {NAME}", f"list_bindings -p {NAME}",
        f"list_unresponsive_queues -p {NAME}", f"list_consumers -p {NAME}", f"list_parameters -p {NAME}", "list_global_parameters",
        f"trace_on -p {NAME}", f"trace_off -p {NAME}", f"restart_vhost -p {NAME}",
        f"close_all_connections -p {NAME} bye", f"close_all_user_connections {NAME} bye",
        "hash_password secret", "version", "help list_users", "autocomplete list_u",
        "status", "cluster_status", "ping", "await_startup", "list_node_auth_attempt_stats", "list_feature_flags",
        "list_deprecated_features", "node_health_check", "force_gc", "reconcile_vhosts",
        "has_reached_target_cluster_size",
        f"eval '{LOGIN}(<<\"{NAME}\">>, <<\"secret\">>).'", f"eval '{LOGIN}(<<\"{NAME}\">>, <<\"wrong\">>).'",
        "eval 'rabbit_misc:version().'", f"clear_permissions -p {NAME} {NAME}", f"delete_user {NAME}",
        f"delete_user {NAME}", f"delete_vhost {NAME}", f"delete_vhost {NAME}",
    )
] + [
    ("diagnostics", line) for line in (
        "alarms", "check_alarms", "check_local_alarms", "check_running", "is_running", "is_booting",
        "check_port_listener 1", "check_protocol_listener amqp", "check_protocol_listener nothing",
        "check_virtual_hosts", "check_certificate_expiration", "check_if_node_is_quorum_critical",
        "check_if_node_is_mirror_sync_critical", "check_if_new_quorum_queue_replicas_have_finished_initial_sync",
        "check_if_metadata_store_is_initialized", "listeners", "memory_breakdown", "server_version", "log_location",
        "os_env", "status",
    )
] + [
    ("plugins", line) for line in (
        "list", "list --minimal", "list --verbose", "list nothing", "is_enabled rabbitmq_management",
        "is_enabled nothing", "version",
    )
] + [("queues", "check_if_node_is_quorum_critical"), ("queues", "rebalance all"), ("upgrade", "has_reached_target_cluster_size")]

# Commands of RabbitMQ that have nothing to do in Leveret: one node, no Erlang, no encrypted values.
LEFT_OUT = (
    "join_cluster, forget_cluster_node, force_boot, force_standalone_khepri_boot: there is one node; "
    "eval (but for a few expressions), eval_file, exec, remote_shell, observer, erlang_version, list_network_interfaces and the other tools of the "
    "Erlang machine; "
    "encode, decode, list_hashes, list_ciphers, encrypt_conf_value, decrypt_conf_value; channel interceptors; "
    "remove_classic_queue_mirroring_from_policies"
)
