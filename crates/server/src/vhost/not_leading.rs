//! Refusal of a change of a vhost that this node does not serve.

use std::fmt;
use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;

use crate::requests::{ChangeError, ScheduleError};

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
