//! `x-modulus-hash` (RabbitMQ's sharding plugin): the hash of the routing key, modulo the number of
//! bound destinations, picks one.

use super::binding::{Binding, Destination};
use super::destinations::Destinations;
use super::routable::stable_hash;

/// The destinations of all bindings.
#[derive(Default, Debug)]
pub(super) struct ModulusHash(Destinations);

impl ModulusHash {
    pub(super) fn bind(&mut self, binding: &Binding) {
        self.0.add(binding.destination);
    }

    pub(super) fn unbind(&mut self, binding: &Binding) {
        self.0.remove(binding.destination);
    }

    pub(super) fn route(&self, routing_key: &[u8], found: &mut dyn FnMut(Destination)) {
        let at = stable_hash(routing_key).checked_rem(self.0.len() as u64);
        let at = at.and_then(|at| usize::try_from(at).ok());
        if let Some(destination) = at.and_then(|at| self.0.nth(at)) {
            found(destination);
        }
    }
}
