//! A binding in JSON.

use serde_json::{Value, json};
use server::json::table::table_to_json;
use server::snapshot::topology::BindingSnapshot;

use crate::api::bindings::properties_key::properties_key;

/// Sorts bindings.
pub(crate) fn in_order(mut bindings: Vec<BindingSnapshot>) -> Vec<BindingSnapshot> {
    bindings.sort_by(|a, b| a.place().cmp(&b.place()));
    bindings
}

/// A binding in JSON.
pub(crate) fn to_json(binding: &BindingSnapshot) -> Value {
    json!({
        "source": *binding.source,
        "vhost": *binding.vhost,
        "destination": *binding.destination,
        "destination_type": if binding.to_queue { "queue" } else { "exchange" },
        "routing_key": *binding.routing_key,
        "arguments": table_to_json(binding.arguments.as_ref()),
        "properties_key": properties_key(binding),
    })
}
