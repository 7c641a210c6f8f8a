//! `x-local-random`: each message goes to one bound destination, chosen at random.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::Rng;

use super::binding::{Binding, Destination};
use super::destinations::Destinations;
use crate::queue_type::QueueType;
use crate::refusal::Refusal;

/// The destinations of all bindings.
#[derive(Default, Debug)]
pub(super) struct LocalRandom(Destinations);

/// Refuses binding keys that are not empty, and queues other than classic ones: as in RabbitMQ, the queue
/// must be local, which only classic queues are.
pub(super) fn check_binding(key: &str, to_queue: Option<QueueType>) -> Result<(), Refusal> {
    if !key.is_empty() {
        let text = format!("Non empty binding '{key}' key not permitted");
        return Err(Refusal::precondition_failed(text));
    }
    match to_queue {
        Some(queue_type) if queue_type != QueueType::Classic => {
            let module = queue_type.module();
            let text = format!("Queue type {module} not valid for this exchange type");
            Err(Refusal::precondition_failed(text))
        }
        _ => Ok(()),
    }
}

impl LocalRandom {
    pub(super) fn bind(&mut self, binding: &Binding) {
        self.0.add(binding.destination);
    }

    pub(super) fn unbind(&mut self, binding: &Binding) {
        self.0.remove(binding.destination);
    }

    pub(super) fn route(&self, random: &mut ChaCha12Rng, found: &mut dyn FnMut(Destination)) {
        if self.0.is_empty() {
            return;
        }
        // The bias of a 64-bit remainder is far too small to measure.
        let at = usize::try_from(random.next_u64() % self.0.len() as u64);
        if let Some(destination) = at.ok().and_then(|at| self.0.nth(at)) {
            found(destination);
        }
    }
}
