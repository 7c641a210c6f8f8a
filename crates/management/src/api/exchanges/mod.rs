//! `/api/exchanges`: the exchanges.

mod changes;
pub(crate) mod publish;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Map, Value, json};

use crate::api::list_query::Query;
use crate::api::rates;
use crate::history::Trend;
use crate::http::access::Management;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, NameInVhost, Shared};
use crate::json::table::table;
use crate::snapshot::fields::{EXCHANGE, of_exchange};
use crate::snapshot::topology::ExchangeDetails;

/// How the numbers of an exchange change.
type ExchangeTrend = Trend<{ EXCHANGE.len() }>;

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/exchanges", get(list))
        .route("/api/exchanges/{vhost}", get(list_of_vhost))
        .route("/api/exchanges/{vhost}/{name}", get(show))
        .merge(changes::routes())
        .merge(publish::routes())
}

/// What stands for the name of the default exchange in a path, which cannot be empty.
const DEFAULT: &str = "amq.default";

/// The exchanges of the vhosts that the user has permissions in; an administrator sees all.
async fn list(
    State(node): State<Shared>,
    Management(caller): Management,
    query: Query,
) -> Result<Json, ApiError> {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.looks_into(vhost));
    let exchanges = seen.filter_map(|vhost| node.exchanges(&vhost)).flatten().collect();
    answer(&node, exchanges, &query)
}

async fn list_of_vhost(
    State(node): State<Shared>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<Json, ApiError> {
    caller.may_look_into(&vhost)?;
    let exchanges = node.exchanges(&vhost).ok_or_else(ApiError::not_found)?;
    answer(&node, exchanges, &query)
}

async fn show(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    caller.may_look_into(&vhost)?;
    let exchange = node.exchange(&vhost, name_in_path(&name)).ok_or_else(ApiError::not_found)?;
    let trend = node.history().look(|h| h.of_exchange(&vhost, exchange.id, &query.spans));
    let mut object = shown(&exchange, &trend, &query);
    if !query.disable_stats {
        // By queue and channel nothing is counted; RabbitMQ does so only if it is asked to.
        object.insert("incoming".to_owned(), json!([]));
        object.insert("outgoing".to_owned(), json!([]));
    }
    Ok(Json::ok(query.chosen(Value::Object(object))))
}

/// The name of the exchange that a path means.
pub(crate) fn name_in_path(name: &str) -> &str {
    if name == DEFAULT { "" } else { name }
}

fn answer(
    node: &Shared,
    mut exchanges: Vec<ExchangeDetails>,
    query: &Query,
) -> Result<Json, ApiError> {
    exchanges.sort_by(|a, b| (&a.vhost, &a.name).cmp(&(&b.vhost, &b.name)));
    let shown = |exchanges: Vec<ExchangeDetails>| all_shown(node, &exchanges, query);
    query.answer_shown(exchanges, |exchange| &exchange.name, shown)
}

fn all_shown(node: &Shared, exchanges: &[ExchangeDetails], query: &Query) -> Vec<Value> {
    let trends: Vec<ExchangeTrend> = node.history().look(|history| {
        let of = |one: &ExchangeDetails| history.of_exchange(&one.vhost, one.id, &query.spans);
        exchanges.iter().map(of).collect()
    });
    let all = exchanges.iter().zip(&trends);
    all.map(|(exchange, trend)| Value::Object(shown(exchange, trend, query))).collect()
}

fn shown(exchange: &ExchangeDetails, trend: &ExchangeTrend, query: &Query) -> Map<String, Value> {
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("name", json!(*exchange.name));
    put("vhost", json!(*exchange.vhost));
    put("type", json!(exchange.kind.as_str()));
    put("durable", json!(exchange.durable));
    put("auto_delete", json!(exchange.auto_delete));
    put("internal", json!(exchange.internal));
    put("arguments", table(exchange.arguments.as_ref()));
    put("user_who_performed_action", json!(*exchange.declared_by));
    if let Some(policy) = &exchange.policy {
        put("policy", json!(**policy));
    }
    // As in RabbitMQ what was never published to has no statistics.
    if !query.disable_stats && exchange.counters.published_in > 0 {
        let numbers = of_exchange(&exchange.counters);
        let stats = rates::message_stats(&EXCHANGE, (&numbers, trend));
        put("message_stats", Value::Object(stats));
    }
    shown
}
