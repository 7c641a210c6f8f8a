//! Planned changes of the leader of a vhost.

use replication::{HandOver, HandOverStep, Member, NodeId};

use crate::log::GroupLog;
use crate::request::RequestId;
use crate::vhost::{HandOverTask, Vhost};

/// Reason for which a node leads on.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferError {
    /// The node does not lead the vhost, or has lost the lead otherwise.
    #[error("this node does not lead the vhost")]
    NotLeading,
    /// Another transfer is under way.
    #[error("the lead is being transferred already")]
    UnderWay,
    /// No other node, or not the one that was asked for, can lead.
    #[error("no such node has a replica that can lead")]
    NoSuccessor,
    /// The other node did not begin to lead in time.
    #[error("the other node did not take the lead in time")]
    TooLate,
}

/// A transfer that is under way.
#[derive(Debug)]
pub(crate) struct Transfer {
    hand_over: HandOver,
    /// The next task of the vhost.
    task: Option<HandOverTask>,
    /// None if nobody waits for the result.
    pub(crate) request: Option<RequestId>,
}

/// The state of a transfer after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// Wait for something to happen.
    Waits,
    /// The vhost has logged something.
    Logged,
    /// The vhost's lock is held for long.
    Locked,
    /// The node leads on.
    Over,
}

impl Transfer {
    /// Begins a transfer from a member that leads: to a node, or to the one that is most up to date. None if no such node
    /// can lead.
    pub(crate) fn begin<L: GroupLog>(
        member: &Member<L>,
        to: Option<NodeId>,
        request: Option<RequestId>,
    ) -> Option<Self> {
        let successors = member.successors();
        let to = successors.into_iter().find(|member| to.is_none_or(|to| to == member.node()))?;
        let hand_over = member.hand_over(Some(to))?;
        Some(Self { hand_over, task: Some(HandOverTask::Halt), request })
    }

    /// The node that is to lead.
    pub(crate) fn to(&self) -> NodeId {
        self.hand_over.to().node()
    }

    /// Does what can be done now. `is_quiet` if all that the vhost has logged is committed.
    pub(crate) fn step<L: GroupLog>(
        &mut self,
        member: &mut Member<L>,
        vhost: &mut impl Vhost,
        is_quiet: bool,
    ) -> Progress {
        if self.task.is_none() {
            self.task = match self.hand_over.step(member, is_quiet) {
                HandOverStep::Wait => None,
                HandOverStep::KeepLeading => Some(HandOverTask::KeepLeading),
                HandOverStep::Resume => Some(HandOverTask::Resume),
            };
        }
        let Some(task) = self.task else { return Progress::Waits };
        if !vhost.hand_over(task) {
            return Progress::Locked;
        }
        self.task = None;
        match task {
            HandOverTask::Halt | HandOverTask::KeepLeading => Progress::Logged,
            HandOverTask::Resume => Progress::Over,
        }
    }
}
