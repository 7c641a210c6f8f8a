//! Warnings about a dead-letter map, one sentence each.

use std::collections::BTreeMap;

use super::warning::{MapWarning, Severity, WarningKind, first_of, keeps};
use super::{DeadLetterMap, MapEdge, loops, targets};
use crate::limits::MAP_NAMES_TOLD_MAX;
use crate::message::Name;
use crate::words;

/// All warnings, the most severe first.
pub(super) fn all(map: &DeadLetterMap) -> Vec<MapWarning> {
    let mut warnings = Vec::new();
    // A problem that many queues share is reported once.
    let mut alike: BTreeMap<(usize, bool), Vec<&MapEdge>> = BTreeMap::new();
    for edge in &map.edges {
        let keeps = map.from(edge).is_some_and(keeps);
        alike.entry((edge.route, keeps)).or_default().push(edge);
    }
    warnings.extend(alike.values().filter_map(|edges| dead_end(map, edges)));
    loops::find(map, &mut warnings);
    targets::look(map, &mut warnings);
    warnings.sort_by_key(|warning| (warning.severity, warning.kind, warning.queue));
    warnings
}

fn exchange_in_words(name: &Name) -> String {
    if name.is_empty() { "the default exchange".to_owned() } else { format!("exchange '{name}'") }
}

/// Reports dead letters that reach no queue, from queues that share a route.
fn dead_end(map: &DeadLetterMap, edges: &[&MapEdge]) -> Option<MapWarning> {
    let edge = *edges.first()?;
    let (queue, route, exchange) = (map.from(edge)?, map.route(edge)?, map.exchange(edge)?);
    let warning = |severity, kind, text| MapWarning {
        severity,
        kind,
        queue: edge.from,
        exchange: route.exchange,
        to_queue: None,
        queues: edges.iter().map(|edge| edge.from).collect(),
        text,
    };
    let from = first_of(queue, edges.len() as u64);
    let fate = if keeps(queue) { "wait in their queue" } else { "are dropped" };
    if exchange.kind.is_none() {
        let text = format!(
            "Dead letters of {from} {fate}: the dead-letter exchange '{}' does not exist.",
            exchange.name
        );
        return Some(warning(Severity::Error, WarningKind::ExchangeMissing, text));
    }
    let through = exchange_in_words(&exchange.name);
    if route.is_nowhere {
        let why = match (queue.routing_key(), &edge.own_keys) {
            (Some(key), _) if route.depends_on_key => {
                format!("{through} routes the key '{key}' to no queue")
            }
            (None, Some(keys)) if route.depends_on_key => {
                let keys = listed(keys.iter());
                format!("they keep their key, {keys}, which {through} routes to no queue")
            }
            _ => format!("{through} has no route to any queue"),
        };
        let text = format!("Dead letters of {from} {fate}: {why}.");
        return Some(warning(Severity::Error, WarningKind::Unroutable, text));
    }
    if route.lost_keys.is_empty() {
        return None;
    }
    let keys = listed(route.lost_keys.iter());
    let text = format!(
        "Dead letters of {from} with the key {keys} {fate}: {through} routes this key to no queue."
    );
    Some(warning(Severity::Warning, WarningKind::Unroutable, text))
}

/// The first of these names, and the number of the others.
fn listed<'a>(names: impl Iterator<Item = &'a Name>) -> String {
    let mut names = names.map(|name| format!("'{name}'"));
    let first: Vec<String> = names.by_ref().take(MAP_NAMES_TOLD_MAX).collect();
    match names.count() {
        0 => first.join(" or "),
        more => format!("{} or {} others", first.join(", "), words::number(more as u64)),
    }
}
