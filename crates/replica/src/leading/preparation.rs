//! The leader prepares the files of its log for a member that lacks entries, or is replaced.

use replication::{GroupPlacement, Member, MemberId, MembershipChange, ReplacementStep, TurnClock};
use storage::{Applier, Directory, EntryIndex, HardState, LogError, Shipment};

use crate::log::GroupLog;
use crate::request::{ShipmentNeed, ShipmentRequest};

/// Files for a member, and the state with which it begins.
#[derive(Debug)]
pub struct PreparedShipment<D: Directory> {
    /// The files.
    pub shipment: Shipment<D>,
    /// The member that they are for.
    pub member: MemberId,
    /// The hard state of the member behind them.
    pub state: HardState,
}

/// The answer to a node that asks for files.
#[derive(Debug)]
pub enum Files<D: Directory> {
    /// The files that the node has had before.
    Known,
    /// Other files.
    New(Box<PreparedShipment<D>>),
}

/// A shipment that is being prepared.
#[derive(Debug)]
pub(crate) struct Preparation {
    pub(crate) request: ShipmentRequest,
    /// The last entry of the sealed files.
    sealed: Option<EntryIndex>,
}

/// The next step of a preparation.
#[derive(Debug)]
pub(crate) enum Step<D: Directory> {
    /// Wait for something to happen.
    Waits,
    /// A change of the members was proposed, with this entry.
    Changed(MembershipChange, EntryIndex),
    /// The request is answered.
    Over(Result<Files<D>, String>),
}

impl Preparation {
    pub(crate) fn new(request: ShipmentRequest) -> Self {
        Self { request, sealed: None }
    }

    /// Does what can be done now, at a leader between two turns.
    ///
    /// # Errors
    /// The log cannot be written any more.
    pub(crate) fn step<L: GroupLog>(
        &mut self,
        member: &mut Member<L>,
        applier: &Applier<L::Directory>,
        clock: &TurnClock<'_>,
        placed: &impl GroupPlacement,
    ) -> Result<Step<L::Directory>, LogError> {
        let ShipmentRequest { node, need, .. } = self.request;
        let refuse = |why: &str| Ok(Step::Over(Err(why.to_owned())));
        if placed.first_incarnation(node).is_none() {
            return refuse("the node is not one of the cluster");
        }
        let to = match need {
            ShipmentNeed::Replacement => {
                let Some(incarnations) = placed.incarnations(node) else {
                    return refuse("the vhost is on other nodes");
                };
                match member.replacement(node, &incarnations) {
                    ReplacementStep::Ready(to) => to,
                    ReplacementStep::Wait => return Ok(Step::Waits),
                    ReplacementStep::Refused(why) => return refuse(why),
                    ReplacementStep::Change(change) => return Ok(changed(member, change, clock)),
                }
            }
            ShipmentNeed::Behind => {
                let (voters, learners) = member.members();
                let of_node = voters.into_iter().chain(learners).filter(|it| it.node() == node);
                match of_node.max() {
                    Some(to) => to,
                    None => return refuse("the node has no member of the group"),
                }
            }
        };
        if self.request.known.take() == Some(to) {
            return Ok(Step::Over(Ok(Files::Known)));
        }
        let log = member.log_mut().replicated_mut();
        let sealed = match self.sealed {
            Some(sealed) => sealed,
            None => match log.seal() {
                Ok(sealed) => *self.sealed.insert(sealed),
                Err(error) if error.is_full() => return refuse("the disk of the leader is full"),
                Err(error) => return Err(error),
            },
        };
        let log = member.log().replicated();
        let shipment = match need {
            // The log has the entries behind. A new leader commits nothing, perhaps, before this member has them.
            ShipmentNeed::Behind => match log.sealed_up_to_applied() {
                Ok(shipment) => shipment,
                Err(error) => return refuse(&error.to_string()),
            },
            ShipmentNeed::Replacement if applier.applied() < sealed => return Ok(Step::Waits),
            ShipmentNeed::Replacement => log.sealed_up_to(sealed),
        };
        let Some(shipment) = shipment else {
            // A compaction has considered more meanwhile, or the log has grown.
            self.sealed = None;
            return Ok(Step::Waits);
        };
        let state = member.state_behind_files(shipment.plan().index);
        Ok(Step::Over(Ok(Files::New(Box::new(PreparedShipment { shipment, member: to, state })))))
    }
}

fn changed<L: GroupLog>(
    member: &mut Member<L>,
    change: MembershipChange,
    clock: &TurnClock<'_>,
) -> Step<L::Directory> {
    let Some(axis) = member.axis() else { return Step::Waits };
    match member.change_members(change, axis.at(clock.now.monotonic_us)) {
        Ok(index) => Step::Changed(change, index),
        Err(_) => Step::Waits,
    }
}
