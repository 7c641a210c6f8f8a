//! `/api/exchanges`: the exchanges.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Value, json};

use super::lists::Query;
use super::{Name, NameInVhost, Shared};
use crate::access::Management;
use crate::answer::{ApiError, Json};
use crate::field_table::table;
use crate::topology_snapshot::ExchangeDetails;

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/exchanges", get(list))
        .route("/api/exchanges/{vhost}", get(list_of_vhost))
        .route("/api/exchanges/{vhost}/{name}", get(show))
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
    let exchanges = seen.filter_map(|vhost| node.exchanges(&vhost));
    query.answer(exchanges.flat_map(in_order).collect())
}

async fn list_of_vhost(
    State(node): State<Shared>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<Json, ApiError> {
    caller.may_look_into(&vhost)?;
    let exchanges = node.exchanges(&vhost).ok_or_else(ApiError::not_found)?;
    query.answer(in_order(exchanges).collect())
}

async fn show(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    caller.may_look_into(&vhost)?;
    let exchange = node.exchange(&vhost, name_in_path(&name)).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(query.chosen(shown(&exchange))))
}

/// The name of the exchange that a path means.
pub(super) fn name_in_path(name: &str) -> &str {
    if name == DEFAULT { "" } else { name }
}

fn in_order(mut exchanges: Vec<ExchangeDetails>) -> impl Iterator<Item = Value> {
    exchanges.sort_by(|a, b| a.name.cmp(&b.name));
    exchanges.into_iter().map(|exchange| shown(&exchange))
}

fn shown(exchange: &ExchangeDetails) -> Value {
    let mut shown = json!({
        "name": *exchange.name,
        "vhost": *exchange.vhost,
        "type": exchange.kind.as_str(),
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": table(exchange.arguments.as_ref()),
    });
    if let (Some(shown), Some(policy)) = (shown.as_object_mut(), &exchange.policy) {
        shown.insert("policy".to_owned(), json!(**policy));
    }
    shown
}
