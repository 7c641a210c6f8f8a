//! `/api/bindings`: bindings of all vhosts, of a vhost, of a queue, or of an exchange.

mod between;
mod binding_json;
mod erlang_hash;
mod properties_key;

use axum::extract::State;
use axum::routing::get;
use server::requests::Caller;
use server::snapshot::topology::{BindingFilter, BindingSnapshot};

use crate::api::bindings::binding_json::{in_order, to_json};
use crate::api::list_query::{List, Query};
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::ApiError;
use crate::http::extract::{Name, NameInVhost, SharedNode, exchange_name};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/bindings", Scope::List(FOUND_BY), get(list))
        .route("/api/bindings/{vhost}", Scope::Vhost("vhost"), get(list_of_vhost))
        .route(
            "/api/exchanges/{vhost}/{name}/bindings/source",
            Scope::Vhost("vhost"),
            get(list_of_source),
        )
        .route(
            "/api/exchanges/{vhost}/{name}/bindings/destination",
            Scope::Vhost("vhost"),
            get(list_of_destination),
        )
        .route("/api/queues/{vhost}/{name}/bindings", Scope::Vhost("vhost"), get(list_of_queue))
        .merge(between::routes())
}

/// The fields that a filter of all bindings looks into.
///
/// COMPAT: pages of more lists: RabbitMQ's lists of bindings have no pages.
const FOUND_BY: &[&str] = &["source", "destination", "routing_key"];

/// The bindings of the vhosts that the user has permissions in; an administrator sees all.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<List, ApiError> {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.can_enter(vhost));
    let bindings = seen.filter_map(|vhost| node.bindings(&vhost, BindingFilter::Vhost));
    answer(bindings.flat_map(in_order).collect(), BindingFilter::Vhost, &query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<List, ApiError> {
    list_of(&node, &caller, &vhost, BindingFilter::Vhost, &query)
}

async fn list_of_queue(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<List, ApiError> {
    list_of(&node, &caller, &vhost, BindingFilter::Queue(&name), &query)
}

async fn list_of_source(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<List, ApiError> {
    list_of(&node, &caller, &vhost, BindingFilter::Source(exchange_name(&name)), &query)
}

async fn list_of_destination(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<List, ApiError> {
    list_of(&node, &caller, &vhost, BindingFilter::Destination(exchange_name(&name)), &query)
}

fn list_of(
    node: &SharedNode,
    caller: &Caller,
    vhost: &str,
    which: BindingFilter<'_>,
    query: &Query,
) -> Result<List, ApiError> {
    check_can_enter(caller, vhost)?;
    let bindings = node.bindings(vhost, which).ok_or_else(ApiError::not_found)?;
    answer(in_order(bindings), which, query)
}

/// Answers with a list of bindings. The filter does not look into the end that all bindings of the list have.
fn answer(
    bindings: Vec<BindingSnapshot>,
    which: BindingFilter<'_>,
    query: &Query,
) -> Result<List, ApiError> {
    let is_wanted = |binding: &BindingSnapshot| {
        let in_source = || query.matches_name(&binding.source);
        let in_destination = || query.matches_name(&binding.destination);
        query.matches_name(&binding.routing_key)
            || match which {
                BindingFilter::Vhost => in_source() || in_destination(),
                BindingFilter::Source(_) => in_destination(),
                BindingFilter::Queue(_) | BindingFilter::Destination(_) => in_source(),
            }
    };
    query.answer_lazily(bindings, is_wanted, |some, _| some.iter().map(to_json).collect())
}
