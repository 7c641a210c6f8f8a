//! Requests to a replica that are not answered yet.

use std::collections::BTreeMap;

use replica::{RequestId, ShipmentNeed};

/// The requests of a process that are not answered.
#[derive(Default, Debug)]
pub(crate) struct Requests {
    last: u64,
    files: BTreeMap<RequestId, ShipmentNeed>,
    /// Barriers, each with the number of entries that were committed when it was asked for.
    barriers: BTreeMap<RequestId, u64>,
}

impl Requests {
    fn next_id(&mut self) -> RequestId {
        self.last += 1;
        RequestId(self.last)
    }

    /// A backup asks for a barrier while so many entries are committed.
    pub(crate) fn barrier(&mut self, committed: u64) -> RequestId {
        let id = self.next_id();
        self.barriers.insert(id, committed);
        id
    }

    /// The entries that were committed when the barrier was asked for, once.
    pub(crate) fn take_barrier(&mut self, id: RequestId) -> u64 {
        self.barriers.remove(&id).expect("a barrier is answered once")
    }

    /// A node asks for files.
    pub(crate) fn files(&mut self, need: ShipmentNeed) -> RequestId {
        let id = self.next_id();
        self.files.insert(id, need);
        id
    }

    /// The files that were asked for, once.
    pub(crate) fn take_files(&mut self, id: RequestId) -> ShipmentNeed {
        self.files.remove(&id).expect("a request is answered once")
    }
}
