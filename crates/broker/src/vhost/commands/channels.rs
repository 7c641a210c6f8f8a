//! Connections and channels: opening and closing, which returns deliveries and removes consumers and queues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use amqp::method::MethodId;
use amqp::reply_code::ReplyCode;

use crate::access::Access;
use crate::channel::Channel;
use crate::channel::confirms::Confirms;
use crate::channel::{PublishMode, transaction::Transaction};
use crate::channel_key::ChannelKey;
use crate::command::{Command, Outcome};
use crate::effect::Outgoing;
use crate::ids::{ChannelNumber, ConnectionId, ConsumerId, QueueId};
use crate::message::Name;
use crate::refusal::Refusal;
use crate::time::Now;
use crate::timers::Wake;
use crate::vhost::Vhost;
use crate::vhost::commands::settle::Touched;
use crate::vhost::state::connections::Connection;

impl Vhost {
    /// Adds a connection that a client has opened.
    pub fn open_connection(&mut self, access: Arc<Access>, cancel_notify: bool) -> ConnectionId {
        self.counters.connections_opened += 1;
        self.connections.insert(Connection::new(access, cancel_notify))
    }

    /// Removes a connection: its deliveries return to their queues, its consumers and exclusive queues are deleted.
    pub fn close_connection(&mut self, now: Now, id: ConnectionId) {
        self.advance(now);
        self.clear_connection(id);
        let closed = self.connections.remove(id).is_some();
        self.counters.connections_closed += u64::from(closed);
        self.finish_deaths();
    }

    /// Replaces the user's permissions.
    ///
    /// Consumers of queues that the user may not read any more are cancelled: `basic.cancel`, for clients
    /// that understand it.
    ///
    /// COMPAT: permissions of consumers: RabbitMQ asks for the permission at `basic.consume` alone.
    pub fn set_access(&mut self, now: Now, id: ConnectionId, access: Arc<Access>) {
        self.advance(now);
        let Some(connection) = self.connections.get_mut(id) else { return };
        let is_other = connection.access.permissions.read != access.permissions.read;
        connection.access = access;
        if is_other {
            self.cancel_forbidden_consumers(id);
        }
        // Remembered routes imply permissions.
        self.topology_changed();
        self.finish_deaths();
    }

    /// Cancels the consumers of a connection whose queues its user may not read.
    fn cancel_forbidden_consumers(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(id) else { return };
        let (access, cancel_notify) = (&connection.access, connection.cancel_notify);
        // Several consumers may share one queue.
        let mut allowed: BTreeMap<QueueId, bool> = BTreeMap::new();
        let mut forbidden = Vec::new();
        for (number, channel) in &connection.channels {
            for (tag, consumer) in &channel.consumers {
                let may_read = || {
                    let queue = self.topology.known_queue(consumer.queue);
                    access.permissions.read.allows(&queue.name)
                };
                if !*allowed.entry(consumer.queue).or_insert_with(may_read) {
                    forbidden
                        .push((ChannelKey { connection: id, channel: *number }, Arc::clone(tag)));
                }
            }
        }
        let mut left = Touched::new();
        let mut cancelled: BTreeMap<ChannelKey, BTreeSet<(QueueId, ConsumerId)>> = BTreeMap::new();
        for (at, consumer_tag) in forbidden {
            if let Some(gone) = self.detach_consumer(at, &consumer_tag) {
                if self.topology.has_single_active_consumer(gone.queue) {
                    cancelled.entry(at).or_default().insert((gone.queue, gone.consumer));
                } else {
                    left.push(gone.queue);
                }
            }
            if cancel_notify {
                self.effects.send(at, Outgoing::Cancel { consumer_tag });
            }
        }
        self.serve(left);
        // What an active consumer holds goes to the next one, in its order.
        for (at, consumers) in cancelled {
            let mut touched: Touched = consumers.iter().map(|(queue, _)| *queue).collect();
            let Some(channel) = self.connections.channel_mut(at) else { continue };
            let held = channel.unacked.take_of(&consumers);
            let requeue = Outcome::Requeue { failed: false };
            let freed_global = self.settle_each(at, held, requeue, &mut touched);
            self.finish_settling(at, touched, freed_global);
        }
    }

    /// Returns the deliveries and removes the consumers, channels and exclusive queues of a connection.
    fn clear_connection(&mut self, connection: ConnectionId) {
        let Some(known) = self.connections.get_mut(connection) else {
            return;
        };
        let channels: Vec<ChannelNumber> = known.channels.keys().copied().collect();
        let keys: Vec<ChannelKey> =
            channels.iter().map(|channel| ChannelKey { connection, channel: *channel }).collect();
        self.clear_channels(&keys);
        for channel in channels {
            if let Some(known) = self.connections.get_mut(connection) {
                let open = known.channels.remove(&channel).is_some_and(|channel| channel.is_open());
                self.counters.channels_closed += u64::from(open);
            }
        }
        if let Some(known) = self.connections.get_mut(connection) {
            for queue in std::mem::take(&mut known.exclusive_queues) {
                self.remove_queue_and_notify(queue);
            }
        }
    }

    /// True if a command is performed: not on a connection or channel that is closing.
    ///
    /// # Errors
    /// 504 for a command on a channel that is not open.
    pub(in crate::vhost) fn accepts(
        &mut self,
        at: ChannelKey,
        command: &Command<'_>,
    ) -> Result<bool, Refusal> {
        let Some(connection) = self.connections.get(at.connection).filter(|c| !c.closing) else {
            return Ok(false);
        };
        let Some(channel) = connection.channels.get(&at.channel) else {
            let needs_none = if let Command::Refused(refusal) = command {
                refusal.code.is_connection_error()
            } else {
                matches!(command, Command::OpenChannel)
            };
            if needs_none {
                return Ok(true);
            }
            return Err(Refusal::new(ReplyCode::ChannelError, "expected 'channel.open'"));
        };
        let is_heard = matches!(
            command,
            Command::OpenChannel | Command::CloseChannel | Command::ChannelCloseOk
        );
        Ok(!channel.closing || is_heard)
    }

    pub(in crate::vhost) fn open_channel(&mut self, at: ChannelKey) -> Result<(), Refusal> {
        let Some(connection) = self.connections.get_mut(at.connection) else {
            return Ok(());
        };
        if connection.channels.contains_key(&at.channel) {
            return Err(Refusal::new(ReplyCode::ChannelError, "second 'channel.open' seen"));
        }
        connection.channels.insert(at.channel, Box::default());
        self.counters.channels_opened += 1;
        self.effects.send(at, Outgoing::ChannelOpenOk);
        Ok(())
    }

    pub(in crate::vhost) fn close_channel(&mut self, at: ChannelKey) -> Result<(), Refusal> {
        let Some(channel) = self.connections.channel_mut(at) else { return Ok(()) };
        if !channel.closing {
            self.flush_channel(at);
            self.clear_channels(&[at]);
            if let Some(connection) = self.connections.get_mut(at.connection) {
                connection.channels.remove(&at.channel);
                self.counters.channels_closed += 1;
            }
        }
        // If both sides close at once, the client still owes its `channel.close-ok`.
        self.answer(at, false, Outgoing::ChannelCloseOk);
        Ok(())
    }

    pub(in crate::vhost) fn channel_close_ok(&mut self, at: ChannelKey) -> Result<(), Refusal> {
        let Some(connection) = self.connections.get_mut(at.connection) else {
            return Ok(());
        };
        match connection.channels.get(&at.channel) {
            Some(channel) if channel.closing => {
                connection.channels.remove(&at.channel);
                Ok(())
            }
            _ => Err(Refusal::new(ReplyCode::CommandInvalid, "unimplemented method")),
        }
    }

    /// Closes a channel because of an error: it gives up all that it holds and ignores commands until the client
    /// agrees.
    pub(in crate::vhost) fn fail_channel(
        &mut self,
        at: ChannelKey,
        refusal: Refusal,
        method: MethodId,
    ) {
        self.flush_channel(at);
        self.clear_channels(&[at]);
        if let Some(channel) = self.connections.channel_mut(at) {
            let was_open = channel.is_open();
            *channel = Channel::closing();
            self.counters.channels_closed += u64::from(was_open);
        }
        self.effects.send(at, Outgoing::ChannelClose { refusal, method });
    }

    /// Closes a connection because of an error of its client.
    pub(in crate::vhost) fn fail_connection(&mut self, id: ConnectionId, outgoing: Outgoing) {
        self.flush();
        self.clear_connection(id);
        if let Some(connection) = self.connections.get_mut(id) {
            connection.closing = true;
        }
        self.effects.send(ChannelKey { connection: id, channel: ChannelNumber(0) }, outgoing);
    }

    /// Closes a connection on behalf of the broker, for example at a stop (320) or on an operator's request.
    pub fn force_close(&mut self, now: Now, id: ConnectionId, refusal: Refusal) {
        self.advance(now);
        if self.connections.get(id).is_some_and(|c| !c.closing) {
            self.fail_connection(id, Outgoing::ConnectionClose { refusal, method: MethodId::NONE });
            self.finish_deaths();
        }
    }

    /// Cancels all consumers, because the broker stops; clients that understand `basic.cancel` get it.
    pub fn cancel_consumers(&mut self, now: Now) {
        self.advance(now);
        for connection in self.connections.ids() {
            let Some(known) = self.connections.get(connection) else {
                continue;
            };
            let (cancel_notify, channels) =
                (known.cancel_notify, known.channels.keys().copied().collect::<Vec<_>>());
            for channel in channels {
                let at = ChannelKey { connection, channel };
                // No other consumer is served: all of them go.
                for consumer_tag in self.detach_channel_consumers(at, &mut Touched::new()) {
                    if cancel_notify {
                        self.effects.send(at, Outgoing::Cancel { consumer_tag });
                    }
                }
            }
        }
        self.finish_deaths();
    }

    /// Removes the consumers of channels, and returns their deliveries to the queues. The other consumers of the queues are
    /// served when all of that is done: they get the messages in the order of the queue, those that have returned first,
    /// and none returns to the channels.
    fn clear_channels(&mut self, channels: &[ChannelKey]) {
        let mut touched = Touched::new();
        for at in channels {
            self.detach_channel_consumers(*at, &mut touched);
        }
        for at in channels {
            self.clear_channel(*at, &mut touched);
        }
        self.serve(touched);
        for at in channels {
            self.resume_deliveries(*at);
        }
    }

    /// Removes the consumers of a channel and returns their tags. Notes the queues whose other consumers are to be served.
    fn detach_channel_consumers(&mut self, at: ChannelKey, touched: &mut Touched) -> Vec<Name> {
        let Some(channel) = self.connections.channel_mut(at) else {
            return Vec::new();
        };
        let replies = channel.reply_consumer.iter().map(|consumer| &consumer.tag);
        let tags: Vec<Name> = channel.consumers.keys().chain(replies).cloned().collect();
        channel.parked.clear();
        for tag in &tags {
            touched.extend(self.detach_consumer(at, tag).map(|gone| gone.queue));
        }
        tags
    }

    /// Returns the unacknowledged deliveries of a channel to their queues, which it notes, and drops its transaction.
    fn clear_channel(&mut self, at: ChannelKey, touched: &mut Touched) {
        let Some(channel) = self.connections.channel_mut(at) else {
            return;
        };
        self.timers.disarm(&mut channel.armed, Wake::Channel(at.connection, at.channel));
        if let PublishMode::Transactional(transaction) = std::mem::take(&mut channel.mode) {
            channel.unacked.put_back(transaction.into_deliveries());
        }
        let all = channel.unacked.take_all();
        channel.annotations = None;
        self.unacked_memory.stop_waiting(at);
        self.settle_each(at, all, Outcome::Requeue { failed: true }, touched);
    }

    pub(in crate::vhost) fn confirm_select(
        &mut self,
        at: ChannelKey,
        nowait: bool,
    ) -> Result<(), Refusal> {
        let Some(channel) = self.connections.channel_mut(at) else {
            return Ok(());
        };
        match channel.mode {
            PublishMode::Plain => channel.mode = PublishMode::Confirm(Confirms::default()),
            PublishMode::Confirm(_) => {}
            PublishMode::Transactional(_) => {
                let text = "cannot switch from tx to confirm mode";
                return Err(Refusal::precondition_failed(text));
            }
        }
        self.answer(at, nowait, Outgoing::ConfirmSelectOk);
        Ok(())
    }

    pub(in crate::vhost) fn tx_select(&mut self, at: ChannelKey) -> Result<(), Refusal> {
        let Some(channel) = self.connections.channel_mut(at) else {
            return Ok(());
        };
        match channel.mode {
            PublishMode::Plain => {
                channel.mode = PublishMode::Transactional(Transaction::default());
                // Settlements in a transaction know no annotations.
                channel.annotations = None;
            }
            PublishMode::Transactional(_) => {}
            PublishMode::Confirm(_) => {
                let text = "cannot switch from confirm to tx mode";
                return Err(Refusal::precondition_failed(text));
            }
        }
        self.effects.send(at, Outgoing::TxSelectOk);
        Ok(())
    }
}
