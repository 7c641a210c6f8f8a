//! What people should know about a dead-letter map, in one sentence each.

use super::{DeadLetterMap, MapEdge, MapQueue, loops, targets};
use crate::limits::MAP_NAMES_TOLD_MAX;
use crate::message::Name;
use crate::policy::DeadLetterStrategy;

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
    /// The queues of a loop, in order.
    pub way: Vec<usize>,
    /// A sentence for people.
    pub text: String,
}

/// All of them, the worst first.
pub(super) fn all(map: &DeadLetterMap) -> Vec<MapWarning> {
    let mut warnings = Vec::new();
    for edge in &map.edges {
        warnings.extend(dead_end(map, edge));
    }
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

/// Dead letters that go nowhere.
fn dead_end(map: &DeadLetterMap, edge: &MapEdge) -> Option<MapWarning> {
    let (queue, route, exchange) = (map.from(edge)?, map.route(edge)?, map.exchange(edge)?);
    let warning = |severity, kind, text| MapWarning {
        severity,
        kind,
        queue: edge.from,
        exchange: route.exchange,
        to_queue: None,
        way: Vec::new(),
        text,
    };
    let name = &queue.name;
    let fate = if keeps(queue) { "stay there and wait" } else { "are dropped" };
    if exchange.kind.is_none() {
        let text = format!(
            "Dead letters of '{name}' {fate}: its dead-letter exchange '{}' does not exist.",
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
        let text = format!("Dead letters of '{name}' {fate}: {why}.");
        return Some(warning(Severity::Error, WarningKind::Unroutable, text));
    }
    if route.lost_keys.is_empty() {
        return None;
    }
    let keys = listed(route.lost_keys.iter());
    let text = format!(
        "Dead letters of '{name}' with the key {keys} {fate}: {through} routes that to no queue."
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
