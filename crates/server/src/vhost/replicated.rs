//! A vhost as the threads of replication see it: applied, promoted, deposed.

use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::Lsn;
use broker::refusal::Refusal;
use broker::time::Time;
use replication::{GroupPlacement as _, MemberId};
use storage::{Applier, EntryContent, LogEntry, RealDirectory};
use tokio::sync::watch;

use super::brain::Brain;
use super::changes::apply_settings;
use super::handle::VhostHandle;
use super::replica::{Presence, Replica};
use crate::metadata::placement::Placement;
use crate::replicas::{Deposition, HandOverTask, ReplicaTarget};

impl VhostHandle {
    /// Name of the node that leads the vhost, if this node knows one. None without a cluster, too.
    pub(crate) fn leader(&self) -> Option<Arc<str>> {
        self.replica.as_ref()?.leader()
    }

    /// Names of the node that leads the vhost, if this node knows one, and of all nodes that have its log. None
    /// without a cluster.
    pub(crate) fn placement(&self) -> Option<(Option<String>, Vec<String>)> {
        let place = self.replica.as_ref()?;
        let leader = place.leader().map(|leader| leader.to_string());
        let members = match self.definition.placement() {
            Some(placement) => placement.names().map(str::to_owned).collect(),
            None => {
                place.replicator.nodes().sorted_names().iter().map(ToString::to_string).collect()
            }
        };
        Some((leader, members))
    }

    /// True if this node has had no replica of the vhost when it was opened, because other nodes have it.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| replica.presence == Presence::Elsewhere)
    }

    /// True if this node has a replica of the vhost that can be used, or has the vhost alone and could read its files. False
    /// from the loss of the lead until the replica is open again.
    pub(crate) fn has_contents(&self) -> bool {
        match &self.replica {
            Some(replica) => replica.presence == Presence::Here && !self.is_deposed(),
            None => self.down.is_none(),
        }
    }

    /// True if this node is one of those that have the vhost.
    pub(crate) fn is_placed_here(&self) -> bool {
        let (Some(place), Some(placement)) = (&self.replica, self.definition.placement()) else {
            return true;
        };
        placement.has(&place.replicator.nodes().my_name)
    }

    /// True if the replica that this node lacks may be this member: not if the node had it before it was chosen again.
    pub(crate) fn may_become(&self, member: MemberId) -> bool {
        let Some(place) = &self.replica else { return true };
        let placement = self.definition.placement();
        !place.replicator.nodes().placed(placement.as_deref()).may_be_left_out(member)
    }

    /// True if other nodes have the log of the vhost, too.
    pub(crate) fn is_replicated(&self) -> bool {
        self.replica.is_some()
    }

    /// True if this node leads the vhost, as far as it knows without the vhost's lock.
    pub(crate) fn is_led_here(&self) -> bool {
        let Some(place) = &self.replica else { return true };
        place.leader().is_some_and(|leader| leader == place.replicator.nodes().my_name)
    }

    /// The place of this node among the names of all nodes. None without a cluster.
    pub(crate) fn place_of_node(&self) -> Option<usize> {
        let nodes = self.replica.as_ref()?.replicator.nodes();
        nodes.sorted_names().iter().position(|name| *name == nodes.my_name)
    }

    /// True if this node serves clients of the vhost.
    pub(crate) fn is_served_here(&self) -> bool {
        !self.is_deposed() && matches!(self.state.lock().brain, Brain::Leads(_))
    }

    /// The node that leads the vhost, as it changes, until the vhost is opened anew. None without a cluster.
    pub(crate) fn leaders(&self) -> Option<watch::Receiver<Option<Arc<str>>>> {
        self.replica.as_ref().map(Replica::leaders)
    }

    /// True if this node serves the vhost, or another node leads it: false while there is no leader, or this node has
    /// not begun to serve.
    pub(super) fn has_settled(&self) -> bool {
        let Some(place) = &self.replica else { return true };
        if place.is_frozen() {
            return false;
        }
        self.is_served_here() || place.leader().is_some() && !self.is_led_here()
    }

    /// True if the vhost has a leader that this node can reach, or may get one soon: false while this node hears no
    /// majority of the nodes that have the vhost.
    pub(crate) fn may_elect(&self) -> bool {
        let Some(place) = &self.replica else { return true };
        place.replicator.may_elect(self.definition.placement().as_deref())
    }

    /// True while commands wait because another node is to lead. May change unless the lock is held.
    pub(super) fn is_frozen(&self) -> bool {
        self.replica.as_ref().is_some_and(Replica::is_frozen)
    }
}

impl ReplicaTarget for VhostHandle {
    fn apply(&self, entry: &LogEntry, applier: &Applier<RealDirectory>) -> Result<(), String> {
        let mut state = self.state.lock();
        let Brain::Follows(replica) = &mut state.brain else {
            panic!("vhost '{}' leads and gets entries of another leader", self.name);
        };
        replica.set_now(Time::from_micros(entry.axis_us));
        let mut problem = None;
        let applied = applier.apply(entry, &mut |record, references| {
            if problem.is_none() {
                let failed = replica.apply(&record, references).err();
                problem = failed.map(|why| format!("record {}: {why}", record.lsn));
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        applied.map_err(|fault| fault.to_string())?;
        match &entry.content {
            EntryContent::Records(records) => {
                let last = Lsn(records.last.0);
                replica.end_entry(last).map_err(|divergence| divergence.to_string())?;
                self.disk.set_durable(last);
            }
            EntryContent::Empty => replica.begin_term(),
            EntryContent::Membership(_) => {}
        }
        Ok(())
    }

    fn promote(&self, shift_us: i64, last: storage::Lsn) -> Result<(), String> {
        let place = self.replica.as_ref().expect("a vhost without a cluster is never promoted");
        // Before the vhost's lock: the writer of the history takes them in this order.
        let mut death_files = self.death_files.lock();
        let mut state = self.state.lock();
        self.clock.shift(shift_us);
        let now = self.clock.now();
        let promoted = state.brain.promote(now, last);
        promoted.map_err(|error| format!("vhost '{}': {error}", self.name))?;
        let vhost = state.brain.serving_mut();
        apply_settings(vhost, &self.settings());
        vhost.set_alarm(now, self.has_alarm());
        let deaths = place.take_deaths();
        death_files.restored(vhost.restore_deaths(now, deaths));
        vhost.log_digest(now);
        self.disk.set_durable(Lsn(last.0));
        self.finish(state);
        self.disk.notify();
        Ok(())
    }

    fn log_digest(&self) {
        // A digest that waits for a busy lock may as well be logged with a later entry.
        let Some(mut state) = self.state.try_lock() else { return };
        let now = self.clock.now();
        if let Some(vhost) = state.brain.leading_mut().filter(|_| !self.disk.is_retired()) {
            vhost.log_digest(now);
            self.finish(state);
        }
    }

    fn hand_over(&self, step: HandOverTask) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let now = self.clock.now();
        let (Some(vhost), Some(place)) = (state.brain.leading_mut(), &self.replica) else {
            return true;
        };
        match step {
            HandOverTask::Halt => {
                vhost.hand_over(now);
                place.set_frozen(true);
            }
            HandOverTask::KeepLeading => vhost.keep_leading(now),
            HandOverTask::Resume => vhost.deliver_again(now),
        }
        self.finish(state);
        if step == HandOverTask::Resume {
            place.set_frozen(false);
            self.disk.notify();
        }
        true
    }

    fn placement(&self) -> Option<Arc<Placement>> {
        self.definition.placement()
    }

    fn leader(&self) -> Option<Arc<str>> {
        Self::leader(self)
    }

    fn set_leader(&self, leader: Option<Arc<str>>) {
        if let Some(place) = &self.replica {
            place.set_leader(leader);
        }
        self.disk.notify();
    }

    fn depose(&self, why: Deposition) {
        let text = match why {
            Deposition::LeaderChanged => {
                format!("the leader of vhost '{}' has changed", self.name)
            }
            Deposition::DiskStalls => {
                format!("the disk of the node that led vhost '{}' does not answer", self.name)
            }
            Deposition::DiskFull => {
                format!("the disk of the node that led vhost '{}' is full", self.name)
            }
        };
        let contents = self.abandon(&Refusal::new(ReplyCode::ConnectionForced, text));
        if let Some(place) = &self.replica {
            place.set_frozen(false);
        }
        self.disk.release_waiters();
        self.threads.timer.remove(self.id);
        self.threads.pager.remove(self.id);
        // Outside of the lock, because a long queue takes long to drop.
        drop(contents);
    }
}
