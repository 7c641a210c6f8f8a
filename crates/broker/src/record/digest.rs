//! Digests of the durable state of a replicated vhost, by which replicas find that they differ from their leader.

use super::Record;
use super::encode::put_number;
use crate::ids::{Lsn, QueueNumber};
use crate::time::Now;

/// The durable state of a vhost, in short: sums over everything, and those of single queues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digest {
    /// Sum of the hashes of all durable queues, exchanges, bindings and policies, modulo 2^64.
    pub definitions: u64,
    /// Number of durable queues and delayed exchanges.
    pub queue_count: u64,
    /// Number of durable messages in them.
    pub messages: u64,
    /// Sum of the entry numbers of these messages, modulo 2^64.
    pub seq_sum: u64,
    /// True if the digest of the same moment continues in the next record.
    pub has_more: bool,
    /// Queues and delayed exchanges that have changed since the digest before.
    pub queues: Vec<QueueDigest>,
}

/// The durable messages of a queue or delayed exchange, in short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueDigest {
    /// The number of the queue in the log.
    pub queue: QueueNumber,
    /// The record that declared the queue.
    pub declared: Lsn,
    /// Number of durable messages in the queue, unacknowledged ones included.
    pub messages: u64,
    /// Sum of their entry numbers, modulo 2^64.
    pub seq_sum: u64,
}

impl Digest {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.definitions.to_le_bytes());
        put_number(self.queue_count, out);
        put_number(self.messages, out);
        out.extend(self.seq_sum.to_le_bytes());
        out.push(u8::from(self.has_more));
        put_number(self.queues.len() as u64, out);
        for queue in &self.queues {
            put_number(queue.queue.0, out);
            put_number(queue.declared.0, out);
            put_number(queue.messages, out);
            out.extend(queue.seq_sum.to_le_bytes());
        }
    }
}

/// The hash of a definition, by the record that makes or ends it: FNV-1a with 64 bits over the encoded record. Every
/// build and platform gives the same hash. The records of a binding and of its end give the same.
pub(crate) fn definition_hash(record: &Record) -> u64 {
    const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let mut bytes = Vec::with_capacity(128);
    if let Record::Unbind(binding) = record {
        return definition_hash(&Record::Bind(binding.clone()));
    }
    bytes.push(record.kind());
    // No definition contains a time.
    record.encode(Now::default(), &mut bytes);
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{BindingRecord, Envelopes};
    use amqp::table::Table;

    #[test]
    fn digest_is_read_as_it_was_written() {
        let queue = |number| QueueDigest {
            queue: QueueNumber(number),
            declared: Lsn(300),
            messages: 2,
            seq_sum: 7,
        };
        let digest = Digest {
            definitions: u64::MAX - 1,
            queue_count: 1 << 40,
            messages: 3,
            seq_sum: 1 << 63,
            has_more: true,
            queues: vec![queue(1), queue(500)],
        };
        let record = Record::Digest(digest.clone());
        let mut bytes = Vec::new();
        record.encode(Now::default(), &mut bytes);
        let read = Record::decode(240, &bytes, &mut Envelopes::default()).unwrap();
        assert!(matches!(read.record, Record::Digest(read) if read == digest));
        for len in 0..bytes.len() {
            let (cut, _) = bytes.split_at(len);
            assert!(Record::decode(240, cut, &mut Envelopes::default()).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn hashes_of_definitions_are_those_of_other_builds() {
        let binding = |key: &str| BindingRecord {
            source: "x".into(),
            to_queue: true,
            destination: "q".into(),
            routing_key: key.into(),
            arguments: Table::default(),
        };
        let hash = definition_hash(&Record::Bind(binding("k")));
        assert_eq!(hash, definition_hash(&Record::Unbind(binding("k"))));
        assert_ne!(hash, definition_hash(&Record::Bind(binding("l"))));
        // Computed apart from this code.
        assert_eq!(hash, 4_765_720_318_956_237_909);
    }
}
