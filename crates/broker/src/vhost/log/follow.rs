//! A replica: a replay that follows the leader of a replicated vhost, record by record, until it is promoted.
//!
//! The records of a leader are all there and all fit: each was applied once, and no compaction has been at work. A
//! record that does not fit, or a digest that differs, shows that the replica holds another state than its leader. Then
//! nothing is skipped or repaired: the replica must be rebuilt.
//!
//! Within an entry, a record may name a queue or a message that the replica does not know: the log of the leader drops
//! a message, and the declaration of a queue, that ends before its batch is written, but not all that is about it.

use super::divergence::Divergence;
use super::replay::{HandOver, Replay, Source};
use crate::ids::{Lsn, Name, QueueNumber};
use crate::limits::CUT_OFF_LEADER_MS;
use crate::policy::PolicyKind;
use crate::record::{Digest, ExchangeRecord, QueueRecord};
use crate::time::Time;
use crate::vhost::Vhost;
use crate::vhost::state::durable_sums::SumsDiffer;

impl Replay {
    /// The vhost as far as it is replayed. Policies are in force for it from [`Replay::follow`] on.
    pub fn vhost(&self) -> &Vhost {
        &self.vhost
    }

    /// Ends the reading of the own log, whose last entry ends at `last`: what [`Replay::apply`] gets from now on comes from the leader, every record of
    /// it, in entries that [`Replay::end_entry`] ends.
    ///
    /// # Errors
    /// If declarations are missing, because the own log is damaged. The replica must be rebuilt.
    pub fn follow(&mut self, last: Lsn) -> Result<(), Divergence> {
        self.source = Source::Leader;
        // From now on each entry tells its time.
        self.now = self.vhost.now.time;
        self.vhost.log.replayed(last);
        self.check_declared()?;
        self.sums(|sums| sums.begin_digest());
        // From now on they are kept in force, so that a promotion need not match every queue with every policy.
        self.vhost.resolve_all_policies();
        Ok(())
    }

    /// Puts a policy that was set or cleared in force.
    pub(super) fn policy_changed(&mut self, kind: PolicyKind, name: &Name) {
        if self.source == Source::Leader {
            self.vhost.follow_policy(kind, name);
        }
    }

    /// Sets the time of the axis at which the leader made the next entry; none of its messages has arrived after that.
    /// Time never runs backwards.
    pub fn set_now(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.vhost.now.time = self.now;
    }

    /// Ends an entry of the leader, of which `last` is the last position; the record there, and any other, may have
    /// been dropped before it was written.
    ///
    /// # Errors
    /// If a message has entered an undeclared queue, or a binding has lost an end.
    pub fn end_entry(&mut self, last: Lsn) -> Result<(), Divergence> {
        self.check_source()?;
        self.vhost.log.replayed(last);
        self.check_declared()
    }

    /// The term of another leader begins behind the last entry.
    pub fn begin_term(&mut self) {
        self.hand_over = match self.hand_over {
            HandOver::Announced => HandOver::Complete,
            // The leader between may have delivered.
            HandOver::Complete | HandOver::None => HandOver::None,
        };
    }

    /// The leader hands over, or with `ends` goes on after all. The own log may lack the end.
    pub(super) fn handed_over(&mut self, ends: bool) {
        let is_announced = !ends && self.source == Source::Leader;
        self.hand_over = if is_announced { HandOver::Announced } else { HandOver::None };
    }

    /// Lets the replica lead from `now` on. Unless the leader before it has handed over, that leader is lost.
    pub fn leader_changed(&mut self, now: Time) {
        // Without a record there is no message that any leader could have delivered.
        if self.hand_over != HandOver::Complete && self.vhost.log.last() > Lsn(0) {
            self.leader_lost(now);
        }
    }

    /// Assumes, because the leader is lost, what the log does not say: any message of a classic queue that was ready
    /// until `now` may have been delivered, and so may any that becomes due while that leader, which may only be cut off,
    /// does not know that it is replaced. Deliveries of quorum queues wait for the log and need no such mark. The
    /// first batch of the promoted vhost logs the marks.
    pub fn leader_lost(&mut self, now: Time) {
        let until = self.now.max(now).plus_ms(CUT_OFF_LEADER_MS);
        self.vhost.hand_over.cut_off_until = until;
        let topology = &mut self.vhost.topology;
        for (id, queue) in topology.queues_mut() {
            if queue.leader_lost(until) {
                self.vhost.log.note_delivered(id);
            }
        }
        topology
            .exchanges_mut()
            .filter_map(|exchange| exchange.held.as_mut())
            .for_each(|held| held.deliveries_forgotten(until));
    }

    // ---- checks ----

    /// Remembers a divergence of a replica, which is final.
    pub(super) fn diverged(&mut self, divergence: Divergence) -> Divergence {
        if self.source == Source::Leader {
            self.source = Source::Diverged(divergence.clone());
        }
        divergence
    }

    fn check_source(&self) -> Result<(), Divergence> {
        match &self.source {
            Source::OwnLog | Source::Leader => Ok(()),
            Source::Diverged(divergence) => Err(divergence.clone()),
        }
    }

    /// Checks that the record at `lsn` is the next one.
    pub(super) fn check_position(&mut self, lsn: Lsn) -> Result<(), Divergence> {
        self.check_source()?;
        let last = self.vhost.log.last();
        if self.source == Source::Leader && lsn <= last {
            let problem = format!("it comes after record {last}");
            return Err(self.diverged(Divergence::new(lsn, problem)));
        }
        Ok(())
    }

    /// Checks that a replica does not have the queue yet.
    pub(super) fn check_new_queue(&self, lsn: Lsn, record: &QueueRecord) -> Result<(), Divergence> {
        let is_known = self.vhost.topology.queue_id(&record.name).is_some()
            || self.queues.get(&record.queue).is_some();
        if self.source == Source::Leader && is_known {
            return Err(Divergence::of_queue(lsn, &record.name, "it is declared already"));
        }
        Ok(())
    }

    /// Checks that a replica does not have the exchange yet.
    pub(super) fn check_new_exchange(
        &self,
        lsn: Lsn,
        record: &ExchangeRecord,
    ) -> Result<(), Divergence> {
        if self.source == Source::Leader && self.vhost.topology.exchange_id(&record.name).is_some()
        {
            let problem = format!("exchange '{}' is declared already", record.name);
            return Err(Divergence::new(lsn, problem));
        }
        Ok(())
    }

    /// Checks that a replica has ended all bindings of what is deleted: `left` are left.
    pub(super) fn check_unbound(&self, lsn: Lsn, left: usize) -> Result<(), Divergence> {
        if self.source == Source::Leader && left > 0 {
            let problem = format!("what it deletes still has {left} bindings");
            return Err(Divergence::new(lsn, problem));
        }
        Ok(())
    }

    /// Compares the digest of a leader with the state of a replica. The own log may hold old digests, from which a
    /// compaction has taken messages.
    pub(super) fn compare(&mut self, lsn: Lsn, digest: &Digest) -> Result<(), Divergence> {
        if self.source != Source::Leader {
            return Ok(());
        }
        let Some(sums) = &mut self.vhost.sums else {
            return Err(Divergence::new(lsn, "it is a digest of a replicated vhost".to_owned()));
        };
        sums.compare(digest).map_err(|SumsDiffer { queue, difference }| match queue {
            Some(number) => Divergence::of_queue(lsn, &self.name_of(number), difference),
            None => Divergence::new(lsn, difference),
        })
    }

    /// The name of a queue or delayed exchange.
    fn name_of(&self, number: QueueNumber) -> Name {
        let topology = &self.vhost.topology;
        let queue = self.queues.get(&number).and_then(|id| topology.queue(*id));
        let exchange = self.delayed.get(&number).and_then(|id| topology.exchange(*id));
        let name =
            queue.map(|queue| &queue.name).or_else(|| exchange.map(|exchange| &exchange.name));
        name.map_or_else(|| format!("number {number}").into(), Name::clone)
    }

    /// Checks that every queue with messages is declared, and every binding has both ends.
    fn check_declared(&mut self) -> Result<(), Divergence> {
        let lsn = self.vhost.log.last();
        let (empty, holding) = self.undeclared.take_all(&self.vhost);
        for (number, id) in empty {
            self.queues.remove(&number);
            self.vhost.topology.remove_queue(id);
            self.sums(|sums| sums.deleted(number));
        }
        if let Some((number, messages)) = holding {
            let problem = format!("it holds {messages} messages and is not declared");
            let name: Name = format!("number {number}").into();
            return Err(self.diverged(Divergence::of_queue(lsn, &name, problem)));
        }
        if let Some((lsn, record)) = self.unbound.first() {
            let (source, destination) = (&record.source, &record.destination);
            let problem = format!("a binding from '{source}' to '{destination}' has lost an end");
            return Err(self.diverged(Divergence::new(*lsn, problem)));
        }
        Ok(())
    }
}

impl Vhost {
    /// Lists all queues in the next digest, which is the first of this leader.
    pub(super) fn list_all_sums(&mut self) {
        let Some(sums) = &mut self.sums else { return };
        let queues = self.topology.queues().filter(|(_, queue)| queue.ownership.durable);
        let queues = queues.map(|(_, queue)| queue.number);
        let exchanges = self.topology.exchanges().filter(|(_, exchange)| exchange.durable);
        let stores = exchanges.filter_map(|(_, exchange)| Some(exchange.held.as_ref()?.number));
        queues.chain(stores).for_each(|number| sums.list(number));
    }
}
