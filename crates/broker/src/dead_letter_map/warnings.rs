//! What people should know about a dead-letter map, in one sentence each.

use std::collections::BTreeMap;

use super::{DeadLetterMap, MapEdge, MapQueue, loops, targets};
use crate::limits::MAP_NAMES_TOLD_MAX;
use crate::message::Name;
use crate::setting::DeadLetterStrategy;

/// How bad something is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Dead letters go nowhere.
    Error,
    /// Some may be lost, or wait.
    Warning,
    /// It is perhaps meant so.
    Info,
}

impl Severity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// What a warning is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WarningKind {
    /// The dead-letter exchange does not exist.
    ExchangeMissing,
    /// It routes dead letters nowhere.
    Unroutable,
    /// They come back.
    Loop,
    /// They come to a queue in which they do not live as long as before.
    ShorterTtl,
    /// They come to a queue that does not take any number of them.
    Limit,
    /// They come to a queue that nobody consumes.
    NoConsumer,
}

impl WarningKind {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExchangeMissing => "exchange_missing",
            Self::Unroutable => "unroutable",
            Self::Loop => "loop",
            Self::ShorterTtl => "shorter_ttl",
            Self::Limit => "limit",
            Self::NoConsumer => "no_consumer",
        }
    }
}

/// Something that people should know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapWarning {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub kind: WarningKind,
    /// The queue that dead letters come from; of several, one of them.
    pub queue: usize,
    /// The dead-letter exchange.
    pub exchange: usize,
    /// The queue they come to, if the warning is about that.
    pub to_queue: Option<usize>,
    /// All the queues that dead letters come from, of a loop those on one way around, in order; none if the
    /// warning is about the queue that they come to.
    pub queues: Vec<usize>,
    /// A sentence for people.
    pub text: String,
}

/// All of them, the worst first.
pub(super) fn all(map: &DeadLetterMap) -> Vec<MapWarning> {
    let mut warnings = Vec::new();
    // What is true of many queues is said once.
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

/// Whether what it cannot get rid of stays in a queue.
pub(super) fn keeps(queue: &MapQueue) -> bool {
    queue.settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce
}

fn exchange_in_words(name: &Name) -> String {
    if name.is_empty() { "the default exchange".to_owned() } else { format!("exchange '{name}'") }
}

/// `'a'`, `'a' and another queue`, `'a' and 5 others`.
pub(super) fn first_of(first: &MapQueue, count: u64) -> String {
    let first = &first.name;
    match count {
        0 | 1 => format!("'{first}'"),
        2 => format!("'{first}' and another queue"),
        n => format!("'{first}' and {} others", n - 1),
    }
}

/// Dead letters that go nowhere, from queues whose dead letters go the same way.
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
    let fate = if keeps(queue) { "stay there and wait" } else { "are dropped" };
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
            _ => format!("nothing leads from {through} to a queue"),
        };
        let text = format!("Dead letters of {from} {fate}: {why}.");
        return Some(warning(Severity::Error, WarningKind::Unroutable, text));
    }
    if route.lost_keys.is_empty() {
        return None;
    }
    let keys = listed(route.lost_keys.iter());
    let text = format!(
        "Dead letters of {from} with the key {keys} {fate}: {through} routes that to no queue."
    );
    Some(warning(Severity::Warning, WarningKind::Unroutable, text))
}

/// The first of these names, and how many more there are.
fn listed<'a>(names: impl Iterator<Item = &'a Name>) -> String {
    let mut names = names.map(|name| format!("'{name}'"));
    let first: Vec<String> = names.by_ref().take(MAP_NAMES_TOLD_MAX).collect();
    match names.count() {
        0 => first.join(" or "),
        more => format!("{} or {more} others", first.join(", ")),
    }
}
