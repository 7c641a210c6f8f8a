//! The contents of a vhost on this node: the vhost itself where the node leads it, a replay elsewhere.

use broker::time::Now;
use broker::{Lsn, Vhost};

use super::LogReplay;
use crate::pages::ReplayPages;

/// The contents of a vhost on this node.
#[derive(Debug)]
pub enum Contents<P> {
    /// The node leads the vhost; a node without a cluster always does.
    Leads(Box<Vhost>),
    /// Another node leads, and this one applies the records that the majority has; or the vhost is down, and this is
    /// an empty one.
    Follows(Box<LogReplay<P>>),
    /// The contents are given up: an empty vhost, for threads and clients that come late.
    GivenUp(Box<Vhost>),
}

impl<P: ReplayPages> Contents<P> {
    /// The vhost, for readers. That of a replica is complete, but policies and timers take effect at its promotion.
    pub(super) fn vhost(&self) -> &Vhost {
        match self {
            Self::Leads(vhost) | Self::GivenUp(vhost) => vhost,
            Self::Follows(replay) => replay.vhost(),
        }
    }

    /// The vhost, for measurements, which change nothing else in it.
    pub(super) fn vhost_mut(&mut self) -> &mut Vhost {
        match self {
            Self::Leads(vhost) | Self::GivenUp(vhost) => vhost,
            Self::Follows(replay) => replay.vhost_mut(),
        }
    }

    /// The vhost that clients use: none while this node follows; an empty one once it is given up.
    pub(super) fn serving_mut(&mut self) -> Option<&mut Vhost> {
        match self {
            Self::Leads(vhost) | Self::GivenUp(vhost) => Some(vhost),
            Self::Follows(_) => None,
        }
    }

    /// Takes the contents away, and leaves an empty vhost.
    pub(super) fn give_up(&mut self) -> Self {
        let vhost = self.vhost();
        let empty = Vhost::new(vhost.name(), [0; 32], vhost.options());
        std::mem::replace(self, Self::GivenUp(Box::new(empty)))
    }

    /// Makes a vhost of the replay, which has applied everything up to `last` and continues from `now`.
    ///
    /// # Errors
    /// If a page could not be written or read; the contents are lost.
    ///
    /// # Panics
    /// If the node does not follow.
    pub(super) fn promote(&mut self, now: Now, last: Lsn) -> Result<&mut Vhost, P::Error> {
        let Self::Follows(mut replay) = self.give_up() else {
            panic!("a vhost is promoted that leads already");
        };
        replay.leader_changed(now.time);
        *self = Self::Leads(Box::new(replay.finish(now, storage::Lsn(last.0))?));
        Ok(self.vhost_mut())
    }
}
