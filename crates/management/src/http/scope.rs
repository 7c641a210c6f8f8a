//! The nodes that can answer a request: each route names them.

use percent_encoding::percent_decode_str;

/// The nodes that can answer a request. `N` is the name of a vhost or a node: in the row of a route, that of a parameter of
/// its path; for a request, its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope<N = &'static str> {
    /// Every node: the node that was asked answers.
    Here,
    /// The node that leads users, vhosts and global parameters.
    Metadata,
    /// The node that leads the vhost.
    Vhost(N),
    /// The node that leads the vhost, for what every node knows of it: its settings and its nodes.
    SettingsOfVhost(N),
    /// The node of this name.
    Node(N),
    /// The node that knows the object.
    Anywhere,
    /// All nodes do something.
    Everywhere,
    /// All nodes have a part of the list. A name is looked for at these paths.
    List(&'static [&'static str]),
    /// All nodes have a part of the totals.
    Overview,
    /// All nodes have a part of the scheduled messages.
    Scheduled,
    /// All nodes have a part of the numbers of scheduled messages.
    ScheduledCounts,
    /// All nodes have a part of the definitions.
    Definitions,
    /// All nodes have a part of the findings.
    Findings,
    /// All nodes have a part of the dead-letter map.
    DeadLetterMap,
}

/// The paths at which the filter of most lists looks for a name.
pub(crate) const NAME: &[&str] = &["name"];

impl Scope {
    /// The scope of a request for `path`.
    ///
    /// # Panics
    /// If the route has no parameter of the name.
    fn of_request(self, route: &str, path: &str) -> Scope<String> {
        let value = |name| parameter(route, path, name);
        match self {
            Self::Here => Scope::Here,
            Self::Metadata => Scope::Metadata,
            Self::Vhost(name) => Scope::Vhost(value(name)),
            Self::SettingsOfVhost(name) => Scope::SettingsOfVhost(value(name)),
            Self::Node(name) => Scope::Node(value(name)),
            Self::Anywhere => Scope::Anywhere,
            Self::Everywhere => Scope::Everywhere,
            Self::List(found_by) => Scope::List(found_by),
            Self::Overview => Scope::Overview,
            Self::Scheduled => Scope::Scheduled,
            Self::ScheduledCounts => Scope::ScheduledCounts,
            Self::Definitions => Scope::Definitions,
            Self::Findings => Scope::Findings,
            Self::DeadLetterMap => Scope::DeadLetterMap,
        }
    }
}

/// The scopes of the requests of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scopes {
    /// One scope for requests that change nothing, and one for those that do.
    Given {
        /// The scope of requests that change nothing.
        read: Scope,
        /// The scope of requests that change something.
        change: Scope,
    },
    /// The scopes of `/api/parameters/{component}/{vhost}/{name}`: the limits of a vhost are kept with the vhosts, all
    /// other parameters in theirs.
    Parameter,
}

impl Scopes {
    /// The scope of a request for `path`.
    ///
    /// # Panics
    /// If a scope names a parameter that the path of the route does not have.
    pub(crate) fn of_request(self, is_change: bool, route: &str, path: &str) -> Scope<String> {
        let scope = match self {
            Self::Given { change, .. } if is_change => change,
            Self::Given { read, .. } => read,
            Self::Parameter if is_change && parameter(route, path, "component") == VHOST_LIMITS => {
                Scope::Metadata
            }
            Self::Parameter => Scope::Vhost("vhost"),
        };
        scope.of_request(route, path)
    }
}

/// The component of the parameters that are limits of vhosts.
pub(crate) const VHOST_LIMITS: &str = "vhost-limits";

impl From<Scope> for Scopes {
    fn from(scope: Scope) -> Self {
        Self::Given { read: scope, change: scope }
    }
}

impl From<(Scope, Scope)> for Scopes {
    fn from((read, change): (Scope, Scope)) -> Self {
        Self::Given { read, change }
    }
}

/// The value of a parameter of `route` in `path`, decoded.
fn parameter(route: &str, path: &str, name: &str) -> String {
    let is_it =
        |part: &str| part.strip_prefix('{').and_then(|it| it.strip_suffix('}')) == Some(name);
    let found = route.split('/').zip(path.split('/')).find(|(part, _)| is_it(part));
    let (_, value) = found.expect("the scope of a route names a parameter of its path");
    percent_decode_str(value).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPES: [(&str, Scopes); 5] = [
        ("/api/queues/{vhost}/{name}", vhost("vhost")),
        ("/api/queues/quorum/{vhost}/{name}/replicas/delete", vhost("vhost")),
        (
            "/api/vhosts/{name}/start/{node}",
            Scopes::Given { read: Scope::Here, change: Scope::Node("node") },
        ),
        (
            "/api/vhosts/{name}",
            Scopes::Given { read: Scope::SettingsOfVhost("name"), change: Scope::Metadata },
        ),
        ("/api/parameters/{component}/{vhost}/{name}", Scopes::Parameter),
    ];

    const fn vhost(name: &'static str) -> Scopes {
        Scopes::Given { read: Scope::Vhost(name), change: Scope::Vhost(name) }
    }

    #[test]
    fn requests_have_the_scopes_of_their_routes() {
        let of = |number: usize, is_change, path| {
            let (route, scopes) = SCOPES[number];
            scopes.of_request(is_change, route, path)
        };
        let vhost = |name: &str| Scope::Vhost(name.to_owned());
        assert_eq!(of(0, false, "/api/queues/%2F/q"), vhost("/"));
        assert_eq!(of(0, true, "/api/queues/a%2Bb+c/q"), vhost("a+b+c"));
        assert_eq!(of(0, false, "/api/queues/v%26w/q"), vhost("v&w"));
        assert_eq!(of(0, false, "/api/queues/%C3%A9%zz%+1%2/q"), vhost("\u{e9}%zz%+1%2"));
        assert_eq!(
            of(1, true, "/api/queues/quorum/replicas/on/replicas/delete"),
            vhost("replicas")
        );
        assert_eq!(of(2, true, "/api/vhosts/v/start/a@h"), Scope::Node("a@h".to_owned()));
        assert_eq!(of(3, false, "/api/vhosts/v"), Scope::SettingsOfVhost("v".to_owned()));
        assert_eq!(of(3, true, "/api/vhosts/v"), Scope::Metadata);
        assert_eq!(of(4, true, "/api/parameters/policy/v/p"), vhost("v"));
        assert_eq!(of(4, true, "/api/parameters/vhost-limits/v/limits"), Scope::Metadata);
        assert_eq!(of(4, false, "/api/parameters/vhost-limits/v/limits"), vhost("v"));
    }
}
