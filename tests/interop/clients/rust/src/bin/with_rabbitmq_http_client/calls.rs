//! The calls, which versions of the client have under the same names.

/// All calls with one version of the client.
macro_rules! calls {
    ($client:ident) => {
        use $client::blocking_api::Client;
        use $client::commons::{
            BindingDestinationType, ExchangeType, PaginationParams, PolicyTarget, QueueType,
            SupportedProtocol, UserLimitTarget, VirtualHostLimitTarget,
        };
        use $client::password_hashing;
        use $client::requests::{
            BindingDeletionParams, EnforcedLimitParams, ExchangeParams, GlobalRuntimeParameterDefinition,
            Permissions, PolicyDefinitionBuilder, PolicyParams, QueueParams, TopicPermissions, UserParams,
            VirtualHostParams,
        };
        use $client::responses::ReachabilityProbeOutcome;
        use serde_json::{Map, json};

        use super::Calls;

        const V: &str = "interop-http";
        const USER: &str = "interop-http";
        const Q: &str = "q";
        const X: &str = "x";

        type Api<'a> = Client<&'a str, &'a str, &'a str>;

        /// All calls, in an order in which objects exist before they are asked for.
        pub(super) fn all(endpoint: &str, calls: &mut Calls) {
            let api = Client::new(endpoint, "guest", "guest");
            node(&api, calls);
            vhosts_and_users(endpoint, &api, calls);
            topology(&api, calls);
            messages(&api, calls);
            policies(&api, calls);
            parameters_and_definitions(&api, calls);
            connections(&api, calls);
            removal(&api, calls);
        }

        fn node(api: &Api<'_>, calls: &mut Calls) {
            calls.check("overview", api.overview(), |o| {
                o.product_name == "RabbitMQ" && o.crypto_lib_version.is_some()
            });
            calls.check("server_version", api.server_version(), |version| version.starts_with("4.3."));
            let nodes = calls.take("list_nodes", api.list_nodes()).unwrap_or_default();
            for node in &nodes {
                calls.check("get_node_info", api.get_node_info(&node.name), |node| {
                    node.total_erlang_processes >= 1
                        && node.erlang_version.is_some()
                        && node.erlang_full_version.is_some()
                        && node.crypto_lib_version.is_some()
                        && node.rabbitmq_version().starts_with("4.3.")
                });
                calls.take("get_node_memory_footprint", api.get_node_memory_footprint(&node.name));
                calls.take("list_node_plugins", api.list_node_plugins(&node.name));
                calls.take("auth_attempts_statistics", api.auth_attempts_statistics(&node.name));
            }
            calls.take("list_all_cluster_plugins", api.list_all_cluster_plugins());
            calls.check("probe_reachability", Ok::<_, ()>(api.probe_reachability()), |outcome| {
                matches!(outcome, ReachabilityProbeOutcome::Reached(_))
            });
            calls.take("current_user", api.current_user());
            let name = calls.take("get_cluster_name", api.get_cluster_name());
            if let Some(name) = name {
                calls.take("set_cluster_name", api.set_cluster_name(&name.name));
            }
            let tags = json!({"environment": "test"}).as_object().cloned().unwrap_or_default();
            calls.take("set_cluster_tags", api.set_cluster_tags(tags));
            calls.check("get_cluster_tags", api.get_cluster_tags(), |tags| !tags.0.is_empty());
            calls.take("clear_cluster_tags", api.clear_cluster_tags());
            calls.take("health_check_cluster_wide_alarms", api.health_check_cluster_wide_alarms());
            calls.take("health_check_local_alarms", api.health_check_local_alarms());
            let quorum = api.health_check_if_node_is_quorum_critical();
            calls.take("health_check_if_node_is_quorum_critical", quorum);
            let amqp: u16 = std::env::var("AMQP_PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(5672);
            calls.take("health_check_port_listener", api.health_check_port_listener(amqp));
            let protocol = api.health_check_protocol_listener(SupportedProtocol::AMQP);
            calls.take("health_check_protocol_listener", protocol);
            let flags = calls.take("list_feature_flags", api.list_feature_flags());
            let names: Vec<String> = flags.into_iter().flat_map(|all| all.0).map(|flag| flag.name).collect();
            for name in ["khepri_db", "rabbitmq_4.3.0", "detailed_queues_endpoint"] {
                calls.check("list_feature_flags", Ok::<_, ()>(&names), |all| all.iter().any(|one| one == name));
                calls.take("enable_feature_flag", api.enable_feature_flag(name));
            }
            calls.take("enable_all_stable_feature_flags", api.enable_all_stable_feature_flags());
            calls.take("list_all_deprecated_features", api.list_all_deprecated_features());
            calls.take("list_deprecated_features_in_use", api.list_deprecated_features_in_use());
            calls.take("rebalance_queue_leaders", api.rebalance_queue_leaders());
        }

        fn vhosts_and_users(endpoint: &str, api: &Api<'_>, calls: &mut Calls) {
            let vhost = VirtualHostParams::named(V).with_description("d").with_tags(vec!["a"]);
            calls.take("create_vhost", api.create_vhost(&vhost));
            calls.take("update_vhost", api.update_vhost(&vhost));
            calls.check("get_vhost", api.get_vhost(V), |vhost| vhost.name == V);
            calls.take("list_vhosts", api.list_vhosts());
            calls.take("list_vhosts_paged", api.list_vhosts_paged(&PaginationParams::new(1, 10)));
            calls.take("enable_vhost_deletion_protection", api.enable_vhost_deletion_protection(V));
            calls.take("disable_vhost_deletion_protection", api.disable_vhost_deletion_protection(V));
            // The client does not say by which algorithm it has hashed.
            let salt = password_hashing::salt();
            for (name, hash) in [
                ("interop-sha256", password_hashing::base64_encoded_salted_password_hash_sha256(&salt, "secret")),
                (USER, password_hashing::base64_encoded_salted_password_hash_sha512(&salt, "secret")),
            ] {
                calls.take("create_user", api.create_user(&UserParams::management(name, &hash)));
                let own = Client::new(endpoint, name, "secret");
                calls.check("current_user", own.current_user(), |user| user.name == name);
            }
            calls.check("get_user", api.get_user(USER), |user| user.name == USER);
            calls.take("list_users", api.list_users());
            calls.take("list_users_paged", api.list_users_paged(&PaginationParams::new(1, 10)));
            calls.take("list_users_without_permissions", api.list_users_without_permissions());
            let full = Permissions::full_access(USER, V);
            calls.take("declare_permissions", api.declare_permissions(&full));
            calls.take("grant_permissions", api.grant_permissions(&full));
            calls.take("grant_full_permissions", api.grant_full_permissions("guest", V));
            calls.take("get_permissions", api.get_permissions(V, USER));
            calls.take("list_permissions", api.list_permissions());
            calls.take("list_permissions_in", api.list_permissions_in(V));
            calls.take("list_permissions_of", api.list_permissions_of(USER));
            let topics =
                TopicPermissions { user: USER, vhost: V, write: ".*", read: ".*", exchange: "amq.topic" };
            calls.take("declare_topic_permissions", api.declare_topic_permissions(&topics));
            calls.take("list_topic_permissions", api.list_topic_permissions());
            calls.take("list_topic_permissions_in", api.list_topic_permissions_in(V));
            calls.take("list_topic_permissions_of", api.list_topic_permissions_of(USER));
            calls.take("get_topic_permissions_of", api.get_topic_permissions_of(V, USER));
            calls.take("clear_topic_permissions", api.clear_topic_permissions(V, USER, true));
            let limit = EnforcedLimitParams::new(UserLimitTarget::MaxChannels, 100);
            calls.take("set_user_limit", api.set_user_limit(USER, limit));
            calls.take("list_all_user_limits", api.list_all_user_limits());
            calls.take("list_user_limits", api.list_user_limits(USER));
            calls.take("clear_user_limit", api.clear_user_limit(USER, UserLimitTarget::MaxChannels));
            let limit = EnforcedLimitParams::new(VirtualHostLimitTarget::MaxQueues, 100);
            calls.take("set_vhost_limit", api.set_vhost_limit(V, limit));
            calls.take("list_all_vhost_limits", api.list_all_vhost_limits());
            calls.take("list_vhost_limits", api.list_vhost_limits(V));
            calls.take("clear_vhost_limit", api.clear_vhost_limit(V, VirtualHostLimitTarget::MaxQueues));
        }

        fn topology(api: &Api<'_>, calls: &mut Calls) {
            let page = PaginationParams::new(1, 10);
            for kind in [ExchangeType::Fanout, ExchangeType::Topic, ExchangeType::Direct, ExchangeType::Headers] {
                let name = format!("{kind:?}");
                let exchange = ExchangeParams::durable(&name, kind, None);
                calls.take("declare_exchange", api.declare_exchange(V, &exchange));
            }
            calls.take("declare_exchange", api.declare_exchange(V, &ExchangeParams::durable_topic(X, None)));
            calls.check("get_exchange_info", api.get_exchange_info(V, X), |exchange| exchange.name == X);
            calls.take("list_exchanges", api.list_exchanges());
            calls.take("list_exchanges_paged", api.list_exchanges_paged(&page));
            calls.take("list_exchanges_in", api.list_exchanges_in(V));
            calls.take("list_exchanges_in_paged", api.list_exchanges_in_paged(V, &page));
            let queue = QueueParams::new_durable_classic_queue(Q, None).with_message_ttl(60_000);
            calls.take("declare_queue", api.declare_queue(V, &queue));
            calls.take("declare_quorum_queue", api.declare_quorum_queue(V, "quorum"));
            calls.take("declare_classic_queue", api.declare_classic_queue(V, "classic"));
            calls.check("get_queue_info", api.get_queue_info(V, Q), |queue| queue.name == Q);
            calls.check("get_queue_info", api.get_queue_info(V, "quorum"), |q| q.queue_type == QueueType::Quorum.to_string());
            calls.take("list_queues", api.list_queues());
            calls.take("list_queues_paged", api.list_queues_paged(&page));
            calls.take("list_queues_in", api.list_queues_in(V));
            calls.take("list_queues_in_paged", api.list_queues_in_paged(V, &page));
            calls.take("list_queues_with_details", api.list_queues_with_details());
            calls.take("list_quorum_queues", api.list_quorum_queues());
            calls.take("list_quorum_queues_in", api.list_quorum_queues_in(V));
            calls.take("list_classic_queues", api.list_classic_queues());
            calls.take("list_classic_queues_in", api.list_classic_queues_in(V));
            calls.take("list_streams", api.list_streams());
            calls.take("list_streams_in", api.list_streams_in(V));
            calls.take("bind_queue", api.bind_queue(V, Q, X, Some("a.*"), None));
            calls.take("bind_exchange", api.bind_exchange(V, "Fanout", X, Some("#"), None));
            calls.take("list_bindings", api.list_bindings());
            let bindings = calls.take("list_bindings_in", api.list_bindings_in(V)).unwrap_or_default();
            let own = bindings.iter().find(|binding| binding.source == X && binding.destination == Q);
            if let Some(binding) = own {
                calls.take("recreate_binding", api.recreate_binding(binding));
            }
            calls.check("list_queue_bindings", api.list_queue_bindings(V, Q), |all| all.len() == 2);
            let from = api.list_exchange_bindings_with_source(V, X);
            calls.check("list_exchange_bindings_with_source", from, |all| all.len() == 2);
            let to = api.list_exchange_bindings_with_destination(V, "Fanout");
            calls.check("list_exchange_bindings_with_destination", to, |all| all.len() == 1);
            // What is not there has no bindings, and removing them again is no error for who says so.
            calls.check("list_queue_bindings", api.list_queue_bindings(V, "none"), Vec::is_empty);
            let from = api.list_exchange_bindings_with_source(V, "none");
            calls.check("list_exchange_bindings_with_source", from, Vec::is_empty);
            let to = api.list_exchange_bindings_with_destination(V, "none");
            calls.check("list_exchange_bindings_with_destination", to, Vec::is_empty);
            for (source, destination, idempotently) in [(X, Q, false), (X, Q, true), ("none", "none", true)] {
                let binding = BindingDeletionParams {
                    virtual_host: V,
                    source,
                    destination,
                    destination_type: BindingDestinationType::Queue,
                    routing_key: "a.*",
                    arguments: None,
                };
                calls.take("delete_binding", api.delete_binding(&binding, idempotently));
            }
        }

        fn messages(api: &Api<'_>, calls: &mut Calls) {
            for number in 0..3 {
                let published = api.publish_message(V, "", Q, &format!("m{number}"), Map::new());
                calls.check("publish_message", published, |message| message.routed);
            }
            let got = api.get_messages(V, Q, 2, "ack_requeue_false");
            calls.check("get_messages", got, |all| all.len() == 2 && all[0].payload == "m0");
            calls.take("purge_queue", api.purge_queue(V, Q));
        }

        fn policies(api: &Api<'_>, calls: &mut Calls) {
            let definition = PolicyDefinitionBuilder::new().message_ttl(60_000).build();
            let policy = PolicyParams::new(V, "p", "^q$", definition).apply_to(PolicyTarget::Queues).priority(3);
            calls.take("declare_policy", api.declare_policy(&policy));
            calls.take("declare_policies", api.declare_policies(vec![&policy]));
            calls.check("get_policy", api.get_policy(V, "p"), |policy| policy.priority == 3);
            calls.take("list_policies", api.list_policies());
            calls.check("list_policies_in", api.list_policies_in(V), |all| all.len() == 1);
            calls.take("list_policies_for_target", api.list_policies_for_target(V, PolicyTarget::Queues));
            calls.take("list_matching_policies", api.list_matching_policies(V, Q, PolicyTarget::Queues));
            calls.take("declare_operator_policy", api.declare_operator_policy(&policy));
            calls.take("declare_operator_policies", api.declare_operator_policies(vec![&policy]));
            calls.take("get_operator_policy", api.get_operator_policy(V, "p"));
            calls.take("list_operator_policies", api.list_operator_policies());
            calls.take("list_operator_policies_in", api.list_operator_policies_in(V));
            let target = PolicyTarget::Queues;
            let for_target = api.list_operator_policies_for_target(V, target);
            calls.take("list_operator_policies_for_target", for_target);
            let matching = api.list_matching_operator_policies(V, Q, PolicyTarget::Queues);
            calls.take("list_matching_operator_policies", matching);
            calls.take("delete_operator_policy", api.delete_operator_policy(V, "p", false));
            calls.take("delete_operator_policy", api.delete_operator_policy(V, "p", true));
            calls.take("delete_policies_in", api.delete_policies_in(V, vec!["p"]));
            calls.take("delete_policy", api.delete_policy(V, "p", true));
        }

        fn parameters_and_definitions(api: &Api<'_>, calls: &mut Calls) {
            let parameter = GlobalRuntimeParameterDefinition { name: "interop", value: Map::new() };
            calls.take("upsert_global_runtime_parameter", api.upsert_global_runtime_parameter(&parameter));
            calls.take("get_global_runtime_parameter", api.get_global_runtime_parameter("interop"));
            calls.take("list_global_runtime_parameters", api.list_global_runtime_parameters());
            calls.take("clear_global_runtime_parameter", api.clear_global_runtime_parameter("interop"));
            calls.take("list_runtime_parameters", api.list_runtime_parameters());
            let of_policies = api.list_runtime_parameters_of_component("policy");
            calls.take("list_runtime_parameters_of_component", of_policies);
            let of_vhost = api.list_runtime_parameters_of_component_in("policy", V);
            calls.take("list_runtime_parameters_of_component_in", of_vhost);
            let text = api.export_cluster_wide_definitions_as_string();
            let text = calls.take("export_cluster_wide_definitions_as_string", text);
            calls.take("export_cluster_wide_definitions", api.export_cluster_wide_definitions());
            let data = api.export_cluster_wide_definitions_as_data();
            calls.take("export_cluster_wide_definitions_as_data", data);
            let definitions = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            calls.take("import_cluster_wide_definitions", api.import_cluster_wide_definitions(definitions));
            calls.take("export_vhost_definitions", api.export_vhost_definitions(V));
            let text = calls.take("export_vhost_definitions_as_string", api.export_vhost_definitions_as_string(V));
            calls.take("export_vhost_definitions_as_data", api.export_vhost_definitions_as_data(V));
            let definitions = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            calls.take("import_vhost_definitions", api.import_vhost_definitions(V, definitions));
        }

        fn connections(api: &Api<'_>, calls: &mut Calls) {
            let page = PaginationParams::new(1, 10);
            calls.take("list_connections", api.list_connections());
            calls.take("list_connections_paged", api.list_connections_paged(&page));
            calls.take("list_connections_in", api.list_connections_in(V));
            calls.take("list_user_connections", api.list_user_connections(USER));
            calls.take("close_connection", api.close_connection("none", None, true));
            calls.take("close_user_connections", api.close_user_connections(USER, None, true));
            calls.take("list_channels", api.list_channels());
            calls.take("list_channels_paged", api.list_channels_paged(&page));
            calls.take("list_channels_in", api.list_channels_in(V));
            calls.take("list_channels_in_paged", api.list_channels_in_paged(V, &page));
            calls.take("list_consumers", api.list_consumers());
            calls.take("list_consumers_in", api.list_consumers_in(V));
        }

        fn removal(api: &Api<'_>, calls: &mut Calls) {
            calls.take("delete_queue", api.delete_queue(V, Q, false));
            calls.take("delete_queue", api.delete_queue(V, Q, true));
            calls.take("delete_queues", api.delete_queues(V, &["quorum", "classic"], false));
            calls.take("delete_exchange", api.delete_exchange(V, X, false));
            calls.take("delete_exchange", api.delete_exchange(V, X, true));
            calls.take("delete_exchanges", api.delete_exchanges(V, &["Fanout", "Topic"], false));
            calls.take("clear_permissions", api.clear_permissions(V, USER, false));
            calls.take("clear_permissions", api.clear_permissions(V, USER, true));
            calls.take("delete_user", api.delete_user(USER, false));
            calls.take("delete_user", api.delete_user(USER, true));
            calls.take("delete_users", api.delete_users(vec!["interop-sha256"]));
            calls.take("delete_vhost", api.delete_vhost(V, false));
            calls.take("delete_vhost", api.delete_vhost(V, true));
        }
    };
}

pub(crate) use calls;
