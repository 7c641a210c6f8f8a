//! A channel: its outstanding deliveries and publishes.
//!
//! Its parts are the `unacked` deliveries, the `confirms`, a `transaction`, and the prefetch of later
//! consumers. The session handles frames and the encoding of replies.

pub(crate) mod annotations;
pub(crate) mod confirms;
pub(crate) mod transaction;
pub(crate) mod unacked;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::command::Outcome;
use crate::ids::{ConsumerId, DeliveryTag, ExchangeId, QueueId};
use crate::message::{Envelope, Name};
use crate::route::Route;
use crate::statistics::ChannelCounters;
use crate::time::Time;
use annotations::Annotations;
use confirms::Confirms;
use transaction::Transaction;
use unacked::{Unacked, UnackedList};

/// The publish mode of a channel.
#[derive(Default, Debug)]
pub(crate) enum PublishMode {
    /// Publishes get no answer.
    #[default]
    Plain,
    /// Every publish is confirmed or refused.
    Confirm(Confirms),
    /// Publishes and settlements wait for a commit.
    Transactional(Transaction),
}

/// The route of the last publish, which the next one with the same exchange and key reuses.
#[derive(Clone, Debug)]
pub(crate) struct LastRoute {
    /// The version of the topology that the route was found in.
    pub(crate) topology: u64,
    pub(crate) exchange: ExchangeId,
    pub(crate) envelope: Arc<Envelope>,
    pub(crate) route: Route,
}

/// A consumer of direct replies (`amq.rabbitmq.reply-to`).
#[derive(Clone, Debug)]
pub(crate) struct ReplyConsumer {
    pub(crate) tag: Name,
    /// The queue name to which replies are published.
    pub(crate) address: Name,
}

/// A consumer, as its channel refers to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConsumerAt {
    pub(crate) queue: QueueId,
    pub(crate) consumer: ConsumerId,
}

/// A channel of a connection.
#[derive(Default, Debug)]
pub struct Channel {
    pub(crate) unacked: UnackedList,
    pub(crate) consumers: BTreeMap<Name, ConsumerAt>,
    pub(crate) mode: PublishMode,
    /// `prefetch_count` of later consumers.
    pub(crate) prefetch_count: u16,
    /// Limit of unacknowledged deliveries of all consumers together; 0 is unlimited.
    pub(crate) prefetch_count_global: u16,
    /// Deliveries that count against the global prefetch.
    pub(crate) unacked_by_consumers: u32,
    /// Memory of the deliveries that are not finally settled, in bytes.
    pub(crate) unacked_bytes: u64,
    /// Deliveries have waited because `unacked_bytes` was too much; the event is sent once.
    pub(crate) was_without_memory: bool,
    pub(crate) reply_consumer: Option<ReplyConsumer>,
    pub(crate) last_route: Option<Box<LastRoute>>,
    /// The queue last declared on the channel, which an empty name stands for.
    pub(crate) last_queue: Option<Name>,
    /// Consumers that wait for room on this channel or its connection.
    pub(crate) parked: Vec<ConsumerAt>,
    /// `basic.get` commands that are not answered yet.
    pub(crate) awaited_gets: u32,
    /// True if the broker has closed the channel and the client has not confirmed; everything else is
    /// ignored.
    pub(crate) closing: bool,
    /// Listed among the channels that have confirms to send.
    pub(crate) flush_listed: bool,
    /// The wake-up that the vhost's timers hold for acknowledgement timeouts.
    pub(crate) armed: Option<Time>,
    /// The annotations of deliveries that are not settled; none unless the channel has used `amq.settle`.
    pub(crate) annotations: Option<Box<Annotations>>,
    /// Counters since the channel was opened.
    pub counters: ChannelCounters,
    last_tag: u64,
}

impl Channel {
    /// Creates a channel that the broker has closed and the client has not confirmed.
    pub(crate) fn closing() -> Self {
        Self { closing: true, ..Self::default() }
    }

    /// Assigns the tag of the next delivery.
    pub(crate) fn next_tag(&mut self) -> DeliveryTag {
        self.last_tag += 1;
        DeliveryTag(self.last_tag)
    }

    /// Counts deliveries that the client has settled.
    pub(crate) fn count_settled(&mut self, outcome: Outcome, count: usize) {
        if outcome == Outcome::Ack {
            self.counters.deliveries.acknowledged += count as u64;
        }
    }

    /// Counts the end of a delivery of `bytes` bytes.
    pub(crate) fn delivery_ended(&mut self, bytes: u64, by_consumer: bool) {
        assert!(bytes <= self.unacked_bytes, "a delivery ended twice, or was never counted");
        self.unacked_bytes -= bytes;
        if by_consumer {
            assert!(self.unacked_by_consumers > 0, "more deliveries end than are counted");
            self.unacked_by_consumers -= 1;
        }
    }

    /// True if the broker has not closed the channel.
    pub fn is_open(&self) -> bool {
        !self.closing
    }

    /// `prefetch_count` of later consumers; 0 is unlimited.
    pub fn prefetch_count(&self) -> u16 {
        self.prefetch_count
    }

    /// Limit of unacknowledged deliveries of all consumers together; 0 is unlimited.
    pub fn global_prefetch_count(&self) -> u16 {
        self.prefetch_count_global
    }

    /// True in confirm mode.
    pub fn is_confirming(&self) -> bool {
        matches!(self.mode, PublishMode::Confirm(_))
    }

    /// Publishes that are not confirmed yet.
    pub fn unconfirmed_count(&self) -> usize {
        match &self.mode {
            PublishMode::Confirm(confirms) => confirms.unconfirmed_count(),
            PublishMode::Plain | PublishMode::Transactional(_) => 0,
        }
    }

    /// Numbers of publishes and of settled deliveries that wait for commit; none outside tx mode.
    pub fn uncommitted_counts(&self) -> Option<(usize, usize)> {
        let transaction = self.in_transaction()?;
        Some((transaction.publishes.len(), transaction.deliveries().count()))
    }

    /// True if the global prefetch leaves room for another delivery.
    pub(crate) fn has_room(&self) -> bool {
        self.prefetch_count_global == 0
            || self.unacked_by_consumers < u32::from(self.prefetch_count_global)
    }

    /// The number of deliveries that are not finally settled.
    pub fn unacked_count(&self) -> usize {
        self.unacked.len()
            + self.in_transaction().map(Transaction::deliveries).map_or(0, Iterator::count)
    }

    /// The deliveries that are not finally settled, in no particular order.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = &Unacked> {
        let in_transaction = self.in_transaction().into_iter().flat_map(Transaction::deliveries);
        self.unacked.iter().chain(in_transaction)
    }

    pub(crate) fn in_transaction(&self) -> Option<&Transaction> {
        match &self.mode {
            PublishMode::Transactional(transaction) => Some(transaction),
            PublishMode::Plain | PublishMode::Confirm(_) => None,
        }
    }

    /// Number of consumers, including that of direct replies.
    pub fn consumer_count(&self) -> usize {
        self.consumers.len() + usize::from(self.reply_consumer.is_some())
    }
}
