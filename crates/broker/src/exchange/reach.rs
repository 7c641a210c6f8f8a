//! Where messages go of which not everything is known: their key perhaps, their headers never.
//!
//! What depends on the key alone is answered by the code that routes messages. For the rest every
//! binding is a possibility.

use super::binding::{Binding, Destination};
use super::routable::Routable;
use super::{Exchange, Router};

/// Whether something happens to every message, or to some perhaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Chance {
    /// It depends on what is not known.
    Possible,
    /// It does.
    Certain,
}

impl Exchange {
    /// Hands every destination to `found` that messages with this key can go to, some perhaps more than
    /// once; without a key, messages with any. Whether a message matches anything at all; none if no
    /// message does.
    pub(crate) fn reach(
        &self,
        key: Option<&[u8]>,
        found: &mut dyn FnMut(Destination, Chance),
    ) -> Option<Chance> {
        let mut matched = None;
        let mut find = |destination, chance| {
            matched = matched.max(Some(chance));
            found(destination, chance);
        };
        let mut always = |destination| find(destination, Chance::Certain);
        match (&self.router, key) {
            (Router::Direct(r), Some(key)) => r.route(key, &mut always),
            (Router::Topic(r), Some(key)) => r.route(key, &mut always),
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
            (Router::ModulusHash(_) | Router::ConsistentHash(_) | Router::LocalRandom(_), _) => {
                let first = self.bindings.first().map(|binding| binding.destination);
                let is_only = self.bindings.iter().all(|b| Some(b.destination) == first);
                self.find_all(|_| is_only, &mut find);
                // They choose one, whatever the message is.
                return self.is_bound().then_some(Chance::Certain);
            }
        }
        matched
    }

    /// Whether routing keys matter to it.
    pub(crate) fn looks_at_keys(&self) -> bool {
        match &self.router {
            Router::Direct(_) | Router::Topic(_) | Router::ModulusHash(_) => true,
            Router::ConsistentHash(r) => r.hashes_key(),
            Router::Fanout(_) | Router::Headers(_) | Router::LocalRandom(_) => false,
        }
    }

    /// The only key that a message can have which `binding`, one of this exchange, has let through; none
    /// if there are others.
    pub(crate) fn key_through<'a>(&self, binding: &'a Binding) -> Option<&'a str> {
        let key = &*binding.routing_key;
        let is_exact = match &self.router {
            Router::Direct(_) => true,
            Router::Topic(_) => key.split('.').all(|word| !matches!(word, "*" | "#")),
            Router::Fanout(_)
            | Router::Headers(_)
            | Router::ConsistentHash(_)
            | Router::ModulusHash(_)
            | Router::LocalRandom(_) => false,
        };
        is_exact.then_some(key)
    }

    fn find_all(
        &self,
        is_certain: impl Fn(&Binding) -> bool,
        find: &mut dyn FnMut(Destination, Chance),
    ) {
        for binding in &self.bindings {
            let chance = if is_certain(binding) { Chance::Certain } else { Chance::Possible };
            find(binding.destination, chance);
        }
    }
}

/// Whether the binding key of a topic exchange matches every key.
fn is_any(key: &str) -> bool {
    key.split('.').all(|word| word == "#")
}
