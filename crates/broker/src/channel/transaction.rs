//! What a channel in tx mode has collected since the last commit (spec 7.5).
//!
//! Publishes are routed when they are made and enter their queues at commit; settled deliveries stay
//! marked until then, so that a rollback makes them outstanding again.

use crate::command::Outcome;
use crate::ids::DeliveryTag;
use crate::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_OPERATIONS_MAX};
use crate::message::Message;
use crate::refusal::Refusal;
use crate::route::Route;

/// A publish that waits for commit.
#[derive(Clone, Debug)]
pub(crate) struct PendingPublish {
    pub(crate) message: Message,
    pub(crate) route: Route,
    pub(crate) mandatory: bool,
}

/// Deliveries settled with one command.
#[derive(Clone, Debug)]
pub(crate) struct PendingSettle {
    pub(crate) tags: Vec<DeliveryTag>,
    pub(crate) outcome: Outcome,
}

/// An open transaction.
#[derive(Default, Debug)]
pub(crate) struct Transaction {
    pub(crate) publishes: Vec<PendingPublish>,
    pub(crate) settles: Vec<PendingSettle>,
    bytes: usize,
}

impl Transaction {
    /// Adds a publish.
    ///
    /// # Errors
    /// 506 when the transaction holds more than it may.
    pub(crate) fn publish(&mut self, publish: PendingPublish) -> Result<(), Refusal> {
        self.bytes += publish.message.body().len() + publish.message.properties().len();
        self.publishes.push(publish);
        self.check()
    }

    /// Adds settled deliveries.
    ///
    /// # Errors
    /// 506 when the transaction holds more than it may.
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
}
