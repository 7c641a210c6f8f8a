//! Findings about refused logins and connections.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use broker::{Severity, words};
use server::snapshot::condition::{ConnectionRefusal, NodeCondition, RefusedConnections};

use super::{Finding, FindingKind, Resource, ResourceKind, subject};
use crate::limits::{FINDING_NAMES_MAX, REFUSED_LOGINS_SHOWN_MIN};

/// All findings about refusals.
pub(super) fn find(condition: &NodeCondition) -> impl Iterator<Item = Finding> {
    let descriptors = |one: &&RefusedConnections| one.reason == ConnectionRefusal::Descriptors;
    let (no_descriptors, limits): (Vec<_>, Vec<_>) =
        condition.refused_connections.iter().partition(descriptors);
    let no_descriptors = connections(&no_descriptors, Severity::Error, |count| {
        let clients = subject(count, "connection", ["was", "were"]);
        format!(
            "{clients} refused or had to wait within the last minutes: no file descriptor is left."
        )
    });
    let limits = connections(&limits, Severity::Warning, |count| {
        let clients = subject(count, "connection", ["was", "were"]);
        format!("{clients} refused within the last minutes: a limit is reached.")
    });
    [logins(condition), no_descriptors, limits].into_iter().flatten()
}

/// A finding about all of the refusals, the most frequent first; none without refusals.
fn ordered(
    kind: FindingKind,
    severity: Severity,
    text: String,
    mut resources: Vec<(u64, Resource)>,
) -> Option<Finding> {
    let count = resources.len() as u64;
    resources.sort_by_key(|(refusals, _)| Reverse(*refusals));
    let mut resources: Vec<Resource> = resources.into_iter().map(|(_, one)| one).collect();
    resources.truncate(FINDING_NAMES_MAX);
    (count > 0).then_some(Finding { kind, severity, text, count, rate: None, resources })
}

/// Refused logins of one address.
#[derive(Default, Debug)]
struct OfSource<'a> {
    count: u64,
    /// Users with the number of their refusals.
    users: Vec<(u64, &'a str)>,
}

fn logins(condition: &NodeCondition) -> Option<Finding> {
    let mut by_source: BTreeMap<IpAddr, OfSource<'_>> = BTreeMap::new();
    for one in &condition.refused_logins {
        let of_source = by_source.entry(one.source).or_default();
        of_source.count += one.count;
        of_source.users.push((one.count, &one.user));
    }
    let total: u64 = by_source.values().map(|of_source| of_source.count).sum();
    if total < REFUSED_LOGINS_SHOWN_MIN {
        return None;
    }
    let sources = words::count(by_source.len() as u64, "source");
    let text = format!("{} were refused within the last minutes, from {sources}.", {
        words::count(total, "login")
    });
    let resource = |(source, OfSource { count, users }): (IpAddr, OfSource<'_>)| {
        let most = users.iter().max_by_key(|(count, _)| *count).map_or("", |(_, user)| user);
        let others = match users.len() {
            0 | 1 => String::new(),
            users => format!(" and {} more", users - 1),
        };
        let detail = format!("{}, user {most}{others}", words::count(count, "login"));
        (count, of_node(ResourceKind::Address, source.to_string(), detail))
    };
    let resources = by_source.into_iter().map(resource).collect();
    ordered(FindingKind::LoginsRefused, Severity::Warning, text, resources)
}

fn connections(
    refused: &[&RefusedConnections],
    severity: Severity,
    text: impl Fn(u64) -> String,
) -> Option<Finding> {
    let resource = |one: &&RefusedConnections| {
        let (kind, of) = match one.reason {
            ConnectionRefusal::Descriptors => (ResourceKind::Listener, "listener"),
            ConnectionRefusal::NodeLimit => (ResourceKind::Node, "limit of the node"),
            ConnectionRefusal::VhostLimit => (ResourceKind::Vhost, "limit of the vhost"),
            ConnectionRefusal::UserLimit => (ResourceKind::User, "limit of the user"),
        };
        let name = if one.of.is_empty() { "connection_max" } else { &one.of };
        let detail = format!("{of}, {}", words::count(one.count, "connection"));
        let vhost = (kind == ResourceKind::Vhost).then(|| one.of.clone());
        (one.count, Resource { vhost, ..of_node(kind, name.to_owned(), detail) })
    };
    let total = refused.iter().map(|one| one.count).sum();
    let resources = refused.iter().map(resource).collect();
    ordered(FindingKind::ConnectionsRefused, severity, text(total), resources)
}

fn of_node(kind: ResourceKind, name: String, detail: String) -> Resource {
    Resource { kind, vhost: None, name, rate: None, detail }
}

#[cfg(test)]
mod tests {
    use server::snapshot::condition::RefusedLogins;

    use super::*;

    /// Severity and text of a finding, and the names of its resources with their details.
    type Shown = (Severity, String, Vec<(String, String)>);

    fn shown(condition: &NodeCondition) -> Vec<Shown> {
        let resources = |one: Finding| {
            let all = one.resources.into_iter().map(|one| (one.name, one.detail));
            (one.severity, one.text, all.collect())
        };
        find(condition).map(resources).collect()
    }

    #[test]
    fn many_refused_logins_are_found_with_their_addresses() {
        let login = |last, user: &str, count| RefusedLogins {
            source: IpAddr::from([10, 0, 0, last]),
            user: user.to_owned(),
            count,
        };
        let few = vec![login(1, "ada", REFUSED_LOGINS_SHOWN_MIN - 1)];
        let condition = |refused_logins| NodeCondition { refused_logins, ..Default::default() };
        assert_eq!(shown(&condition(few)), []);
        let many = vec![login(1, "ada", 3), login(2, "bob", 1), login(2, "root", 16)];
        let text = "20 logins were refused within the last minutes, from 2 sources.";
        let from =
            [("10.0.0.2", "17 logins, user root and 1 more"), ("10.0.0.1", "3 logins, user ada")];
        let from = from.map(|(name, detail)| (name.to_owned(), detail.to_owned())).to_vec();
        assert_eq!(shown(&condition(many)), [(Severity::Warning, text.to_owned(), from)]);
    }

    #[test]
    fn refused_connections_are_found_by_reason() {
        let refused =
            |reason, of: &str, count| RefusedConnections { reason, of: of.to_owned(), count };
        let refused_connections = vec![
            refused(ConnectionRefusal::Descriptors, "AMQP", 1),
            refused(ConnectionRefusal::NodeLimit, "", 2),
            refused(ConnectionRefusal::VhostLimit, "shop", 7),
        ];
        let found = shown(&NodeCondition { refused_connections, ..Default::default() });
        let texts: Vec<_> = found.iter().map(|(severity, text, _)| (*severity, &**text)).collect();
        let no_descriptors = "1 connection was refused or had to wait within the last minutes: no file \
                              descriptor is left.";
        let limits = "9 connections were refused within the last minutes: a limit is reached.";
        assert_eq!(texts, [(Severity::Error, no_descriptors), (Severity::Warning, limits)]);
        let of = |name: &str, detail: &str| (name.to_owned(), detail.to_owned());
        assert_eq!(found[0].2, [of("AMQP", "listener, 1 connection")]);
        let limits = [
            of("shop", "limit of the vhost, 7 connections"),
            of("connection_max", "limit of the node, 2 connections"),
        ];
        assert_eq!(found[1].2, limits);
    }
}
