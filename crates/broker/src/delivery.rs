//! A message on its way to a client, with the headers that its queue adds.

use std::borrow::Cow;

use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};

use crate::ids::DeliveryTag;
use crate::message::Message;

/// A message on its way to a client.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The delivery tag on the channel.
    pub tag: DeliveryTag,
    /// True if the message was delivered before.
    pub redelivered: bool,
    /// Counts that the queue adds as headers; none if the queue type does not count, or the message was never
    /// delivered.
    pub counts: Option<DeliveryCounts>,
    /// The message.
    pub message: Message,
}

/// The delivery counts of a message in a quorum queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveryCounts {
    /// `x-acquired-count`: earlier deliveries.
    pub acquired: u32,
    /// `x-delivery-count`: failed deliveries; shown from 1 on.
    pub delivery: u32,
}

impl Delivery {
    /// The encoded properties as sent to the client. The headers with the queue's counts replace headers that
    /// a client sent under these names.
    pub fn properties(&self) -> Cow<'_, [u8]> {
        match self.counts {
            None => Cow::Borrowed(self.message.properties()),
            Some(counts) => Cow::Owned(with_counts(self.message.properties(), counts)),
        }
    }
}

fn with_counts(properties: &[u8], counts: DeliveryCounts) -> Vec<u8> {
    // The publish has already validated the properties.
    let mut properties = Properties::parse(properties).unwrap_or_default();
    let headers = counted_headers(&properties, counts);
    properties.headers = Some(headers.as_ref());
    let mut out = Vec::new();
    properties.encode(&mut out);
    out
}

fn counted_headers(properties: &Properties<'_>, counts: DeliveryCounts) -> Table {
    let acquired: (&[u8], Value<'_>) =
        (b"x-acquired-count", Value::I64(i64::from(counts.acquired)));
    let delivery: (&[u8], Value<'_>) =
        (b"x-delivery-count", Value::I64(i64::from(counts.delivery)));
    let mut entries = vec![acquired];
    if counts.delivery > 0 {
        entries.push(delivery);
    }
    for (key, value) in properties.headers.iter().flat_map(|headers| headers.iter()) {
        if entries.iter().all(|(told, _)| *told != key) {
            entries.push((key, value));
        }
    }
    entries.sort_by_key(|(key, _)| *key);
    let mut table = TableBuilder::new();
    for (key, value) in entries {
        table.insert(key, value);
    }
    table.finish()
}
