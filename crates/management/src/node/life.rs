//! The node's life.

use super::Change;

/// What a node can be told to do with itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LifeAction {
    /// End the process, as a signal does.
    Stop,
    /// Serve no clients; the process stays.
    StopApp,
    /// Serve clients again.
    StartApp,
    /// Forget everything: vhosts, messages, users.
    Reset,
    /// Accept no AMQP clients; those that are there stay.
    SuspendListeners,
    /// Accept AMQP clients again.
    ResumeListeners,
}

/// Why it does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LifeRefused {
    /// It must be stopped for that.
    MustBeStopped,
    /// The disk refuses; what it says.
    Failed(String),
}

/// What a node that runs, or one that is stopped, can be told.
pub trait Life {
    /// Does it. What ends the service of this API is only begun when this ends, so that whoever asked
    /// can be answered.
    fn act(&self, action: LifeAction) -> Change<'_, Result<(), LifeRefused>>;
}
