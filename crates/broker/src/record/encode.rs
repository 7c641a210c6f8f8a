//! Encodes records as bytes. `docs/internals/formats/records.md` has the tables.
//!
//! Numbers are varints (seven bits per byte, lowest first); strings and tables are prefixed with their
//! length. A record that annotates begins with the eight-byte number of the queue, by which the log distinguishes
//! annotations of different queues.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{BindingRecord, Entries, ExchangeRecord, QueueRecord, Record};
use crate::death_history::{DeathHistory, DeathReason, DeathSummary};
use crate::ids::{EntryId, QueueNumber};
use crate::message::{Envelope, Message, RoutingKey};
use crate::policy::{Policy, PolicyKind};
use crate::setting::PolicyValue;
use crate::time::{Now, Time};

impl Record {
    /// Appends the encoded record. `at` is the moment of the recorded event.
    pub fn encode(&self, at: Now, out: &mut Vec<u8>) {
        self.encode_without_body(at, out);
        if let Some(message) = self.message() {
            out.extend_from_slice(message.body());
        }
    }

    /// Appends the encoded record without the body of its [`message`](Self::message), which would come last.
    /// `at` is the moment of the recorded event.
    pub fn encode_without_body(&self, at: Now, out: &mut Vec<u8>) {
        match self {
            Self::Publish { message, entries } => put_arrival(at, message, entries, out),
            Self::Schedule { message, entries, ready_at } => {
                put_number(delay_us(*ready_at, at), out);
                put_arrival(at, message, entries, out);
            }
            Self::Ready { queue, entry, to } => {
                out.extend(queue.0.to_le_bytes());
                put_entry(*entry, out);
                put_entry(*to, out);
                put_number(at.wall_ms(), out);
            }
            Self::Reschedule { queue, entry, ready_at, scheduled_for_ms } => {
                out.extend(queue.0.to_le_bytes());
                put_entry(*entry, out);
                put_number(delay_us(*ready_at, at), out);
                put_number(at.wall_ms(), out);
                scheduled_for_ms.iter().for_each(|millis| put_number(*millis, out));
            }
            Self::Settle { queue, entry } => put_place(*queue, *entry, out),
            Self::DeadLetter { queue, entry, message, entries } => {
                put_place(*queue, *entry, out);
                put_arrival(at, message, entries, out);
            }
            Self::Requeue { queue, entry, acquired_count, delivery_count, ready_at } => {
                out.extend(queue.0.to_le_bytes());
                put_entry(*entry, out);
                put_number(u64::from(*acquired_count), out);
                put_number(u64::from(*delivery_count), out);
                // The delay is stored with the wall-clock time, because the wall clock runs on while the
                // broker is down.
                put_number(ready_at.map_or(0, |ready_at| 1 + delay_us(ready_at, at)), out);
                put_number(at.wall_ms(), out);
            }
            Self::Annotate { queue, entry, headers } => {
                out.extend(queue.0.to_le_bytes());
                put_entry(*entry, out);
                put_bytes(headers.as_ref().as_bytes(), out);
            }
            Self::Pend { queue, entry, reason } => {
                out.extend(queue.0.to_le_bytes());
                put_entry(*entry, out);
                out.push(reason_byte(*reason));
            }
            Self::Delivered { queue, up_to } => {
                out.extend(queue.0.to_le_bytes());
                put_number(*up_to, out);
            }
            Self::Purge { queue, kept } => {
                put_number(queue.0, out);
                put_number(kept.len() as u64, out);
                kept.iter().for_each(|entry| put_entry(*entry, out));
            }
            Self::DeclareQueue(queue) => put_queue(queue, out),
            Self::DeleteQueue { queue } => put_number(queue.0, out),
            Self::DeclareExchange(exchange) => put_exchange(exchange, out),
            Self::DeleteExchange { name } => put_bytes(name.as_bytes(), out),
            Self::Bind(binding) | Self::Unbind(binding) => put_binding(binding, out),
            Self::SetPolicy { kind, policy } => put_policy(*kind, policy, out),
            Self::ClearPolicy { kind, name } => {
                out.push(policy_kind_byte(*kind));
                put_bytes(name.as_bytes(), out);
            }
            Self::SetRedrive { id, job } => {
                put_number(id.0, out);
                put_bytes(job, out);
            }
            Self::ClearRedrive { id } => put_number(id.0, out),
            Self::Digest(digest) => digest.encode(out),
            Self::HandOver { ends } => out.push(u8::from(*ends)),
        }
    }
}

fn put_queue(queue: &QueueRecord, out: &mut Vec<u8>) {
    put_number(queue.queue.0, out);
    put_bytes(queue.name.as_bytes(), out);
    out.push(u8::from(queue.auto_delete));
    put_bytes(queue.arguments.as_ref().as_bytes(), out);
    put_bytes(queue.declared_by.as_bytes(), out);
}

fn put_exchange(exchange: &ExchangeRecord, out: &mut Vec<u8>) {
    put_bytes(exchange.name.as_bytes(), out);
    put_bytes(exchange.kind.as_str().as_bytes(), out);
    out.push(u8::from(exchange.auto_delete) | u8::from(exchange.internal) << 1);
    put_bytes(exchange.arguments.as_ref().as_bytes(), out);
    put_bytes(exchange.declared_by.as_bytes(), out);
    if let Some(store) = exchange.store {
        put_number(store.0, out);
    }
}

pub(super) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            out.push(low & 0x7F);
            return;
        }
        out.push(low | 0x80);
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_entry(entry: EntryId, out: &mut Vec<u8>) {
    put_number(entry.seq, out);
    out.push(entry.level);
}

fn put_place(queue: QueueNumber, entry: EntryId, out: &mut Vec<u8>) {
    put_number(queue.0, out);
    put_entry(entry, out);
}

/// The delay until `ready_at` as it is stored beside the milliseconds of `at`: from their end on, which is what they are
/// read back as, so that the same point in time is read back.
fn delay_us(ready_at: Time, at: Now) -> u64 {
    let end_of_ms = at.time.plus_micros(999 - at.wall_us % 1000);
    ready_at.micros_since(end_of_ms)
}

/// Appends the arrival of a message: time, queues and the message without its body.
fn put_arrival(at: Now, message: &Message, entries: &Entries, out: &mut Vec<u8>) {
    put_number(at.wall_ms(), out);
    put_number(entries.len() as u64, out);
    entries.iter().for_each(|(queue, entry)| put_place(*queue, *entry, out));
    put_message_head(message, out);
}

/// Flag: deaths follow in the format of the first builds, each with all its keys.
pub(super) const MESSAGE_DIED_UNSHARED: u8 = 1;

/// Flag: deaths follow.
pub(super) const MESSAGE_DIED: u8 = 2;

/// Flag: the message may have been delivered before a crash without a record of the delivery.
pub(super) const MESSAGE_MAYBE_SEEN: u8 = 4;

/// Stands in place of the number of keys plus one: the death shares an earlier list of several keys, whose
/// index follows.
pub(super) const KEYS_OF_BEFORE: u64 = 0;

/// Appends a whole message; the body comes last.
pub(crate) fn put_message(message: &Message, out: &mut Vec<u8>) {
    put_message_head(message, out);
    out.extend_from_slice(message.body());
}

/// Appends a message without its body.
fn put_message_head(message: &Message, out: &mut Vec<u8>) {
    put_envelope(message.envelope(), out);
    let died = if message.deaths().is_some() { MESSAGE_DIED } else { 0 };
    let seen = if message.is_maybe_seen() { MESSAGE_MAYBE_SEEN } else { 0 };
    out.push(died | seen);
    if let Some(deaths) = message.deaths() {
        put_deaths(deaths, out);
    }
    put_bytes(message.properties(), out);
}

fn put_envelope(envelope: &Envelope, out: &mut Vec<u8>) {
    put_bytes(envelope.exchange.as_bytes(), out);
    put_bytes(envelope.routing_key.as_bytes(), out);
    put_keys(&envelope.cc, out);
    put_keys(&envelope.bcc, out);
}

fn put_keys(keys: &[RoutingKey], out: &mut Vec<u8>) {
    put_number(keys.len() as u64, out);
    keys.iter().for_each(|key| put_bytes(key.as_bytes(), out));
}

fn put_deaths(deaths: &DeathHistory, out: &mut Vec<u8>) {
    put_summary(&deaths.first, out);
    put_summary(&deaths.last, out);
    put_number(deaths.entries.len() as u64, out);
    let mut lists: SmallVec<[&Arc<[RoutingKey]>; 4]> = SmallVec::new();
    for death in &deaths.entries {
        put_bytes(death.queue.as_bytes(), out);
        out.push(reason_byte(death.reason));
        put_number(death.count, out);
        put_number(death.time_s, out);
        put_bytes(death.exchange.as_bytes(), out);
        put_shared_keys(&death.routing_keys, &mut lists, out);
        put_number(death.original_expiration_ms.map_or(0, |ms| ms + 1), out);
    }
}

/// Appends the keys of a death. A list of several keys is written once and referred to by deaths that share
/// it. The linear search is cheap, because a dead-letter routing key replaces all keys and so a message has
/// few distinct lists.
fn put_shared_keys<'a>(
    keys: &'a Arc<[RoutingKey]>,
    lists: &mut SmallVec<[&'a Arc<[RoutingKey]>; 4]>,
    out: &mut Vec<u8>,
) {
    if keys.len() > 1 {
        if let Some(at) = lists.iter().position(|list| Arc::ptr_eq(list, keys)) {
            put_number(KEYS_OF_BEFORE, out);
            put_number(at as u64, out);
            return;
        }
        lists.push(keys);
    }
    put_number(keys.len() as u64 + 1, out);
    keys.iter().for_each(|key| put_bytes(key.as_bytes(), out));
}

fn put_summary(summary: &DeathSummary, out: &mut Vec<u8>) {
    put_bytes(summary.queue.as_bytes(), out);
    out.push(reason_byte(summary.reason));
    put_bytes(summary.exchange.as_bytes(), out);
}

fn reason_byte(reason: DeathReason) -> u8 {
    match reason {
        DeathReason::Rejected => 1,
        DeathReason::Expired => 2,
        DeathReason::Maxlen => 3,
        DeathReason::DeliveryLimit => 4,
    }
}

fn put_binding(binding: &BindingRecord, out: &mut Vec<u8>) {
    put_bytes(binding.source.as_bytes(), out);
    out.push(u8::from(binding.to_queue));
    put_bytes(binding.destination.as_bytes(), out);
    put_bytes(binding.routing_key.as_bytes(), out);
    put_bytes(binding.arguments.as_ref().as_bytes(), out);
}

fn policy_kind_byte(kind: PolicyKind) -> u8 {
    match kind {
        PolicyKind::User => 1,
        PolicyKind::Operator => 2,
    }
}

fn put_policy(kind: PolicyKind, policy: &Policy, out: &mut Vec<u8>) {
    out.push(policy_kind_byte(kind));
    put_bytes(policy.name.as_bytes(), out);
    put_bytes(policy.pattern.as_str().as_bytes(), out);
    put_bytes(policy.apply_to.as_str().as_bytes(), out);
    out.extend(policy.priority.to_le_bytes());
    let entries: Vec<_> = policy.definition.iter().collect();
    put_number(entries.len() as u64, out);
    for (key, value) in entries {
        put_bytes(key.as_str().as_bytes(), out);
        match &value {
            PolicyValue::Integer(value) => {
                out.push(1);
                out.extend(value.to_le_bytes());
            }
            PolicyValue::Float(value) => {
                out.push(2);
                out.extend(value.to_le_bytes());
            }
            PolicyValue::Text(value) => {
                out.push(3);
                put_bytes(value.as_bytes(), out);
            }
            PolicyValue::Other(value) => {
                out.push(4);
                put_bytes(value.as_bytes(), out);
            }
        }
    }
}
