//! Planned changes of the leader of a vhost, as the replicator's thread takes a replica through them.

use replication::{HandOver, HandOverStep, Member, NodeId};
use tokio::sync::oneshot;

use super::member_log::MemberLog;
use super::target::{HandOverTask, ReplicaTarget};

/// Reason for which a node leads on.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransferError {
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

/// Takes the result of a transfer.
pub(super) type TransferAnswer = oneshot::Sender<Result<(), TransferError>>;

/// A wish to transfer the lead: to this node, or to the one that is most up to date.
#[derive(Debug)]
pub(super) struct TransferRequest {
    pub(super) to: Option<NodeId>,
    pub(super) answer: TransferAnswer,
}

/// A transfer that is under way.
#[derive(Debug)]
pub(super) struct Transfer {
    hand_over: HandOver,
    /// The next task of the vhost.
    task: Option<HandOverTask>,
    answer: TransferAnswer,
}

/// The state of a transfer after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
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
    /// Begins a transfer from a member that leads; answers the request if it cannot be.
    pub(super) fn begin(member: &Member<MemberLog>, request: TransferRequest) -> Option<Self> {
        let TransferRequest { to, answer } = request;
        let successors = member.successors();
        let to = successors.into_iter().find(|member| to.is_none_or(|to| to == member.node()));
        let Some(hand_over) = to.and_then(|to| member.hand_over(Some(to))) else {
            // Whoever asked may be gone.
            let _ = answer.send(Err(TransferError::NoSuccessor));
            return None;
        };
        Some(Self { hand_over, task: Some(HandOverTask::Halt), answer })
    }

    /// The node that is to lead.
    pub(super) fn to(&self) -> NodeId {
        self.hand_over.to().node()
    }

    /// Does what can be done now. `is_quiet` if all that the vhost has logged is committed.
    pub(super) fn step(
        &mut self,
        member: &mut Member<MemberLog>,
        target: &dyn ReplicaTarget,
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
        if !target.hand_over(task) {
            return Progress::Locked;
        }
        self.task = None;
        match task {
            HandOverTask::Halt | HandOverTask::KeepLeading => Progress::Logged,
            HandOverTask::Resume => Progress::Over,
        }
    }

    /// The transfer is over, with this result.
    pub(super) fn end(self, result: Result<(), TransferError>) {
        // Whoever asked may be gone.
        let _ = self.answer.send(result);
    }
}
