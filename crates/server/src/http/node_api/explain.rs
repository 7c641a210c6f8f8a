//! Why queues and exchanges are as they are, and how they would be.

use broker::{DryRun, PolicyChange, PolicyKind};
use management::Explained;

use crate::node::Node;

impl management::Explain for Node {
    fn explain_queue(&self, vhost: &str, name: &str) -> Option<Explained> {
        self.vhosts.get(vhost)?.write(|v, _| {
            let kind = v.queue(name)?.kind().as_str();
            Some(Explained { kind, explanation: v.explain_queue(name)? })
        })
    }

    fn explain_exchange(&self, vhost: &str, name: &str) -> Option<Explained> {
        self.vhosts.get(vhost)?.write(|v, _| {
            let kind = v.exchange(name)?.kind.as_str();
            Some(Explained { kind, explanation: v.explain_exchange(name)? })
        })
    }

    fn dry_run(&self, vhost: &str, kind: PolicyKind, change: PolicyChange) -> Option<DryRun> {
        self.vhosts.get(vhost)?.write(|v, now| v.dry_run(now, kind, change))
    }
}
