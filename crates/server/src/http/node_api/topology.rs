//! What is declared in vhosts.

use management::{BindingDetails, BindingsOf, ConsumerDetails, ExchangeDetails, QueueDetails};

use crate::node::Node;

impl management::Topology for Node {
    fn queues(&self, vhost: &str) -> Option<Vec<QueueDetails>> {
        Some(self.vhosts.get(vhost)?.read(QueueDetails::all))
    }

    fn queue(&self, vhost: &str, name: &str) -> Option<(QueueDetails, Vec<ConsumerDetails>)> {
        self.vhosts.get(vhost)?.read(|v, client_of| QueueDetails::one(v, name, client_of))
    }

    fn exchanges(&self, vhost: &str) -> Option<Vec<ExchangeDetails>> {
        Some(self.vhosts.get(vhost)?.read(|v, _| ExchangeDetails::all(v)))
    }

    fn exchange(&self, vhost: &str, name: &str) -> Option<ExchangeDetails> {
        self.vhosts.get(vhost)?.read(|v, _| ExchangeDetails::one(v, name))
    }

    fn bindings(&self, vhost: &str, which: BindingsOf<'_>) -> Option<Vec<BindingDetails>> {
        Some(self.vhosts.get(vhost)?.read(|v, _| BindingDetails::of(v, which)))
    }
}
