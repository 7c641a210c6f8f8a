//! Requests to a replica that are not answered yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use replica::{Files, Replica, RequestId, ShipmentNeed, ShipmentRequest, TransferError};
use replication::NodeId;
use storage::{EntryIndex, RealDirectory};
use tokio::sync::oneshot;

use crate::replicas::member_log::MemberLog;

/// The files of a log, for the members of other nodes.
pub(crate) type PreparedShipment = replica::PreparedShipment<RealDirectory>;

/// Takes the result of a transfer.
pub(in crate::replicas) type TransferAnswer = oneshot::Sender<Result<(), TransferError>>;

/// Receives the index of the entry of a barrier; closed without one if this node does not lead any more.
pub(in crate::replicas) type BarrierAnswer = oneshot::Sender<EntryIndex>;

/// The answer to a member that asks for files.
pub(in crate::replicas) type ShipmentAnswer =
    oneshot::Sender<Result<Arc<PreparedShipment>, String>>;

/// A member of another node asks for files.
#[derive(Debug)]
pub(in crate::replicas) struct FilesRequest {
    pub(in crate::replicas) node: NodeId,
    pub(in crate::replicas) need: ShipmentNeed,
    /// Files that the node has asked for before, as long as it leads in the same term.
    pub(in crate::replicas) known: Option<Arc<PreparedShipment>>,
    pub(in crate::replicas) answer: ShipmentAnswer,
}

/// One who waits for files.
#[derive(Debug)]
struct WaitsForFiles {
    known: Option<Arc<PreparedShipment>>,
    answer: ShipmentAnswer,
}

/// Requests that are not answered, by their ids. Whoever waits may be gone when the answer comes.
#[derive(Default, Debug)]
pub(in crate::replicas) struct Answers {
    last: u64,
    transfers: BTreeMap<RequestId, TransferAnswer>,
    barriers: BTreeMap<RequestId, BarrierAnswer>,
    shipments: BTreeMap<RequestId, WaitsForFiles>,
}

impl Answers {
    fn next_id(&mut self) -> RequestId {
        self.last += 1;
        RequestId(self.last)
    }

    /// Waits for the result of a transfer.
    pub(in crate::replicas) fn wait_for_transfer(&mut self, answer: TransferAnswer) -> RequestId {
        let id = self.next_id();
        self.transfers.insert(id, answer);
        id
    }

    /// Waits for a barrier.
    pub(in crate::replicas) fn wait_for_barrier(&mut self, answer: BarrierAnswer) -> RequestId {
        let id = self.next_id();
        self.barriers.insert(id, answer);
        id
    }

    /// Waits for files.
    pub(in crate::replicas) fn wait_for_shipment(
        &mut self,
        request: FilesRequest,
    ) -> ShipmentRequest {
        let FilesRequest { node, need, known, answer } = request;
        let id = self.next_id();
        let member = known.as_ref().map(|known| known.member);
        self.shipments.insert(id, WaitsForFiles { known, answer });
        ShipmentRequest { id, node, need, known: member }
    }

    /// Ends the preparation of files for which nobody waits any more.
    pub(super) fn cancel_shipments(&mut self, replica: &mut Replica<MemberLog>) {
        let gone = self.shipments.extract_if(.., |_, waits| waits.answer.is_closed());
        gone.for_each(|(id, _)| replica.cancel_shipment(id));
    }

    pub(super) fn transferred(&mut self, id: RequestId, result: Result<(), TransferError>) {
        if let Some(answer) = self.transfers.remove(&id) {
            let _ = answer.send(result);
        }
    }

    pub(super) fn barrier(&mut self, id: RequestId, index: Option<EntryIndex>) {
        if let (Some(answer), Some(index)) = (self.barriers.remove(&id), index) {
            let _ = answer.send(index);
        }
    }

    pub(super) fn shipment(&mut self, id: RequestId, files: Result<Files<RealDirectory>, String>) {
        let Some(WaitsForFiles { known, answer }) = self.shipments.remove(&id) else { return };
        let files = files.map(|files| match files {
            Files::Known => known.expect("files are known if a member was named"),
            Files::New(prepared) => Arc::from(prepared),
        });
        let _ = answer.send(files);
    }
}
