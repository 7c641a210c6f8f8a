//! Fanout exchanges: every binding matches, with any key.

use super::binding::{Binding, Destination};
use super::destinations::Destinations;

/// The destinations of all bindings.
#[derive(Default, Debug)]
pub(super) struct Fanout(Destinations);

impl Fanout {
    pub(super) fn bind(&mut self, binding: &Binding) {
        self.0.add(binding.destination);
    }

    pub(super) fn unbind(&mut self, binding: &Binding) {
        self.0.remove(binding.destination);
    }

    pub(super) fn route(&self, found: &mut dyn FnMut(Destination)) {
        self.0.each(found);
    }
}
