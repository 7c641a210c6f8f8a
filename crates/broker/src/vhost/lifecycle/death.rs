//! Dead-lettering: out of one queue and into others, in one step.
//!
//! Messages that die in a call are put on a list and moved before the call returns, so that chains of queues need
//! no recursion. If more die than a call may move, the rest is left to the timer. A death is one record in the
//! log, so that a crash leaves no message half moved.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::dead_letter::{self, Circumstances, DeadLetter, DeathReason};
use crate::effect::Event;
use crate::ids::{ExchangeId, Lsn, QueueId};
use crate::limits::{DEAD_LETTER_RETRY_SLICE, DEATHS_PER_CALL_MAX};
use crate::message::{Message, Name};
use crate::queue::{DropCause, Entry};
use crate::record::Record;
use crate::route::Route;
use crate::setting::{DeadLetterStrategy, Overflow};
use crate::statistics::Strategy;
use crate::vhost::Vhost;
use crate::vhost::state::death_fate::{Fate, Targets};
use crate::vhost::state::death_ledger::Settler;
use crate::vhost::state::enqueue_plan::EnqueuePlan;
use crate::vhost::state::pending_death::{DeadMessage, PendingDeath};
use crate::vhost::state::recorded_death::SettledBy;

impl Vhost {
    /// Lets a message of a queue die; the death is moved before the call ends, or waits for the timer or the
    /// end of an alarm.
    pub(in crate::vhost) fn die(&mut self, queue: QueueId, entry: Entry, reason: DeathReason) {
        self.topology.known_queue_mut(queue).dead_letters.begin_death();
        self.has_died(queue, reason, DeadMessage::Entry(entry), None);
    }

    /// Lets a message die that a client has settled.
    pub(in crate::vhost) fn die_settled(
        &mut self,
        queue: QueueId,
        entry: Entry,
        reason: DeathReason,
        settler: Settler,
    ) {
        let settled_by = self.settled_by(queue, settler);
        self.topology.known_queue_mut(queue).dead_letters.begin_death();
        self.has_died(queue, reason, DeadMessage::Entry(entry), settled_by);
    }

    /// Dead-letters a message that a full queue refuses.
    pub(in crate::vhost) fn die_refused(&mut self, queue: QueueId, message: Message) {
        self.has_died(queue, DeathReason::Maxlen, DeadMessage::Refused(message), None);
    }

    fn has_died(
        &mut self,
        queue: QueueId,
        reason: DeathReason,
        dead: DeadMessage,
        settled_by: Option<Arc<SettledBy>>,
    ) {
        let time_ms = self.now.wall_ms();
        let death = PendingDeath { queue, reason, time_ms, dead, settled_by, is_retry: false };
        if self.must_wait(queue) {
            self.wait_for_alarm(death);
        } else {
            self.dead_lettering.push(death);
        }
    }

    /// Moves all deaths, and those that follow from them. Deaths above the limit of a call are left to the
    /// timer, with those that follow until the timer is done. Consumers get the messages behind expired ones,
    /// and firehose copies enter their queues.
    pub(in crate::vhost) fn finish_deaths(&mut self) {
        while self.dead_lettering.has_unblocked()
            || !self.firehose.is_empty()
            || !self.dead_lettering.is_armed()
                && (!self.dead_lettering.is_empty() || self.may_retry())
        {
            for queue in self.dead_lettering.take_unblocked() {
                self.dispatch(queue);
            }
            if !self.firehose.is_empty() {
                self.enqueue_copies();
            }
            if !self.dead_lettering.is_armed() {
                self.move_deaths(DEATHS_PER_CALL_MAX);
            }
        }
    }

    /// True if dead letters without a target should be offered again now.
    fn may_retry(&self) -> bool {
        self.dead_lettering.wants_retry() && !self.alarm.is_on()
    }

    /// Goes on where `finish_deaths` stopped, with up to `budget` messages; returns how much of that is used up.
    pub(in crate::vhost) fn resume_deaths(&mut self, budget: usize) -> usize {
        self.dead_lettering.woken();
        let moved = self.move_deaths(budget);
        // The rest continues after other wake-ups have had their turn.
        if self.dead_lettering.is_armed() { budget } else { moved }
    }

    fn move_deaths(&mut self, budget: usize) -> usize {
        let mut moved = 0;
        loop {
            while moved < budget
                && let Some(death) = self.dead_lettering.next()
            {
                self.move_or_wait(death);
                moved += 1;
            }
            if !self.dead_lettering.is_empty() {
                self.dead_lettering.arm(&mut self.timers, self.now.time);
                return moved;
            }
            self.dead_lettering.shrink();
            if !self.may_retry() {
                return moved;
            }
            self.retry_pending_dead_letters();
        }
    }

    /// Moves the deaths of a queue that is deleted or purged.
    pub(in crate::vhost) fn finish_deaths_of(&mut self, queue: QueueId) {
        for death in self.dead_lettering.take_of(queue) {
            self.move_or_wait(death);
        }
    }

    /// Moves a death, unless an alarm has begun since. Deaths that follow from it go before the others on the
    /// list: where chains branch, the list then stays as short as the longest chain.
    fn move_or_wait(&mut self, death: PendingDeath) {
        if self.must_wait(death.queue) {
            self.wait_for_alarm(death);
            return;
        }
        let others = self.dead_lettering.len();
        self.move_dead(death);
        self.dead_lettering.put_first(others);
    }

    fn move_dead(&mut self, death: PendingDeath) {
        // The deaths of a queue end before the queue does.
        let queue = self.topology.known_queue_mut(death.queue);
        if let DeadMessage::Entry(_) = death.dead {
            queue.dead_letters.end_deaths(1);
        }
        let Some(target) = &queue.settings.dead_letter else {
            return self.keep_or_drop(death, None, DropCause::NoDeadLetterExchange);
        };
        let circumstances = Circumstances {
            queue: &queue.name,
            reason: death.reason,
            time_s: death.time_ms / 1000,
            target,
            maybe_seen: match &death.dead {
                DeadMessage::Entry(entry) => queue.may_have_been_seen(entry),
                DeadMessage::Refused(message) => message.is_maybe_seen(),
            },
        };
        let DeadLetter { message, is_cut } =
            self.dead_lettering.make_dead_letter(death.message(), circumstances);
        let at_least_once = queue.settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce;
        let Some(route) = self.dead_letter_route(&message) else {
            return self.keep_or_drop(death, Some(&message), DropCause::ExchangeMissing);
        };
        let targets = self.targets(&message, &route.queues);
        let refused = targets.cyclic + targets.full;
        let has_no_target = targets.accepting.is_empty()
            && targets.passing_on.is_empty()
            && route.requesters.is_empty()
            && route.holders.is_empty();
        if has_no_target || at_least_once && refused > 0 {
            let cause = match (targets.full, targets.cyclic) {
                (1.., _) => DropCause::TargetFull,
                (0, 1..) => DropCause::Cycle,
                (0, 0) => DropCause::Unroutable,
            };
            return self.keep_or_drop(death, Some(&message), cause);
        }
        let queue = self.topology.known_queue_mut(death.queue);
        if let DeadMessage::Entry(_) = death.dead {
            *queue.counters.deaths_mut().dead_lettered.get_mut(death.reason) += 1;
            *self.counters.dead_lettered.get_mut(death.reason) += 1;
        }
        let strategy = queue.settings.dead_letter_strategy.into();
        self.counters.deaths.dead_lettered(queue.kind(), strategy, death.reason, death.is_retry);
        self.counters.death_headers_cut += u64::from(is_cut);
        for (cause, copies) in
            [(DropCause::Cycle, targets.cyclic), (DropCause::TargetFull, targets.full)]
        {
            if copies > 0 {
                queue.counters.deaths_mut().copies_dropped.count(cause, copies);
            }
            self.counters.copies_dropped.count(cause, copies);
        }
        for requester in &route.requesters {
            self.deliver_reply(*requester, &message);
        }
        self.record_death(&death, Some(&message), Fate::DeadLettered(&targets));
        self.enqueue_in_targets(&death, &message, targets, &route.holders);
        self.left(death.queue);
    }

    /// The route of a dead letter; none if its exchange does not exist. Consecutive dead letters with the
    /// same envelope are routed once.
    fn dead_letter_route(&mut self, message: &Message) -> Option<Route> {
        let (topology, envelope) = (self.topology.version(), message.envelope());
        if let Some(route) = self.dead_lettering.remembered_route(topology, envelope) {
            return Some(route);
        }
        let exchange = self.topology.exchange_id(&envelope.exchange)?;
        let route = self.route(exchange, envelope, message.properties());
        self.dead_lettering.remember_route(topology, exchange, envelope, &route);
        Some(route)
    }

    /// Classifies the queues that a dead letter was routed to by their treatment of it.
    fn targets(&mut self, message: &Message, routed: &[QueueId]) -> Targets {
        let mut targets =
            Targets { accepting: SmallVec::new(), passing_on: SmallVec::new(), cyclic: 0, full: 0 };
        let mut cycle = None;
        for id in routed {
            let queue = self.topology.known_queue(*id);
            if message.deaths().is_some_and(|deaths| dead_letter::is_cycle(deaths, &queue.name)) {
                targets.cyclic += 1;
                cycle = Some(Arc::clone(&queue.name));
                continue;
            }
            let may_refuse =
                queue.settings.rejects_publishes() && !queue.kind().takes_dead_letters_over_limit();
            if !may_refuse || !self.is_full_for(*id, message) {
                targets.accepting.push(*id);
                continue;
            }
            let queue = self.topology.known_queue_mut(*id);
            if queue.settings.overflow == Overflow::RejectPublishDlx
                && queue.settings.dead_letter.is_some()
            {
                targets.passing_on.push(*id);
            } else {
                queue.dead_letters.refuse();
                targets.full += 1;
            }
        }
        if let Some(queue) = cycle {
            self.report_cycle(message, &queue);
        }
        targets
    }

    /// Enqueues a dead letter; the record of it also removes the message from its old queue.
    fn enqueue_in_targets(
        &mut self,
        death: &PendingDeath,
        message: &Message,
        targets: Targets,
        holders: &[ExchangeId],
    ) {
        let mut plan = EnqueuePlan::default();
        self.hold_in_exchanges(holders, message, None, &mut plan);
        for id in targets.accepting {
            plan.add(id, self.topology.known_queue_mut(id), message);
        }
        for id in targets.passing_on {
            self.topology.known_queue_mut(id).counters.refused += 1;
            self.counters.refused += 1;
            self.die_refused(id, message.clone());
        }
        match &death.dead {
            DeadMessage::Entry(entry) => {
                let from = self.topology.known_queue(death.queue).number;
                self.enqueue_moved(message.clone(), &plan, entry, from);
            }
            DeadMessage::Refused(_) => {
                self.enqueue(message.clone(), &plan);
            }
        }
    }

    /// Keeps or drops a dead message that has nowhere to go, and counts it.
    fn keep_or_drop(&mut self, death: PendingDeath, letter: Option<&Message>, cause: DropCause) {
        let queue = self.topology.known_queue(death.queue);
        let keeps = queue.keeps(death.reason, cause) && death.entry().is_some();
        if !death.is_retry {
            let strategy = strategy_of_lost(cause, queue.settings.dead_letter_strategy);
            self.counters.deaths.count(queue.kind(), strategy, death.reason);
        }
        if keeps && !death.is_retry {
            self.record_death(&death, letter, Fate::Kept(cause));
        } else if !keeps {
            self.record_death(&death, letter, Fate::Dropped(cause));
        }
        let queue = self.topology.known_queue_mut(death.queue);
        let DeadMessage::Entry(entry) = death.dead else {
            queue.counters.deaths_mut().copies_dropped.count(cause, 1);
            self.counters.copies_dropped.count(cause, 1);
            return;
        };
        if keeps {
            let record =
                Record::Pend { queue: queue.number, entry: entry.id, reason: death.reason };
            let lsn = entry.lsn;
            queue.dead_letters.keep(entry, death.reason);
            self.dead_lettering.add_source(death.queue);
            if lsn != Lsn(0) {
                self.log_about(lsn, record);
            }
            // A kept message may be one too many.
            self.enforce_limits(death.queue);
            return;
        }
        let dropped = queue.counters.deaths_mut().dropped.get_mut(death.reason);
        dropped.count(cause, 1);
        let is_news = cause != DropCause::NoDeadLetterExchange && dropped.get(cause) == 1;
        let name = Arc::clone(&queue.name);
        self.counters.dropped.get_mut(death.reason).count(cause, 1);
        self.log_settled(death.queue, &entry);
        self.left(death.queue);
        if is_news {
            let reason = death.reason;
            self.effects.event(Event::DroppedDeadLetters { queue: name, reason, cause });
        }
    }

    fn report_cycle(&mut self, message: &Message, target: &Name) {
        let Some(deaths) = message.deaths() else {
            return;
        };
        let mut queues = vec![Arc::clone(target)];
        for death in &deaths.entries {
            queues.push(Arc::clone(&death.queue));
            if death.queue == *target {
                break;
            }
        }
        if self.dead_lettering.is_new_cycle(&queues) {
            self.effects.event(Event::DeadLetterCycle { queues });
        }
    }

    /// Notes that a message left a queue or was delivered: the queue may have room for dead letters that it
    /// refused.
    pub(in crate::vhost) fn left(&mut self, id: QueueId) {
        let queue = self.topology.known_queue_mut(id);
        if queue.dead_letters.take_refused() {
            self.dead_lettering.request_retry();
        }
    }

    /// Offers all dead letters without a target again: a slice of them now, the rest when the timer fires,
    /// which is at once.
    fn retry_pending_dead_letters(&mut self) {
        self.dead_lettering.retry_begins();
        let mut budget = DEAD_LETTER_RETRY_SLICE;
        for id in self.dead_lettering.sources() {
            let queue = self.topology.known_queue_mut(id);
            if !queue.offers_kept() {
                continue;
            }
            if let Some(pending) = queue.dead_letters.pending_mut() {
                pending.start_retry();
            }
            budget -= self.offer_pending(id, budget);
            self.rearm_queue(id);
        }
    }

    /// Offers up to `budget` of a queue's pending dead letters again, each once per round; those that still
    /// have no target go to the end. Returns the number of offered messages.
    pub(in crate::vhost) fn offer_pending(&mut self, id: QueueId, budget: usize) -> usize {
        let queue = self.topology.known_queue_mut(id);
        let mut offered = 0;
        while offered < budget
            && let Some(pending) = queue.dead_letters.pending_mut()
            && let Some((entry, reason)) = pending.next_retry()
        {
            if reason == DeathReason::DeliveryLimit && queue.settings.dead_letter.is_none() {
                // Stays, even if the setting by which the message was kept is gone.
                queue.dead_letters.keep(entry, reason);
                offered += 1;
                continue;
            }
            queue.dead_letters.begin_death();
            self.dead_lettering.push(PendingDeath {
                queue: id,
                reason,
                time_ms: self.now.wall_ms(),
                dead: DeadMessage::Entry(entry),
                settled_by: None,
                is_retry: true,
            });
            offered += 1;
        }
        if queue.dead_letters.pending().is_empty() {
            self.dead_lettering.remove_source(id);
        }
        offered
    }
}

/// The strategy under which RabbitMQ counts a dead message without a target: to miss the exchange is the same to it as
/// to have none, unless the queue keeps the message for the exchange.
fn strategy_of_lost(cause: DropCause, strategy: DeadLetterStrategy) -> Strategy {
    match (cause, strategy) {
        (DropCause::NoDeadLetterExchange, _)
        | (DropCause::ExchangeMissing, DeadLetterStrategy::AtMostOnce) => Strategy::Disabled,
        (
            DropCause::ExchangeMissing
            | DropCause::Unroutable
            | DropCause::Cycle
            | DropCause::TargetFull,
            strategy,
        ) => strategy.into(),
    }
}
