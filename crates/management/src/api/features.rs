//! `/api/feature-flags` and `/api/deprecated-features`: what nodes of different versions agree on, and what
//! is about to go.
//!
//! A flag says since which version of RabbitMQ clients may rely on something, so all flags of the version whose API this
//! is are on. To enable all of them lets the level of record kinds of the cluster rise, if it does not do so by itself.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, put};
use serde_json::{Value, json};

use crate::http::access::{Administrator, Management};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::{NAME, Scope};

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/extensions", Scope::Here, get(extensions))
        .route("/api/feature-flags", Scope::Here, get(flags))
        .route("/api/feature-flags/{name}/enable", Scope::Metadata, put(enable))
        .route("/api/deprecated-features", Scope::Here, get(deprecated))
        .route("/api/deprecated-features/used", Scope::List(NAME), get(used))
}

/// RabbitMQ's flags that are about what clients can do or see, with what they stand for.
///
/// COMPAT: feature flags: `stream_queue` is on, because clients take it for a version; there are no
/// streams yet.
const FLAGS: [(&str, &str); 18] = [
    ("classic_queue_type_delivery_support", "Deliveries name the type of their queue"),
    ("detailed_queues_endpoint", "/api/queues/detailed is there"),
    ("drop_unroutable_metric", "Unroutable messages that are dropped are counted"),
    ("empty_basic_get_metric", "Gets that find nothing are counted"),
    ("feature_flags_v2", "Flags are listed with their stability"),
    ("implicit_default_bindings", "Bindings to the default exchange are not stored"),
    ("khepri_db", "Metadata in a replicated store; Leveret keeps it in its own log"),
    ("message_containers", "Messages are not bound to one protocol"),
    ("message_containers_deaths_v2", "The header x-death is as in RabbitMQ 4"),
    ("quorum_queue", "Queues of the type quorum"),
    ("rabbit_exchange_type_local_random", "Exchanges of the type x-local-random"),
    ("rabbitmq_4.0.0", "Everything of RabbitMQ 4.0"),
    ("rabbitmq_4.1.0", "Everything of RabbitMQ 4.1"),
    ("rabbitmq_4.2.0", "Everything of RabbitMQ 4.2"),
    ("rabbitmq_4.3.0", "Everything of RabbitMQ 4.3"),
    ("stream_queue", "Queues of the type stream are known, not offered"),
    ("user_limits", "Users have limits"),
    ("virtual_host_metadata", "Vhosts have descriptions and tags"),
];

/// Stands for all flags, as in RabbitMQ's command.
const ALL: &str = "all";

async fn flags(_: Management) -> Json {
    let flag = |(name, description): (&str, &str)| {
        json!({
            "name": name,
            "desc": description,
            "doc_url": "",
            "state": "enabled",
            "stability": "required",
            "require_level": "hard",
            "experiment_level": "supported",
            "callbacks": [],
            "provided_by": "rabbit",
        })
    };
    Json::ok(FLAGS.into_iter().map(flag).collect())
}

/// All flags are on; enabling one again changes nothing.
async fn enable(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    if name == ALL {
        node.raise_record_level().await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    match FLAGS.iter().any(|(flag, _)| *flag == name) {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::bad_request("unsupported")),
    }
}

/// A feature that RabbitMQ deprecates.
struct Deprecated {
    name: &'static str,
    is_permitted: bool,
    phase: &'static str,
}

impl Deprecated {
    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "desc": "",
            "deprecation_phase": self.phase,
            "doc_url": "",
            "provided_by": "rabbit",
        })
    }
}

fn all(node: &SharedNode) -> [Deprecated; 4] {
    [
        Deprecated {
            name: "global_qos",
            is_permitted: node.permits_global_qos(),
            phase: "denied_by_default",
        },
        Deprecated {
            name: "transient_nonexcl_queues",
            is_permitted: true,
            phase: "permitted_by_default",
        },
        Deprecated { name: "classic_queue_mirroring", is_permitted: false, phase: "removed" },
        Deprecated { name: "ram_node_type", is_permitted: false, phase: "removed" },
    ]
}

async fn deprecated(State(node): State<SharedNode>, _: Management) -> Json {
    let json = all(&node).map(|feature| {
        let mut json = feature.to_json();
        let state = if feature.is_permitted { "permitted" } else { "denied" };
        if let Some(json) = json.as_object_mut() {
            json.insert("state".to_owned(), json!(state));
        }
        json
    });
    Json::ok(json.into_iter().collect())
}

/// The deprecated features in use, in whatever vhost.
async fn used(State(node): State<SharedNode>, Management(caller): Management) -> Json {
    let asked_for = node.vhost_names().into_iter().filter(|vhost| caller.is_asked_for(vhost));
    let totals = asked_for.filter_map(|name| node.vhost_totals(&name, None));
    let (transient, global_qos) = totals.fold((false, false), |(queues, channels), vhost| {
        (queues || vhost.has_transient_queue, channels || vhost.has_global_prefetch)
    });
    let is_used = |feature: &Deprecated| match feature.name {
        "transient_nonexcl_queues" => transient,
        "global_qos" => global_qos,
        _ => false,
    };
    Json::ok(all(&node).iter().filter(|one| is_used(one)).map(Deprecated::to_json).collect())
}

/// Pages that plugins add to RabbitMQ's interface: none.
async fn extensions(_: Management) -> Json {
    Json::ok(json!([]))
}
