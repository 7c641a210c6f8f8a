//! A vhost as the threads of replication see it: applied, promoted, deposed.

use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use broker::Lsn;
use broker::refusal::Refusal;
use replication::{GroupPlacement as _, MemberId};
use storage::{Applier, LogEntry, RealDirectory, Record, References};
use tokio::sync::watch;

use crate::membership::placement::Placement;
use crate::replicas::{Deposition, HandOverTask, ReplicaTarget};
use crate::vhost::handle::VhostHandle;
use crate::vhost::handle::changes::apply_settings;
use crate::vhost::place::{Place, Presence};

impl VhostHandle {
    /// Name of the node that leads the vhost, if this node knows one. None without a cluster, too.
    pub(crate) fn leader(&self) -> Option<Arc<str>> {
        self.place.as_ref()?.leader()
    }

    /// Names of the node that leads the vhost, if this node knows one, and of all nodes that have its log. None
    /// without a cluster.
    pub(crate) fn placement(&self) -> Option<(Option<String>, Vec<String>)> {
        let place = self.place.as_ref()?;
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
        self.place.as_ref().is_some_and(|place| place.presence == Presence::Elsewhere)
    }

    /// True if this node has a replica of the vhost that can be used, or has the vhost alone and could read its files. False
    /// from the loss of the lead until the replica is open again.
    pub(crate) fn has_contents(&self) -> bool {
        match &self.place {
            Some(place) => place.presence == Presence::Here && !self.is_deposed(),
            None => self.down.is_none(),
        }
    }

    /// True if this node is one of those that have the vhost.
    pub(crate) fn is_placed_here(&self) -> bool {
        let (Some(place), Some(placement)) = (&self.place, self.definition.placement()) else {
            return true;
        };
        placement.has(&place.replicator.nodes().my_name)
    }

    /// True if the replica that this node lacks may be this member: not if the node had it before it was chosen again.
    pub(crate) fn may_become(&self, member: MemberId) -> bool {
        let Some(place) = &self.place else { return true };
        let placement = self.definition.placement();
        !place.replicator.nodes().placed(placement.as_deref()).may_be_left_out(member)
    }

    /// True if other nodes have the log of the vhost, too.
    pub(crate) fn is_replicated(&self) -> bool {
        self.place.is_some()
    }

    /// True if this node leads the vhost, as far as it knows without the vhost's lock.
    pub(crate) fn is_led_here(&self) -> bool {
        let Some(place) = &self.place else { return true };
        place.leader().is_some_and(|leader| leader == place.replicator.nodes().my_name)
    }

    /// The place of this node among the names of all nodes. None without a cluster.
    pub(crate) fn place_of_node(&self) -> Option<usize> {
        let nodes = self.place.as_ref()?.replicator.nodes();
        nodes.sorted_names().iter().position(|name| *name == nodes.my_name)
    }

    /// True if this node serves clients of the vhost.
    pub(crate) fn is_served_here(&self) -> bool {
        !self.is_deposed() && self.state.lock().local.is_leading()
    }

    /// The node that leads the vhost, as it changes, until the vhost is opened anew. None without a cluster.
    pub(crate) fn leaders(&self) -> Option<watch::Receiver<Option<Arc<str>>>> {
        self.place.as_ref().map(Place::leaders)
    }

    /// True if this node serves the vhost, or another node leads it: false while there is no leader, or this node has
    /// not begun to serve.
    pub(in crate::vhost) fn has_settled(&self) -> bool {
        let Some(place) = &self.place else { return true };
        if place.is_frozen() {
            return false;
        }
        self.is_served_here() || place.leader().is_some() && !self.is_led_here()
    }

    /// True if the vhost has a leader that this node can reach, or may get one soon: false while this node hears no
    /// majority of the nodes that have the vhost.
    pub(crate) fn may_elect(&self) -> bool {
        let Some(place) = &self.place else { return true };
        place.replicator.may_elect(self.definition.placement().as_deref())
    }
}

impl ReplicaTarget for VhostHandle {
    fn apply(&self, entry: &LogEntry, applier: &Applier<RealDirectory>) -> Result<(), String> {
        let mut state = self.state.lock();
        let last = state.local.apply_entry(entry, |sink| {
            let mut each = |record: Record<'_>, references: &mut References<'_>| {
                sink(&record, &mut |lsn| references.release(lsn));
            };
            applier.apply(entry, &mut each).map_err(|fault| fault.to_string())
        })?;
        if let Some(last) = last {
            self.disk.set_durable(last);
        }
        Ok(())
    }

    fn promote(&self, shift_us: i64, last: storage::Lsn) -> Result<(), String> {
        let place = self.place.as_ref().expect("a vhost without a cluster is never promoted");
        // Before the vhost's lock: the writer of the history takes them in this order.
        let mut death_files = self.death_files.lock();
        let mut state = self.state.lock();
        self.clock.shift(shift_us);
        let now = self.clock.now();
        let last = Lsn(last.0);
        let promoted = state.local.promote(now, last, |vhost| {
            apply_settings(vhost, &self.settings());
            vhost.set_alarm(now, self.has_alarm());
            death_files.restored(vhost.restore_deaths(now, place.take_deaths()));
        });
        promoted.map_err(|error| format!("vhost '{}': {error}", self.name))?;
        self.disk.set_durable(last);
        self.finish(state);
        self.disk.notify();
        Ok(())
    }

    fn log_digest(&self) {
        // A digest that waits for a busy lock may as well be logged with a later entry.
        let Some(mut state) = self.state.try_lock() else { return };
        if state.local.log_digest(self.clock.now()) {
            self.finish(state);
        }
    }

    fn hand_over(&self, step: HandOverTask) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let place =
            self.place.as_ref().expect("the lead of a vhost of one node is not handed over");
        if !state.local.hand_over(self.clock.now(), step) {
            return true;
        }
        let is_frozen = state.local.is_frozen();
        if is_frozen {
            place.set_frozen(true);
        }
        self.finish(state);
        if !is_frozen && place.is_frozen() {
            // Before the waiters are woken, who look at the flag.
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
        if let Some(place) = &self.place {
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
        if let Some(place) = &self.place {
            place.set_frozen(false);
        }
        // After both: whoever is released asks whether the vhost was given up, and whether it is frozen.
        self.disk.release_waiters();
        self.threads.timer.remove(self.id);
        self.threads.pager.remove(self.id);
        // Outside of the lock, because a long queue takes long to drop.
        drop(contents);
    }
}
