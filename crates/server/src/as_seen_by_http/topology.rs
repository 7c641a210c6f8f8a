//! What is declared in vhosts.

use management::{BindingDetails, BindingsOf, ConsumerDetails, ExchangeDetails, QueueDetails};

use crate::node::Node;

impl management::Topology for Node {
    fn queues(&self, vhost: &str) -> Option<Vec<QueueDetails>> {
        Some(self.vhosts.get(vhost)?.with(|v, _| QueueDetails::all(v)))
    }

    fn queue(&self, vhost: &str, name: &str) -> Option<(QueueDetails, Vec<ConsumerDetails>)> {
        self.vhosts.get(vhost)?.with(|v, _| QueueDetails::one(v, name))
    }

    fn exchanges(&self, vhost: &str) -> Option<Vec<ExchangeDetails>> {
        Some(self.vhosts.get(vhost)?.with(|v, _| ExchangeDetails::all(v)))
    }

    fn exchange(&self, vhost: &str, name: &str) -> Option<ExchangeDetails> {
        self.vhosts.get(vhost)?.with(|v, _| ExchangeDetails::one(v, name))
    }

    fn bindings(&self, vhost: &str, which: BindingsOf<'_>) -> Option<Vec<BindingDetails>> {
        self.vhosts.get(vhost)?.with(|v, _| BindingDetails::of(v, which))
    }
}
