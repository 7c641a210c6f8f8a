//! Explanations of the settings in force for a queue or an exchange.

use crate::policy::{Explanation, PolicySubject};
use crate::queue::resolved_keys::ResolvedKeys;
use crate::vhost::Vhost;
use crate::vhost::lifecycle::policies::decide_alternate;

impl Vhost {
    /// The settings in force for the queue of that name, each with its source; none if there is no such queue.
    pub fn explain_queue(&self, name: &str) -> Option<Explanation> {
        let queue = self.queue(name)?;
        let keys = ResolvedKeys::of(&queue.arguments, &queue.policies, self.options.queue_defaults);
        let about = PolicySubject::queue(name, queue.kind());
        Some(Explanation::of(self.policies.policies(), &queue.policies, about, keys.iter()))
    }

    /// The settings in force for the exchange of that name, each with its source; none if there is no such
    /// exchange.
    pub fn explain_exchange(&self, name: &str) -> Option<Explanation> {
        let exchange = self.exchange(name)?;
        let policies = self.policies.policies();
        let in_force = policies.for_exchange(name);
        let decision = decide_alternate(exchange, &in_force);
        let decisions = std::iter::once(&decision);
        Some(Explanation::of(policies, &in_force, PolicySubject::exchange(name), decisions))
    }
}
