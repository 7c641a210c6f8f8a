//! News of a vhost for the replicator, from other threads.

use replication::QuarantineReason;
use storage::Term;

/// News of a vhost.
#[derive(Debug)]
pub(super) enum Report {
    /// The replica has become the vhost, in this term.
    Promoted(Term),
    /// The replica must not be used.
    Unusable(QuarantineReason),
    /// The next file of the log is there, or cannot be created.
    FilePrepared,
}
