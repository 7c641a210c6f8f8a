//! `/api/bindings`: bindings of all vhosts, of a vhost, of a queue, or of an exchange.

mod between;
mod binding_json;
mod erlang_hash;
mod properties_key;

use axum::Router;
use axum::extract::State;
use axum::routing::get;

use crate::api::bindings::binding_json::in_order;
use crate::api::list_query::Query;
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, NameInVhost, SharedNode, exchange_name};
use crate::node::Caller;
use crate::snapshot::topology::BindingFilter;

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/bindings", get(list))
        .route("/api/bindings/{vhost}", get(list_of_vhost))
        .route("/api/exchanges/{vhost}/{name}/bindings/source", get(list_of_source))
        .route("/api/exchanges/{vhost}/{name}/bindings/destination", get(list_of_destination))
        .route("/api/queues/{vhost}/{name}/bindings", get(list_of_queue))
        .merge(between::routes())
}

/// The fields that a filter of all bindings looks into.
///
/// COMPAT: pages of more lists: RabbitMQ's lists of bindings have no pages.
pub(crate) const FOUND_BY: &[&str] = &["source", "destination", "routing_key"];

/// The fields that a filter looks into: not into the end that all bindings of the list have.
fn found_by(which: BindingFilter<'_>) -> &'static [&'static str] {
    match which {
        BindingFilter::Vhost => FOUND_BY,
        BindingFilter::Source(_) => &["destination", "routing_key"],
        BindingFilter::Queue(_) | BindingFilter::Destination(_) => &["source", "routing_key"],
    }
}

/// The bindings of the vhosts that the user has permissions in; an administrator sees all.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<Json, ApiError> {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.can_enter(vhost));
    let bindings = seen.filter_map(|vhost| node.bindings(&vhost, BindingFilter::Vhost));
    let json = bindings.flat_map(in_order).collect();
    query.answer_found_by(json, found_by(BindingFilter::Vhost))
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<Json, ApiError> {
    list_of(&node, &caller, &vhost, BindingFilter::Vhost, &query)
}

async fn list_of_queue(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    list_of(&node, &caller, &vhost, BindingFilter::Queue(&name), &query)
}

async fn list_of_source(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    list_of(&node, &caller, &vhost, BindingFilter::Source(exchange_name(&name)), &query)
}

async fn list_of_destination(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    list_of(&node, &caller, &vhost, BindingFilter::Destination(exchange_name(&name)), &query)
}

fn list_of(
    node: &SharedNode,
    caller: &Caller,
    vhost: &str,
    which: BindingFilter<'_>,
    query: &Query,
) -> Result<Json, ApiError> {
    check_can_enter(caller, vhost)?;
    let bindings = node.bindings(vhost, which).ok_or_else(ApiError::not_found)?;
    query.answer_found_by(in_order(bindings).collect(), found_by(which))
}
