//! The replicas of this node that are to be rebuilt.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use replica::ShipmentNeed;
use replication::NodeId;

use crate::disk::vhost_files::VhostId;

/// A replica that is to be rebuilt, and the node that may lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RebuildRequest {
    pub(crate) need: ShipmentNeed,
    pub(crate) leader: Option<NodeId>,
}

#[derive(Default, Debug)]
struct State {
    wanted: BTreeMap<VhostId, RebuildRequest>,
    vhosts_take_part: bool,
    is_stopping: bool,
}

/// The replicas that are to be rebuilt: the replicator adds them, and the thread of shipments takes one after the other.
#[derive(Default, Debug)]
pub(crate) struct RebuildQueue {
    state: Mutex<State>,
    changed: Condvar,
}

impl RebuildQueue {
    /// Lets a replica be rebuilt. A replica that runs goes on until all files are there, if it is only behind.
    pub(crate) fn want(&self, vhost: VhostId, need: ShipmentNeed, leader: Option<NodeId>) {
        let mut state = self.state.lock();
        let wanted = state.wanted.entry(vhost).or_insert(RebuildRequest { need, leader });
        if need == ShipmentNeed::Replacement {
            wanted.need = need;
        }
        wanted.leader = leader.or(wanted.leader);
        self.changed.notify_one();
    }

    /// The vhosts may be rebuilt from now on: their ids are those of the cluster. The metadata may always be.
    pub(crate) fn take_part(&self) {
        self.state.lock().vhosts_take_part = true;
        self.changed.notify_one();
    }

    /// Makes the thread end.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.changed.notify_one();
    }

    /// True once the node stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    /// Waits for a replica that may be rebuilt, and takes it: the next one behind `last` in turn, so that one that fails
    /// does not stop the others. None once the node stops.
    pub(crate) fn next(&self, last: Option<VhostId>) -> Option<(VhostId, RebuildRequest)> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            let takes_part = state.vhosts_take_part;
            let may_be_rebuilt = |vhost: &&VhostId| takes_part || **vhost == VhostId::METADATA;
            let mut ids = state.wanted.keys().filter(may_be_rebuilt);
            let first = ids.clone().next();
            let next = ids.find(|vhost| last.is_none_or(|last| **vhost > last)).or(first).copied();
            if let Some(next) = next {
                // What is wanted from now on may be another replica than the one that comes.
                return state.wanted.remove_entry(&next);
            }
            self.changed.wait(&mut state);
        }
    }

    /// Forgets that a replica was wanted: the one that comes is in its place.
    pub(crate) fn forget(&self, vhost: VhostId) {
        self.state.lock().wanted.remove(&vhost);
    }

    /// Waits until something is wanted or the node stops, but not for longer than `time`.
    pub(crate) fn pause(&self, time: Duration) {
        let mut state = self.state.lock();
        if !state.is_stopping {
            self.changed.wait_for(&mut state, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(need: ShipmentNeed, leader: Option<u64>) -> RebuildRequest {
        RebuildRequest { need, leader: leader.and_then(NodeId::new) }
    }

    #[test]
    fn vhosts_wait_until_they_take_part_and_the_metadata_do_not() {
        let queue = RebuildQueue::default();
        queue.want(VhostId(3), ShipmentNeed::Behind, None);
        queue.want(VhostId::METADATA, ShipmentNeed::Replacement, None);
        let of_metadata = wanted(ShipmentNeed::Replacement, None);
        assert_eq!(queue.next(None), Some((VhostId::METADATA, of_metadata)));
        queue.take_part();
        let of_vhost = wanted(ShipmentNeed::Behind, None);
        assert_eq!(queue.next(Some(VhostId::METADATA)), Some((VhostId(3), of_vhost)));
        queue.stop();
        assert_eq!(queue.next(None), None);
    }

    #[test]
    fn replicas_come_in_turn_and_the_greater_need_counts() {
        let queue = RebuildQueue::default();
        queue.take_part();
        for id in [4, 2, 9] {
            queue.want(VhostId(id), ShipmentNeed::Behind, None);
        }
        queue.want(VhostId(4), ShipmentNeed::Replacement, NodeId::new(7));
        queue.want(VhostId(4), ShipmentNeed::Behind, None);
        let next = |last| queue.next(last).map(|(vhost, wanted)| (vhost.0, wanted));
        assert_eq!(next(Some(VhostId(2))), Some((4, wanted(ShipmentNeed::Replacement, Some(7)))));
        assert_eq!(next(Some(VhostId(9))), Some((2, wanted(ShipmentNeed::Behind, None))));
        queue.want(VhostId(2), ShipmentNeed::Behind, None);
        queue.forget(VhostId(2));
        assert_eq!(next(Some(VhostId(2))), Some((9, wanted(ShipmentNeed::Behind, None))));
    }
}
