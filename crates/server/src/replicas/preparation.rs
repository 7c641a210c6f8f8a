//! The leader prepares the files of its log for a member that lacks entries, or is replaced.

use std::sync::Arc;

use replication::{
    GroupPlacement as _, Member, MemberId, MembershipChange, NodeId, ReplacementStep, TurnClock,
};
use storage::{Applier, EntryIndex, HardState, LogError, RealDirectory, Shipment};
use tokio::sync::oneshot;

use super::member_log::MemberLog;
use super::nodes::PlacedNodes;

/// The files that a member asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShipmentNeed {
    /// The member has a log, which ends before the first entry that the leader still has.
    Behind,
    /// The replica is lost, or must not be used any more: its next incarnation gets the files.
    Replacement,
}

/// Files for a member, and the state with which it begins.
#[derive(Debug)]
pub(crate) struct PreparedShipment {
    pub(crate) shipment: Shipment<RealDirectory>,
    pub(crate) member: MemberId,
    pub(crate) state: HardState,
}

/// The answer to a member that asks for files.
pub(crate) type ShipmentAnswer = oneshot::Sender<Result<Arc<PreparedShipment>, String>>;

/// A member asks for files.
#[derive(Debug)]
pub(super) struct ShipmentRequest {
    pub(super) node: NodeId,
    pub(super) need: ShipmentNeed,
    /// Files that the node has asked for before, as long as it leads in the same term.
    pub(super) known: Option<Arc<PreparedShipment>>,
    pub(super) answer: ShipmentAnswer,
}

/// A shipment that is being prepared.
#[derive(Debug)]
pub(super) struct Preparation {
    request: ShipmentRequest,
    /// The last entry of the sealed files.
    sealed: Option<EntryIndex>,
}

/// The next step of a preparation.
#[derive(Debug)]
pub(super) enum Prepared {
    /// Wait for something to happen.
    Waits(Preparation),
    /// A change of the members was proposed.
    Changed(Preparation),
    /// The request is answered, or nobody waits for the answer.
    Over,
}

impl Preparation {
    pub(super) fn new(request: ShipmentRequest) -> Self {
        Self { request, sealed: None }
    }

    /// The node that asks.
    pub(super) fn node(&self) -> NodeId {
        self.request.node
    }

    /// The files that are asked for.
    pub(super) fn need(&self) -> ShipmentNeed {
        self.request.need
    }

    /// Does what can be done now, at a leader between two turns.
    ///
    /// # Errors
    /// The log cannot be written any more.
    pub(super) fn step(
        mut self,
        member: &mut Member<MemberLog>,
        applier: &Applier<RealDirectory>,
        clock: &TurnClock<'_>,
        placed: &PlacedNodes<'_>,
    ) -> Result<Prepared, LogError> {
        if self.request.answer.is_closed() {
            return Ok(Prepared::Over);
        }
        let node = self.request.node;
        if placed.first_incarnation(node).is_none() {
            return Ok(self.refuse("the node is not one of the cluster"));
        }
        let to = match self.request.need {
            ShipmentNeed::Replacement => {
                let Some(incarnations) = placed.incarnations(node) else {
                    return Ok(self.refuse("the vhost is on other nodes"));
                };
                match member.replacement(node, &incarnations) {
                    ReplacementStep::Ready(to) => to,
                    ReplacementStep::Wait => return Ok(Prepared::Waits(self)),
                    ReplacementStep::Refused(why) => return Ok(self.refuse(why)),
                    ReplacementStep::Change(change) => {
                        return Ok(self.change(member, change, clock));
                    }
                }
            }
            ShipmentNeed::Behind => {
                let (voters, learners) = member.members();
                let of_node = voters.into_iter().chain(learners).filter(|it| it.node() == node);
                match of_node.max() {
                    Some(to) => to,
                    None => return Ok(self.refuse("the node has no member of the group")),
                }
            }
        };
        if let Some(known) = self.request.known.take().filter(|known| known.member == to) {
            // Whoever asked may be gone.
            let _ = self.request.answer.send(Ok(known));
            return Ok(Prepared::Over);
        }
        let sealed = match self.sealed {
            Some(sealed) => sealed,
            None => match member.log_mut().seal() {
                Ok(sealed) => *self.sealed.insert(sealed),
                Err(error) if error.is_full() => {
                    return Ok(self.refuse("the disk of the leader is full"));
                }
                Err(error) => return Err(error),
            },
        };
        let shipment = match self.request.need {
            // The log has the entries behind. A new leader commits nothing, perhaps, before this member has them.
            ShipmentNeed::Behind => match member.log().sealed_up_to_applied() {
                Ok(shipment) => shipment,
                Err(error) => return Ok(self.refuse(&error.to_string())),
            },
            ShipmentNeed::Replacement if applier.applied() < sealed => {
                return Ok(Prepared::Waits(self));
            }
            ShipmentNeed::Replacement => member.log().sealed_up_to(sealed),
        };
        let Some(shipment) = shipment else {
            // A compaction has considered more meanwhile, or the log has grown.
            self.sealed = None;
            return Ok(Prepared::Waits(self));
        };
        let state = member.state_behind_files(shipment.plan().index);
        // Whoever asked may be gone.
        let _ = self.request.answer.send(Ok(Arc::new(PreparedShipment {
            shipment,
            member: to,
            state,
        })));
        Ok(Prepared::Over)
    }

    fn change(
        self,
        member: &mut Member<MemberLog>,
        change: MembershipChange,
        clock: &TurnClock<'_>,
    ) -> Prepared {
        let Some(axis) = member.axis() else { return Prepared::Waits(self) };
        match member.change_members(change, axis.at(clock.now.monotonic_us)) {
            Ok(index) => {
                let (change, entry) = (format!("{change:?}"), index.0);
                tracing::info!(change, entry, "the members of a group change");
                Prepared::Changed(self)
            }
            Err(_) => Prepared::Waits(self),
        }
    }

    fn refuse(self, why: &str) -> Prepared {
        // Whoever asked may be gone.
        let _ = self.request.answer.send(Err(why.to_owned()));
        Prepared::Over
    }
}
