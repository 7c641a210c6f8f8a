//! Operations on scheduled messages: by a publish to the exchange `amq.schedule`, or by an operator. See
//! `docs/guides/deliver-later.md`.

use std::sync::Arc;

use crate::access::{Access, Permission};
use crate::channel::PublishMode;
use crate::channel_key::ChannelKey;
use crate::command::Publish;
use crate::exchange::control::{SCHEDULE_EXCHANGE, in_transaction};
use crate::ids::{ExchangeId, Lsn};
use crate::message::{Envelope, Message};
use crate::publish_properties::delivery_time::check_wall_ms;
use crate::publish_properties::{self, Prepared, schedule_headers};
use crate::refusal::{Refusal, Resource};
use crate::schedule::{ScheduleOperation, ScheduleRequest, ScheduleTarget};
use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::commands::publish::Verdict;
use crate::vhost::state::holder::Holder;

impl Vhost {
    /// Performs an operation on scheduled messages for an operator. Returns the handles of the messages, and the
    /// position of the log up to which the operation must be durable.
    ///
    /// # Errors
    /// 403 if the user may not write to the target, 404 if it does not exist, 405 if it belongs to one connection,
    /// 406 if the delivery time is too far away.
    pub fn operate_on_schedules(
        &mut self,
        now: Now,
        request: &ScheduleRequest,
        access: &Access,
    ) -> Result<(Vec<u64>, Lsn), Refusal> {
        self.advance(now);
        let resource = self.target_resource(&request.target);
        access.require(Permission::Write, resource)?;
        let holder = self.shared_holder(&request.target)?;
        check_operation(request.operation, self.now)?;
        let changed = self.operate_in(holder, &request.selector, request.operation);
        self.finish_deaths();
        Ok((changed, self.log.last()))
    }

    /// Performs a publish to `amq.schedule`. One that finds no message is unroutable.
    #[cold]
    pub(in crate::vhost) fn publish_operation(
        &mut self,
        at: ChannelKey,
        publish: &Publish<'_>,
    ) -> Result<(), Refusal> {
        let properties = publish_properties::parse(publish.content.properties())?;
        let headers = properties.headers.unwrap_or_default();
        let request = schedule_headers::operation(headers, self.now)?;
        let prepared = self.prepare(at, publish, &properties)?;
        let Some(channel) = self.connections.channel(at) else { return Ok(()) };
        if let PublishMode::Transactional(_) = channel.mode {
            return Err(in_transaction(SCHEDULE_EXCHANGE));
        }
        self.require(at, Permission::Write, self.target_resource(&request.target))?;
        check_operation(request.operation, self.now)?;
        let holder = self.holder_of(&request.target);
        if let Some(Holder::Queue(id)) = holder {
            self.check_owner(at, id)?;
        }
        self.count_operation(at);
        let changed = holder
            .map(|holder| self.operate_in(holder, &request.selector, request.operation))
            .unwrap_or_default();
        let exchange = self.find_exchange(SCHEDULE_EXCHANGE)?;
        self.topology.known_exchange_mut(exchange).counters.published_in += 1;
        if changed.is_empty() {
            self.return_operation(at, exchange, publish, &prepared);
        }
        self.confirm_operation(at);
        Ok(())
    }

    /// Counts a publish that is an operation.
    pub(in crate::vhost) fn count_operation(&mut self, at: ChannelKey) {
        let channel = self.connections.known_channel_mut(at);
        channel.counters.published += 1;
        let confirms = matches!(channel.mode, PublishMode::Confirm(_));
        self.counters.published += 1;
        self.counters.published_for_confirm += u64::from(confirms);
    }

    /// Returns a mandatory operation that found no message or delivery; another is dropped.
    pub(in crate::vhost) fn return_operation(
        &mut self,
        at: ChannelKey,
        exchange: ExchangeId,
        publish: &Publish<'_>,
        prepared: &Prepared,
    ) {
        let exchange = self.topology.known_exchange_mut(exchange);
        exchange.counters.returned_unroutable += u64::from(publish.mandatory);
        exchange.counters.dropped_unroutable += u64::from(!publish.mandatory);
        if !publish.mandatory {
            self.drop_unroutable(at);
            return;
        }
        let envelope = Arc::new(Envelope {
            exchange: Arc::clone(&exchange.name),
            routing_key: (&*publish.routing_key).into(),
            cc: prepared.cc.clone(),
            bcc: prepared.bcc.clone(),
        });
        let rewritten = prepared.rewritten.as_deref();
        let message = Message::new(envelope, prepared.meta, publish.content.clone(), rewritten);
        self.return_unroutable(at, message);
    }

    /// Confirms a publish that is an operation once everything before it is durable: what the operation did, and what
    /// others did to the messages that it did not find.
    pub(in crate::vhost) fn confirm_operation(&mut self, at: ChannelKey) {
        let last = self.log.last();
        let channel = self.connections.known_channel_mut(at);
        if let PublishMode::Confirm(confirms) = &mut channel.mode {
            let seq = confirms.assign();
            self.confirm(at, seq, Verdict::Accepted(Some(last)));
        }
    }

    /// The queue, or the delayed exchange, with the name of the target.
    ///
    /// # Errors
    /// 404 if it does not exist, 405 if it belongs to one connection.
    pub(in crate::vhost) fn shared_holder(
        &self,
        target: &ScheduleTarget,
    ) -> Result<Holder, Refusal> {
        let resource = self.target_resource(target);
        let holder = self.holder_of(target).ok_or_else(|| Refusal::not_found(resource))?;
        match holder {
            Holder::Queue(id)
                if self.topology.known_queue(id).ownership.exclusive_owner.is_some() =>
            {
                Err(Refusal::locked_queue(resource))
            }
            Holder::Queue(_) | Holder::Exchange(_) => Ok(holder),
        }
    }

    pub(in crate::vhost) fn target_resource<'a>(
        &'a self,
        target: &'a ScheduleTarget,
    ) -> Resource<'a> {
        match target {
            ScheduleTarget::Queue(name) => self.queue_resource(name),
            ScheduleTarget::Exchange(name) => self.exchange_resource(name),
        }
    }

    /// The queue, or the delayed exchange, with the name of the target; none if there is none.
    pub(in crate::vhost) fn holder_of(&self, target: &ScheduleTarget) -> Option<Holder> {
        match target {
            ScheduleTarget::Queue(name) => self.topology.queue_id(name).map(Holder::Queue),
            ScheduleTarget::Exchange(name) => {
                let id = self.topology.exchange_id(name)?;
                let held = self.topology.known_exchange(id).held.as_ref();
                held.map(|_| Holder::Exchange(id))
            }
        }
    }
}

/// Checks the delivery time of an operation.
///
/// # Errors
/// 406 if it is too far away.
fn check_operation(operation: ScheduleOperation, now: Now) -> Result<(), Refusal> {
    match operation {
        ScheduleOperation::Reschedule { delivery_time_ms } => check_wall_ms(delivery_time_ms, now),
        ScheduleOperation::Cancel | ScheduleOperation::Deliver => Ok(()),
    }
}
