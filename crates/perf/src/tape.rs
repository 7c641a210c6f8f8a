//! Messages that are encoded once and sent again and again.
//!
//! A tape is a cycle of messages as they go over the wire. What differs from message to message
//! (when it is sent, its TTL, its number) stands in the first octets of the body, in a fixed place,
//! and is written there when a stretch of the tape is about to be sent: no message is encoded twice.
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

/// Octets that the stamp takes; smaller bodies carry none.
pub(crate) const STAMP_OCTETS: usize = 20;

/// Octets of a tape below which messages are repeated: what one write should carry.
pub(crate) const WRITE_OCTETS: usize = 64 * 1024;

/// Different TTLs on a tape.
const TTL_CYCLE: usize = 8192;

/// Longest tape in octets; what does not fit is not sent.
const TAPE_OCTETS_MAX: usize = 256 * 1024 * 1024;

/// What every message of a producer has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recipe {
    pub(crate) exchange: String,
    /// At least one; the producer uses them in turn.
    pub(crate) routing_keys: Vec<String>,
    /// Octets of a body.
    pub(crate) size: usize,
    pub(crate) is_persistent: bool,
    pub(crate) is_mandatory: bool,
    pub(crate) priority_max: Option<u8>,
    /// A TTL for each message, drawn from here.
    pub(crate) ttl_ms: Option<RangeInclusive<u32>>,
}

/// What the first octets of a body say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stamp {
    /// Nanoseconds since the run began.
    pub(crate) sent_ns: u64,
    /// 0 for none.
    pub(crate) ttl_ms: u32,
    /// The message's number at its producer.
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

/// Where a message is on the tape.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where its body begins.
    body: usize,
    /// Where it ends.
    end: usize,
}

/// A cycle of encoded messages.
#[derive(Debug)]
pub(crate) struct Tape {
    octets: Vec<u8>,
    places: Vec<Place>,
    is_stamped: bool,
    /// The message that is sent next, by its index.
    at: usize,
    /// How many were sent.
    sent: u64,
}

impl Tape {
    /// Encodes the cycle; `payload_max` is the largest payload of a body frame.
    pub(crate) fn new(recipe: &Recipe, payload_max: u32, random: &mut fastrand::Rng) -> Self {
        let mut tape = Self {
            octets: Vec::new(),
            places: Vec::new(),
            is_stamped: recipe.size >= STAMP_OCTETS,
            at: 0,
            sent: 0,
        };
        let cycle = if recipe.ttl_ms.is_some() { TTL_CYCLE } else { 1 };
        let cycle = cycle.max(recipe.routing_keys.len());
        let mut keys = recipe.routing_keys.iter().cycle();
        while tape.octets.len() < WRITE_OCTETS || tape.places.len() < cycle {
            let key = keys.next().map(String::as_str).unwrap_or_default();
            tape.add(recipe, key, payload_max, random);
            if tape.octets.len() > TAPE_OCTETS_MAX {
                break;
            }
        }
        tape
    }

    fn add(&mut self, recipe: &Recipe, key: &str, payload_max: u32, random: &mut fastrand::Rng) {
        let ttl_ms = recipe.ttl_ms.clone().map(|range| random.u32(range));
        let expiration = ttl_ms.map(|ttl_ms| ttl_ms.to_string());
        let properties = Properties {
            delivery_mode: recipe.is_persistent.then_some(2),
            priority: recipe.priority_max.map(|max| random.u8(0..=max)),
            expiration: expiration.as_ref().map(String::as_bytes),
            ..Properties::default()
        };
        let mut raw_properties = Vec::new();
        properties.encode(&mut raw_properties);
        let mut body = vec![b'x'; recipe.size];
        if let (true, Some(place)) = (self.is_stamped, body.get_mut(8..12)) {
            place.copy_from_slice(&ttl_ms.unwrap_or(0).to_be_bytes());
        }
        let publish = BasicPublish {
            exchange: recipe.exchange.as_bytes(),
            routing_key: key.as_bytes(),
            mandatory: recipe.is_mandatory,
            immediate: false,
        };
        write_method(&mut self.octets, CHANNEL, &publish.into());
        write_content_header(&mut self.octets, CHANNEL, recipe.size as u64, &raw_properties);
        let frame = self.octets.len();
        write_body_frames(&mut self.octets, CHANNEL, &body, payload_max);
        self.places.push(Place { body: frame + FRAME_OVERHEAD - 1, end: self.octets.len() });
    }

    /// The next messages, at most `most` and not many more octets than a write should carry, stamped
    /// with the time; and how many they are.
    pub(crate) fn next(&mut self, most: u64, now_ns: u64) -> (&[u8], u64) {
        let first = self.at;
        let begin = first.checked_sub(1).and_then(|before| self.places.get(before));
        let begin = begin.map_or(0, |place| place.end);
        let mut end = begin;
        let mut count = 0;
        while let Some(place) = self.places.get(self.at) {
            if count == most || end - begin >= WRITE_OCTETS {
                break;
            }
            if let (true, Some(body)) = (self.is_stamped, self.octets.get_mut(place.body..)) {
                stamp(body, now_ns, self.sent + count);
            }
            end = place.end;
            count += 1;
            self.at += 1;
        }
        self.sent += count;
        if self.at == self.places.len() {
            self.at = 0;
        }
        (self.octets.get(begin..end).unwrap_or_default(), count)
    }
}

/// Writes time and number where the stamp has them.
fn stamp(body: &mut [u8], now_ns: u64, number: u64) {
    if let Some(place) = body.first_chunk_mut::<8>() {
        *place = now_ns.to_be_bytes();
    }
    if let Some(place) = body.get_mut(12..STAMP_OCTETS) {
        place.copy_from_slice(&number.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use amqp::frame::{FrameType, split_frame};

    use super::*;

    fn bodies(mut octets: &[u8]) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        while let Some((frame, length)) = split_frame(octets, 1 << 20).expect("frames") {
            if frame.frame_type == FrameType::Body {
                bodies.push(frame.payload.to_vec());
            }
            octets = &octets[length..];
        }
        bodies
    }

    fn recipe(size: usize) -> Recipe {
        let routing_keys = ["a", "b", "c"].map(str::to_owned).to_vec();
        Recipe { routing_keys, size, ttl_ms: Some(5..=7), ..Recipe::default() }
    }

    #[test]
    fn messages_are_stamped_and_numbered_over_the_end_of_the_tape() {
        let mut tape = Tape::new(&recipe(40), 4088, &mut fastrand::Rng::with_seed(1));
        let mut number = 0;
        while number < 3 * tape.places.len() as u64 {
            let (octets, count) = tape.next(1000, 17);
            let octets = octets.to_vec();
            let found = bodies(&octets);
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
    fn no_more_is_sent_than_allowed() {
        let mut tape = Tape::new(&recipe(40), 4088, &mut fastrand::Rng::with_seed(1));
        assert_eq!(tape.next(3, 0).1, 3);
        assert_eq!(tape.next(0, 0), (&[][..], 0));
        let (octets, _) = tape.next(u64::MAX, 0);
        assert!(octets.len() < WRITE_OCTETS + 200, "{}", octets.len());
    }

    #[test]
    fn small_bodies_carry_no_stamp_and_large_ones_are_split() {
        let mut tape = Tape::new(&recipe(16), 4088, &mut fastrand::Rng::with_seed(1));
        assert_eq!(bodies(tape.next(1, 9).0), [vec![b'x'; 16]]);
        let mut tape = Tape::new(&recipe(10_000), 4088, &mut fastrand::Rng::with_seed(1));
        let lengths: Vec<_> = bodies(tape.next(1, 9).0).iter().map(Vec::len).collect();
        assert_eq!(lengths, [4088, 4088, 1824]);
    }
}
