//! The answer to "is anything wrong?": a list of findings, computed from facts about the node and its vhosts.
//!
//! [`find`] is a function of its argument. Equal problems of many queues are one finding with a count and a few
//! names, so that the answer is short for any number of queues.

mod alarms;
mod clients;
mod cluster;
mod dead_letters;
mod kind;
mod node;
mod queues;
mod refusals;
#[cfg(test)]
mod tests;

use broker::{Severity, words};

pub(crate) use alarms::{disk_alarm, disk_alarm_of, memory_alarm, memory_alarm_of};
pub(crate) use clients::{BlockedConnection, ReachedLimit};
pub(crate) use cluster::ClusterFacts;
pub(crate) use dead_letters::MapWarningFact;
pub(crate) use kind::FindingKind;
pub(crate) use node::NodeFacts;
pub(crate) use queues::{QueueRates, dropped_by_reason, in_words};

use server::snapshot::queue::QueueView;

use crate::limits::FINDING_NAMES_MAX;

/// The input of findings, as far as the user may see it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Facts {
    /// The node; none if the user may not see it.
    pub(crate) node: Option<NodeFacts>,
    pub(crate) vhosts: Vec<VhostFacts>,
}

/// Facts about a vhost.
#[derive(Clone, Default, Debug)]
pub(crate) struct VhostFacts {
    pub(crate) name: String,
    /// The queues, each with the change of its numbers.
    pub(crate) queues: Vec<(QueueView, QueueRates)>,
    /// Names of the queues whose dead letters reach no queue, as far as the dead-letter map shows.
    pub(crate) without_route: Vec<String>,
    /// The other warnings of the dead-letter map.
    pub(crate) map_warnings: Vec<MapWarningFact>,
    /// Publishes that reached no queue and were dropped, per second.
    pub(crate) unroutable_rate: f64,
    /// Names of the exchanges that routed them, each with its part.
    pub(crate) unroutable: Vec<(String, f64)>,
    pub(crate) blocked: Vec<BlockedConnection>,
    pub(crate) reached: Vec<ReachedLimit>,
}

/// A problem, of one or many resources.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Finding {
    pub(crate) kind: FindingKind,
    pub(crate) severity: Severity,
    /// The problem as a sentence.
    pub(crate) text: String,
    /// Number of resources with the problem.
    pub(crate) count: u64,
    /// Messages per second, if the problem has a rate.
    pub(crate) rate: Option<f64>,
    /// The first of the resources, those with the highest rate first.
    pub(crate) resources: Vec<Resource>,
}

/// A resource with a problem.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Resource {
    pub(crate) kind: ResourceKind,
    /// The vhost; none for a resource of the node.
    pub(crate) vhost: Option<String>,
    pub(crate) name: String,
    /// Messages per second.
    pub(crate) rate: Option<f64>,
    /// Details in a few words; empty without any.
    pub(crate) detail: String,
}

impl Resource {
    /// A vhost.
    fn of_vhost(name: &str) -> Self {
        let (kind, vhost, name) = (ResourceKind::Vhost, Some(name.to_owned()), name.to_owned());
        Self { kind, vhost, name, ..Self::default() }
    }
}

/// A kind of resource.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum ResourceKind {
    #[default]
    Node,
    Vhost,
    Queue,
    Exchange,
    Connection,
    Listener,
    User,
    /// An address of clients.
    Address,
}

impl ResourceKind {
    /// Name in the API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Vhost => "vhost",
            Self::Queue => "queue",
            Self::Exchange => "exchange",
            Self::Connection => "connection",
            Self::Listener => "listener",
            Self::User => "user",
            Self::Address => "address",
        }
    }
}

/// All findings, the most severe first.
pub(crate) fn find(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(facts.node.iter().flat_map(node::find));
    findings.extend(queues::find(&facts.vhosts));
    findings.extend(dead_letters::find(&facts.vhosts));
    findings.extend(clients::find(&facts.vhosts));
    findings.sort_by_key(|finding| (finding.severity, finding.kind));
    findings
}

impl Finding {
    /// A finding about `all` resources with a problem; none without resources. `text` is a function of the number
    /// of resources and the sum of their rates.
    fn of(
        kind: FindingKind,
        severity: Severity,
        mut all: Vec<Resource>,
        text: impl FnOnce(u64, f64) -> String,
    ) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        let count = all.len() as u64;
        let has_rate = all.iter().any(|one| one.rate.is_some());
        let of = |one: &Resource| one.rate.unwrap_or_default();
        let sum: f64 = all.iter().map(of).sum();
        all.sort_by(|a, b| {
            let names = (&a.vhost, &a.name).cmp(&(&b.vhost, &b.name));
            of(b).total_cmp(&of(a)).then(names)
        });
        all.truncate(FINDING_NAMES_MAX);
        let (text, rate) = (text(count, sum), has_rate.then_some(sum));
        Some(Self { kind, severity, text, count, rate, resources: all })
    }

    /// A finding about the node as a whole.
    fn of_node(kind: FindingKind, severity: Severity, text: String) -> Self {
        Self { kind, severity, text, count: 1, rate: None, resources: Vec::new() }
    }
}

/// A number of things with the verb that fits: `1 queue loses`, `2 queues lose`.
fn subject(count: u64, noun: &str, [one, many]: [&str; 2]) -> String {
    format!("{} {}", words::count(count, noun), if count == 1 { one } else { many })
}

/// A rate as the page shows it: `34/s`, `0.4/s`.
pub(crate) fn rate_in_words(rate: f64) -> String {
    match rate {
        rate if rate <= 0.0 => "0/s".to_owned(),
        rate if rate < 0.05 => "<0.1/s".to_owned(),
        rate if rate < 9.95 => format!("{rate:.1}/s"),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive rate"
        )]
        rate => format!("{}/s", words::number(rate.round() as u64)),
    }
}
