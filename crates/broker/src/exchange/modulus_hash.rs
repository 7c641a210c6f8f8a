//! `x-modulus-hash` (RabbitMQ's sharding plugin): the hash of the routing key, modulo the number of
//! bound destinations, picks one.

use super::{Binding, Destination, Destinations, stable_hash};

/// Everything that is bound, in the order of binding.
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
        let count = self.0.0.len() as u64;
        if count > 0 {
            let at = stable_hash(routing_key) % count;
            if let Some((destination, _)) = usize::try_from(at).ok().and_then(|at| self.0.0.get(at))
            {
                found(*destination);
            }
        }
    }
}
