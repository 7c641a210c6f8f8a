//! The map of a vhost with rates, and what is asked of it.

use std::collections::BTreeSet;

use broker::{DeadLetterMap, MapEdge, MapQueue, MapWarning, Severity};
use server::history::TimeRanges;
use server::requests::Caller;
use server::snapshot::fields::QUEUE;

use crate::api::list_query::Query;
use crate::http::access::check_can_enter;
use crate::http::answer::ApiError;
use crate::http::extract::SharedNode;

/// The map of a vhost with the rates of its queues.
pub(crate) struct Mapped {
    pub(crate) vhost: String,
    pub(crate) map: DeadLetterMap,
    /// The change of each queue's numbers.
    pub(crate) rates: Vec<[f64; QUEUE.len()]>,
}

impl Mapped {
    /// The maps of the vhosts that the caller sees.
    pub(crate) fn all(node: &SharedNode, caller: &Caller) -> Vec<Self> {
        let seen = node.vhost_names().into_iter().filter(|vhost| caller.can_enter(vhost));
        // A vhost deleted meanwhile has no map.
        seen.filter_map(|vhost| Self::of(node, vhost)).collect()
    }

    /// The map of one vhost, if the caller may look into it.
    pub(crate) fn one(node: &SharedNode, caller: &Caller, vhost: String) -> Result<Self, ApiError> {
        check_can_enter(caller, &vhost)?;
        Self::of(node, vhost).ok_or_else(ApiError::not_found)
    }

    fn of(node: &SharedNode, vhost: String) -> Option<Self> {
        let map = node.dead_letter_map(&vhost)?;
        let rates = node.history().read(|history| {
            let of = |queue: &MapQueue| {
                history.of_queue(&vhost, queue.number, &TimeRanges::default()).rates
            };
            map.queues.iter().map(of).collect()
        });
        Some(Self { vhost, map, rates })
    }

    /// The name of a queue.
    pub(crate) fn name(&self, queue: usize) -> &str {
        self.map.queues.get(queue).map(|queue| &*queue.name).unwrap_or_default()
    }

    /// The rate of a number of a queue.
    pub(crate) fn rate(&self, queue: usize, number: &str) -> f64 {
        let at = QUEUE.iter().position(|field| field.name == number);
        let rates = self.rates.get(queue);
        at.and_then(|at| rates?.get(at)).copied().unwrap_or_default()
    }

    pub(super) fn exchange_name(&self, exchange: usize) -> &str {
        self.map.exchanges.get(exchange).map(|exchange| &*exchange.name).unwrap_or_default()
    }

    /// True if the filter matches a queue or exchange of an edge.
    pub(super) fn matches_edge(&self, edge: &MapEdge, query: &Query) -> bool {
        let Some(route) = self.map.route(edge) else { return false };
        query.matches_name(self.name(edge.from))
            || query.matches_name(self.exchange_name(route.exchange))
            || route.to.iter().any(|to| query.matches_name(self.name(*to)))
    }

    pub(super) fn matches_warning(&self, warning: &MapWarning, query: &Query) -> bool {
        let mut queues = warning.queues.iter().chain([&warning.queue]).chain(&warning.to_queue);
        queues.any(|queue| query.matches_name(self.name(*queue)))
            || query.matches_name(self.exchange_name(warning.exchange))
    }

    /// The queues that dead letters reach.
    pub(super) fn targets(&self) -> BTreeSet<usize> {
        self.map.routes.iter().flat_map(|route| route.to.iter().copied()).collect()
    }

    /// The most severe warning of each edge.
    pub(super) fn severities(&self) -> Vec<Severity> {
        let map = &self.map;
        let mut of_source = vec![Severity::Info; map.queues.len()];
        let mut of_target = of_source.clone();
        for warning in &map.warnings {
            let (list, queues) = match &warning.to_queue {
                Some(to) if warning.queues.is_empty() => (&mut of_target, std::slice::from_ref(to)),
                _ => (&mut of_source, warning.queues.as_slice()),
            };
            for queue in queues {
                if let Some(severity) = list.get_mut(*queue) {
                    *severity = (*severity).min(warning.severity);
                }
            }
        }
        let of = |list: &[Severity], queue: usize| list.get(queue).copied();
        let of_route = map.routes.iter().map(|route| {
            let of_targets = route.to.iter().filter_map(|to| of(&of_target, *to));
            of_targets.min().unwrap_or(Severity::Info)
        });
        let of_route: Vec<Severity> = of_route.collect();
        let of_edge = map.edges.iter().map(|edge| {
            let both = of(&of_source, edge.from).into_iter().chain(of(&of_route, edge.route));
            both.min().unwrap_or(Severity::Info)
        });
        of_edge.collect()
    }
}
