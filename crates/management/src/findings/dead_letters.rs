//! Findings about the ways of dead letters, from the warnings of the dead-letter map.

use broker::{Severity, WarningKind, words};

use super::{Finding, FindingKind, Resource, ResourceKind, VhostFacts, subject};

/// A warning of the dead-letter map about a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MapWarningFact {
    pub(crate) kind: WarningKind,
    pub(crate) severity: Severity,
    /// The queue in which dead letters would be lost or wait.
    pub(crate) queue: String,
    /// Messages in this queue.
    pub(crate) messages: u64,
}

/// The findings that are warnings of the map. Dead letters without any way are findings about their queues.
pub(super) fn find(vhosts: &[VhostFacts]) -> impl Iterator<Item = Finding> {
    let about = |wanted: WarningKind| -> Vec<(&VhostFacts, &MapWarningFact)> {
        let all =
            vhosts.iter().flat_map(|vhost| vhost.map_warnings.iter().map(move |one| (vhost, one)));
        let is_meant =
            |one: &MapWarningFact| one.kind == wanted && one.severity == Severity::Warning;
        all.filter(|(_, one)| is_meant(one)).collect()
    };
    let finding = |kind, warning, text: fn(u64, u64) -> String| {
        let found = about(warning);
        let messages = found.iter().map(|(_, one)| one.messages).sum();
        let resources = found.into_iter().map(|(vhost, one)| resource(vhost, one)).collect();
        Finding::of(kind, Severity::Warning, resources, |count, _| text(count, messages))
    };
    let found = [
        finding(
            FindingKind::DeadLettersWithoutConsumer,
            WarningKind::NoConsumer,
            |count, messages| {
                let messages = subject(messages, "message", ["waits", "wait"]);
                let queues = subject(count, "queue", ["that receives", "that receive"]);
                let has = if count == 1 { "has" } else { "have" };
                format!("{messages} in {queues} dead letters and {has} no consumer.")
            },
        ),
        finding(FindingKind::DeadLettersPartlyWithoutRoute, WarningKind::Unroutable, |count, _| {
            let queues = subject(count, "queue", ["has", "have"]);
            format!("{queues} a dead-letter exchange that routes some of the keys to no queue.")
        }),
        finding(FindingKind::DeadLettersExpireSooner, WarningKind::ShorterTtl, |count, _| {
            let queues = subject(count, "queue", ["drops", "drop"]);
            format!("{queues} dead letters sooner than the queues that they come from.")
        }),
        finding(FindingKind::DeadLettersMeetALimit, WarningKind::Limit, |count, _| {
            let queues = subject(count, "queue", ["receives", "receive"]);
            format!("{queues} dead letters under a length limit that drops or refuses some.")
        }),
        finding(FindingKind::DeadLettersReturn, WarningKind::Loop, |count, _| {
            let cycles = words::count(count, "cycle");
            format!(
                "{cycles} of dead letters without a rejection: messages that would return to a queue in \
                 which they died are dropped."
            )
        }),
    ];
    found.into_iter().flatten()
}

fn resource(vhost: &VhostFacts, warning: &MapWarningFact) -> Resource {
    let is_waiting = warning.kind == WarningKind::NoConsumer;
    let detail = is_waiting.then(|| words::count(warning.messages, "message"));
    Resource {
        kind: ResourceKind::Queue,
        vhost: Some(vhost.name.clone()),
        name: warning.queue.clone(),
        rate: None,
        detail: detail.unwrap_or_default(),
    }
}
