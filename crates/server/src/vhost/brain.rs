//! The state machine of a vhost on this node: the vhost itself where the node leads it, a replica elsewhere.

use std::fmt;
use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::Vhost;
use broker::refusal::Refusal;
use broker::time::Now;
use management::{ChangeError, ScheduleError};
use storage::Lsn;

use crate::disk::log_replay::LogReplay;
use crate::disk::page_files::PageError;

/// The state machine of a vhost, behind its lock.
#[derive(Debug)]
pub(super) enum Brain {
    /// The node leads the vhost; a node without a cluster always does.
    Leads(Box<Vhost>),
    /// Another node leads, and this one applies the records that the majority has; or the vhost is down, and this is
    /// an empty one.
    Follows(Box<LogReplay>),
}

impl Brain {
    /// The vhost, for readers. That of a replica is complete, but policies and timers take effect at its promotion.
    pub(super) fn vhost(&self) -> &Vhost {
        match self {
            Self::Leads(vhost) => vhost,
            Self::Follows(replica) => replica.vhost(),
        }
    }

    /// The vhost, if this node leads it.
    pub(super) fn leading_mut(&mut self) -> Option<&mut Vhost> {
        match self {
            Self::Leads(vhost) => Some(vhost),
            Self::Follows(_) => None,
        }
    }

    /// The vhost, for measurements, which change nothing else in it.
    pub(super) fn vhost_mut(&mut self) -> &mut Vhost {
        match self {
            Self::Leads(vhost) => vhost,
            Self::Follows(replica) => replica.vhost_mut(),
        }
    }

    /// Makes a vhost of the replica, which has applied everything up to `last` and continues from `now`.
    ///
    /// # Errors
    /// If a page could not be written or read; the replica is lost.
    ///
    /// # Panics
    /// If the node leads already.
    pub(super) fn promote(&mut self, now: Now, last: Lsn) -> Result<(), PageError> {
        let empty = Vhost::new(self.vhost().name(), [0; 32], self.vhost().options());
        let Self::Follows(mut replica) = std::mem::replace(self, Self::Leads(Box::new(empty)))
        else {
            panic!("a vhost is promoted that leads already");
        };
        replica.leader_changed(now.time);
        *self = Self::Leads(Box::new(replica.finish(now, last)?));
        Ok(())
    }

    /// The vhost that clients use.
    ///
    /// # Panics
    /// If another node leads the vhost: clients are in it only while this node does.
    pub(super) fn serving_mut(&mut self) -> &mut Vhost {
        self.leading_mut().expect("a vhost has clients only on the node that leads it")
    }
}

/// Refusal of a change of a vhost that this node does not serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NotLeading {
    /// Name of the vhost.
    pub(crate) vhost: Arc<str>,
    /// Name of the node that leads the vhost, if there is one.
    pub(crate) leader: Option<Arc<str>>,
    /// True if no other node has the vhost, and this one cannot read its files.
    pub(crate) is_down: bool,
    /// True while this node hears a majority of the nodes that have the vhost.
    pub(crate) may_elect: bool,
}

impl fmt::Display for NotLeading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.leader {
            Some(leader) => write!(f, "vhost '{}' is led by node '{leader}'", self.vhost),
            None if self.is_down => write!(f, "vhost '{}' is down", self.vhost),
            None if self.may_elect => write!(f, "vhost '{}' has no leader", self.vhost),
            None => write!(
                f,
                "vhost '{}' has no leader here: this node does not hear a majority of its nodes",
                self.vhost
            ),
        }
    }
}

impl From<NotLeading> for Refusal {
    fn from(problem: NotLeading) -> Self {
        Self::new(ReplyCode::InternalError, problem.to_string())
    }
}

impl From<NotLeading> for ChangeError {
    fn from(problem: NotLeading) -> Self {
        Self::Unable(problem.to_string())
    }
}

impl From<NotLeading> for ScheduleError {
    fn from(problem: NotLeading) -> Self {
        Self::Refused(problem.into())
    }
}
