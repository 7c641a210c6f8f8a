//! The transaction of a channel in tx mode: everything collected since the last commit.
//!
//! A publish is routed when it arrives and enters its queues at commit. Settled deliveries are kept until
//! then, so that a rollback makes them outstanding again.

use smallvec::SmallVec;

use super::unacked::Unacked;
use crate::command::Outcome;
use crate::ids::{DeliveryTag, ExchangeId, QueueId};
use crate::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_OPERATIONS_MAX, TRANSACTION_TARGETS_MAX};
use crate::message::Message;
use crate::publish_properties::delivery_time::DeliveryTime;
use crate::refusal::Refusal;
use crate::route::Route;

/// A publish that waits for commit.
#[derive(Clone, Debug)]
pub(crate) struct PendingPublish {
    pub(crate) exchange: ExchangeId,
    pub(crate) message: Message,
    pub(crate) route: Route,
    pub(crate) mandatory: bool,
    /// The delivery time that the publisher asks for; a delay counts from the commit.
    pub(crate) delivery_time: Option<Box<DeliveryTime>>,
}

impl PendingPublish {
    fn bytes(&self) -> usize {
        let route = self.route.queues.len() * size_of::<QueueId>();
        self.message.body().len() + self.message.properties().len() + route
    }

    /// The number of places that the message enters.
    fn targets(&self) -> usize {
        self.route.queues.len() + self.route.holders.len()
    }
}

/// Deliveries with their tags.
pub(crate) type Deliveries = SmallVec<[(DeliveryTag, Unacked); 1]>;

/// Deliveries settled with one command.
#[derive(Debug)]
pub(crate) struct PendingSettle {
    pub(crate) deliveries: Deliveries,
    pub(crate) outcome: Outcome,
}

/// An open transaction.
#[derive(Default, Debug)]
pub(crate) struct Transaction {
    pub(crate) publishes: Vec<PendingPublish>,
    pub(crate) settles: Vec<PendingSettle>,
    bytes: usize,
    targets: usize,
}

impl Transaction {
    /// Adds a publish.
    ///
    /// # Errors
    /// 406 if its messages enter too many queues, 506 if the transaction exceeds its other limits.
    pub(crate) fn publish(&mut self, publish: PendingPublish) -> Result<(), Refusal> {
        self.bytes += publish.bytes();
        self.targets += publish.targets();
        if self.targets > TRANSACTION_TARGETS_MAX {
            return Err(Refusal::precondition_failed(format!(
                "messages of a transaction enter more than {TRANSACTION_TARGETS_MAX} queues in total"
            )));
        }
        self.publishes.push(publish);
        self.check()
    }

    /// Adds settled deliveries.
    ///
    /// # Errors
    /// 506 if the transaction exceeds its limits.
    pub(crate) fn settle(&mut self, settle: PendingSettle) -> Result<(), Refusal> {
        self.settles.push(settle);
        self.check()
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.bytes > TRANSACTION_BYTES_MAX {
            let text = format!("transaction holds more than {TRANSACTION_BYTES_MAX} bytes");
            return Err(Refusal::resource_error(text));
        }
        if self.publishes.len() + self.settles.len() > TRANSACTION_OPERATIONS_MAX {
            let text =
                format!("transaction holds more than {TRANSACTION_OPERATIONS_MAX} operations");
            return Err(Refusal::resource_error(text));
        }
        Ok(())
    }

    /// The deliveries that a commit settles.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = &Unacked> {
        self.tagged_deliveries().map(|(_, unacked)| unacked)
    }

    /// The deliveries that a commit settles, with their tags.
    pub(crate) fn tagged_deliveries(&self) -> impl Iterator<Item = &(DeliveryTag, Unacked)> {
        self.settles.iter().flat_map(|settle| &settle.deliveries)
    }

    /// Returns the deliveries that a commit would settle.
    pub(crate) fn into_deliveries(self) -> Vec<(DeliveryTag, Unacked)> {
        self.settles.into_iter().flat_map(|settle| settle.deliveries).collect()
    }
}
