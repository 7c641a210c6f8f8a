//! Why queues and exchanges are as they are.

use management::Explained;

use crate::node::Node;

impl management::Explain for Node {
    fn explain_queue(&self, vhost: &str, name: &str) -> Option<Explained> {
        self.vhosts.get(vhost)?.with(|v, _| {
            let kind = v.queue(name)?.kind().as_str();
            Some(Explained { kind, explanation: v.explain_queue(name)? })
        })
    }

    fn explain_exchange(&self, vhost: &str, name: &str) -> Option<Explained> {
        self.vhosts.get(vhost)?.with(|v, _| {
            let kind = v.exchange(name)?.kind.as_str();
            Some(Explained { kind, explanation: v.explain_exchange(name)? })
        })
    }
}
