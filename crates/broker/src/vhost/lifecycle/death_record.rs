//! Entries of the history of dead letters: one per death, made when the fate of the message is decided.

use std::sync::Arc;

use amqp::properties::Properties;
use smallvec::SmallVec;

use crate::ids::QueueId;
use crate::limits::DEATH_TARGETS_KEPT_MAX;
use crate::message::{Envelope, Message};
use crate::policy::Policy;
use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::state::death_fate::Fate;
use crate::vhost::state::death_ledger::Settler;
use crate::vhost::state::pending_death::PendingDeath;
use crate::vhost::state::recorded_death::{
    CircumstancesIds, DeathCircumstances, DeathOutcome, RestoredDeath, SettledBy,
};

impl Vhost {
    /// Adds a death to the history. `letter` is the dead letter, if the queue has a dead-letter exchange. Without one, a
    /// message that no search could find is left out: a queue that drops its oldest messages all the time would push
    /// the deaths of others out.
    #[inline]
    pub(super) fn record_death(
        &mut self,
        death: &PendingDeath,
        letter: Option<&Message>,
        fate: Fate<'_>,
    ) {
        if !self.death_ledger.is_on() || letter.is_none() && !can_be_found(death.message()) {
            return;
        }
        if !self.death_ledger.last().is_some_and(|last| is_like(last, death, letter, fate)) {
            let circumstances = self.circumstances(death, letter, fate);
            self.death_ledger.begin_run(circumstances);
        }
        let properties = self.death_ledger.properties_of(death.message(), letter);
        self.death_ledger.push(self.now, death.time_ms, properties);
        self.death_ledger.arm(&mut self.timers);
    }

    #[cold]
    fn circumstances(
        &self,
        death: &PendingDeath,
        letter: Option<&Message>,
        fate: Fate<'_>,
    ) -> DeathCircumstances {
        let queue = self.topology.known_queue(death.queue);
        let targets: SmallVec<[QueueId; 2]> = match fate {
            Fate::DeadLettered(targets) => {
                let all = targets.accepting.iter().chain(&targets.passing_on);
                all.take(DEATH_TARGETS_KEPT_MAX).copied().collect()
            }
            Fate::Kept(_) | Fate::Dropped(_) => SmallVec::new(),
        };
        let name = |target: &QueueId| Arc::clone(&self.topology.known_queue(*target).name);
        let outcome = match fate {
            Fate::DeadLettered(all) => DeathOutcome::DeadLettered {
                queues: targets.iter().map(name).collect(),
                queues_total: all.count(),
                copies_dropped: all.cyclic + all.full,
            },
            Fate::Kept(cause) => DeathOutcome::Kept(cause),
            Fate::Dropped(cause) => DeathOutcome::Dropped(cause),
        };
        let policy =
            |policy: &Option<Arc<Policy>>| policy.as_ref().map(|policy| Arc::clone(&policy.name));
        DeathCircumstances {
            queue: Arc::clone(&queue.name),
            reason: death.reason,
            published: Arc::clone(death.message().envelope()),
            dead_letter: letter.map(|letter| Arc::clone(letter.envelope())),
            outcome,
            settled_by: death.settled_by.clone(),
            policy: policy(&queue.policies.user),
            operator_policy: policy(&queue.policies.operator),
            ids: CircumstancesIds { queue: death.queue, targets },
        }
    }

    /// The client of a settlement; none if the connection is gone, or if nothing keeps deaths.
    pub(super) fn settled_by(
        &mut self,
        queue: QueueId,
        settler: Settler,
    ) -> Option<Arc<SettledBy>> {
        if !self.death_ledger.is_on() {
            return None;
        }
        if let Some(known) = self.death_ledger.known_settler(queue, settler) {
            return Some(known);
        }
        let connection = self.connections.get(settler.at.connection)?;
        let consumers = &self.topology.known_queue(queue).consumers;
        let consumer = settler.consumer.and_then(|consumer| consumers.get(consumer));
        let settled_by = SettledBy {
            user: Arc::clone(&connection.access.user),
            connection: Arc::clone(&connection.name),
            channel: settler.at.channel,
            consumer_tag: consumer.map(|consumer| Arc::clone(&consumer.tag)),
        };
        Some(self.death_ledger.remember_settler(queue, settler, settled_by))
    }

    /// Adds deaths of an earlier process to the history, the oldest first, before clients connect. Returns the number of
    /// the last one.
    pub fn restore_deaths(
        &mut self,
        now: Now,
        deaths: impl IntoIterator<Item = RestoredDeath>,
    ) -> u64 {
        if self.death_ledger.is_on() {
            deaths.into_iter().for_each(|death| self.death_ledger.restore(now, death));
            self.death_ledger.arm(&mut self.timers);
        }
        self.death_ledger.last_number()
    }

    /// Forgets up to `budget` deaths whose time is over; returns the amount of work.
    pub(in crate::vhost) fn forget_old_deaths(&mut self, budget: usize) -> usize {
        let forgotten = self.death_ledger.forget_old(self.now.time, budget);
        self.death_ledger.arm(&mut self.timers);
        forgotten + 1
    }
}

/// True if a message has headers or a message id.
#[inline]
fn can_be_found(message: &Message) -> bool {
    Properties::have_headers_or_message_id(message.properties())
}

/// True if a death has the same circumstances as the last one, while policies do not change.
#[inline]
fn is_like(
    last: &DeathCircumstances,
    death: &PendingDeath,
    letter: Option<&Message>,
    fate: Fate<'_>,
) -> bool {
    last.ids.queue == death.queue
        && last.reason == death.reason
        && last.settled_by.as_ref().map(Arc::as_ptr) == death.settled_by.as_ref().map(Arc::as_ptr)
        && match (&last.dead_letter, letter) {
            // Dead letters that share their envelope come from messages with equal envelopes.
            (Some(last_letter), Some(letter)) if Arc::ptr_eq(last_letter, letter.envelope()) => {
                true
            }
            (Some(last_letter), Some(letter)) => {
                last_letter == letter.envelope() && is_same(&last.published, death)
            }
            (None, None) => is_same(&last.published, death),
            (Some(_), None) | (None, Some(_)) => false,
        }
        && match (fate, &last.outcome) {
            (
                Fate::DeadLettered(targets),
                DeathOutcome::DeadLettered { queues_total, copies_dropped, .. },
            ) => {
                targets.count() == *queues_total
                    && targets.cyclic + targets.full == *copies_dropped
                    && targets.begin_with(&last.ids.targets)
            }
            (Fate::Kept(cause), DeathOutcome::Kept(known))
            | (Fate::Dropped(cause), DeathOutcome::Dropped(known)) => cause == *known,
            (Fate::DeadLettered(_) | Fate::Kept(_) | Fate::Dropped(_), _) => false,
        }
}

#[inline]
fn is_same(published: &Arc<Envelope>, death: &PendingDeath) -> bool {
    let envelope = death.message().envelope();
    Arc::ptr_eq(published, envelope) || published == envelope
}
