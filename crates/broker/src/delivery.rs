//! A message on its way to a client, and what its queue tells with it.

use std::borrow::Cow;

use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};

use crate::ids::DeliveryTag;
use crate::message::Message;

/// A message on its way to a client.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its tag on the channel.
    pub tag: DeliveryTag,
    /// Whether it was delivered before.
    pub redelivered: bool,
    /// Headers that the queue adds, if its type counts deliveries and there is something to tell.
    pub counts: Option<DeliveryCounts>,
    /// The message.
    pub message: Message,
}

/// How often a quorum queue has handed out a message before (spec 7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveryCounts {
    /// `x-acquired-count`.
    pub acquired: u32,
    /// `x-delivery-count`, shown from 1 on.
    pub delivery: u32,
}

impl Delivery {
    /// The encoded properties as the client gets them. The headers by which a queue tells how often it
    /// has handed out the message replace what a client sent under these names (spec 7.2).
    pub fn properties(&self) -> Cow<'_, [u8]> {
        match self.counts {
            None => Cow::Borrowed(self.message.properties()),
            Some(counts) => Cow::Owned(with_counts(self.message.properties(), counts)),
        }
    }
}

fn with_counts(properties: &[u8], counts: DeliveryCounts) -> Vec<u8> {
    // They were validated when the message was published.
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
