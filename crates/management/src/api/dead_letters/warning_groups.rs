//! Equal warnings of the dead-letter map as one sentence with a count.

use std::collections::BTreeMap;

use broker::{DeadLetterMap, DeadLetterStrategy, MapWarning, Severity, WarningKind, words};
use serde_json::{Value, json};

use crate::json::severity::severity;
use crate::limits::WARNING_GROUP_NAMES_MAX;

/// A warning in its map.
#[derive(Clone, Copy)]
pub(super) struct Warned<'a> {
    pub(super) vhost: &'a str,
    pub(super) map: &'a DeadLetterMap,
    pub(super) warning: &'a MapWarning,
    /// Lost dead letters of the warning's queues, per second.
    pub(super) lost: f64,
}

/// Warnings of one kind and severity, and with the same fate of the dead letters.
#[derive(Default)]
struct Group<'a> {
    /// Number of queues, or of cycles.
    count: u64,
    warnings: u64,
    /// Messages that wait in the queues.
    messages: u64,
    /// Lost dead letters per second.
    rate: f64,
    /// The first queues, with their vhosts.
    queues: Vec<(&'a str, &'a str)>,
    /// Text of the first warning.
    first: &'a str,
}

impl<'a> Group<'a> {
    fn add(&mut self, warned: Warned<'a>) {
        let Warned { vhost, map, warning, lost } = warned;
        if self.warnings == 0 {
            self.first = &warning.text;
        }
        self.warnings += 1;
        self.rate += lost;
        let one = [about(warning)];
        let queues = if is_loss(warning.kind) { warning.queues.as_slice() } else { &one };
        self.count += queues.len() as u64;
        for at in queues {
            let Some(queue) = map.queues.get(*at) else { continue };
            self.messages += queue.messages;
            if self.queues.len() < WARNING_GROUP_NAMES_MAX {
                self.queues.push((vhost, &queue.name));
            }
        }
    }

    /// Adds the group of another part of the map.
    fn add_group(&mut self, group: &'a Value) {
        let number = |name: &str| group[name].as_u64().unwrap_or_default();
        if self.warnings == 0 {
            self.first = group["text"].as_str().unwrap_or_default();
        }
        // Another node may tell any number.
        self.count = self.count.saturating_add(number("count"));
        self.warnings = self.warnings.saturating_add(number("total_warnings"));
        self.messages = self.messages.saturating_add(number("messages"));
        self.rate += group["rate"].as_f64().unwrap_or_default();
        let queues = group["queues"].as_array().into_iter().flatten();
        self.queues
            .extend(queues.filter_map(|one| Some((one["vhost"].as_str()?, one["name"].as_str()?))));
        // The sort is stable. Each part has the first queues of its vhosts.
        self.queues.sort_by_key(|(vhost, _)| *vhost);
        self.queues.truncate(WARNING_GROUP_NAMES_MAX);
    }

    fn text(&self, kind: WarningKind, severity: Severity, keeps: bool) -> String {
        if self.warnings == 1 {
            return self.first.to_owned();
        }
        let queues = words::count(self.count, "queue");
        let fate = if keeps { "wait in their queue" } else { "are dropped" };
        match (kind, severity) {
            (WarningKind::ExchangeMissing, _) => {
                format!("Dead letters of {queues} {fate}: the dead-letter exchange does not exist.")
            }
            (WarningKind::Unroutable, Severity::Error) => format!(
                "Dead letters of {queues} {fate}: the dead-letter exchange routes them to no queue."
            ),
            (WarningKind::Unroutable, _) => format!(
                "Some dead letters of {queues} {fate}: the dead-letter exchange routes their keys to \
                 no queue."
            ),
            (WarningKind::Loop, Severity::Info) => format!(
                "{} of dead letters, which messages follow when a consumer rejects them or a delivery \
                 limit is reached.",
                words::count(self.count, "cycle")
            ),
            (WarningKind::Loop, _) => format!(
                "{} of dead letters without a rejection: messages that would return to a queue in \
                 which they died are dropped.",
                words::count(self.count, "cycle")
            ),
            (WarningKind::ShorterTtl, Severity::Info) => {
                format!("{queues} with a TTL receive dead letters and drop them at its end.")
            }
            (WarningKind::ShorterTtl, _) => format!(
                "{queues} drop dead letters sooner than the queues that the dead letters come from."
            ),
            (WarningKind::Limit, _) => {
                format!(
                    "{queues} with a length limit receive dead letters and drop or refuse them."
                )
            }
            (WarningKind::NoConsumer, Severity::Info) => {
                format!("{queues} receive dead letters and have no consumer.")
            }
            (WarningKind::NoConsumer, _) => format!(
                "{} wait in {queues} that receive dead letters and have no consumer.",
                words::count(self.messages, "message")
            ),
        }
    }
}

/// The queue that a warning is about.
fn about(warning: &MapWarning) -> usize {
    let target = warning.to_queue.filter(|_| warning.kind != WarningKind::Loop);
    target.unwrap_or(warning.queue)
}

/// True if dead letters are lost or held because of such a problem.
fn is_loss(kind: WarningKind) -> bool {
    matches!(kind, WarningKind::ExchangeMissing | WarningKind::Unroutable)
}

fn keeps(Warned { map, warning, .. }: Warned<'_>) -> bool {
    let queue = map.queues.get(warning.queue);
    is_loss(warning.kind)
        && queue.is_some_and(|queue| {
            queue.settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce
        })
}

/// The groups by severity, kind and fate, the most severe first.
type Groups<'a> = BTreeMap<(Severity, WarningKind, bool), Group<'a>>;

/// The groups of these warnings, the most severe first; with what [`merge`] needs in a part.
pub(super) fn of<'a>(warnings: impl Iterator<Item = Warned<'a>>, is_part: bool) -> Vec<Value> {
    let mut groups = Groups::new();
    for warned in warnings {
        let key = (warned.warning.severity, warned.warning.kind, keeps(warned));
        groups.entry(key).or_default().add(warned);
    }
    groups_to_json(&groups, is_part)
}

/// The groups of several parts of a map.
pub(super) fn merge(parts: &[Value]) -> Vec<Value> {
    let mut groups = Groups::new();
    let told = parts.iter().filter_map(|part| part.get("warning_groups")?.as_array()).flatten();
    for group in told {
        let Some(kind) = group["kind"].as_str().and_then(kind_of) else { continue };
        let key = (severity(group), kind, group["keeps"] == true);
        groups.entry(key).or_default().add_group(group);
    }
    groups_to_json(&groups, false)
}

fn groups_to_json(groups: &Groups<'_>, is_part: bool) -> Vec<Value> {
    let json = groups.iter().map(|((severity, kind, keeps), group)| {
        let queues = group.queues.iter();
        let queues = queues.map(|(vhost, name)| json!({"vhost": vhost, "name": name}));
        let mut json = json!({
            "kind": kind.as_str(),
            "severity": severity.as_str(),
            "text": group.text(*kind, *severity, *keeps),
            "count": group.count,
            "total_warnings": group.warnings,
            "rate": is_loss(*kind).then_some(group.rate),
            "queues": queues.collect::<Vec<Value>>(),
        });
        if is_part {
            json["messages"] = json!(group.messages);
            json["keeps"] = json!(keeps);
        }
        json
    });
    json.collect()
}

/// The kind of this name.
pub(super) fn kind_of(name: &str) -> Option<WarningKind> {
    use WarningKind::{ExchangeMissing, Limit, Loop, NoConsumer, ShorterTtl, Unroutable};

    let kinds = [ExchangeMissing, Unroutable, Loop, ShorterTtl, Limit, NoConsumer];
    kinds.into_iter().find(|kind| kind.as_str() == name)
}

#[cfg(test)]
mod tests {
    use broker::{
        DeathCounters, DelayedRetryOrder, DeliveryCount, DeliveryLimitAction, ExpiryOrder,
        MapQueue, Overflow, QueueNumber, QueueType, Settings,
    };

    use super::*;

    fn warning(kind: WarningKind, severity: Severity, queues: Vec<usize>) -> MapWarning {
        MapWarning {
            severity,
            kind,
            queue: queues.first().copied().unwrap_or_default(),
            exchange: 0,
            to_queue: None,
            queues,
            text: "One of its kind.".to_owned(),
        }
    }

    const SETTINGS: Settings = Settings {
        message_ttl_ms: None,
        expires_ms: None,
        dead_letter: None,
        dead_letter_strategy: DeadLetterStrategy::AtMostOnce,
        max_length: None,
        max_length_bytes: None,
        overflow: Overflow::DropHead,
        delivery_limit: None,
        delivery_limit_count: DeliveryCount::Delivery,
        delivery_limit_action: DeliveryLimitAction::Drop,
        consumer_timeout_ms: None,
        delayed_retry: None,
        delayed_retry_order: DelayedRetryOrder::Due,
        expiry_order: ExpiryOrder::Deadline,
    };

    fn queue(number: u64) -> MapQueue {
        MapQueue {
            name: format!("q{number:04}").as_str().into(),
            number: QueueNumber(number),
            kind: QueueType::Classic,
            settings: SETTINGS,
            messages: 0,
            consumers: 0,
            deaths: DeathCounters::default(),
            first_deadline: None,
        }
    }

    #[test]
    fn equal_warnings_of_thousands_are_one_with_a_count() {
        let mut warnings: Vec<MapWarning> = (0..3300)
            .map(|at| warning(WarningKind::NoConsumer, Severity::Info, vec![at]))
            .collect();
        warnings.push(warning(WarningKind::ExchangeMissing, Severity::Error, vec![0, 1]));
        warnings.push(warning(WarningKind::ExchangeMissing, Severity::Error, vec![2]));
        warnings.push(warning(WarningKind::Limit, Severity::Warning, vec![3]));
        let map = DeadLetterMap {
            queues: (0..3300).map(queue).collect(),
            exchanges: Vec::new(),
            routes: Vec::new(),
            edges: Vec::new(),
            delays: Vec::new(),
            warnings,
            is_whole: true,
        };
        let warned = |warning| Warned { vhost: "/", map: &map, warning, lost: 1.5 };
        let groups = of(map.warnings.iter().map(warned), false);
        let told: Vec<_> = groups
            .iter()
            .map(|one| (one["text"].as_str().unwrap(), one["count"].as_u64().unwrap()))
            .collect();
        let missing =
            "Dead letters of 3 queues are dropped: the dead-letter exchange does not exist.";
        let lonely = "3,300 queues receive dead letters and have no consumer.";
        assert_eq!(told, [(missing, 3), ("One of its kind.", 1), (lonely, 3300)]);
        assert_eq!(groups[2]["queues"].as_array().unwrap().len(), WARNING_GROUP_NAMES_MAX);
        assert_eq!((&groups[0]["rate"], &groups[1]["rate"]), (&json!(3.0), &Value::Null));
    }
}
