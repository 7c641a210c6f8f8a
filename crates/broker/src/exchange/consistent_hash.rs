//! `x-consistent-hash`: each message goes to one destination, always the same for the same key. The binding
//! keys are weights, and a destination receives messages in proportion to its weight.
//!
//! Buckets are numbered in the order of binding; the weight of a destination is the number of its buckets,
//! and a jump hash of the key picks a bucket. A destination bound twice keeps the weight of its first binding
//! (observed on RabbitMQ 4.3.6). The hash covers the routing key, or the header or property named by the
//! exchange arguments `hash-header` and `hash-property`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use amqp::erlang_binary::PrintedBinary;
use amqp::table::{TableRef, Value};

use super::binding::{Binding, Destination};
use super::destinations::Destinations;
use super::routable::{Routable, stable_hash};
use crate::erlang_term;
use crate::limits::CONSISTENT_HASH_WEIGHT_MAX;
use crate::refusal::Refusal;

/// The bindings, their buckets and the part of a message that is hashed.
#[derive(Debug)]
pub(super) struct ConsistentHash {
    hashed: Hashed,
    /// Bindings by number, in the order of binding.
    bindings: BTreeMap<u64, (Destination, u32)>,
    /// The numbers of the bindings, by destination and weight.
    numbers: BTreeSet<(Destination, u32, u64)>,
    last_number: u64,
    /// The number of bindings of each destination.
    destinations: Destinations,
    /// Each destination with the end of its bucket range; computed when a message needs it.
    buckets: OnceLock<Vec<(Destination, u64)>>,
}

#[derive(Debug)]
enum Hashed {
    RoutingKey,
    Header(Box<str>),
    Property(Property),
}

#[derive(Clone, Copy, Debug)]
enum Property {
    CorrelationId,
    MessageId,
    Timestamp,
}

/// Refuses binding keys that are not weights.
pub(super) fn check_binding(key: &str) -> Result<(), Refusal> {
    weight(key).map(|_| ())
}

fn weight(key: &str) -> Result<u32, Refusal> {
    let digits = key.strip_prefix(['+', '-']).unwrap_or(key);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Refusal::precondition_failed(format!(
            "The binding key must be an integer: {}",
            PrintedBinary(key.as_bytes())
        )));
    }
    if key.starts_with('-') || digits.bytes().all(|b| b == b'0') {
        return Err(Refusal::precondition_failed("The binding key must be greater than 0"));
    }
    match digits.parse() {
        Ok(weight) if weight <= CONSISTENT_HASH_WEIGHT_MAX => Ok(weight),
        _ => Err(Refusal::precondition_failed(format!(
            "The binding key must not exceed {CONSISTENT_HASH_WEIGHT_MAX}"
        ))),
    }
}

impl ConsistentHash {
    /// Creates an exchange of this type from its arguments.
    ///
    /// # Errors
    /// 406 if `hash-header` and `hash-property` do not name one thing to hash.
    pub(super) fn new(arguments: TableRef<'_>) -> Result<Self, Refusal> {
        let text = |name: &str| match arguments.get(name) {
            None => Ok(None),
            Some(Value::LongStr(text)) => Ok(Some(String::from_utf8_lossy(text).into_owned())),
            Some(other) => Err(Refusal::precondition_failed(format!(
                "{name} must be a longstr, got {}",
                other.type_name()
            ))),
        };
        let hashed = match (text("hash-header")?, text("hash-property")?) {
            (None, None) => Hashed::RoutingKey,
            (Some(header), None) => Hashed::Header(header.into()),
            (None, Some(property)) => Hashed::Property(match property.as_str() {
                "correlation_id" => Property::CorrelationId,
                "message_id" => Property::MessageId,
                "timestamp" => Property::Timestamp,
                other => {
                    let text = format!("Unsupported property: {other}");
                    return Err(Refusal::precondition_failed(text));
                }
            }),
            (Some(_), Some(_)) => {
                let text = "hash-header and hash-property are mutually exclusive";
                return Err(Refusal::precondition_failed(text));
            }
        };
        Ok(Self {
            hashed,
            bindings: BTreeMap::new(),
            numbers: BTreeSet::new(),
            last_number: 0,
            destinations: Destinations::default(),
            buckets: OnceLock::new(),
        })
    }

    pub(super) fn bind(&mut self, binding: &Binding) {
        // `check_binding` has checked the key, except of bindings in the log of an older version.
        let weight = weight(&binding.routing_key).unwrap_or(1);
        self.last_number += 1;
        let number = self.last_number;
        let is_new = !self.destinations.contains(binding.destination);
        if let Some(buckets) = self.buckets.get_mut().filter(|_| is_new) {
            let before = buckets.last().map_or(0, |(_, end)| *end);
            buckets.push((binding.destination, before + u64::from(weight)));
        }
        self.bindings.insert(number, (binding.destination, weight));
        self.numbers.insert((binding.destination, weight, number));
        self.destinations.add(binding.destination);
    }

    pub(super) fn unbind(&mut self, binding: &Binding) {
        let weight = weight(&binding.routing_key).unwrap_or(1);
        let alike = (binding.destination, weight, 0)..=(binding.destination, weight, u64::MAX);
        let gone = self.numbers.range(alike).next().copied();
        let gone = gone.expect("a binding that is removed was added");
        self.numbers.remove(&gone);
        self.bindings.remove(&gone.2);
        self.destinations.remove(binding.destination);
        // Buckets are renumbered for the next message, not once for each of a thousand removed bindings.
        self.buckets.take();
    }

    fn numbered(&self) -> Vec<(Destination, u64)> {
        let mut seen = BTreeSet::new();
        let mut end = 0;
        let firsts = self.bindings.values().filter(|(destination, _)| seen.insert(*destination));
        let buckets = firsts.map(|(destination, weight)| {
            end += u64::from(*weight);
            (*destination, end)
        });
        buckets.collect()
    }

    pub(super) fn route(&self, message: Routable<'_>, found: &mut dyn FnMut(Destination)) {
        let buckets = self.buckets.get_or_init(|| self.numbered());
        let Some((_, count)) = buckets.last() else {
            return;
        };
        let hash = self.hash(message);
        let bucket = jump(hash, *count);
        let at = buckets.partition_point(|(_, end)| *end <= bucket);
        if let Some((destination, _)) = buckets.get(at) {
            found(*destination);
        }
    }

    /// True if the exchange hashes the routing key.
    pub(super) fn hashes_key(&self) -> bool {
        matches!(self.hashed, Hashed::RoutingKey)
    }

    fn hash(&self, message: Routable<'_>) -> u64 {
        let hash = |bytes: Option<&[u8]>| stable_hash(bytes.unwrap_or_default());
        match &self.hashed {
            Hashed::RoutingKey => stable_hash(message.routing_key),
            Hashed::Header(name) => match message.headers().get(name) {
                None => hash(None),
                Some(Value::LongStr(text)) => hash(Some(text)),
                Some(other) => hash(Some(erlang_term::value(&other).as_bytes())),
            },
            Hashed::Property(Property::CorrelationId) => hash(message.decoded().correlation_id),
            Hashed::Property(Property::MessageId) => hash(message.decoded().message_id),
            Hashed::Property(Property::Timestamp) => {
                hash(message.decoded().timestamp.map(u64::to_be_bytes).as_ref().map(|b| &b[..]))
            }
        }
    }
}

/// Lamping and Veach's jump consistent hash: picks a bucket in `0..count`.
fn jump(mut key: u64, count: u64) -> u64 {
    let (mut bucket, mut next) = (0_u64, 0_u64);
    while next < count {
        bucket = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let divisor = (key >> 33) + 1;
        next =
            u64::try_from((u128::from(bucket + 1) << 31) / u128::from(divisor)).unwrap_or(u64::MAX);
    }
    bucket
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_even_and_stay_when_more_are_added() {
        let mut counts = [0_u32; 10];
        for key in 0..10_000_u64 {
            let hash = stable_hash(&key.to_be_bytes());
            let before = jump(hash, 9);
            let after = jump(hash, 10);
            assert!(after == before || after == 9, "a key moves only to the new bucket");
            counts[usize::try_from(after).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn binding_keys_are_weights() {
        let explain = |key| check_binding(key).unwrap_err().explanation;
        assert_eq!(weight("05").unwrap(), 5);
        assert_eq!(weight("10000").unwrap(), 10_000);
        assert_eq!(explain("0"), "The binding key must be greater than 0");
        assert_eq!(explain("-1"), "The binding key must be greater than 0");
        assert_eq!(explain("1.5"), "The binding key must be an integer: <<\"1.5\">>");
        assert_eq!(explain(""), "The binding key must be an integer: <<>>");
        assert_eq!(explain("10001"), "The binding key must not exceed 10000");
    }
}
