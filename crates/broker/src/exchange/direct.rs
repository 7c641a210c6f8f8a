//! Direct exchanges: the binding key equals the routing key.

use super::binding::{Binding, Destination};
use super::destinations::Destinations;
use crate::collections::Lookup;
use crate::message::Name;

/// Destinations by binding key.
#[derive(Debug)]
pub(super) struct Direct(Lookup<Name, Destinations>);

impl Direct {
    pub(super) fn new(seed: u64) -> Self {
        Self(Lookup::new(seed))
    }

    pub(super) fn bind(&mut self, binding: &Binding) {
        self.0
            .or_insert_with(binding.routing_key.clone(), Destinations::default)
            .add(binding.destination);
    }

    pub(super) fn unbind(&mut self, binding: &Binding) {
        let destinations = self.0.get_mut(&*binding.routing_key);
        let destinations = destinations.expect("a binding that is removed was added");
        destinations.remove(binding.destination);
        if destinations.is_empty() {
            self.0.remove(&*binding.routing_key);
        }
    }

    pub(super) fn route(&self, routing_key: &[u8], found: &mut dyn FnMut(Destination)) {
        // Binding keys are UTF-8, so any other routing key matches none.
        if let Ok(routing_key) = std::str::from_utf8(routing_key)
            && let Some(destinations) = self.0.get(routing_key)
        {
            destinations.each(found);
        }
    }
}
