//! The news of a replica in the log of the broker.

use replica::Event;

/// Logs an event of a vhost.
pub(super) fn log(vhost: &str, event: &Event) {
    match event {
        Event::Role(role) => tracing::debug!(vhost, ?role, "role of the member"),
        Event::AxisContinued(origin) => {
            let origin = format!("{origin:?}");
            tracing::info!(vhost, origin, "the axis of time is continued");
        }
        Event::Serves(term) => tracing::info!(vhost, term = term.0, "this node leads the vhost"),
        Event::MembersChange(change, index) => {
            let (change, entry) = (format!("{change:?}"), index.0);
            tracing::info!(vhost, change, entry, "the members of a group change");
        }
        Event::ForgottenLeaves(member) => {
            tracing::info!(vhost, %member, "a member is removed: its node is forgotten");
        }
        Event::MovedLeaves(member) => {
            tracing::info!(vhost, %member, "a member is removed: the vhost is on other nodes");
        }
        Event::Votes(member) => {
            tracing::info!(vhost, %member, "a rebuilt member votes from now on");
        }
        Event::LeadTransferred => tracing::info!(vhost, "the lead of the vhost is transferred"),
        Event::TransferTooLate(to) => tracing::warn!(
            vhost,
            to = to.get(),
            "the other node did not take the lead in time; this node leads on"
        ),
        Event::LeadLost => tracing::warn!(vhost, "this node does not lead the vhost any more"),
        Event::Quarantined(why) => tracing::error!(
            vhost,
            "the replica of this node must be rebuilt and takes no part in the vhost: {why}"
        ),
        Event::DiskFull(error) => tracing::error!(
            vhost,
            "the disk is full, and so is the reserve: {error}; this node takes no part in the vhost until there is room"
        ),
        Event::DiskHasRoom => tracing::info!(vhost, "the disk has room again"),
        Event::StandsStill(committed) => tracing::error!(
            vhost,
            committed = committed.0,
            "nothing is confirmed although work waits for it"
        ),
        Event::StandsStillTooLong(committed) => tracing::error!(
            vhost,
            committed = committed.0,
            "nothing was confirmed for too long although work waits for it: this node gives up the lead"
        ),
        Event::Proposed(_) | Event::Offered(..) | Event::TransferBegins(_) => {}
    }
}
