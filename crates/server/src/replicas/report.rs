//! News of a vhost for the replicator, from other threads.

use storage::Term;

/// News of a vhost.
#[derive(Debug)]
pub(super) enum Report {
    /// The replica has become the vhost, in this term.
    Promoted(Term),
    /// The replica differs from that of the leader.
    Diverged(String),
    /// The next file of the log is there, or cannot be created.
    FilePrepared,
}
