//! Decodes records from bytes.
//!
//! Bytes from a disk are checked as strictly as bytes from a socket: no length is trusted, and an invalid
//! record gives an error with its position.

use std::sync::Arc;

use amqp::properties::Properties;
use amqp::table::{Table, TableRef};

use super::encode::{KEYS_OF_BEFORE, MESSAGE_DIED, MESSAGE_DIED_UNSHARED, MESSAGE_MAYBE_SEEN};
use super::kind::Kind;
use super::{BindingRecord, Digest, Entries, ExchangeRecord, QueueDigest, QueueRecord, Record};
use crate::access::INTERNAL_USER;
use crate::death_history::{Death, DeathHistory, DeathReason, DeathSummary};
use crate::exchange::ExchangeType;
use crate::ids::{EntryId, Lsn, QueueNumber, RedriveId};
use crate::message::{Envelope, Message, Name, RoutingKey, StoredContent};
use crate::policy::{ApplyTo, Definition, Pattern, Policy, PolicyKind};
use crate::publish_properties;
use crate::setting::PolicyValue;
use crate::time::Time;

/// An error in the bytes of a record.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("a record of kind {kind} has no valid {what} at byte {offset}")]
pub struct DecodeError {
    /// The kind of the record.
    pub kind: u8,
    /// The part that is invalid.
    pub what: &'static str,
    /// Offset of the invalid part in the record, in bytes.
    pub offset: usize,
}

/// A record read from the log.
#[derive(Debug)]
pub struct Decoded {
    /// The record. Points in time in it are on the axis of the wall clock.
    pub record: Record,
    /// Wall-clock time at which the messages of the record arrived or were requeued; never earlier than the
    /// real time.
    pub arrived: Time,
}

impl Decoded {
    /// Caps the times of the record for a node that continues from `now`: nothing has arrived after `now`,
    /// even if the wall clock was ahead before, so that a message waits no longer than its TTL and its delay.
    #[must_use]
    pub(crate) fn not_after(mut self, now: Time) -> Self {
        if let Record::Requeue { ready_at: Some(ready_at), .. }
        | Record::Schedule { ready_at, .. }
        | Record::Reschedule { ready_at, .. } = &mut self.record
        {
            // The arrival is the end of its millisecond: the delay was measured within it.
            let ahead_us = self.arrived.micros_since(now.plus_micros(999));
            *ready_at = Time::from_micros(ready_at.as_micros().saturating_sub(ahead_us));
        }
        self.arrived = self.arrived.min(now);
        self
    }
}

/// The last envelope read. Consecutive messages often have the same envelope and then share one copy.
#[derive(Default, Debug)]
pub struct Envelopes {
    bytes: Vec<u8>,
    last: Option<Arc<Envelope>>,
}

impl Record {
    /// Decodes a record of this kind.
    ///
    /// # Errors
    /// If the bytes are not a valid record of this kind.
    pub fn decode(
        kind: u8,
        bytes: &[u8],
        envelopes: &mut Envelopes,
    ) -> Result<Decoded, DecodeError> {
        let mut reader = Reader { all: bytes, rest: bytes, envelopes };
        let mut arrived = Time::default();
        let record = reader
            .record(kind, &mut arrived)
            .and_then(|record| if reader.rest.is_empty() { Ok(record) } else { Err("end") });
        match record {
            Ok(record) => Ok(Decoded { record, arrived }),
            Err(what) => Err(DecodeError { kind, what, offset: bytes.len() - reader.rest.len() }),
        }
    }
}

/// A decoded value, or the name of the part that is missing or invalid.
type Read<T> = Result<T, &'static str>;

/// The encoding of the routing keys of deaths.
enum Keys {
    /// Each death has its own list.
    Each,
    /// Lists of several keys are written once; holds the lists read so far.
    Shared(Vec<Arc<[RoutingKey]>>),
}

pub(crate) struct Reader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
    envelopes: &'a mut Envelopes,
}

impl<'a> Reader<'a> {
    /// Decodes the bytes of a single message.
    ///
    /// # Errors
    /// If the bytes are not a valid message.
    pub(crate) fn whole_message(
        bytes: &'a [u8],
        envelopes: &'a mut Envelopes,
    ) -> Result<Message, DecodeError> {
        let mut reader = Reader { all: bytes, rest: bytes, envelopes };
        let fault = |what, left: usize| DecodeError { kind: 0, what, offset: bytes.len() - left };
        reader.message().map_err(|what| fault(what, reader.rest.len()))
    }

    fn record(&mut self, kind: u8, arrived: &mut Time) -> Read<Record> {
        Ok(match Kind::from_byte(kind).ok_or("kind")? {
            Kind::Publish => {
                let (message, entries) = self.arrival(arrived)?;
                Record::Publish { message, entries }
            }
            Kind::Schedule => {
                let delay_us = self.number()?;
                let (message, entries) = self.arrival(arrived)?;
                let ready_at = arrived.plus_micros(delay_us);
                Record::Schedule { message, entries, ready_at }
            }
            Kind::Ready => {
                let (queue, entry, to) = (self.whole_queue()?, self.entry()?, self.entry()?);
                *arrived = self.wall_clock()?;
                Record::Ready { queue, entry, to }
            }
            Kind::Reschedule => {
                let (queue, entry, delay_us) = (self.whole_queue()?, self.entry()?, self.number()?);
                *arrived = self.wall_clock()?;
                let ready_at = arrived.plus_micros(delay_us);
                let scheduled_for_ms =
                    if self.rest.is_empty() { None } else { Some(self.number()?) };
                Record::Reschedule { queue, entry, ready_at, scheduled_for_ms }
            }
            Kind::Settle => {
                let (queue, entry) = self.place()?;
                Record::Settle { queue, entry }
            }
            Kind::DeadLetter => {
                let (queue, entry) = self.place()?;
                let (message, entries) = self.arrival(arrived)?;
                Record::DeadLetter { queue, entry, message, entries }
            }
            Kind::Requeue => self.requeue(arrived)?,
            Kind::Annotate => Record::Annotate {
                queue: self.whole_queue()?,
                entry: self.entry()?,
                headers: self.table()?,
            },
            Kind::Pend => Record::Pend {
                queue: self.whole_queue()?,
                entry: self.entry()?,
                reason: self.reason()?,
            },
            Kind::Delivered => {
                Record::Delivered { queue: self.whole_queue()?, up_to: self.number()? }
            }
            Kind::Purge => {
                let queue = self.queue()?;
                let count = self.count()?;
                let kept = (0..count).map(|_| self.entry()).collect::<Read<_>>()?;
                Record::Purge { queue, kept }
            }
            Kind::DeclareQueue => Record::DeclareQueue(self.declared_queue()?),
            Kind::DeleteQueue => Record::DeleteQueue { queue: self.queue()? },
            Kind::DeclareExchange => Record::DeclareExchange(self.declared_exchange()?),
            Kind::DeleteExchange => Record::DeleteExchange { name: self.name()? },
            Kind::Bind => Record::Bind(self.binding()?),
            Kind::Unbind => Record::Unbind(self.binding()?),
            Kind::SetPolicy => self.policy()?,
            Kind::ClearPolicy => {
                Record::ClearPolicy { kind: self.policy_kind()?, name: self.name()? }
            }
            Kind::SetRedrive => self.redrive()?,
            Kind::ClearRedrive => Record::ClearRedrive { id: RedriveId(self.number()?) },
            Kind::Digest => Record::Digest(self.digest()?),
            Kind::HandOver => Record::HandOver { ends: self.byte()? != 0 },
        })
    }

    fn declared_queue(&mut self) -> Read<QueueRecord> {
        Ok(QueueRecord {
            queue: self.queue()?,
            name: self.name()?,
            auto_delete: self.byte()? != 0,
            arguments: self.table()?,
            declared_by: self.declared_by()?,
        })
    }

    fn digest(&mut self) -> Read<Digest> {
        let definitions = u64::from_le_bytes(self.eight()?);
        let (queue_count, messages) = (self.number()?, self.number()?);
        let seq_sum = u64::from_le_bytes(self.eight()?);
        let has_more = self.byte()? != 0;
        let count = self.count()?;
        let queues = (0..count).map(|_| self.queue_digest()).collect::<Read<_>>()?;
        Ok(Digest { definitions, queue_count, messages, seq_sum, has_more, queues })
    }

    fn queue_digest(&mut self) -> Read<QueueDigest> {
        Ok(QueueDigest {
            queue: self.queue()?,
            declared: Lsn(self.number()?),
            messages: self.number()?,
            seq_sum: u64::from_le_bytes(self.eight()?),
        })
    }

    fn declared_exchange(&mut self) -> Read<ExchangeRecord> {
        let name = self.name()?;
        let kind = ExchangeType::from_name(&self.name()?).ok_or("exchange type")?;
        let flags = self.byte()?;
        Ok(ExchangeRecord {
            name,
            kind,
            auto_delete: flags & 1 != 0,
            internal: flags & 2 != 0,
            arguments: self.table()?,
            declared_by: self.declared_by()?,
            store: if self.rest.is_empty() { None } else { Some(self.queue()?) },
        })
    }

    /// The user who declared a resource; absent in records of the first builds.
    fn declared_by(&mut self) -> Read<Name> {
        if self.rest.is_empty() { Ok(INTERNAL_USER.into()) } else { self.name() }
    }

    fn take(&mut self, count: usize, what: &'static str) -> Read<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(what)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Read<u8> {
        let (byte, rest) = self.rest.split_first().ok_or("byte")?;
        self.rest = rest;
        Ok(*byte)
    }

    fn eight(&mut self) -> Read<[u8; 8]> {
        self.take(8, "eight bytes")?.try_into().map_err(|_| "eight bytes")
    }

    fn number(&mut self) -> Read<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits.leading_zeros() < shift {
                return Err("number");
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("number")
    }

    /// Reads a count of items; every item takes at least one byte, so a larger count is invalid.
    fn count(&mut self) -> Read<usize> {
        let count = usize::try_from(self.number()?).map_err(|_| "count")?;
        if count > self.rest.len() { Err("count") } else { Ok(count) }
    }

    fn bytes(&mut self) -> Read<&'a [u8]> {
        let count = usize::try_from(self.number()?).map_err(|_| "length")?;
        self.take(count, "string")
    }

    fn name(&mut self) -> Read<Name> {
        std::str::from_utf8(self.bytes()?).map(Into::into).map_err(|_| "name")
    }

    fn table(&mut self) -> Read<Table> {
        let bytes = self.bytes()?;
        TableRef::from_bytes(bytes).map(|table| table.to_table()).map_err(|_| "table")
    }

    fn queue(&mut self) -> Read<QueueNumber> {
        self.number().map(QueueNumber)
    }

    fn whole_queue(&mut self) -> Read<QueueNumber> {
        self.eight().map(u64::from_le_bytes).map(QueueNumber)
    }

    fn entry(&mut self) -> Read<EntryId> {
        Ok(EntryId { seq: self.number()?, level: self.byte()? })
    }

    fn place(&mut self) -> Read<(QueueNumber, EntryId)> {
        Ok((self.queue()?, self.entry()?))
    }

    /// Milliseconds of the wall clock, as the end of that millisecond: never earlier than the real time.
    fn wall_clock(&mut self) -> Read<Time> {
        Ok(Time::from_micros(self.number()?.saturating_mul(1000).saturating_add(999)))
    }

    fn arrival(&mut self, arrived: &mut Time) -> Read<(Message, Entries)> {
        *arrived = self.wall_clock()?;
        let count = self.count()?;
        let entries = (0..count).map(|_| self.place()).collect::<Read<Entries>>()?;
        Ok((self.message()?, entries))
    }

    /// Reads a whole message, up to the end of the bytes.
    fn message(&mut self) -> Read<Message> {
        let envelope = self.envelope()?;
        let flags = self.byte()?;
        let deaths = match flags & !MESSAGE_MAYBE_SEEN {
            0 => None,
            MESSAGE_DIED_UNSHARED => Some(Arc::new(self.deaths(Keys::Each)?)),
            MESSAGE_DIED => Some(Arc::new(self.deaths(Keys::Shared(Vec::new()))?)),
            _ => return Err("flags"),
        };
        let maybe_seen = flags & MESSAGE_MAYBE_SEEN != 0;
        let len = usize::try_from(self.number()?).map_err(|_| "length")?;
        // The rest is the properties, followed by the body.
        let bytes = std::mem::take(&mut self.rest);
        let (properties, _) = bytes.split_at_checked(len).ok_or("properties")?;
        let properties = Properties::parse(properties).map_err(|_| "properties")?;
        let meta = publish_properties::meta(&properties).map_err(|_| "expiration")?;
        let stored = StoredContent { bytes, properties_len: len };
        Ok(Message::read_back(envelope, meta, deaths, maybe_seen, stored))
    }

    fn envelope(&mut self) -> Read<Arc<Envelope>> {
        let Envelopes { bytes, last } = &*self.envelopes;
        if let Some(last) = last.as_ref().filter(|_| self.rest.starts_with(bytes)) {
            let last = Arc::clone(last);
            self.take(self.envelopes.bytes.len(), "envelope")?;
            return Ok(last);
        }
        let from = self.rest;
        let envelope = Arc::new(Envelope {
            exchange: self.name()?,
            routing_key: self.bytes()?.into(),
            cc: self.keys()?,
            bcc: self.keys()?,
        });
        let (bytes, _) = from.split_at(from.len() - self.rest.len());
        self.envelopes.bytes.clear();
        self.envelopes.bytes.extend_from_slice(bytes);
        self.envelopes.last = Some(Arc::clone(&envelope));
        Ok(envelope)
    }

    fn keys(&mut self) -> Read<Box<[RoutingKey]>> {
        let count = self.count()?;
        (0..count).map(|_| self.bytes().map(Into::into)).collect()
    }

    fn deaths(&mut self, mut keys: Keys) -> Read<DeathHistory> {
        let (first, last) = (self.summary()?, self.summary()?);
        let count = self.count()?;
        let entries = (0..count).map(|_| self.death(&mut keys)).collect::<Read<_>>()?;
        Ok(DeathHistory { first, last, entries })
    }

    /// Reads the routing keys of a death.
    fn keys_of_death(&mut self, keys: &mut Keys) -> Read<Arc<[RoutingKey]>> {
        let Keys::Shared(lists) = keys else {
            return self.keys().map(Arc::from);
        };
        let count = match self.number()? {
            KEYS_OF_BEFORE => {
                let at = usize::try_from(self.number()?).map_err(|_| "keys")?;
                return lists.get(at).cloned().ok_or("keys");
            }
            more => usize::try_from(more - 1).map_err(|_| "count")?,
        };
        if count > self.rest.len() {
            return Err("count");
        }
        let list = (0..count).map(|_| self.bytes().map(Into::into));
        let list = Arc::from(list.collect::<Read<Vec<RoutingKey>>>()?);
        if count > 1 {
            lists.push(Arc::clone(&list));
        }
        Ok(list)
    }

    fn death(&mut self, keys: &mut Keys) -> Read<Death> {
        Ok(Death {
            queue: self.name()?,
            reason: self.reason()?,
            count: self.number()?,
            time_s: self.number()?,
            exchange: self.name()?,
            routing_keys: self.keys_of_death(keys)?,
            original_expiration_ms: self.number()?.checked_sub(1),
        })
    }

    fn summary(&mut self) -> Read<DeathSummary> {
        Ok(DeathSummary { queue: self.name()?, reason: self.reason()?, exchange: self.name()? })
    }

    fn reason(&mut self) -> Read<DeathReason> {
        match self.byte()? {
            1 => Ok(DeathReason::Rejected),
            2 => Ok(DeathReason::Expired),
            3 => Ok(DeathReason::Maxlen),
            4 => Ok(DeathReason::DeliveryLimit),
            _ => Err("reason"),
        }
    }

    fn requeue(&mut self, arrived: &mut Time) -> Read<Record> {
        let (queue, entry) = (self.whole_queue()?, self.entry()?);
        let acquired_count = u32::try_from(self.number()?).map_err(|_| "count")?;
        let delivery_count = u32::try_from(self.number()?).map_err(|_| "count")?;
        let delay_us = self.number()?.checked_sub(1);
        *arrived = self.wall_clock()?;
        let ready_at = delay_us.map(|delay_us| arrived.plus_micros(delay_us));
        Ok(Record::Requeue { queue, entry, acquired_count, delivery_count, ready_at })
    }

    fn binding(&mut self) -> Read<BindingRecord> {
        Ok(BindingRecord {
            source: self.name()?,
            to_queue: self.byte()? != 0,
            destination: self.name()?,
            routing_key: self.name()?,
            arguments: self.table()?,
        })
    }

    fn policy_kind(&mut self) -> Read<PolicyKind> {
        match self.byte()? {
            1 => Ok(PolicyKind::User),
            2 => Ok(PolicyKind::Operator),
            _ => Err("kind of policy"),
        }
    }

    fn redrive(&mut self) -> Read<Record> {
        Ok(Record::SetRedrive { id: RedriveId(self.number()?), job: self.bytes()?.into() })
    }

    fn policy(&mut self) -> Read<Record> {
        let kind = self.policy_kind()?;
        let name = self.name()?;
        let pattern = Pattern::stored(&self.name()?);
        let apply_to = ApplyTo::parse(&self.name()?).map_err(|_| "apply-to")?;
        let priority = f64::from_le_bytes(self.eight()?);
        let count = self.count()?;
        let entries = (0..count)
            .map(|_| Ok((self.name()?.to_string(), self.policy_value()?)))
            .collect::<Read<Vec<_>>>()?;
        let definition = Definition::parse(entries, kind).map_err(|_| "definition")?;
        let policy = Arc::new(Policy { name, pattern, apply_to, priority, definition });
        Ok(Record::SetPolicy { kind, policy })
    }

    fn policy_value(&mut self) -> Read<PolicyValue> {
        Ok(match self.byte()? {
            1 => PolicyValue::Integer(i64::from_le_bytes(self.eight()?)),
            2 => PolicyValue::Float(f64::from_le_bytes(self.eight()?)),
            3 => PolicyValue::Text(self.name()?.to_string()),
            4 => PolicyValue::Other(self.name()?.to_string()),
            _ => return Err("value"),
        })
    }
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} bytes left", self.rest.len(), self.all.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Decoding any bytes gives a record or an error, never a panic.
        #[test]
        fn decode_returns_a_record_or_an_error(
            kind in 0_u8..32,
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Ok(decoded) = Record::decode(kind, &bytes, &mut Envelopes::default()) {
                prop_assert_eq!(decoded.record.kind(), kind);
            }
        }
    }

    #[test]
    fn decode_error_has_the_offset() {
        let decode = |kind, bytes: &[u8]| Record::decode(kind, bytes, &mut Envelopes::default());
        let error = decode(2, &[7, 0x80]).unwrap_err();
        let text = "a record of kind 2 has no valid byte at byte 2";
        assert_eq!(error.to_string(), text);
        assert!(decode(99, &[]).is_err());
        assert_eq!(decode(17, &[1, 2]).unwrap_err().what, "end");
    }

    #[test]
    fn queue_record_without_user_is_decoded() {
        let declared_by = |bytes: &[u8]| {
            let decoded = Record::decode(16, bytes, &mut Envelopes::default()).unwrap();
            let Record::DeclareQueue(queue) = decoded.record else { panic!("no queue") };
            queue.declared_by.to_string()
        };
        let queue = [7, 1, b'q', 0, 0];
        assert_eq!(declared_by(&queue), INTERNAL_USER);
        assert_eq!(declared_by(&[&queue[..], &[4], b"anna"].concat()), "anna");
    }
}
