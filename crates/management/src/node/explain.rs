//! Why things are as they are, and how they would be.

use broker::{DryRun, Explanation, PolicyChange, PolicyKind};

/// What is in force for something, and why.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The type of the queue or exchange.
    pub kind: &'static str,
    /// Its settings.
    pub explanation: Explanation,
}

/// What is in force for queues and exchanges, and why.
pub trait Explain {
    /// For a queue, if there is one of that name in a vhost of that name.
    fn explain_queue(&self, vhost: &str, name: &str) -> Option<Explained>;

    /// For an exchange, if there is one of that name in a vhost of that name.
    fn explain_exchange(&self, vhost: &str, name: &str) -> Option<Explained>;

    /// What a change of the policies of a vhost would do now, if there is one of that name, and in it
    /// the policy if that is to be removed.
    fn dry_run(&self, vhost: &str, kind: PolicyKind, change: PolicyChange) -> Option<DryRun>;
}
