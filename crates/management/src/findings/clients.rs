//! Findings about clients: blocked connections, limits, publishes without a queue.

use broker::{Severity, words};

use super::{Finding, FindingKind, Resource, ResourceKind, VhostFacts, rate_in_words, subject};

/// A connection that an alarm stops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BlockedConnection {
    pub(crate) name: String,
    /// Name that the client application set.
    pub(crate) client_name: Option<String>,
}

/// A limit of a vhost that is used up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReachedLimit {
    /// Name of the limit.
    pub(crate) limit: &'static str,
    pub(crate) maximum: u64,
}

/// All findings about clients.
pub(super) fn find(vhosts: &[VhostFacts]) -> impl Iterator<Item = Finding> {
    [blocked(vhosts), unroutable(vhosts), limits(vhosts)].into_iter().flatten()
}

fn blocked(vhosts: &[VhostFacts]) -> Option<Finding> {
    let all = vhosts.iter().flat_map(|vhost| {
        vhost.blocked.iter().map(|one| Resource {
            kind: ResourceKind::Connection,
            vhost: Some(vhost.name.clone()),
            name: one.name.clone(),
            rate: None,
            detail: one.client_name.clone().unwrap_or_default(),
        })
    });
    Finding::of(FindingKind::ConnectionsBlocked, Severity::Error, all.collect(), |count, _| {
        let connections = subject(count, "connection", ["is", "are"]);
        format!("{connections} blocked: an alarm stops publishers.")
    })
}

fn of_vhost(vhost: &VhostFacts, rate: Option<f64>, detail: String) -> Resource {
    let name = vhost.name.clone();
    Resource { kind: ResourceKind::Vhost, vhost: Some(name.clone()), name, rate, detail }
}

/// Finds exchanges that route publishes to no queue. The vhost stands for one that was deleted since.
fn unroutable(vhosts: &[VhostFacts]) -> Option<Finding> {
    let mut all = Vec::new();
    for vhost in vhosts.iter().filter(|vhost| vhost.unroutable_rate > 0.0) {
        all.extend(vhost.unroutable.iter().map(|(exchange, rate)| Resource {
            kind: ResourceKind::Exchange,
            vhost: Some(vhost.name.clone()),
            name: exchange.clone(),
            rate: Some(*rate),
            detail: rate_in_words(*rate),
        }));
        if vhost.unroutable.is_empty() {
            let rate = vhost.unroutable_rate;
            all.push(of_vhost(vhost, Some(rate), rate_in_words(rate)));
        }
    }
    let kind = FindingKind::PublishesUnroutable;
    Finding::of(kind, Severity::Warning, all, |count, rate| {
        let exchanges = words::count(count, "exchange");
        let rate = rate_in_words(rate);
        format!("Publishes to {exchanges} reach no queue and are dropped ({rate}).")
    })
}

fn limits(vhosts: &[VhostFacts]) -> Option<Finding> {
    let all = vhosts.iter().flat_map(|vhost| {
        vhost.reached.iter().map(move |reached| {
            let detail = format!("{} {}", reached.limit, words::number(reached.maximum));
            of_vhost(vhost, None, detail)
        })
    });
    Finding::of(FindingKind::VhostLimitReached, Severity::Warning, all.collect(), |count, _| {
        let limits = subject(count, "limit", ["of a vhost is", "of vhosts are"]);
        format!("{limits} reached: further connections or queues are refused.")
    })
}
