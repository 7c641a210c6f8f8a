//! The dead-letter map of a cluster, put together from the parts of its nodes.
//!
//! A part has the entries of all pages up to the one that is asked for, and the sums of its vhosts.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::api::dead_letters::selection::MapQuery;
use crate::api::dead_letters::warning_groups;
use crate::api::list_query::as_count;
use crate::http::answer::{ApiError, Json};
use crate::json::severity::severity;
use crate::json::taken::taken;
use crate::limits::{MAP_DELAYS_MAX, MAP_WARNINGS_MAX};

/// Answers with the map of all parts.
///
/// # Errors
/// [`ApiError`] if there is no such page.
pub(crate) fn merge(mut parts: Vec<Value>, query: &MapQuery) -> Result<Json, ApiError> {
    // Another node may tell any number.
    let sum = |name: &str| parts.iter().map(|part| number(part, name)).fold(0, u64::saturating_add);
    let (total_edges, filtered_edges) = (sum("total_edges"), sum("filtered_edges"));
    let sums = ["total_delays", "filtered_delays", "delay_entries", "total_warnings"];
    let sums = sums.map(|name| (name, sum(name)));
    let filtered_count = sum("filtered_count");
    let is_whole = parts.iter().all(|part| part["whole"] == true);
    let warning_groups = warning_groups::merge(&parts);
    let mut all = |name: &str| -> Vec<Value> {
        let lists = parts.iter_mut().filter_map(|part| taken(part, name));
        let mut items: Vec<Value> = lists.flatten().collect();
        // The sorts are stable: the items of a vhost keep their order.
        items.sort_by_cached_key(|item| text(item, "vhost").to_owned());
        items
    };
    let mut edges = all("edges");
    edges.sort_by(|a, b| {
        let by_rate = severity(a).cmp(&severity(b)).then(rate(b).total_cmp(&rate(a)));
        by_rate.then(number(b, "from_queues_total").cmp(&number(a, "from_queues_total")))
    });
    let edges = query.list.order_by_json(edges, Value::clone);
    let (edges, place) =
        query.list.cut_of(edges, as_count(filtered_count), as_count(total_edges))?;
    let mut delays = all("delays");
    delays.sort_by_key(|delay| Reverse(number(delay, "messages")));
    delays.truncate(MAP_DELAYS_MAX);
    let mut warnings = all("warnings");
    warnings
        .sort_by_key(|warning| (severity(warning), warning_groups::kind_of(text(warning, "kind"))));
    warnings.truncate(MAP_WARNINGS_MAX);
    let (mut queues, mut exchanges) = (all("queues"), all("exchanges"));
    let shown = queues_of(&edges, &delays);
    queues.retain(|queue| shown.contains(&(text(queue, "vhost"), text(queue, "name"))));
    let through: BTreeSet<(&str, &str)> =
        edges.iter().map(|edge| (text(edge, "vhost"), text(edge, "exchange"))).collect();
    exchanges.retain(|one| through.contains(&(text(one, "vhost"), text(one, "name"))));
    let mut json = Map::new();
    let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
    put("queues", json!(queues));
    put("exchanges", json!(exchanges));
    put("edges", json!(edges));
    put("warning_groups", json!(warning_groups));
    put("warnings", json!(warnings));
    put("delays", json!(delays));
    for (name, sum) in sums {
        put(name, json!(sum));
    }
    put("total_edges", json!(total_edges));
    put("filtered_edges", json!(filtered_edges));
    put("whole", json!(is_whole));
    json.extend(place);
    Ok(Json::ok(Value::Object(json)))
}

/// The queues that the answer shows for its edges and delays, with their vhosts.
fn queues_of<'a>(edges: &'a [Value], delays: &'a [Value]) -> BTreeSet<(&'a str, &'a str)> {
    let mut shown = BTreeSet::new();
    for item in edges.iter().chain(delays) {
        let vhost = text(item, "vhost");
        let to = item["to_queues"].as_array().into_iter().flatten().filter_map(Value::as_str);
        shown.extend(to.map(|queue| (vhost, queue)));
    }
    shown.extend(edges.iter().map(|edge| (text(edge, "vhost"), text(edge, "from_queue"))));
    shown
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(item: &Value, name: &str) -> u64 {
    item.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn rate(edge: &Value) -> f64 {
    edge.get("rate").and_then(Value::as_f64).unwrap_or_default()
}
