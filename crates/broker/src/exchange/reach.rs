//! Destinations of messages that are only partly known: perhaps the key, never the headers.
//!
//! If the key alone decides, the routing code itself gives the answer. Otherwise every binding is a
//! possibility.

use super::binding::{Binding, Destination};
use super::routable::Routable;
use super::{Exchange, Router};

/// Certainty that something happens to every message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Certainty {
    /// Depends on parts of the message that are not known.
    Possible,
    /// Happens to every message.
    Certain,
}

impl Exchange {
    /// Calls `found` with every destination that messages with this key can reach; without a key, with every
    /// destination that any message can reach. Some destinations may come more than once. Returns the
    /// certainty that a message matches at all; none if no message can match.
    pub(crate) fn reach(
        &self,
        key: Option<&[u8]>,
        found: &mut dyn FnMut(Destination, Certainty),
    ) -> Option<Certainty> {
        let mut matched = None;
        let mut find = |destination, certainty| {
            matched = matched.max(Some(certainty));
            found(destination, certainty);
        };
        let mut always = |destination| find(destination, Certainty::Certain);
        match (&self.router, key) {
            (Router::Direct(r), Some(key)) => r.route(key, &mut always),
            (Router::Topic(r), Some(key)) => r.route(key, &self.bindings, &mut always),
            (Router::Fanout(r), _) => r.route(&mut always),
            (Router::ModulusHash(r), Some(key)) => r.route(key, &mut always),
            (Router::ConsistentHash(r), Some(routing_key)) if r.hashes_key() => {
                r.route(Routable { routing_key, properties: &[] }, &mut always);
            }
            (Router::Direct(_), None) => self.find_all(|_| false, &mut find),
            (Router::Topic(_), None) => {
                self.find_all(|binding| is_any(&binding.routing_key), &mut find);
            }
            (Router::Headers(_), _) => {
                self.find_all(|binding| super::headers::is_any(&binding.arguments), &mut find);
            }
            (Router::FederationUpstream(_), _) => self.find_all(|_| false, &mut find),
            (Router::ModulusHash(_) | Router::ConsistentHash(_) | Router::LocalRandom(_), _) => {
                let first = self.bindings.first().map(|binding| binding.destination);
                let is_only = self.bindings.iter().all(|b| Some(b.destination) == first);
                self.find_all(|_| is_only, &mut find);
                // Hash and random exchanges choose one destination for any message.
                return self.is_bound().then_some(Certainty::Certain);
            }
        }
        matched
    }

    /// True if the exchange type looks at routing keys.
    pub(crate) fn looks_at_keys(&self) -> bool {
        match &self.router {
            Router::Direct(_) | Router::Topic(_) | Router::ModulusHash(_) => true,
            Router::ConsistentHash(r) => r.hashes_key(),
            Router::Fanout(_)
            | Router::Headers(_)
            | Router::LocalRandom(_)
            | Router::FederationUpstream(_) => false,
        }
    }

    /// The only routing key that a message routed through `binding` can have; none if several keys match.
    pub(crate) fn key_through<'a>(&self, binding: &'a Binding) -> Option<&'a str> {
        let key = &*binding.routing_key;
        let is_exact = match &self.router {
            Router::Direct(_) => true,
            Router::Topic(_) => key.split('.').all(|word| !matches!(word, "*" | "#")),
            Router::Fanout(_)
            | Router::Headers(_)
            | Router::ConsistentHash(_)
            | Router::ModulusHash(_)
            | Router::LocalRandom(_)
            | Router::FederationUpstream(_) => false,
        };
        is_exact.then_some(key)
    }

    fn find_all(
        &self,
        is_certain: impl Fn(&Binding) -> bool,
        find: &mut dyn FnMut(Destination, Certainty),
    ) {
        for binding in &self.bindings {
            let certainty =
                if is_certain(binding) { Certainty::Certain } else { Certainty::Possible };
            find(binding.destination, certainty);
        }
    }
}

/// True if the binding key of a topic exchange matches every routing key.
fn is_any(key: &str) -> bool {
    key.split('.').all(|word| word == "#")
}
