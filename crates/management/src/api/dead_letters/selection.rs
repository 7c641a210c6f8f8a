//! The edges that an answer about the dead-letter map has, and their groups.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use broker::{DeadLetterMap, MapEdge, MapRoute, Severity};

use crate::api::dead_letters::mapped::Mapped;
use crate::api::list_query::{PagedQuery, Query};
use crate::http::answer::ApiError;

/// The query of a map: of a list that always has pages, and what is special about a map.
#[derive(Debug)]
pub(crate) struct MapQuery {
    pub(super) list: Query,
    /// Edges that look alike are one entry.
    pub(super) is_grouped: bool,
    /// Only edges with an error or a warning.
    pub(super) has_warning: bool,
}

impl<S: Sync> FromRequestParts<S> for MapQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl MapQuery {
    /// Reads the query of a URI.
    ///
    /// # Errors
    /// [`ApiError`] for a parameter that is out of its range.
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let PagedQuery(list) = PagedQuery::parse(query)?;
        let is_set = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.any(|(name, value)| name == wanted && value == "true")
        };
        Ok(Self { list, is_grouped: is_set("group"), has_warning: is_set("has_warning") })
    }
}

/// An edge of the answer, or a group of edges that look alike.
pub(super) struct Entry<'a> {
    pub(super) mapped: &'a Mapped,
    /// The most severe of the warnings.
    pub(super) severity: Severity,
    /// Dead letters per second.
    pub(super) rate: f64,
    /// The first stands for the others in all but numbers.
    pub(super) first: &'a MapEdge,
    pub(super) others: Vec<&'a MapEdge>,
}

impl Entry<'_> {
    /// The edges.
    pub(super) fn edges(&self) -> impl Iterator<Item = &MapEdge> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}

/// The entries that the query selects.
pub(super) struct Selection<'a> {
    pub(super) entries: Vec<Entry<'a>>,
    /// Edges of the whole map.
    pub(super) total_edges: usize,
    /// Edges that the filter selects.
    pub(super) filtered_edges: usize,
}

/// Selects entries: those with something wrong first, then those with most dead letters, then large groups.
pub(super) fn select<'a>(vhosts: &'a [Mapped], query: &MapQuery) -> Selection<'a> {
    let mut entries = Vec::new();
    for mapped in vhosts {
        for (first, severity) in mapped.map.edges.iter().zip(mapped.severities()) {
            let rate = mapped.rate(first.from, "dead_lettered");
            entries.push(Entry { mapped, severity, rate, first, others: Vec::new() });
        }
    }
    let total_edges = entries.len();
    entries.retain(|entry| {
        let is_wanted = !query.has_warning || entry.severity < Severity::Info;
        is_wanted && entry.mapped.matches_edge(entry.first, &query.list)
    });
    let filtered_edges = entries.len();
    if query.is_grouped {
        entries = group(entries);
    }
    // The sort is stable: equal edges stay ordered by vhost, then by queue.
    entries.sort_by(|a, b| {
        let by_rate = a.severity.cmp(&b.severity).then(b.rate.total_cmp(&a.rate));
        by_rate.then(b.others.len().cmp(&a.others.len()))
    });
    Selection { entries, total_edges, filtered_edges }
}

/// Joins edges that lead the same way, with the same key, strategy and severity. A queue that dead letters reach keeps an
/// edge of its own, because what leads to it is of interest.
fn group(entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    let mut groups: Vec<Entry<'_>> = Vec::new();
    let mut known = BTreeMap::new();
    let mut of_map: Option<(*const Mapped, BTreeSet<usize>, Vec<usize>)> = None;
    for entry in entries {
        let mapped: *const Mapped = entry.mapped;
        let (_, targets, ways) = match &mut of_map {
            Some(of) if of.0 == mapped => of,
            other => other.insert((mapped, entry.mapped.targets(), ways(&entry.mapped.map))),
        };
        let queue =
            entry.mapped.map.from(entry.first).filter(|_| !targets.contains(&entry.first.from));
        let Some(queue) = queue else {
            groups.push(entry);
            continue;
        };
        let key = (
            entry.mapped.vhost.as_str(),
            ways.get(entry.first.route).copied(),
            queue.routing_key().map(ToString::to_string),
            queue.settings.dead_letter_strategy.as_str(),
            entry.severity,
        );
        match known.get(&key).and_then(|at: &usize| groups.get_mut(*at)) {
            Some(group) => {
                group.rate += entry.rate;
                group.others.push(entry.first);
            }
            None => {
                known.insert(key, groups.len());
                groups.push(entry);
            }
        }
    }
    groups
}

/// For each route of a map, the first one with the same exchanges and queues. An exchange that looks at keys has a route
/// for each key that its dead letters may have, and a queue whose dead letters keep their key has a key of its own.
fn ways(map: &DeadLetterMap) -> Vec<usize> {
    let mut known = BTreeMap::new();
    let of_routes = map.routes.iter().enumerate().map(|(at, route)| {
        let MapRoute { exchange, to, via, is_certain, is_anywhere, .. } = route;
        *known.entry((exchange, to, via, is_certain, is_anywhere)).or_insert(at)
    });
    of_routes.collect()
}
