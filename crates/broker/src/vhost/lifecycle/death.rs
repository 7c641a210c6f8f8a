//! Dead-lettering: out of one queue and into others, in one step (spec 3).
//!
//! Whatever dies in a call is put on a list and moved before the call returns, so that chains of
//! queues need no recursion. Only when more dies at once than a call may move is the rest left to the
//! timer. A death is one record in the log, so that nobody sees a message half moved.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use super::placed::Placed;
use crate::channel::LastRoute;
use crate::dead_letter::{self, Circumstances, DeathReason, Letter};
use crate::effect::Event;
use crate::ids::{Lsn, QueueId};
use crate::limits::{
    CYCLES_REMEMBERED_MAX, DEAD_LETTER_RETRY_SLICE, DEATH_BYTES_PER_BATCH_MAX, DEATHS_PER_CALL_MAX,
    EFFECTS_KEPT_MAX,
};
use crate::message::{Message, Name};
use crate::queue::{DropCause, Entry};
use crate::record::Record;
use crate::route::Route;
use crate::setting::{DeadLetterStrategy, Overflow};
use crate::statistics::Strategy;
use crate::vhost::Vhost;

/// A message that died.
#[derive(Debug)]
pub(in crate::vhost) struct Dying {
    queue: QueueId,
    reason: DeathReason,
    /// When it died, in seconds since the Unix epoch.
    time_s: u64,
    body: Corpse,
}

impl Dying {
    /// The message.
    pub(in crate::vhost) fn message(&self) -> &Message {
        self.body.message()
    }

    /// The queue and the message it has not left yet, unless it was refused there.
    pub(in crate::vhost) fn entry(&self) -> Option<(QueueId, &Entry)> {
        match &self.body {
            Corpse::Entry(entry) => Some((self.queue, entry)),
            Corpse::Refused(_) => None,
        }
    }
}

#[derive(Debug)]
enum Corpse {
    /// It was in the queue.
    Entry(Entry),
    /// The queue refused it (`reject-publish-dlx`).
    Refused(Message),
}

impl Corpse {
    fn message(&self) -> &Message {
        match self {
            Self::Entry(entry) => &entry.message,
            Self::Refused(message) => message,
        }
    }
}

/// The queues that take a dead letter, and what became of the others.
struct Targets {
    accepting: SmallVec<[QueueId; 4]>,
    /// Those that are full and dead-letter what they refuse.
    passing_on: SmallVec<[QueueId; 1]>,
    cyclic: u64,
    full: u64,
}

impl Vhost {
    /// A message in a queue dies.
    pub(in crate::vhost) fn die(&mut self, queue: QueueId, entry: Entry, reason: DeathReason) {
        if let Some(known) = self.queues.get_mut(queue) {
            known.dead_letters.begin_death();
            self.has_died(queue, reason, Corpse::Entry(entry));
        }
    }

    fn has_died(&mut self, queue: QueueId, reason: DeathReason, body: Corpse) {
        let dying = Dying { queue, reason, time_s: self.now.wall_ms / 1000, body };
        if self.must_wait(queue) {
            self.wait_for_room(dying);
        } else {
            self.dying.push_back(dying);
        }
    }

    /// A full queue refuses a message and dead-letters it.
    pub(in crate::vhost) fn die_refused(&mut self, queue: QueueId, message: Message) {
        self.has_died(queue, DeathReason::Maxlen, Corpse::Refused(message));
    }

    /// Moves everything that died, and what dies of that in turn. What is more than a call may move
    /// is left to the timer, and so is what dies until it is done with that. Consumers get what stood
    /// behind messages that expired, and whoever listens to the firehose hears of it.
    pub(in crate::vhost) fn finish_deaths(&mut self) {
        while !self.to_dispatch.is_empty()
            || !self.firehose.is_told()
            || self.deaths_armed.is_none() && (!self.dying.is_empty() || self.may_retry())
        {
            for queue in std::mem::take(&mut self.to_dispatch) {
                self.dispatch(queue);
            }
            if !self.firehose.is_told() {
                self.enter_told();
            }
            if self.deaths_armed.is_none() {
                self.move_deaths(DEATHS_PER_CALL_MAX);
            }
        }
    }

    /// Whether dead letters that had nowhere to go are to be offered again now.
    fn may_retry(&self) -> bool {
        self.retry_pending && !self.has_alarm()
    }

    /// Goes on where `finish_deaths` stopped, with up to `budget` messages; how much of that is used up.
    pub(in crate::vhost) fn go_on_with_deaths(&mut self, budget: usize) -> usize {
        self.deaths_armed = None;
        let moved = self.move_deaths(budget);
        // What is left has its turn when others have had theirs.
        if self.deaths_armed.is_some() { budget } else { moved }
    }

    fn move_deaths(&mut self, budget: usize) -> usize {
        let mut moved = 0;
        loop {
            while moved < budget
                && self.death_bytes < DEATH_BYTES_PER_BATCH_MAX
                && let Some(dying) = self.dying.pop_front()
            {
                if self.must_wait(dying.queue) {
                    self.wait_for_room(dying);
                } else {
                    self.move_with_what_follows(dying);
                }
                moved += 1;
            }
            if !self.dying.is_empty() {
                self.arm_deaths();
                return moved;
            }
            if self.dying.capacity() > EFFECTS_KEPT_MAX {
                self.dying = VecDeque::new();
            }
            if !self.may_retry() {
                return moved;
            }
            self.retry_pending_dead_letters();
        }
    }

    /// Moves what died in a queue that goes, or is purged.
    pub(in crate::vhost) fn finish_deaths_of(&mut self, queue: QueueId) {
        if self.dying.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.dying).into_iter();
        let (of_queue, others) = all.partition::<VecDeque<_>, _>(|dying| dying.queue == queue);
        self.dying = others;
        for dying in of_queue {
            if self.must_wait(queue) {
                self.wait_for_room(dying);
            } else {
                self.move_with_what_follows(dying);
            }
        }
    }

    /// What dies because a dead letter arrives somewhere goes before the others on the list: where
    /// chains branch, that keeps the list as short as the longest chain.
    fn move_with_what_follows(&mut self, dying: Dying) {
        let others = self.dying.len();
        self.move_dead(dying);
        for _ in others..self.dying.len() {
            if let Some(last) = self.dying.pop_back() {
                self.dying.push_front(last);
            }
        }
    }

    fn move_dead(&mut self, dying: Dying) {
        let Self { queues, last_death, .. } = self;
        let Some(queue) = queues.get_mut(dying.queue) else {
            return;
        };
        if let Corpse::Entry(_) = dying.body {
            queue.dead_letters.end_deaths(1);
        }
        let Some(target) = &queue.settings.dead_letter else {
            return self.leave_nothing(dying, DropCause::NoDeadLetterExchange);
        };
        let circumstances = Circumstances {
            queue: &queue.name,
            reason: dying.reason,
            time_s: dying.time_s,
            target,
            maybe_seen: match &dying.body {
                Corpse::Entry(entry) => queue.may_have_been_seen(entry),
                Corpse::Refused(message) => message.is_maybe_seen(),
            },
        };
        let Letter { message, is_cut } =
            dead_letter::die(dying.body.message(), circumstances, last_death);
        self.death_bytes += message.log_bytes();
        let at_least_once = queue.settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce;
        let Some(route) = self.dead_letter_route(&message) else {
            return self.leave_nothing(dying, DropCause::ExchangeMissing);
        };
        let targets = self.targets(&message, &route.queues);
        let refused = targets.cyclic + targets.full;
        let nobody = targets.accepting.is_empty() && targets.passing_on.is_empty();
        if nobody && route.requesters.is_empty() || at_least_once && refused > 0 {
            let cause = match (targets.full, targets.cyclic) {
                (1.., _) => DropCause::TargetFull,
                (0, 1..) => DropCause::Cycle,
                (0, 0) => DropCause::Unroutable,
            };
            return self.leave_nothing(dying, cause);
        }
        let Some(queue) = self.queues.get_mut(dying.queue) else {
            return;
        };
        if let Corpse::Entry(_) = dying.body {
            *queue.counters.deaths_mut().dead_lettered.get_mut(dying.reason) += 1;
            *self.counters.dead_lettered.get_mut(dying.reason) += 1;
            let strategy = queue.settings.dead_letter_strategy.into();
            self.counters.deaths.count(queue.kind(), strategy, dying.reason);
        }
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
        self.enter_dead(&dying, &message, targets);
        self.left(dying.queue);
    }

    /// Where a dead letter goes; None if its exchange does not exist. Dead letters that go to one place
    /// one after the other are routed once.
    fn dead_letter_route(&mut self, message: &Message) -> Option<Route> {
        let (topology, envelope) = (self.topology, message.envelope());
        if let Some(last) = &self.last_dead_letter_route
            && last.topology == topology
            && Arc::ptr_eq(&last.envelope, envelope)
        {
            return Some(last.route.clone());
        }
        let exchange = *self.exchange_names.get(&*envelope.exchange)?;
        let route = self.route(exchange, envelope, message.properties());
        self.last_dead_letter_route = route.can_be_remembered.then(|| {
            let (envelope, route) = (Arc::clone(envelope), route.clone());
            LastRoute { topology, exchange, envelope, route }
        });
        Some(route)
    }

    /// Sorts the queues a dead letter was routed to by what they do with it.
    fn targets(&mut self, message: &Message, routed: &[QueueId]) -> Targets {
        let mut targets =
            Targets { accepting: SmallVec::new(), passing_on: SmallVec::new(), cyclic: 0, full: 0 };
        let mut cycle = None;
        for id in routed {
            let Some(queue) = self.queues.get_mut(*id) else {
                continue;
            };
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
            let Some(queue) = self.queues.get_mut(*id) else {
                continue;
            };
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
            self.tell_cycle(message, &queue);
        }
        targets
    }

    /// The dead letter enters its queues; with the record of it the message has left the old one.
    fn enter_dead(&mut self, dying: &Dying, message: &Message, targets: Targets) {
        let mut placed = Placed::default();
        for id in targets.accepting {
            if let Some(queue) = self.queues.get_mut(id) {
                placed.assign(id, queue, message);
            }
        }
        for id in targets.passing_on {
            if let Some(queue) = self.queues.get_mut(id) {
                queue.counters.refused += 1;
                self.counters.refused += 1;
            }
            self.die_refused(id, message.clone());
        }
        match &dying.body {
            Corpse::Entry(entry) => {
                self.enter_placed_dead(message.clone(), &placed, entry, dying.queue);
            }
            Corpse::Refused(_) => {
                self.enter_placed(message.clone(), &placed);
            }
        }
    }

    /// A dead message has nowhere to go: it is kept or dropped, and counted.
    fn leave_nothing(&mut self, dying: Dying, cause: DropCause) {
        let Some(queue) = self.queues.get_mut(dying.queue) else {
            return;
        };
        let keeps = queue.settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce;
        let Corpse::Entry(entry) = dying.body else {
            queue.counters.deaths_mut().copies_dropped.count(cause, 1);
            self.counters.copies_dropped.count(cause, 1);
            return;
        };
        if keeps && cause != DropCause::NoDeadLetterExchange {
            let record =
                Record::Pend { queue: queue.number, entry: entry.id, reason: dying.reason };
            let lsn = entry.lsn;
            queue.dead_letters.pending.push(entry, dying.reason);
            self.pending_sources.insert(dying.queue);
            if lsn != Lsn(0) {
                self.log_about(lsn, record);
            }
            return;
        }
        let dropped = queue.counters.deaths_mut().dropped.get_mut(dying.reason);
        dropped.count(cause, 1);
        let is_news = cause != DropCause::NoDeadLetterExchange && dropped.get(cause) == 1;
        let name = Arc::clone(&queue.name);
        let strategy = match cause {
            DropCause::NoDeadLetterExchange => Strategy::Disabled,
            DropCause::ExchangeMissing
            | DropCause::Unroutable
            | DropCause::Cycle
            | DropCause::TargetFull => queue.settings.dead_letter_strategy.into(),
        };
        self.counters.deaths.count(queue.kind(), strategy, dying.reason);
        self.counters.dropped.get_mut(dying.reason).count(cause, 1);
        self.log_settled(dying.queue, &entry);
        self.left(dying.queue);
        if is_news {
            self.event(Event::DroppedDeadLetters { queue: name, reason: dying.reason, cause });
        }
    }

    fn tell_cycle(&mut self, message: &Message, target: &Name) {
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
        if self.told_cycles.len() < CYCLES_REMEMBERED_MAX && self.told_cycles.insert(queues.clone())
        {
            self.event(Event::DeadLetterCycle { queues });
        }
    }

    /// A message left a queue, or at least those that wait there: there may be room for dead letters
    /// that it refused.
    pub(in crate::vhost) fn left(&mut self, id: QueueId) {
        if let Some(queue) = self.queues.get_mut(id)
            && queue.dead_letters.take_refused()
        {
            self.retry_pending = true;
        }
    }

    /// Offers all dead letters that had nowhere to go again: a slice of them now, the rest when the
    /// timer comes, which is at once.
    fn retry_pending_dead_letters(&mut self) {
        self.retry_pending = false;
        let mut budget = DEAD_LETTER_RETRY_SLICE;
        let sources: Vec<QueueId> = self.pending_sources.iter().copied().collect();
        for id in sources {
            if let Some(queue) = self.queues.get_mut(id) {
                queue.dead_letters.pending.start_retry();
            }
            budget -= self.offer_pending(id, budget);
            self.rearm_queue(id);
        }
    }

    /// Offers up to `budget` of a queue's pending dead letters again, each once in a round; those that
    /// still have nowhere to go line up behind the others. How many were offered.
    pub(in crate::vhost) fn offer_pending(&mut self, id: QueueId, budget: usize) -> usize {
        let Some(queue) = self.queues.get_mut(id) else {
            return 0;
        };
        let mut offered = 0;
        while offered < budget
            && let Some((entry, reason)) = queue.dead_letters.pending.next_retry()
        {
            queue.dead_letters.begin_death();
            let (time_s, body) = (self.now.wall_ms / 1000, Corpse::Entry(entry));
            self.dying.push_back(Dying { queue: id, reason, time_s, body });
            offered += 1;
        }
        if queue.dead_letters.pending.is_empty() {
            self.pending_sources.remove(&id);
        }
        offered
    }
}
