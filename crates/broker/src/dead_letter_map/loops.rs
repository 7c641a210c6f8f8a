//! Cycles of dead letters: messages that return to a queue in which they died.

use super::components::{Components, components};
use super::warning::{MapWarning, Severity, WarningKind, keeps};
use super::{DeadLetterMap, MapEdge, MapQueue};
use crate::limits::MAP_NAMES_TOLD_MAX;
use crate::message::Name;
use crate::setting::Overflow;

/// The reason for which messages of a queue die without being rejected by a consumer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum DiesBy {
    /// No reason is known; messages may still be rejected or have a TTL of their own.
    NothingKnown,
    /// The default delivery limit of quorum queues.
    UsualDeliveryLimit,
    /// A TTL, a length limit, or an explicit delivery limit.
    Setting,
}

fn dies_by(queue: &MapQueue, edge: &MapEdge) -> DiesBy {
    let settings = &queue.settings;
    let is_limited = settings.max_length.is_some() || settings.max_length_bytes.is_some();
    let overflows = is_limited && settings.overflow != Overflow::RejectPublish;
    match settings.delivery_limit {
        _ if settings.message_ttl_ms.is_some() || overflows => DiesBy::Setting,
        Some(_) if edge.has_own_delivery_limit => DiesBy::Setting,
        Some(_) => DiesBy::UsualDeliveryLimit,
        None => DiesBy::NothingKnown,
    }
}

/// Finds the cycles: first those that run without any rejection, because the broker drops messages in them,
/// then those that need a consumer to reject messages.
pub(super) fn find(map: &DeadLetterMap, warnings: &mut Vec<MapWarning>) {
    let queues = map.queues.len();
    // Nodes are the queues, followed by the routes.
    let to_route: Vec<[usize; 1]> = map.edges.iter().map(|edge| [queues + edge.route]).collect();
    let mut is_told = vec![false; queues];
    for least in [DiesBy::Setting, DiesBy::UsualDeliveryLimit, DiesBy::NothingKnown] {
        let mut next: Vec<&[usize]> = vec![&[]; queues];
        for (edge, route) in map.edges.iter().zip(&to_route) {
            let dies_by = map.from(edge).map(|queue| dies_by(queue, edge));
            if let Some(place) = next.get_mut(edge.from).filter(|_| dies_by >= Some(least)) {
                *place = route;
            }
        }
        next.extend(map.routes.iter().map(|route| route.to.as_slice()));
        let found = components(&next);
        let told = told_components(&found, &is_told);
        let mut seen = vec![false; found.sizes.len()];
        for start in 0..queues {
            let Some(component) = found.of.get(start).copied() else { continue };
            let is_loop = found.sizes.get(component).is_some_and(|size| *size > 1);
            let is_new = seen.get_mut(component).map(|seen| std::mem::replace(seen, true));
            if !is_loop || is_new != Some(false) || told.get(component) == Some(&true) {
                continue;
            }
            let way: Vec<usize> =
                found.way_around(&next, start).into_iter().filter(|node| *node < queues).collect();
            for queue in &way {
                is_told.get_mut(*queue).into_iter().for_each(|told| *told = true);
            }
            warnings.extend(loop_warning(map, way, least));
        }
    }
}

/// Marks the components that contain a queue already reported.
fn told_components(found: &Components, is_told: &[bool]) -> Vec<bool> {
    let mut told = vec![false; found.sizes.len()];
    for (component, _) in found.of.iter().zip(is_told).filter(|(_, is_told)| **is_told) {
        told.get_mut(*component).into_iter().for_each(|told| *told = true);
    }
    told
}

fn loop_warning(map: &DeadLetterMap, way: Vec<usize>, least: DiesBy) -> Option<MapWarning> {
    let edge_of = |queue: usize| {
        let at = map.edges.binary_search_by_key(&queue, |edge| edge.from).ok()?;
        map.edges.get(at)
    };
    let edges: Vec<&MapEdge> = way.iter().filter_map(|queue| edge_of(*queue)).collect();
    let first = *edges.first()?;
    let around = edges.iter().chain([&first]).filter_map(|edge| map.from(edge));
    let around = way_in_words(&around.map(|queue| &queue.name).collect::<Vec<_>>());
    let is_certain = edges.iter().all(|edge| map.route(edge).is_some_and(|route| route.is_certain));
    let all_keep = edges.iter().all(|edge| map.from(edge).is_some_and(keeps));
    let goes = if is_certain { "go" } else { "may go" };
    let fate = if all_keep { "stay in that queue" } else { "are dropped" };
    let (severity, text) = match least {
        DiesBy::Setting => {
            let text = format!(
                "Messages {goes} in a cycle without a rejection ({around}); messages that would \
                 return to a queue in which they died {fate}."
            );
            (Severity::Warning, text)
        }
        DiesBy::UsualDeliveryLimit => {
            let text = format!(
                "Rejected messages {goes} in a cycle ({around}); messages that exceed a delivery \
                 limit {fate} if they would return to a queue in which they died."
            );
            (Severity::Info, text)
        }
        DiesBy::NothingKnown => {
            let text =
                format!("Messages {goes} in a cycle ({around}) each time a consumer rejects them.");
            (Severity::Info, text)
        }
    };
    Some(MapWarning {
        severity,
        kind: WarningKind::Loop,
        queue: first.from,
        exchange: map.route(first)?.exchange,
        to_queue: way.get(1).copied().or(Some(first.from)),
        queues: way,
        text,
    })
}

/// The names joined by arrows; a long list is shortened in the middle.
fn way_in_words(names: &[&Name]) -> String {
    let quoted = |names: &[&Name]| {
        names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" \u{2192} ")
    };
    match names.split_at_checked(MAP_NAMES_TOLD_MAX) {
        Some((first, [others @ .., last])) if !others.is_empty() => {
            format!("{} \u{2192} {} others \u{2192} '{last}'", quoted(first), others.len())
        }
        _ => quoted(names),
    }
}
