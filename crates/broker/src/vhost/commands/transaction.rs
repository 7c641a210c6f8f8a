//! `tx.commit` and `tx.rollback`.

use super::publish::{RoutedPublish, Verdict};
use crate::channel::PublishMode;
use crate::channel::transaction::{PendingPublish, Transaction};
use crate::channel_key::ChannelKey;
use crate::effect::Outgoing;
use crate::refusal::Refusal;
use crate::vhost::Vhost;

impl Vhost {
    /// Lets the publishes into their queues, then settles the deliveries; the answer waits until all of it is
    /// durable.
    pub(in crate::vhost) fn tx_commit(&mut self, at: ChannelKey) -> Result<(), Refusal> {
        let transaction = self.take_transaction(at)?;
        let mut refused = false;
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.counters.published += transaction.publishes.len() as u64;
        }
        for publish in transaction.publishes {
            let PendingPublish { exchange, message, route, mandatory, delivery_time } = publish;
            let body_bytes = message.body().len();
            let routed = RoutedPublish { exchange, route: &route, mandatory, body_bytes };
            self.count_publish(at, message.envelope(), &routed);
            let verdict = self.enqueue_publish(at, &routed, message, delivery_time.as_deref());
            if verdict == Verdict::Refused {
                self.count_refused(at, exchange);
                refused = true;
            }
        }
        for settle in transaction.settles {
            if let Some(channel) = self.connections.channel_mut(at) {
                channel.count_settled(settle.outcome, settle.deliveries.len());
            }
            let deliveries = settle.deliveries.into_iter().map(|(_, unacked)| unacked);
            self.settle_all(at, deliveries, settle.outcome);
        }
        self.finish_deaths();
        if refused {
            return Err(Refusal::precondition_failed("partial tx completion"));
        }
        self.answer(at, false, Outgoing::TxCommitOk);
        Ok(())
    }

    /// Drops the publishes and makes settled deliveries outstanding again.
    pub(in crate::vhost) fn tx_rollback(&mut self, at: ChannelKey) -> Result<(), Refusal> {
        let transaction = self.take_transaction(at)?;
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.unacked.put_back(transaction.into_deliveries());
        }
        self.arm_channel(at);
        self.effects.send(at, Outgoing::TxRollbackOk);
        Ok(())
    }

    fn take_transaction(&mut self, at: ChannelKey) -> Result<Transaction, Refusal> {
        match self.connections.channel_mut(at).map(|channel| &mut channel.mode) {
            Some(PublishMode::Transactional(transaction)) => Ok(std::mem::take(transaction)),
            _ => Err(Refusal::precondition_failed("channel is not transactional")),
        }
    }
}
