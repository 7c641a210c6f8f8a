//! Redriving: moves dead messages out of one queue and into others, in one step.
//!
//! A message leaves its queue only if its targets are known and all of them accept it; as with a death, one
//! record covers both the removal and the arrivals.

use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use smallvec::SmallVec;

use crate::access::Permission;
use crate::dead_letter::{self, Circumstances, DeadLetterTarget};
use crate::exchange::ExchangeType;
use crate::ids::QueueId;
use crate::limits::REDRIVE_BYTES_PER_CALL_MAX;
use crate::message::{Message, Name};
use crate::queue::Entry;
use crate::redrive::{self, Redrive, RedriveNote, RedriveTo, Redriven};
use crate::refusal::Refusal;
use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::state::enqueue_plan::EnqueuePlan;

/// Queues that a message is to enter.
type Targets = SmallVec<[QueueId; 4]>;

impl Vhost {
    /// Redrives messages of a queue that wait, in memory or in a page, or dead letters that the queue keeps, as
    /// they were browsed. Returns the result for each, in order. Above a number of bytes that keeps the log busy, the rest is left for another
    /// call; during an alarm, all of them are.
    ///
    /// # Errors
    /// If the queue or the destination does not exist, or the user has no permission.
    pub fn redrive(
        &mut self,
        now: Now,
        redrive: Redrive<'_>,
        chosen: &[Entry],
    ) -> Result<Vec<Redriven>, Refusal> {
        self.advance(now);
        self.check_redrive(redrive)?;
        if self.alarm.is_on() {
            return Ok(Vec::new());
        }
        let had_scheduled = self.topology.known_queue(redrive.queue).next_delivery_at().is_some();
        let (mut outcomes, mut bytes) = (Vec::with_capacity(chosen.len()), 0);
        for chosen in chosen {
            if bytes >= REDRIVE_BYTES_PER_CALL_MAX {
                break;
            }
            outcomes.push(match self.redrive_one(redrive, chosen) {
                Ok(moved) => {
                    bytes += moved;
                    Redriven::Moved
                }
                Err(outcome) => outcome,
            });
        }
        if had_scheduled {
            self.scheduled_left(redrive.queue);
        }
        self.head_changed(redrive.queue);
        self.finish_deaths();
        Ok(outcomes)
    }

    /// Checks that the user may redrive messages from the queue to the target, and that both exist.
    ///
    /// # Errors
    /// The refusal of a `basic.consume` there or of a `basic.publish` here.
    pub fn check_redrive(&self, redrive: Redrive<'_>) -> Result<(), Refusal> {
        let Redrive { queue, to, access, .. } = redrive;
        let queue = self
            .topology
            .queue(queue)
            .ok_or_else(|| Refusal::new(ReplyCode::NotFound, "the queue is gone"))?;
        let resource = self.queue_resource(&queue.name);
        access.require(Permission::Read, resource)?;
        if queue.ownership.exclusive_owner.is_some() {
            return Err(Refusal::locked_queue(resource));
        }
        match to {
            RedriveTo::Origin | RedriveTo::First => {
                access.require(Permission::Write, self.exchange_resource(""))
            }
            RedriveTo::Queue(name) => {
                access.require(Permission::Write, self.exchange_resource(""))?;
                let known = self.queue(name).map(|_| ());
                known.ok_or_else(|| Refusal::not_found(self.queue_resource(name)))
            }
            RedriveTo::Exchange { exchange: name, .. } => {
                let resource = self.exchange_resource(name);
                access.require(Permission::Write, resource)?;
                let id = self.find_exchange(name)?;
                if self.topology.known_exchange(id).internal {
                    let text = format!("cannot publish to internal {resource}");
                    return Err(Refusal::access_refused(text));
                }
                Ok(())
            }
        }
    }

    /// The queues that a message would be moved to.
    ///
    /// # Errors
    /// The reason why the message would stay.
    pub fn redrive_targets(
        &mut self,
        now: Now,
        redrive: Redrive<'_>,
        chosen: &Entry,
    ) -> Result<Vec<Name>, Redriven> {
        self.advance(now);
        let found = self.redrivable(redrive, chosen);
        let found = found.and_then(|message| self.find_targets(redrive, &message, false));
        // Checking for room may have expired messages.
        self.finish_deaths();
        let (_, targets) = found?;
        let name = |id: &QueueId| Arc::clone(&self.topology.known_queue(*id).name);
        Ok(targets.iter().map(name).collect())
    }

    /// Moves one message. Returns its bytes, or the reason why it was not moved.
    fn redrive_one(&mut self, redrive: Redrive<'_>, chosen: &Entry) -> Result<u64, Redriven> {
        let message = self.redrivable(redrive, chosen)?;
        let queue = self.topology.known_queue(redrive.queue);
        let maybe_seen = queue.may_have_been_seen(chosen);
        let (message, targets) = self.find_targets(redrive, &message, maybe_seen)?;
        // It may have expired when there was to be room.
        let entry = self.take_redriven(redrive, chosen).ok_or(Redriven::Gone)?;
        let mut plan = EnqueuePlan::default();
        for id in targets {
            plan.add(id, self.topology.known_queue_mut(id), &message);
        }
        let bytes = message.delivery_bytes();
        let from = self.topology.known_queue(redrive.queue).number;
        self.enqueue_moved(message, &plan, &entry, from);
        self.left(redrive.queue);
        Ok(bytes)
    }

    /// The message to redrive, if it is still where it was browsed. A kept dead letter is the message that died:
    /// the death that its dead letter would tell of is added here, so that the queue that keeps it is its origin.
    fn redrivable(&mut self, redrive: Redrive<'_>, chosen: &Entry) -> Result<Message, Redriven> {
        let queue = self.topology.queue_mut(redrive.queue).ok_or(Redriven::Gone)?;
        if !redrive.is_of_kept {
            let waits = queue.is_redrivable(chosen, self.now.time);
            return waits.then(|| chosen.message.clone()).ok_or(Redriven::Gone);
        }
        let pending = queue.dead_letters.pending_mut();
        let reason = pending.and_then(|pending| pending.reason(chosen.id)).ok_or(Redriven::Gone)?;
        let nowhere = DeadLetterTarget { exchange: "".into(), routing_key: None };
        let circumstances = Circumstances {
            queue: &queue.name,
            reason,
            time_s: self.now.wall_ms() / 1000,
            target: queue.settings.dead_letter.as_ref().unwrap_or(&nowhere),
            maybe_seen: queue.may_have_been_seen(chosen),
        };
        Ok(dead_letter::die(&chosen.message, circumstances, &mut None).message)
    }

    /// The message as it would be redriven, and the queues that take it.
    fn find_targets(
        &mut self,
        redrive: Redrive<'_>,
        message: &Message,
        maybe_seen: bool,
    ) -> Result<(Message, Targets), Redriven> {
        let Redrive { queue, to, access, .. } = redrive;
        let queue = self.topology.queue(queue).ok_or(Redriven::Gone)?;
        let target = redrive::target(message, to).ok_or(Redriven::NoOrigin)?;
        let time_s = self.now.wall_ms() / 1000;
        let note = RedriveNote { queue: &queue.name, user: &access.user, time_s, maybe_seen };
        let into_queue = target.queue.clone();
        let message = target.redriven(message, note);
        let targets = match into_queue {
            Some(queue) => self.topology.queue_id(&queue).into_iter().collect(),
            None => self.redrive_route(redrive, &message)?,
        };
        let is_full = |vhost: &mut Self, id: QueueId| {
            vhost.topology.known_queue(id).settings.rejects_publishes()
                && vhost.is_full_for(id, &message)
        };
        if targets.is_empty() || targets.iter().any(|id| is_full(self, *id)) {
            return Err(Redriven::Unroutable);
        }
        Ok((message, targets))
    }

    /// The queues that a redriven message reaches through its exchange. Requesters of direct replies are none: a
    /// message that they do not read would be lost.
    fn redrive_route(
        &mut self,
        redrive: Redrive<'_>,
        message: &Message,
    ) -> Result<Targets, Redriven> {
        let envelope = message.envelope();
        let id = self.exchange_id(&envelope.exchange).ok_or(Redriven::Unroutable)?;
        if self.topology.known_exchange(id).routing_type == ExchangeType::Topic {
            let resource = self.exchange_resource(&envelope.exchange);
            for key in envelope.routing_keys() {
                let key = String::from_utf8_lossy(key.as_bytes());
                let required = redrive.access.require_topic(Permission::Write, resource, &key);
                required.map_err(Redriven::Refused)?;
            }
        }
        Ok(self.route_at_once(id, envelope, message.properties()).queues)
    }

    /// Takes a message out of the queue that it is redriven from.
    fn take_redriven(&mut self, redrive: Redrive<'_>, chosen: &Entry) -> Option<Entry> {
        let queue = self.topology.queue_mut(redrive.queue)?;
        let (entry, empty_page) = if redrive.is_of_kept {
            let entry = queue.dead_letters.take(chosen.id)?;
            if queue.dead_letters.pending().is_empty() {
                self.dead_lettering.remove_source(redrive.queue);
            }
            (entry, None)
        } else {
            let at_hand = queue.take_at_hand(chosen.id);
            let at_hand = at_hand.or_else(|| queue.take_scheduled_at_hand(chosen.id));
            let at_hand = at_hand.map(|entry| (entry, None));
            let removed = at_hand.or_else(|| {
                let removed = queue.remove_scheduled(chosen.id)?;
                Some((chosen.clone(), removed.empty_page))
            });
            removed.or_else(|| queue.take_from_page(chosen))?
        };
        queue.counters.deaths_mut().redriven += 1;
        self.counters.redriven += 1;
        self.drop_page(empty_page);
        Some(entry)
    }
}
