//! Start and stop of the node.

/// A command to the node about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LifecycleAction {
    /// End the process, as a signal does.
    Stop,
    /// Serve no clients; the process stays.
    StopApp,
    /// Serve clients again.
    StartApp,
    /// Leave the cluster, if there is one, and delete all vhosts, messages and users.
    Reset,
    /// Delete them without a word to the cluster.
    ForceReset,
    /// Accept no AMQP clients; connected ones stay.
    SuspendListeners,
    /// Accept AMQP clients again.
    ResumeListeners,
    /// Accept no AMQP clients, and let other nodes lead the vhosts.
    Drain,
    /// Take that back.
    Revive,
    /// Join the cluster of the named node, in the form `NAME@HOST` or `NAME@HOST:PORT`.
    JoinCluster(String),
    /// Go on without the other nodes of the cluster, whose majority is lost for good.
    StandAlone,
}

/// The reason why the action was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LifecycleError {
    /// The node must be stopped first.
    MustBeStopped,
    /// The disk failed; the text is the disk's error.
    Failed(String),
    /// The node cannot do that now; a sentence for the user.
    Refused(String),
}
