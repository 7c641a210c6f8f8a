//! Bindings: all of them, those of a vhost, those of a queue or of an exchange.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::exchanges::name_in_path;
use super::lists::Query;
use super::{Name, NameInVhost, Shared};
use crate::access::{Caller, Management};
use crate::answer::{ApiError, Json};
use crate::field_table::table;
use crate::topology_snapshot::{BindingDetails, BindingsOf};

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/bindings", get(list))
        .route("/api/bindings/{vhost}", get(list_of_vhost))
        .route("/api/exchanges/{vhost}/{name}/bindings/source", get(list_of_source))
        .route("/api/exchanges/{vhost}/{name}/bindings/destination", get(list_of_destination))
        .route("/api/queues/{vhost}/{name}/bindings", get(list_of_queue))
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

fn in_order(mut bindings: Vec<BindingDetails>) -> impl Iterator<Item = Value> {
    bindings.sort_by(|a, b| a.place().cmp(&b.place()));
    bindings.into_iter().map(|binding| shown(&binding))
}

fn shown(binding: &BindingDetails) -> Value {
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

/// What tells the bindings from one thing to another apart in a path.
fn properties_key(binding: &BindingDetails) -> String {
    let key: String = form_urlencoded::byte_serialize(binding.routing_key.as_bytes()).collect();
    // In RabbitMQ's paths a star is encoded, too.
    let key = key.replace('*', "%2A");
    let arguments = binding.arguments.as_ref();
    match (key.is_empty(), arguments.is_empty()) {
        (true, true) => "~".to_owned(),
        (false, true) => key,
        (_, false) => {
            let hash = fnv1a(arguments.as_bytes()).to_be_bytes();
            format!("{key}~{}", URL_SAFE_NO_PAD.encode(hash))
        }
    }
}

/// FNV-1a: the same on every machine and after every restart. Nobody is harmed by a collision but who
/// makes it, in his own vhost.
fn fnv1a(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_known_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
