//! Requests to a replica that are not answered yet.

use std::collections::BTreeMap;

use replica::{RequestId, ShipmentNeed};

/// The requests of a process that are not answered.
#[derive(Default, Debug)]
pub(crate) struct Requests {
    last: u64,
    files: BTreeMap<RequestId, ShipmentNeed>,
}

impl Requests {
    /// A node asks for files.
    pub(crate) fn files(&mut self, need: ShipmentNeed) -> RequestId {
        self.last += 1;
        let id = RequestId(self.last);
        self.files.insert(id, need);
        id
    }

    /// The files that were asked for, once.
    pub(crate) fn take_files(&mut self, id: RequestId) -> ShipmentNeed {
        self.files.remove(&id).expect("a request is answered once")
    }
}
