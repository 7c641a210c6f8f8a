//! Bindings: all of them, those of a vhost, those of a queue or of an exchange.

mod between;
mod erlang_hash;
mod properties_key;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Value, json};

use crate::api::bindings::properties_key::properties_key;
use crate::api::exchanges::name_in_path;
use crate::api::list_query::Query;
use crate::http::access::{Caller, Management};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, NameInVhost, Shared};
use crate::json::table::table;
use crate::snapshot::topology::{BindingDetails, BindingsOf};

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/bindings", get(list))
        .route("/api/bindings/{vhost}", get(list_of_vhost))
        .route("/api/exchanges/{vhost}/{name}/bindings/source", get(list_of_source))
        .route("/api/exchanges/{vhost}/{name}/bindings/destination", get(list_of_destination))
        .route("/api/queues/{vhost}/{name}/bindings", get(list_of_queue))
        .merge(between::routes())
}

/// The bindings of the vhosts that the user has permissions in; an administrator sees all.
async fn list(
    State(node): State<Shared>,
    Management(caller): Management,
    query: Query,
) -> Result<Json, ApiError> {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.looks_into(vhost));
    let bindings = seen.filter_map(|vhost| node.bindings(&vhost, BindingsOf::Vhost));
    query.without_pages().answer(bindings.flat_map(in_order).collect())
}

async fn list_of_vhost(
    State(node): State<Shared>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<Json, ApiError> {
    list_of(&node, &caller, &vhost, BindingsOf::Vhost, query)
}

async fn list_of_queue(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    list_of(&node, &caller, &vhost, BindingsOf::Queue(&name), query)
}

async fn list_of_source(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    list_of(&node, &caller, &vhost, BindingsOf::Source(name_in_path(&name)), query)
}

async fn list_of_destination(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    list_of(&node, &caller, &vhost, BindingsOf::Destination(name_in_path(&name)), query)
}

fn list_of(
    node: &Shared,
    caller: &Caller,
    vhost: &str,
    which: BindingsOf<'_>,
    query: Query,
) -> Result<Json, ApiError> {
    caller.may_look_into(vhost)?;
    let bindings = node.bindings(vhost, which).ok_or_else(ApiError::not_found)?;
    query.without_pages().answer(in_order(bindings).collect())
}

/// Bindings in the order of lists, as they are shown.
pub(crate) fn in_order(mut bindings: Vec<BindingDetails>) -> impl Iterator<Item = Value> {
    bindings.sort_by(|a, b| a.place().cmp(&b.place()));
    bindings.into_iter().map(|binding| shown(&binding))
}

/// A binding as it is shown.
pub(crate) fn shown(binding: &BindingDetails) -> Value {
    json!({
        "source": *binding.source,
        "vhost": *binding.vhost,
        "destination": *binding.destination,
        "destination_type": if binding.to_queue { "queue" } else { "exchange" },
        "routing_key": *binding.routing_key,
        "arguments": table(binding.arguments.as_ref()),
        "properties_key": properties_key(binding),
    })
}
