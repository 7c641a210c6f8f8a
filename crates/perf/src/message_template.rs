//! Messages that are encoded once and sent many times.
//!
//! [`EncodedMessages`] is a cycle of messages in their wire form. The fields that differ from message to
//! message (time of sending, TTL, number) have a fixed place in the first bytes of the body and are
//! written just before messages are sent: no message is encoded twice.
//!
//! ```text
//! 0              8        12            20
//! +--------------+--------+-------------+-------
//! | sent at, ns  | TTL ms |   number    |  'x'...
//! +--------------+--------+-------------+-------
//! ```

use std::ops::RangeInclusive;

use amqp::content_header::write_content_header;
use amqp::frame::write_body_frames;
use amqp::limits::FRAME_OVERHEAD;
use amqp::method::{BasicPublish, write_method};
use amqp::properties::Properties;

use crate::connection::CHANNEL;

/// Bytes of a stamp; smaller bodies carry none.
pub(crate) const STAMP_BYTES: usize = 20;

/// Bytes that one write should carry; shorter cycles are repeated up to this length.
pub(crate) const WRITE_BYTES: usize = 64 * 1024;

/// Number of different TTLs in a cycle.
const TTL_CYCLE: usize = 8192;

/// Largest size of a cycle, in bytes; it is cut behind this size.
const ENCODED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Properties that all messages of a producer share.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageTemplate {
    pub(crate) exchange: String,
    /// Routing keys, at least one, which the producer uses in turn.
    pub(crate) routing_keys: Vec<String>,
    /// Size of a body, in bytes.
    pub(crate) size: usize,
    pub(crate) is_persistent: bool,
    pub(crate) is_mandatory: bool,
    pub(crate) priority_max: Option<u8>,
    /// Range from which the TTL of each message is drawn.
    pub(crate) ttl_ms: Option<RangeInclusive<u32>>,
}

/// Fields in the first bytes of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stamp {
    /// Time of sending, in nanoseconds since the run began.
    pub(crate) sent_ns: u64,
    /// TTL of the message; 0 for none.
    pub(crate) ttl_ms: u32,
    /// Number of the message at its producer.
    pub(crate) number: u64,
}

impl Stamp {
    /// Reads the stamp of a body, if it is large enough for one.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let (sent, rest) = body.split_first_chunk::<8>()?;
        let (ttl, rest) = rest.split_first_chunk::<4>()?;
        let number = rest.first_chunk::<8>()?;
        Some(Self {
            sent_ns: u64::from_be_bytes(*sent),
            ttl_ms: u32::from_be_bytes(*ttl),
            number: u64::from_be_bytes(*number),
        })
    }
}

/// Place of a message in the encoded cycle.
#[derive(Clone, Copy, Debug)]
struct EncodedMessage {
    /// Offset of the body.
    body: usize,
    /// End of the message.
    end: usize,
}

/// A cycle of encoded messages.
#[derive(Debug)]
pub(crate) struct EncodedMessages {
    bytes: Vec<u8>,
    messages: Vec<EncodedMessage>,
    is_stamped: bool,
    /// Index of the next message to send.
    at: usize,
    /// Number of messages sent.
    sent: u64,
}

impl EncodedMessages {
    /// Encodes the cycle; `payload_max` is the largest payload of a body frame, in bytes.
    pub(crate) fn new(
        template: &MessageTemplate,
        payload_max: u32,
        random: &mut fastrand::Rng,
    ) -> Self {
        let mut encoded = Self {
            bytes: Vec::new(),
            messages: Vec::new(),
            is_stamped: template.size >= STAMP_BYTES,
            at: 0,
            sent: 0,
        };
        let cycle = if template.ttl_ms.is_some() { TTL_CYCLE } else { 1 };
        let cycle = cycle.max(template.routing_keys.len());
        let mut keys = template.routing_keys.iter().cycle();
        while encoded.bytes.len() < WRITE_BYTES || encoded.messages.len() < cycle {
            let key = keys.next().map(String::as_str).unwrap_or_default();
            encoded.add(template, key, payload_max, random);
            if encoded.bytes.len() > ENCODED_BYTES_MAX {
                break;
            }
        }
        encoded
    }

    fn add(
        &mut self,
        template: &MessageTemplate,
        key: &str,
        payload_max: u32,
        random: &mut fastrand::Rng,
    ) {
        let ttl_ms = template.ttl_ms.clone().map(|range| random.u32(range));
        let expiration = ttl_ms.map(|ttl_ms| ttl_ms.to_string());
        let properties = Properties {
            delivery_mode: template.is_persistent.then_some(2),
            priority: template.priority_max.map(|max| random.u8(0..=max)),
            expiration: expiration.as_ref().map(String::as_bytes),
            ..Properties::default()
        };
        let mut raw_properties = Vec::new();
        properties.encode(&mut raw_properties);
        let mut body = vec![b'x'; template.size];
        if let (true, Some(place)) = (self.is_stamped, body.get_mut(8..12)) {
            place.copy_from_slice(&ttl_ms.unwrap_or(0).to_be_bytes());
        }
        let publish = BasicPublish {
            exchange: template.exchange.as_bytes(),
            routing_key: key.as_bytes(),
            mandatory: template.is_mandatory,
            immediate: false,
        };
        write_method(&mut self.bytes, CHANNEL, &publish.into());
        write_content_header(&mut self.bytes, CHANNEL, template.size as u64, &raw_properties);
        let frame = self.bytes.len();
        write_body_frames(&mut self.bytes, CHANNEL, &body, payload_max);
        self.messages
            .push(EncodedMessage { body: frame + FRAME_OVERHEAD - 1, end: self.bytes.len() });
    }

    /// The next messages, stamped with the time, and their number: at most `most`, and not many more
    /// bytes than [`WRITE_BYTES`].
    pub(crate) fn next(&mut self, most: u64, now_ns: u64) -> (&[u8], u64) {
        let first = self.at;
        let begin = first.checked_sub(1).and_then(|before| self.messages.get(before));
        let begin = begin.map_or(0, |place| place.end);
        let mut end = begin;
        let mut count = 0;
        while let Some(place) = self.messages.get(self.at) {
            if count == most || end - begin >= WRITE_BYTES {
                break;
            }
            if let (true, Some(body)) = (self.is_stamped, self.bytes.get_mut(place.body..)) {
                stamp(body, now_ns, self.sent + count);
            }
            end = place.end;
            count += 1;
            self.at += 1;
        }
        self.sent += count;
        if self.at == self.messages.len() {
            self.at = 0;
        }
        (self.bytes.get(begin..end).unwrap_or_default(), count)
    }
}

/// Writes time and number into the stamp.
fn stamp(body: &mut [u8], now_ns: u64, number: u64) {
    if let Some(place) = body.first_chunk_mut::<8>() {
        *place = now_ns.to_be_bytes();
    }
    if let Some(place) = body.get_mut(12..STAMP_BYTES) {
        place.copy_from_slice(&number.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use amqp::frame::{FrameType, split_frame};

    use super::*;

    fn bodies(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        while let Some((frame, length)) = split_frame(bytes, 1 << 20).expect("frames") {
            if frame.frame_type == FrameType::Body {
                bodies.push(frame.payload.to_vec());
            }
            bytes = &bytes[length..];
        }
        bodies
    }

    fn template(size: usize) -> MessageTemplate {
        let routing_keys = ["a", "b", "c"].map(str::to_owned).to_vec();
        MessageTemplate { routing_keys, size, ttl_ms: Some(5..=7), ..MessageTemplate::default() }
    }

    #[test]
    fn stamps_continue_over_the_end_of_the_cycle() {
        let mut encoded =
            EncodedMessages::new(&template(40), 4088, &mut fastrand::Rng::with_seed(1));
        let mut number = 0;
        while number < 3 * encoded.messages.len() as u64 {
            let (bytes, count) = encoded.next(1000, 17);
            let bytes = bytes.to_vec();
            let found = bodies(&bytes);
            assert_eq!(found.len() as u64, count);
            for body in found {
                let stamp = Stamp::read(&body).expect("a stamp");
                assert_eq!((stamp.sent_ns, stamp.number), (17, number));
                assert!((5..=7).contains(&stamp.ttl_ms), "{stamp:?}");
                number += 1;
            }
        }
    }

    #[test]
    fn encoded_messages_respect_the_limits() {
        let mut encoded =
            EncodedMessages::new(&template(40), 4088, &mut fastrand::Rng::with_seed(1));
        assert_eq!(encoded.next(3, 0).1, 3);
        assert_eq!(encoded.next(0, 0), (&[][..], 0));
        let (bytes, _) = encoded.next(u64::MAX, 0);
        assert!(bytes.len() < WRITE_BYTES + 200, "{}", bytes.len());
    }

    #[test]
    fn bodies_carry_a_stamp_or_are_split_by_size() {
        let mut encoded =
            EncodedMessages::new(&template(16), 4088, &mut fastrand::Rng::with_seed(1));
        assert_eq!(bodies(encoded.next(1, 9).0), [vec![b'x'; 16]]);
        let mut encoded =
            EncodedMessages::new(&template(10_000), 4088, &mut fastrand::Rng::with_seed(1));
        let lengths: Vec<_> = bodies(encoded.next(1, 9).0).iter().map(Vec::len).collect();
        assert_eq!(lengths, [4088, 4088, 1824]);
    }
}
