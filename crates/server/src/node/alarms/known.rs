//! The alarms that a node knows of: its own, those of the other nodes, and the one that blocks publishers.

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::membership::ids::NodeId;
use crate::node::alarms::alarm::Alarm;
use crate::node::alarms::limits::AlarmLimits;
use crate::node::alarms::shortage::Shortage;
use crate::node::alarms::voters::VoterAlarms;

/// The alarms that a node knows of.
#[derive(Debug)]
pub(crate) struct Alarms {
    /// The alarm that blocks publishers, for every task to watch: that of this node, and those of the nodes that vote with
    /// it.
    pub(crate) current: watch::Sender<Option<Alarm>>,
    pub(super) known: Mutex<KnownAlarms>,
    /// Told when another node has told a change of its alarm.
    pub(super) changed_elsewhere: Notify,
    pub(crate) limits: AlarmLimits,
}

/// The alarms by node.
#[derive(Default, Debug)]
pub(super) struct KnownAlarms {
    /// The memory of this node.
    pub(super) memory: Shortage,
    /// The disk of this node.
    pub(super) disk: Shortage,
    /// Of the other nodes of the cluster.
    pub(super) voters: VoterAlarms,
}

impl KnownAlarms {
    /// The alarm of this node.
    pub(super) fn own(&self) -> Option<Alarm> {
        Alarm::of(self.memory.is_on(), self.disk.is_on())
    }
}

impl Alarms {
    /// Creates the state without an alarm.
    pub(crate) fn new(limits: AlarmLimits) -> Self {
        Self {
            current: watch::Sender::new(None),
            known: Mutex::default(),
            changed_elsewhere: Notify::new(),
            limits,
        }
    }

    /// The alarm of this node. Other nodes are told this one, never [`current`](Self::current): else two nodes would keep
    /// up each other's alarm.
    pub(crate) fn own(&self) -> Option<Alarm> {
        self.known.lock().own()
    }

    /// The part of the alarm of another node that blocks publishers here.
    pub(crate) fn counting_of(&self, node: NodeId) -> Option<Alarm> {
        self.known.lock().voters.counting_of(node)
    }

    /// Looks at the alarms again, because another node has told a change.
    pub(crate) fn note_change_elsewhere(&self) {
        self.changed_elsewhere.notify_one();
    }
}
